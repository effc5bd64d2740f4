#include <fmt/format.h>

#include <cmath>

#include "sim/base/quantity_text.h"
#include "sim/report/text/sections.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

std::string epoch_text(const Epoch& epoch, double seconds) {
  std::string text =
      fmt::format("{} iterations in {}; {} samples a rank", grouped(epoch.iterations),
                  format_horizon(Horizon{std::llround(seconds)}), grouped(epoch.samples_per_rank));
  if (epoch.repeated > 0)
    text += fmt::format(", {} repeated", epoch.repeated);
  if (epoch.left_out > 0)
    text += fmt::format(", {} left out", epoch.left_out);
  return text;
}

void add_pipeline(const InputWork& work, TextTable& table) {
  if (work.reading > Duration::zero())
    table.add_row({"read from storage", format_duration(work.reading)});
  if (work.preparing > Duration::zero())
    table.add_row({"prepared by one process",
                   fmt::format("{}, {} workers", format_duration(work.preparing), work.workers)});
  if (work.copying > Duration::zero())
    table.add_row({"copied to the device", format_duration(work.copying)});
}

}  // namespace

std::string input_text(const InputReport& input, const TextStyle& style) {
  TextTable table({Align::left, Align::left});
  add_pipeline(input.work, table);
  if (!input.slowest.empty())
    table.add_row(
        {"at best every", fmt::format("{} (the {})", format_duration(input.batch_interval), input.slowest)});
  if (input.padding)
    table.add_row({"padding", percentage(*input.padding, 1) + " of all tokens"});
  if (input.epoch)
    table.add_row({"epoch", epoch_text(*input.epoch, input.epoch_seconds)});
  return style.heading("Input of one GPU, a batch") + table.text(section_indent);
}

}  // namespace lockstep
