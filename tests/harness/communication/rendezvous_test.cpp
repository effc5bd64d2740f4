#include "validate/harness/communication/rendezvous.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "sim/base/error.h"
#include "tests/harness/communication/local_group.h"
#include "tests/harness/communication/wire_client.h"

namespace lockstep::harness::rendezvous_test {

using namespace std::chrono_literals;

// What a loss may take: 10 s is what rendezvous.h promises.
constexpr auto promised = 10s;

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A loss as one rank was told of it.
struct Loss {
  std::string message;
  int exit_code = 0;
};

// A rank whose losses can be waited for.
struct Observed {
  std::promise<Loss> promise;
  std::future<Loss> loss = promise.get_future();
  std::unique_ptr<Rendezvous> rendezvous;

  void meet(Rendezvous::Options options) {
    options.on_lost = [this](const std::string& message, int code) { promise.set_value({message, code}); };
    rendezvous = std::make_unique<Rendezvous>(std::move(options));
  }
  Loss heard() {
    REQUIRE(loss.wait_for(promised) == std::future_status::ready);
    return loss.get();
  }
};

// Says hello as rank 1 of 2 would once rank 0 is there, and then nothing of its own accord.
std::future<void> come_as_rank_1(const WireClient& client) {
  return std::async(std::launch::async, [&client] { client.send(client.hello(1, 2, known_secret)); });
}

// What the constructor or `body` of each rank threw, as text; "" for none. `kind` counts ConfigErrors.
template <class Body>
std::vector<std::string> config_errors(std::vector<Rendezvous::Options> all, Body body) {
  std::vector<std::string> errors(all.size());
  auto ranks = start_ranks(static_cast<int>(all.size()), [&](int index) {
    const auto i = static_cast<std::size_t>(index);
    try {
      Rendezvous rendezvous(all[i]);
      body(rendezvous);
    } catch (const ConfigError& error) {
      errors[i] = error.what();
    }
  });
  join(ranks);
  return errors;
}

TEST_CASE("A rank that is alone meets nobody and opens no socket") {
  Rendezvous rendezvous({.world = {.address = "no such host", .port = 1}});
  rendezvous.set("key", "value");
  CHECK(rendezvous.get("key") == "value");
  CHECK(rendezvous.exchange("what", 2.5) == std::vector<double>{2.5});
  rendezvous.barrier("all");
  rendezvous.check_same("arguments", "anything");
}

TEST_CASE("Every rank gets what every rank gave, by rank, and names may be used again") {
  const Listener listener;
  auto ranks = start_ranks(4, [&](int rank) {
    Rendezvous rendezvous(options_of(listener, rank, 4));
    for (int round = 0; round < 3; ++round) {
      const auto values = rendezvous.exchange("value", rank + 0.1 * round);
      for (int other = 0; other < 4; ++other)
        CHECK(values[static_cast<std::size_t>(other)] == other + 0.1 * round);
    }
    const auto texts = rendezvous.exchange("text", std::string(static_cast<std::size_t>(rank), '\0'));
    CHECK(texts[3] == std::string(3, '\0'));
  });
  join(ranks);
}

TEST_CASE("Who asks for a key waits until it is set") {
  const Listener listener;
  auto ranks = start_ranks(3, [&](int rank) {
    Rendezvous rendezvous(options_of(listener, rank, 3));
    // Each waits for the next, and only the last can begin.
    const auto key = [](int of) { return std::to_string(of); };
    const std::string value = rank == 2 ? "end" : rendezvous.get(key(rank + 1)) + key(rank);
    rendezvous.set(key(rank), value);
    CHECK(rendezvous.get(key(0)) == "end10");
  });
  join(ranks);
}

TEST_CASE("Nobody passes a barrier before all have come to it") {
  const Listener listener;
  std::atomic<int> came = 0;
  auto ranks = start_ranks(3, [&](int rank) {
    Rendezvous rendezvous(options_of(listener, rank, 3));
    for (int round = 1; round <= 50; ++round) {
      ++came;
      rendezvous.barrier("round");
      CHECK(came >= 3 * round);
      rendezvous.barrier("checked");
    }
  });
  join(ranks);
}

TEST_CASE("Ranks that reach rank 0 within the machine are reached there") {
  const Listener listener;
  auto ranks = start_ranks(2, [&](int rank) {
    const Rendezvous rendezvous(options_of(listener, rank, 2));
    CHECK(rendezvous.own_address() == "127.0.0.1");
  });
  join(ranks);
}

TEST_CASE("Ranks that agree go on; those that differ all learn who has what") {
  const Listener listener;
  std::vector<Rendezvous::Options> all;
  for (int rank = 0; rank < 3; ++rank) all.push_back(options_of(listener, rank, 3));
  const auto errors = config_errors(all, [](Rendezvous& rendezvous) {
    rendezvous.check_same("the model", "gpt");
    const bool is_odd_one = rendezvous.world().rank == 2;
    rendezvous.check_same("the bucket cap", is_odd_one ? "5 MiB" : "25 MiB");
  });
  for (const std::string& error : errors) {
    CHECK(says(error, "ranks differ in the bucket cap; rank 0 has 25 MiB"));
    CHECK(says(error, "rank 2 has 5 MiB"));
    CHECK_FALSE(says(error, "rank 1"));
  }
}

TEST_CASE("A rank given twice is refused to all, the ones that come late too") {
  const Listener listener;
  std::vector<Rendezvous::Options> all;
  for (const int rank : {0, 2, 2}) all.push_back(options_of(listener, rank, 3));
  for (const std::string& error : config_errors(all, [](Rendezvous&) {}))
    CHECK(error == "two processes are told that they are rank 2 of 3");
}

TEST_CASE("Ranks that were told different world sizes all hear of it") {
  const Listener listener;
  std::vector<Rendezvous::Options> all;
  for (const int rank : {0, 1, 2}) all.push_back(options_of(listener, rank, rank == 0 ? 2 : 3));
  for (const std::string& error : config_errors(all, [](Rendezvous&) {})) {
    CHECK(says(error, "is told that there are 3 ranks, rank 0 that there are 2"));
  }
}

TEST_CASE("A port that is taken is named, and how to choose another") {
  const Listener listener;
  Rendezvous::Options options = options_of(listener, 0, 2);
  options.world.listener = -1;
  const std::string expected =
      "port " + std::to_string(listener.port) + " is taken; --port or MASTER_PORT chooses another";
  CHECK_THROWS_WITH_AS(Rendezvous{options}, expected.c_str(), ConfigError);
  ::close(listener.socket);
}

TEST_CASE("Who finds no rank 0 says where it looked, and what was wrong there") {
  const Listener listener;
  ::close(listener.socket);
  Rendezvous::Options options = options_of(listener, 1, 2);
  options.connect_timeout = 100ms;
  const std::string expected = "cannot reach rank 0 at 127.0.0.1:" + std::to_string(listener.port) +
                               " within 0.1 s (Connection refused)";
  CHECK_THROWS_WITH_AS(Rendezvous{options}, expected.c_str(), EnvironmentError);
}

TEST_CASE("Rank 0 names those who did not come") {
  const Listener listener;
  Rendezvous::Options options = options_of(listener, 0, 3);
  options.connect_timeout = 100ms;
  CHECK_THROWS_WITH_AS(Rendezvous{options}, "ranks 1, 2 of 3 did not come within 0.1 s", EnvironmentError);
}

TEST_CASE("A rank that failed and cannot give back what it uses is ended all the same") {
  const Listener listener;
  std::promise<int> ended;
  auto ranks = start_ranks(2, [&](int rank) {
    Rendezvous::Options options = options_of(listener, rank, 2);
    options.farewell_timeout = 10ms;
    options.on_lost = [&, rank](const std::string& message, int code) {
      if (rank == 1 && says(message, "cannot be given back"))
        ended.set_value(code);
    };
    Rendezvous rendezvous(options);
    if (rank == 0)
      return;
    rendezvous.report_failure("the GPU fell off its bus", 4);
    CHECK(ended.get_future().get() == 4);  // as a destructor that waits
  });
  join(ranks);
}

TEST_CASE("A process too many leaves a complete group alone") {
  const Listener listener;
  std::promise<void> refused;
  const std::shared_future<void> is_refused = refused.get_future().share();
  auto ranks = start_ranks(2, [&](int rank) {
    Rendezvous rendezvous(options_of(listener, rank, 2));
    rendezvous.barrier("complete");
    if (rank == 1) {
      CHECK_THROWS_WITH_AS(Rendezvous{options_of(listener, 1, 2)},
                           "two processes are told that they are rank 1 of 2", ConfigError);
      refused.set_value();
    }
    is_refused.wait();
    rendezvous.barrier("still together");
  });
  join(ranks);
}

TEST_CASE(
    "A rank whose connection closes without a goodbye is lost to all others, and whoever waits is freed") {
  const Listener listener;
  const Listener second;
  Observed zero;
  std::optional<WireClient> one(std::in_place, listener.port);
  auto coming = come_as_rank_1(*one);
  zero.meet(options_of(listener, 0, 2));
  coming.get();
  one.reset();
  const Loss loss = zero.heard();
  CHECK(loss.message == "rank 1 was lost (connection closed)");
  CHECK(loss.exit_code == 4);
  CHECK_THROWS_WITH_AS(zero.rendezvous->get("never"), "rank 1 was lost (connection closed)",
                       EnvironmentError);
  ::close(second.socket);
}

TEST_CASE("A rank that falls silent is lost") {
  const Listener listener;
  const WireClient one(listener.port);
  auto coming = come_as_rank_1(one);
  Observed zero;
  Rendezvous::Options options = options_of(listener, 0, 2);
  options.silence_timeout = 120ms;
  zero.meet(options);
  CHECK(zero.heard().message == "rank 1 was lost (silent for 0.12 s)");
}

TEST_CASE("Every rank hears which rank failed, why, and with what exit code to end") {
  const Listener listener;
  Observed all[4];
  auto ranks = start_ranks(4, [&](int rank) {
    all[rank].meet(options_of(listener, rank, 4));
    if (rank == 2)
      all[rank].rendezvous->report_failure("out of memory", 3);
  });
  join(ranks);
  for (const int rank : {0, 1, 3}) {
    const Loss loss = all[rank].heard();
    CHECK(loss.message == "rank 2 failed: out of memory");
    CHECK(loss.exit_code == 3);
  }
  for (Observed& one : all) one.rendezvous.reset();
  CHECK(all[2].loss.wait_for(0s) == std::future_status::timeout);
}

TEST_CASE("A rank that an exception ends leaves nobody waiting, rank 0 neither") {
  for (const int failing : {0, 1}) {
    const Listener listener;
    Observed other;
    auto ranks = start_ranks(2, [&](int rank) {
      if (rank != failing)
        return other.meet(options_of(listener, rank, 2));
      try {
        const Rendezvous rendezvous(options_of(listener, rank, 2));
        throw std::runtime_error("anything");
      } catch (const std::runtime_error&) {
      }
    });
    CHECK(other.loss.wait_for(promised) == std::future_status::ready);
    join(ranks);
    CHECK(other.heard().message == "rank " + std::to_string(failing) + " failed: it ended early");
  }
}

TEST_CASE("Ranks that finish one after the other are not taken for lost") {
  const Listener listener;
  Observed all[3];
  auto ranks = start_ranks(3, [&](int rank) { all[rank].meet(options_of(listener, rank, 3)); });
  join(ranks);
  all[1].rendezvous.reset();
  all[2].rendezvous->set("key", "value");
  CHECK(all[0].rendezvous->get("key") == "value");
  all[2].rendezvous.reset();
  all[0].rendezvous.reset();
  for (Observed& one : all) CHECK(one.loss.wait_for(0s) == std::future_status::timeout);
}

TEST_CASE("Rank 0 hears of a loss while it waits for the others to finish") {
  const Listener listener;
  Observed zero;
  std::optional<WireClient> one(std::in_place, listener.port);
  auto coming = come_as_rank_1(*one);
  zero.meet(options_of(listener, 0, 2));
  coming.get();
  auto leaving = std::async(std::launch::async, [&] { zero.rendezvous.reset(); });
  one.reset();
  CHECK(zero.heard().message == "rank 1 was lost (connection closed)");
  leaving.get();
}

}  // namespace lockstep::harness::rendezvous_test
