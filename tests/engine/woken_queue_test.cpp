#include "sim/engine/woken_queue.h"

#include <doctest/doctest.h>

#include <vector>

#include "sim/engine/shared_port.h"

namespace lockstep::engine_woken_queue_test {

constexpr std::uint32_t alarm_tag = 7;

struct Ended {
  std::uint32_t flow;
  Duration at;
  bool operator==(const Ended&) const = default;
};

// Flows of a port for one, as their alarms end them.
std::vector<Ended> run(WokenQueue<SharedPort>& port, EventQueue& events) {
  std::vector<Ended> ended;
  Event event{};
  while (events.advance())
    while (events.next(event))
      if (event.tag == alarm_tag)
        port.wake(events, [&](const PortFlow& flow) {
          ended.push_back({flow.id, events.now().since_start()});
        });
      else
        port.start(event.subject, Duration::milliseconds(event.tag), events);
  return ended;
}

// One at a time: 3 ms, and then 2 ms.
TEST_CASE("Who waits for a turn is woken for when it ends") {
  EventQueue events;
  WokenQueue<SharedPort> port(alarm_tag, Ratio::one());
  events.push(Time{}, 0, 3);
  events.push(Time{}, 1, 2);
  CHECK(run(port, events) ==
        std::vector<Ended>{{0, Duration::milliseconds(3)}, {1, Duration::milliseconds(5)}});
}

// Two side by side: the second, of 1 ms, comes at 1 ms and ends at 2 ms, before the first's alarm at 5 ms.
TEST_CASE("An alarm moves forward for who ends sooner, and the old one does no harm") {
  EventQueue events;
  WokenQueue<SharedPort> port(alarm_tag, Ratio::one() * 2);
  events.push(Time{}, 0, 5);
  events.push(Time{} + Duration::milliseconds(1), 1, 1);
  CHECK(run(port, events) ==
        std::vector<Ended>{{1, Duration::milliseconds(2)}, {0, Duration::milliseconds(5)}});
}

}  // namespace lockstep::engine_woken_queue_test
