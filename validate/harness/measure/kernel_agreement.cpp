#include "validate/harness/measure/kernel_agreement.h"

namespace lockstep::harness {
namespace {

void pass_once(Bench& bench, Trainer& trainer) {
  StepObserver nobody;
  trainer.pass(nobody);
  bench.device.synchronize();
  bench.device.forget_marks();
}

}  // namespace

std::string agree_on_kernels(Bench& bench, Trainer& trainer) {
  if (!bench.device.kernel_choices())
    return {};
  pass_once(bench, trainer);
  const std::string own = bench.device.kernel_choices().value_or("");
  const std::string choices = bench.ranks.exchange(bench.ranks.rank() == 0 ? own : "").front();
  bench.device.follow_kernel_choices(choices);
  pass_once(bench, trainer);
  return choices;
}

}  // namespace lockstep::harness
