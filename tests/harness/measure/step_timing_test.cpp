#include "validate/harness/measure/step_timing.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/harness/measure/virtual_bench.h"

namespace lockstep::harness::step_timing_test {

constexpr IterationCounts counts{.warm_up = 1, .measured = 5, .most_seconds = 60};

std::int64_t kernels_of_step(VirtualBench& virtual_bench) {
  const std::int64_t before = virtual_bench.gpu.launches();
  StepObserver nobody;
  virtual_bench.trainer.step_alone(nobody, Samples::kept);
  virtual_bench.gpu.synchronize();
  virtual_bench.gpu.marks().forget();
  return virtual_bench.gpu.launches() - before;
}

StepTiming timed_step(VirtualBench& virtual_bench) {
  const std::unique_ptr<StepAlone> alone = time_steps(virtual_bench.bench, virtual_bench.trainer, counts);
  take_turns({alone.get()});
  return alone->result();
}

TEST_CASE("a step's time holds the few marks of a plain step, not one for every parameter") {
  // Making a mark costs the host 10 ms, more than a whole step.
  const VirtualTimes times{.event_creation = 10e-3, .event_on_device = 4e-6};
  VirtualBench virtual_bench(times);
  const StepTiming timing = timed_step(virtual_bench);
  const double kernels = static_cast<double>(kernels_of_step(virtual_bench)) * times.kernel;
  // Between the first mark and the last: those of forward, backward, its end, the optimizer, and the last.
  CHECK(timing.step.iteration.median == doctest::Approx(kernels + 5 * times.event_on_device).epsilon(1e-6));
  CHECK(timing.step.iteration.p90 == doctest::Approx(timing.step.iteration.median).epsilon(1e-6));
  CHECK(timing.step.iteration.count == counts.measured);
}

TEST_CASE("gradients are ready when the kernels before them are done, whatever their marks cost") {
  const VirtualTimes times{.event_on_device = 4e-6};
  VirtualBench plain({});
  VirtualBench marked(times);
  const StepTiming expected = timed_step(plain);
  const StepTiming timing = timed_step(marked);
  const auto parameters = static_cast<double>(marked.trainer.parameters().size());
  CHECK(timing.marked_backward.median - timing.step.backward.median ==
        doctest::Approx(parameters * times.event_on_device).epsilon(1e-6));
  // Marks are not spread evenly over backward; the scale takes their sum out, and at most one remains.
  for (std::size_t parameter = 0; parameter < expected.gradient_ready.size(); ++parameter)
    CHECK(std::abs(timing.gradient_ready[parameter] - expected.gradient_ready[parameter]) <
          3 * times.event_on_device);
}

TEST_CASE("layers follow each other without a wait for the host, also in the first of them") {
  const VirtualTimes times;
  VirtualBench virtual_bench(times);
  const StepTiming timing = timed_step(virtual_bench);
  for (const LayerTiming& layer : timing.layers) {
    const double kernels = std::round(layer.forward / times.kernel);
    CHECK(layer.forward == doctest::Approx(kernels * times.kernel).epsilon(1e-6));
    CHECK(kernels >= 1);
  }
}

}  // namespace lockstep::harness::step_timing_test
