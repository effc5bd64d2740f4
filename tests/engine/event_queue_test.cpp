#include "sim/engine/event_queue.h"

#include <algorithm>
#include <vector>

#include "tests/support/property.h"

namespace lockstep::event_queue_test {

Time at(std::int64_t picoseconds) {
  return Time{} + Duration::picoseconds(picoseconds);
}

std::vector<Event> drain(EventQueue& queue) {
  std::vector<Event> events;
  Event event{};
  while (queue.advance())
    while (queue.next(event)) events.push_back(event);
  return events;
}

std::vector<std::uint32_t> subjects(const std::vector<Event>& events) {
  std::vector<std::uint32_t> result;
  for (const Event& event : events) result.push_back(event.subject);
  return result;
}

TEST_CASE("An empty queue does not advance") {
  EventQueue queue;
  Event event{};
  CHECK_FALSE(queue.advance());
  CHECK_FALSE(queue.next(event));
  CHECK(queue.pending() == 0);
}

TEST_CASE("Events come out by time, whatever the order they were pushed in") {
  EventQueue queue;
  queue.push(at(30), 3, 0);
  queue.push(at(10), 1, 0);
  queue.push(at(20), 2, 0);
  CHECK(subjects(drain(queue)) == std::vector<std::uint32_t>{1, 2, 3});
  CHECK(queue.now() == at(30));
}

TEST_CASE("Events of one instant come out in the order they were pushed") {
  EventQueue queue;
  for (std::uint32_t subject = 0; subject < 5; ++subject) queue.push(at(7), subject, 0);
  CHECK(subjects(drain(queue)) == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
}

// 1023 lies in the bucket of bit 9 seen from 0 and moves to lower buckets as the present comes nearer; what
// is pushed later for the same instant must still come after it.
TEST_CASE("Redistribution over buckets keeps the order of equal times") {
  EventQueue queue;
  queue.push(at(1023), 10, 0);
  queue.push(at(512), 1, 0);
  queue.push(at(1023), 11, 0);
  queue.push(at(768), 2, 0);
  std::vector<std::uint32_t> seen;
  Event event{};
  while (queue.advance())
    while (queue.next(event)) {
      seen.push_back(event.subject);
      if (event.subject == 1)
        queue.push(at(1023), 12, 0);
      if (event.subject == 2)
        queue.push(at(1023), 13, 0);
    }
  CHECK(seen == std::vector<std::uint32_t>{1, 2, 10, 11, 12, 13});
}

TEST_CASE("What is pushed for the present instant belongs to it") {
  EventQueue queue;
  queue.push(at(5), 1, 0);
  queue.push(at(6), 9, 0);
  REQUIRE(queue.advance());
  Event event{};
  REQUIRE(queue.next(event));
  queue.push(at(5), 2, 0);
  REQUIRE(queue.next(event));
  CHECK(event.subject == 2);
  CHECK_FALSE(queue.next(event));

  // Also after the instant was found to be over: advancing stays where it is.
  queue.push(at(5), 3, 0);
  REQUIRE(queue.advance());
  CHECK(queue.now() == at(5));
  REQUIRE(queue.next(event));
  CHECK(event.subject == 3);
}

TEST_CASE("Pushing into the past fails a check") {
  EventQueue queue;
  queue.push(at(100), 0, 0);
  REQUIRE(queue.advance());
  CHECK_THROWS_AS(queue.push(at(100 - 1), 1, 0), InternalError);
  CHECK_NOTHROW(queue.push(at(100), 1, 0));
}

TEST_CASE("Pending counts what was pushed and not yet taken") {
  EventQueue queue;
  queue.push(at(1), 0, 0);
  queue.push(at(2), 0, 0);
  CHECK(queue.pending() == 2);
  Event event{};
  REQUIRE(queue.advance());
  REQUIRE(queue.next(event));
  CHECK(queue.pending() == 2 - 1);
}

TEST_CASE("The far end of time is reached") {
  EventQueue queue;
  const std::int64_t last = (std::int64_t{1} << 62) - 1;
  queue.push(at(last), 2, 0);
  queue.push(at(0), 1, 0);
  CHECK(subjects(drain(queue)) == std::vector<std::uint32_t>{1, 2});
  CHECK(queue.now() == at(last));
}

// A stable sort by time is the whole contract when everything is pushed before the first event.
TEST_CASE("The queue is a stable sort by time") {
  check_for_all(500, "pop order is std::stable_sort's", [](const std::vector<std::uint16_t>& drawn) {
    // Squared, so that times are spread over many buckets and still collide often.
    EventQueue queue;
    std::vector<Event> expected;
    for (std::uint32_t subject = 0; subject < drawn.size(); ++subject) {
      const std::int64_t time = std::int64_t{drawn[subject]} * drawn[subject] % 5'000;
      queue.push(at(time), subject, 0);
      expected.push_back({time, subject, 0});
    }
    std::stable_sort(expected.begin(), expected.end(),
                     [](const Event& a, const Event& b) { return a.time < b.time; });
    RC_ASSERT(subjects(drain(queue)) == subjects(expected));
  });
}

// Every event pushes its successors while the queue runs; the reference keeps a list that it sorts afresh
// before each event, stably, so that equal times stay in push order.
TEST_CASE("The order holds for events pushed while others run") {
  check_for_all(300, "order under pushes from events", [](const std::vector<std::uint8_t>& delays) {
    EventQueue queue;
    std::vector<Event> waiting;
    std::vector<std::uint32_t> order;
    std::vector<std::uint32_t> expected;
    const auto children = [&](std::uint32_t subject, std::int64_t now, auto&& push) {
      for (std::uint32_t child = 2 * subject + 1; child <= 2 * subject + 2; ++child)
        if (child < delays.size())
          push(now + (delays[child] % 16) * (delays[child] % 16), child);
    };
    queue.push(at(0), 0, 0);
    Event event{};
    while (queue.advance())
      while (queue.next(event)) {
        order.push_back(event.subject);
        children(event.subject, event.time,
                 [&](std::int64_t time, std::uint32_t child) { queue.push(at(time), child, 0); });
      }
    waiting.push_back({0, 0, 0});
    while (!waiting.empty()) {
      std::stable_sort(waiting.begin(), waiting.end(),
                       [](const Event& a, const Event& b) { return a.time < b.time; });
      const Event first = waiting.front();
      waiting.erase(waiting.begin());
      expected.push_back(first.subject);
      children(first.subject, first.time, [&](std::int64_t time, std::uint32_t child) {
        waiting.push_back({time, child, 0});
      });
    }
    RC_ASSERT(order == expected);
  });
}

}  // namespace lockstep::event_queue_test
