#include "sim/report/input_report.h"

#include <algorithm>

#include "sim/run/describe_input.h"

namespace lockstep {
namespace {

// The pipeline's parts by what they need for a batch; the first of those that tie.
void find_slowest(InputReport& report) {
  const InputWork& work = report.work;
  if (work.workers == 0) {
    report.batch_interval = work.reading + work.preparing + work.copying;
    report.slowest = report.batch_interval > Duration::zero() ? "training loop" : "";
    return;
  }
  const auto consider = [&](const char* part, Duration interval) {
    if (interval > report.batch_interval) {
      report.slowest = part;
      report.batch_interval = interval;
    }
  };
  consider("workers", scaled(work.reading + work.preparing, 1, work.workers));
  consider("storage", work.reading);
  consider("copy", work.copying);
}

double share_padded(const BatchLengths& lengths) {
  return 1 - static_cast<double>(lengths.mean_own().parts_per_million()) /
                 static_cast<double>(lengths.mean_padded().parts_per_million());
}

}  // namespace

InputReport report_input(const Scenario& scenario, const InputWork& work, Duration iteration) {
  InputReport report{.work = work};
  find_slowest(report);
  if (scenario.input->dataset_samples) {
    report.epoch = deal({.samples = *scenario.input->dataset_samples,
                         .ranks = scenario.cluster.ranks(),
                         .batch = scenario.model.batch_per_gpu,
                         .micro_batches = scenario.training.gradient_accumulation,
                         .drop_last = scenario.input->drop_last});
    report.epoch_seconds = iteration.in_seconds() * static_cast<double>(report.epoch->iterations);
  }
  if (scenario.input->lengths)
    report.padding = share_padded(describe_lengths(scenario));
  return report;
}

}  // namespace lockstep
