#include "validate/harness/communication/gloo_communicator.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "sim/base/error.h"
#include "tests/harness/communication/local_group.h"
#include "validate/harness/backend.h"
#include "validate/harness/communication/local_communicator.h"
#include "validate/harness/device/half.h"

namespace lockstep::harness::gloo_communicator_test {

using namespace std::chrono_literals;

Tensor tensor_of(std::vector<float>& values) {
  return {values.data(), static_cast<std::int64_t>(values.size()), Type::fp32};
}

// A rank with a device and a communicator of its own.
struct Member {
  explicit Member(const Rendezvous::Options& options)
      : rendezvous(options), communicator(rendezvous, *device) {}

  std::unique_ptr<Device> device = linked_backend().make_device({});
  Rendezvous rendezvous;
  GlooCommunicator communicator;
};

template <class Body>
void with_members(int size, Body body) {
  const Listener listener;
  auto ranks = start_ranks(size, [&](int rank) {
    Member member(options_of(listener, rank, size));
    body(member, rank);
  });
  join(ranks);
}

// Small whole numbers: their sums are exact in whatever order, and differ from element to element.
float value_of(int rank, std::size_t element) {
  return static_cast<float>((static_cast<std::size_t>(rank) + 1) * (element % 16));
}

template <class Number>
void sum_exactly(int size, Type type, std::size_t elements) {
  with_members(size, [&](Member& member, int rank) {
    std::vector<Number> values(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = stored<Number>(value_of(rank, i));
    Communicator& communicator = member.communicator;
    communicator.wait(
        communicator.start_all_reduce({values.data(), static_cast<std::int64_t>(elements), type}));
    // 1 + 2 + ... + size times the element's own value.
    const int factor = size * (size + 1) / 2;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < elements; ++i)
      wrong += load(values[i]) == static_cast<float>(factor) * value_of(0, i) ? 0U : 1U;
    CHECK(wrong == 0);
  });
}

TEST_CASE("An all-reduce gives every rank the exact sum of whole numbers, in every type") {
  for (const int size : {2, 3}) {
    CAPTURE(size);
    sum_exactly<float>(size, Type::fp32, 1);
    sum_exactly<float>(size, Type::fp32, 300'007);  // more than a segment of Gloo's ring, no multiple of it
    sum_exactly<Bfloat16>(size, Type::bf16, 100'003);
    sum_exactly<Half>(size, Type::fp16, 100'003);
  }
}

TEST_CASE("Collectives that run together keep apart, in the order they were started") {
  with_members(3, [](Member& member, int rank) {
    constexpr std::size_t count = 12;
    std::vector<std::vector<float>> values(count);
    for (int round = 0; round < 2; ++round) {
      std::vector<Ticket> tickets;
      for (std::size_t i = 0; i < count; ++i) {
        values[i].assign(1'000 * (i % 3 + 1), static_cast<float>(i) + static_cast<float>(rank));
        tickets.push_back(member.communicator.start_all_reduce(tensor_of(values[i])));
      }
      for (std::size_t i = count; i-- > 0;) member.communicator.wait(tickets[i]);
      for (std::size_t i = 0; i < count; ++i)
        CHECK(values[i] == std::vector<float>(values[i].size(), 3 * static_cast<float>(i) + 0 + 1 + 2));
      member.communicator.forget_tickets();
    }
  });
}

TEST_CASE("A broadcast gives every rank what the root had") {
  with_members(3, [](Member& member, int rank) {
    for (const int root : {0, 2}) {
      std::vector<float> values(1'000, static_cast<float>(rank));
      member.communicator.wait(member.communicator.start_broadcast(tensor_of(values), root));
      CHECK(values == std::vector<float>(1'000, static_cast<float>(root)));
    }
  });
}

TEST_CASE("A collective begins after the mark before its start and ends before the mark after its wait") {
  with_members(2, [](Member& member, int) {
    std::vector<float> values(100'000, 1);
    const Mark before = member.device->mark();
    const Ticket ticket = member.communicator.start_all_reduce(tensor_of(values));
    member.communicator.wait(ticket);
    const Mark after = member.device->mark();
    const CollectiveTimes times = member.communicator.times_of(ticket, before);
    constexpr double clock_reading = 1e-4;  // two clocks are read one after the other, on a busy machine
    CHECK(times.start > -clock_reading);
    CHECK(times.end > times.start);
    CHECK(times.end < member.device->seconds_between(before, after) + clock_reading);
  });
}

TEST_CASE("A rank that goes away in a collective is an error for those who wait in it") {
  const Listener listener;
  std::atomic<int> losses = 0;
  auto ranks = start_ranks(3, [&](int rank) {
    Rendezvous::Options options = options_of(listener, rank, 3);
    options.on_lost = [&](const std::string& message, int) {
      CHECK(message == "rank 2 failed: it ended early");
      ++losses;
    };
    std::vector<float> values(1'000'000, 1);
    try {
      Member member(options);
      member.rendezvous.barrier("connected");
      if (rank == 2)
        throw std::runtime_error("anything");
      CHECK_THROWS_AS(member.communicator.wait(member.communicator.start_all_reduce(tensor_of(values))),
                      EnvironmentError);
    } catch (const std::runtime_error&) {
      CHECK(rank == 2);
    }
  });
  join(ranks);
  CHECK(losses == 2);
}

TEST_CASE("A single rank needs no library") {
  Rendezvous rendezvous({});
  const auto device = linked_backend().make_device({});
  const auto communicator = linked_backend().make_communicator(rendezvous, *device);
  CHECK(communicator->library() == "none");
  std::vector<float> values{1, 2};
  communicator->wait(communicator->start_all_reduce(tensor_of(values)));
  CHECK(values == std::vector<float>{1, 2});
}

}  // namespace lockstep::harness::gloo_communicator_test
