// What the harness measures on a GPU whose rates are known.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "tests/harness/models/tiny_models.h"
#include "tests/harness/stand_in/stand_in_run.h"
#include "validate/harness/measure/collective_curve.h"
#include "validate/harness/measure/copy_interference.h"
#include "validate/harness/measure/interference.h"
#include "validate/harness/measure/step_timing.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness::stand_in::measure_test {

// Every kernel lasts as long: a pass is some tens of milliseconds, a host's call a thousandth of a kernel.
ClockRates rates() {
  return {.launch = 5e-6,
          .event = 1e-6,
          .collective = 15e-6,
          .delay = 2e-6,
          .least_kernel = 2e-3,
          .flops = 1e15,
          .memory_bytes = 1e12,
          .link_latency = 20e-6,
          .link_bytes = 1e9};
}

// A run is a second or more of passes of known length; what its ends can add is one kernel that an operation
// begins or ends within, and launches: little more than 2 ms of a second.
constexpr double tolerance = 0.005;

void measure(const ClockRates& clock, int ranks, const std::function<void(Bench&, Trainer&)>& work) {
  Machine machine({.ranks = ranks, .gpus = ranks, .clock = clock, .computes = false});
  const auto ends = machine.run([&](int rank) {
    run_with_bench(machine, rank, [&](Bench& bench) {
      const std::unique_ptr<TrainingModel> model = make_model(bench.device, tiny_mlp());
      Trainer trainer(bench.device, bench.communicator, *model, {});
      work(bench, trainer);
    });
  });
  for (const RankEnd& end : ends)
    CHECK_MESSAGE(end.exit_code == exit_done, fmt::format("{}", fmt::join(end.lines, "; ")));
  for (const std::string& finding : machine.findings()) CHECK_MESSAGE(false, finding);
}

void check_interference(double computing, double communication) {
  ClockRates clock = rates();
  clock.compute_beside_collective = computing;
  clock.collective_beside_compute = communication;
  measure(clock, 2, [&](Bench& bench, Trainer& trainer) {
    const auto measured = measure_interference(bench, trainer, {4 << 20});
    REQUIRE(measured.size() == 1);
    const Interference& entry = measured.front();
    CHECK(entry.compute_beside / entry.compute_alone == doctest::Approx(computing).epsilon(tolerance));
    CHECK(entry.collective_beside / entry.collective_alone ==
          doctest::Approx(communication).epsilon(tolerance));
    // Of two ranks each byte crosses a link once each way.
    CHECK(entry.collective_alone ==
          doctest::Approx(clock.link_latency + (4 << 20) / clock.link_bytes).epsilon(tolerance));
  });
}

TEST_CASE("computing and communication that do not disturb each other are measured as 1.00 x") {
  check_interference(1, 1);
}

TEST_CASE("computing and communication that slow each other down are measured as they do") {
  check_interference(1.3, 1);
  check_interference(1.1, 1.4);
}

TEST_CASE("what computing loses beside copies is measured as it is, and where it loses nothing as 1.00 x") {
  for (const double factor : {1.0, 1.25}) {
    ClockRates clock = rates();
    clock.compute_beside_copy = factor;
    clock.memory_bytes = 1e11;
    measure(clock, 1, [&](Bench& bench, Trainer& trainer) {
      const auto measured = measure_copy_interference(bench, trainer);
      REQUIRE(measured.has_value());
      CHECK(measured->compute_beside / measured->compute_alone == doctest::Approx(factor).epsilon(tolerance));
      CHECK(measured->copy_alone == doctest::Approx(2 * (256 << 20) / clock.memory_bytes).epsilon(tolerance));
    });
  }
}

TEST_CASE("a curve's times in a row are the network's, and those from idle have the host's calls in them") {
  const ClockRates clock = rates();
  measure(clock, 2, [&](Bench& bench, Trainer&) {
    for (const CollectivePoint& point : measure_collective_curve(bench, 1 << 20)) {
      const double network = clock.link_latency + static_cast<double>(point.bytes) / clock.link_bytes;
      // Two events and the call itself: with less than that to do, the host sets the pace.
      const double host = clock.collective + 2 * clock.event;
      REQUIRE(point.time.back_to_back.has_value());
      CHECK(point.time.back_to_back->median == doctest::Approx(std::max(network, host)).epsilon(0.02));
      CHECK(point.time.from_idle.median >= network + clock.collective);
    }
  });
}

TEST_CASE("a step without communication lasts as long as its kernels") {
  const ClockRates clock = rates();
  measure(clock, 1, [&](Bench& bench, Trainer& trainer) {
    const std::unique_ptr<StepAlone> alone = time_steps(bench, trainer, {.warm_up = 1, .measured = 5});
    take_turns({alone.get()});
    const StepTiming timing = alone->result();
    const double kernels = timing.step.iteration.median / clock.least_kernel;
    CHECK(kernels == doctest::Approx(std::round(kernels)).epsilon(1e-4));
    CHECK(timing.step.forward.median + timing.step.backward.median + timing.step.optimizer.median ==
          doctest::Approx(timing.step.iteration.median).epsilon(tolerance));
  });
}

}  // namespace lockstep::harness::stand_in::measure_test
