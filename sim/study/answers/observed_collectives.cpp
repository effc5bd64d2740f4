#include "sim/study/answers/observed_collectives.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/median.h"
#include "sim/base/quantity_text.h"
#include "sim/collectives/collective.h"
#include "sim/report/prediction.h"

namespace lockstep {

std::vector<ObservedBesidePredicted> compare_collectives(const LoadedScenario& run,
                                                         const std::vector<ObservedCollective>& observed) {
  const Report report = predict(run).report;
  std::vector<ObservedBesidePredicted> rows;
  for (const ObservedCollective& each : observed) {
    std::vector<double> times;
    for (const CollectiveReport& predicted : report.communication.collectives)
      if (collective_op_name(predicted.op) == each.kind && predicted.bytes.count() == each.bytes)
        times.push_back(static_cast<double>((predicted.end - predicted.start).picoseconds()));
    rows.push_back(
        {.observed = each, .predicted_calls = static_cast<std::int64_t>(times.size()), .predicted = {}});
    if (!times.empty())
      rows.back().predicted = Duration::picoseconds(std::llround(median(times)));
  }
  return rows;
}

std::string describe_collectives(const std::vector<ObservedBesidePredicted>& rows) {
  if (rows.empty())
    return {};
  std::string text = "collectives, traced (with what they waited for other ranks) and predicted:\n";
  for (const auto& [observed, calls, predicted] : rows) {
    text += fmt::format("  {:<14} {:>10}  {:>4.1f} x {:>10}", observed.kind,
                        format_bytes(Bytes(observed.bytes)), observed.calls, format_duration(observed.time));
    text += calls == 0 ? std::string("  none of this size is predicted\n")
                       : fmt::format("  {:>4} x {:>10}  {:+.1f} %\n", calls, format_duration(predicted),
                                     100 * (static_cast<double>(predicted.picoseconds()) /
                                                static_cast<double>(observed.time.picoseconds()) -
                                            1));
  }
  return text;
}

}  // namespace lockstep
