#include <fmt/format.h>

#include <cmath>

#include "sim/base/quantity_text.h"
#include "sim/report/text/sections.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

std::string time_text(Microseconds time) {
  constexpr std::int64_t minute = 60'000'000;
  return time.count() < minute ? format_duration(Duration::microseconds(time.count()))
                               : format_horizon(Horizon{time.count() / 1'000'000});
}

std::string loss_text(Horizon horizon, double share) {
  const double seconds = share * static_cast<double>(horizon.count());
  return fmt::format("{} ({})", format_horizon(Horizon{std::llround(seconds)}), percentage(share, 1));
}

std::string choice_text(const IntervalChoice& choice) {
  return fmt::format("{}: {} useful", time_text(choice.interval), percentage(choice.fraction, 1));
}

}  // namespace

std::string goodput_text(const Goodput& goodput, const TextStyle& style) {
  const Checkpointing& checkpointing = goodput.checkpointing;
  TextTable table({Align::left, Align::left});
  table.add_row(
      {"useful time",
       fmt::format("{}   (simulated {} to {}: 5th to 95th percentile of {} histories)",
                   style.bold(percentage(goodput.expected.useful, 1)), percentage(goodput.simulated_p5, 1),
                   percentage(goodput.simulated_p95, 1), goodput.histories)});
  table.add_row({"failures", fmt::format("{:.1f}, one every {}", goodput.expected_failures,
                                         time_text(checkpointing.failures.mtbf))});
  table.add_row(
      {"checkpoint", fmt::format("{} in {}, every {} of work", format_bytes(checkpointing.bytes),
                                 format_duration(checkpointing.time), time_text(checkpointing.interval))});
  table.add_row({"lost to checkpoints", loss_text(goodput.horizon, goodput.expected.checkpoint)});
  table.add_row({"lost to rework", loss_text(goodput.horizon, goodput.expected.rework)});
  table.add_row({"lost to restarts", loss_text(goodput.horizon, goodput.expected.restart)});
  table.add_row({"best interval, Young", choice_text(goodput.young)});
  table.add_row({"best interval, Daly", choice_text(goodput.daly)});
  table.add_row({"best interval, simulated", choice_text(goodput.simulated)});
  return style.heading(fmt::format("Goodput over {}", format_horizon(goodput.horizon))) +
         table.text(section_indent);
}

}  // namespace lockstep
