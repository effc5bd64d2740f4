#include "sim/engine/shared_port.h"

#include <doctest/doctest.h>

namespace lockstep::shared_port_test {

Time at(std::int64_t microseconds) {
  return Time{Duration::microseconds(microseconds)};
}

TEST_CASE("A flow alone takes exactly its work") {
  SharedPort port(Ratio::one());
  port.start(7, Duration::microseconds(10), at(3));
  CHECK(*port.next_finish() == at(13));
  CHECK(port.finish(at(13)).id == 7);
  CHECK_FALSE(port.next_finish());
}

TEST_CASE("On a port for one the second flow waits for the first") {
  SharedPort port(Ratio::one());
  port.start(0, Duration::microseconds(10), at(0));
  port.start(1, Duration::microseconds(4), at(2));
  CHECK(*port.next_finish() == at(10));
  CHECK(port.finish(at(10)).id == 0);
  CHECK(*port.next_finish() == at(10 + 4));
  const PortFlow second = port.finish(at(14));
  CHECK(second.id == 1);
  CHECK(second.begin == at(10));
}

TEST_CASE("A port for one and a half is shared by two, and a third waits") {
  SharedPort port(Ratio::percent(150));
  for (std::uint32_t flow = 0; flow < 3; ++flow) port.start(flow, Duration::microseconds(6), at(0));
  // Two at three quarters of full speed: 6 us take 8, and they end together in the order they began. The third
  // is then alone.
  CHECK(*port.next_finish() == at(8));
  CHECK(port.finish(at(8)).id == 0);
  CHECK(*port.next_finish() == at(8));
  CHECK(port.finish(at(8)).id == 1);
  CHECK(*port.next_finish() == at(8 + 6));
  CHECK(port.finish(at(14)).id == 2);
}

TEST_CASE("Flows of two messages each mingle, two at a time on a port for one") {
  SharedPort port(Ratio::one(), 2);
  for (std::uint32_t flow = 0; flow < 3; ++flow) port.start(flow, Duration::microseconds(6), at(0));
  // Two at half speed end at 12 us; the third begins then and is alone.
  CHECK(port.finish(at(12)).id == 0);
  CHECK(port.finish(at(12)).id == 1);
  const PortFlow third = port.finish(at(18));
  CHECK(third.id == 2);
  CHECK(third.begin == at(12));
}

TEST_CASE("As many flows as the port is wide do not slow each other") {
  SharedPort port(Ratio::one() * 3);
  for (std::uint32_t flow = 0; flow < 3; ++flow) port.start(flow, Duration::microseconds(6), at(flow));
  for (std::uint32_t flow = 0; flow < 3; ++flow) {
    CHECK(*port.next_finish() == at(6 + flow));
    CHECK(port.finish(at(6 + flow)).id == flow);
  }
}

TEST_CASE("Flows that begin at one instant end in the order they began") {
  SharedPort port(Ratio::one());
  for (std::uint32_t flow = 0; flow < 5; ++flow) port.start(flow, Duration::microseconds(1), at(0));
  for (std::uint32_t flow = 0; flow < 5; ++flow) {
    CHECK(*port.next_finish() == at(1 + flow));
    CHECK(port.finish(at(1 + flow)).id == flow);
  }
}

TEST_CASE("No flow ends early, whatever the rounding") {
  SharedPort port(Ratio::one());
  constexpr std::int64_t flows = 7;
  Time begin;
  for (std::uint32_t flow = 0; flow < flows; ++flow) {
    begin = Time{Duration::picoseconds(flow)};
    port.start(flow, Duration::picoseconds(1000 + flow), begin);
  }
  Time last;
  while (port.next_finish()) {
    last = *port.next_finish();
    port.finish(last);
  }
  // The port is never idle: all the work, 7 x 1000 + 0 + 1 + .. + 6 ps, and at most a picosecond a flow late.
  CHECK(last.since_start().picoseconds() >= 7021);
  CHECK(last.since_start().picoseconds() <= 7021 + flows);
}

}  // namespace lockstep::shared_port_test
