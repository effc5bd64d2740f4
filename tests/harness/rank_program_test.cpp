// One rank's program on backends of its own making: the CPU's device, and communicators that fail.

#include "validate/harness/rank_program.h"

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "tests/harness/communication/local_group.h"
#include "tests/support/program.h"
#include "validate/harness/communication/local_communicator.h"
#include "validate/harness/device/cpu_device.h"

namespace lockstep::harness::rank_program_test {

Options tiny_options() {
  Options options;
  options.model = {.name = "mlp", .sizes = {{"hidden", 16}, {"inputs", 16}, {"layers", 2}}, .batch = 4};
  options.iterations.bucket_caps_mb = {1};
  options.iterations.overlaps = {true};
  options.is_quiet = true;
  return options;
}

// What two ranks' programs ended with, and what they told their users.
struct Outcome {
  std::vector<int> exit_codes = {-1, -1};
  std::vector<std::string> told = {"", ""};
};

Outcome run_two_ranks(const Backend& backend, const Options& options,
                      const std::function<void(int rank)>& on_lost, bool tells_same_place = false) {
  const Listener listener;
  Outcome outcome;
  auto ranks = start_ranks(2, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    Rendezvous::Options meeting = options_of(listener, rank, 2);
    if (tells_same_place)
      meeting.world.local_rank = 0;
    meeting.on_lost = [&, rank](const std::string&, int) { on_lost(rank); };
    Rendezvous rendezvous(meeting);
    try {
      outcome.exit_codes[index] = run_rank(
          {.rendezvous = rendezvous,
           .options = options,
           .backend = backend,
           .tell_user = [&, index](const Failure& failure) { outcome.told[index] = failure.lines.front(); }});
    } catch (const FailedRank& failed) {
      outcome.exit_codes[index] = failed.exit_code;
    }
  });
  join(ranks);
  return outcome;
}

std::unique_ptr<Device> make_processor(const World&) {
  return make_cpu_device();
}

// A GPU that rank 0's neighbours have heard is lost; set by the test that uses it.
struct Hearing {
  std::promise<void> promise;
  std::shared_future<void> heard = promise.get_future().share();
  bool was_first = false;  // before what failed was destroyed
};
Hearing* hearing = nullptr;

// Rank 1's fails at once, and takes its end for as long as rank 0 does not know.
class Stuck final : public LocalCommunicator {
 public:
  explicit Stuck(int rank) : rank_(rank) {}
  ~Stuck() override {
    if (rank_ == 1)
      hearing->was_first = hearing->heard.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  }
  int rank() const override { return rank_; }
  int size() const override { return 2; }
  Ticket start_broadcast(Tensor, int) override {
    if (rank_ == 0)
      hearing->heard.wait();
    throw EnvironmentError(rank_ == 0 ? "rank 1 is gone" : "the GPU fell off its bus");
  }

 private:
  int rank_;
};

TEST_CASE("Other ranks and the user are told of a failure before what failed is destroyed") {
  Hearing here;
  hearing = &here;
  Options options = tiny_options();
  options.checks = true;
  const Backend backend{
      .name = "stuck",
      .pins_ranks = false,
      .make_device = make_processor,
      .make_communicator = [](Rendezvous& rendezvous, Device&) -> std::unique_ptr<Communicator> {
        return std::make_unique<Stuck>(rendezvous.world().rank);
      },
      .gpu_of = [](Device&) { return std::string(); }};
  const Outcome outcome = run_two_ranks(backend, options, [&](int rank) {
    if (rank == 0)
      here.promise.set_value();
  });
  CHECK(here.was_first);
  CHECK(outcome.exit_codes == std::vector<int>{exit_environment, exit_environment});
  CHECK(outcome.told[1] == "the GPU fell off its bus");
}

// Two ranks over Gloo, whose devices say that they are one GPU.
Backend sharing_backend() {
  Backend backend = linked_backend();
  backend.gpu_of = [](Device&) { return std::string("GPU-0"); };
  return backend;
}

void nobody_is_lost(int) {}

TEST_CASE("Times of ranks that share a GPU are refused on all of them, with what to do") {
  const Outcome outcome = run_two_ranks(sharing_backend(), tiny_options(), nobody_is_lost);
  CHECK(outcome.exit_codes == std::vector<int>{exit_wrong_input, exit_wrong_input});
  for (const std::string& told : outcome.told)
    testing::check_says(told, {"ranks 0, 1 share GPU GPU-0", "--share-gpus", "--check"});
}

TEST_CASE("Where ranks share a GPU because their launcher gave them one local rank, that is said") {
  const Outcome outcome = run_two_ranks(sharing_backend(), tiny_options(), nobody_is_lost, true);
  CHECK(outcome.exit_codes == std::vector<int>{exit_wrong_input, exit_wrong_input});
  testing::check_says(outcome.told[0], {"the same local rank", "LOCAL_RANK"});
}

TEST_CASE("A check runs on a shared GPU") {
  Options options = tiny_options();
  options.checks = true;
  const Outcome outcome = run_two_ranks(sharing_backend(), options, nobody_is_lost);
  CHECK(outcome.exit_codes == std::vector<int>{exit_done, exit_done});
}

TEST_CASE("A measurement file says whether GPUs were shared") {
  const testing::Folder folder;
  Options options = tiny_options();
  options.output = folder.path() + "/run.json";
  options.shares_gpus = true;
  options.chosen = {.step = false,
                    .curve = false,
                    .copies = false,
                    .interference = false,
                    .kernels = false,
                    .iterations = false};
  for (const bool is_shared : {true, false}) {
    const Backend backend = is_shared ? sharing_backend() : linked_backend();
    const Outcome outcome = run_two_ranks(backend, options, nobody_is_lost);
    CHECK(outcome.exit_codes == std::vector<int>{exit_done, exit_done});
    CHECK(nlohmann::json::parse(testing::text_of(options.output))["machine"]["gpus_shared"] == is_shared);
  }
}

}  // namespace lockstep::harness::rank_program_test
