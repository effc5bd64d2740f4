// Computing beside all-reduces of two ranks over 100 MB/s: every message of them is half the buffer, and a
// byte takes 10 ns on the wire.

#include "sim/study/bench/interference_bench.h"

#include <doctest/doctest.h>

#include "sim/study/bench/collective_table.h"
#include "tests/support/gloo_pair.h"

namespace lockstep::interference_bench_test {

using namespace testing;  // the pair of gloo_pair.h

TEST_CASE("all-reduces that take no core leave computing alone and go at the wire's pace") {
  const Paces found = paces_of({});
  CHECK(found.slowdown == doctest::Approx(1));
  CHECK(found.per_byte_s == doctest::Approx(wire_s).epsilon(0.001));
}

// At the wire's pace they take 3 ns of every 10.
TEST_CASE("computing loses the core time of the bytes that move") {
  const Paces found = paces_of({.per_byte_s = 3e-9});
  CHECK(found.slowdown == doctest::Approx(1 / (1 - 0.3)).epsilon(0.001));
  CHECK(found.per_byte_s == doctest::Approx(wire_s).epsilon(0.001));
}

// A quarter against three, twice: two in five parts. A byte of 8 ns then takes 20 ns.
TEST_CASE("where all want more of the core than there is, each in flight has its share") {
  const Paces found = paces_of({.per_byte_s = 8e-9, .share = 0.25});
  CHECK(found.per_byte_s == doctest::Approx(8e-9 / 0.4).epsilon(0.001));
  CHECK(found.slowdown == doctest::Approx(1 / (1 - 0.4)).epsilon(0.001));
}

// A message of half a mebibyte takes c = 8 ns a byte of the core, at a share of 0.4 so c / 0.4. With a wait
// as long as that its share is 0.2, one part to four: two in flight have two of six.
TEST_CASE("a wait before each step takes from short messages what it would cost them") {
  const double moving_s = mebibyte / 2 * 8e-9 / 0.4;
  const Core core{.per_byte_s = 8e-9, .share = 0.4, .wait_s = moving_s};
  CHECK(paces_of(core).per_byte_s == doctest::Approx(8e-9 * 3).epsilon(0.01));
  // A message 64 times as long hardly notices: 0.4 against 0.6 twice is four parts in seven.
  CHECK(paces_of(core, 64 * mebibyte).per_byte_s == doctest::Approx(8e-9 * 7 / 4).epsilon(0.02));
}

TEST_CASE("nobody waits for a core that computes nothing") {
  Scenario scenario = gloo_pair();
  const auto time = [&](double wait_s) {
    scenario.cluster.calibration = using_core(scenario, {.per_byte_s = 8e-9, .wait_s = wait_s});
    return CollectiveBench(scenario).predict(CollectiveOp::all_reduce, Bytes{1 << 20}).time;
  };
  CHECK(time(0.010) == time(0));
}

}  // namespace lockstep::interference_bench_test
