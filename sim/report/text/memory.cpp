#include <fmt/format.h>

#include "sim/base/printable.h"
#include "sim/base/quantity_text.h"
#include "sim/report/text/sections.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

std::string verdict_of(const MemoryReport& memory, const TextStyle& style) {
  const auto total = static_cast<double>(memory.peak.total().count());
  const auto capacity = static_cast<double>(memory.capacity.count());
  const std::string fitting = memory.counts_activations ? "fits" : "without its activations fits";
  const std::string verdict =
      memory.fits() ? style.coloured(fitting, "\x1b[32m") : style.coloured("DOES NOT FIT", "\x1b[31m");
  return fmt::format("{} {}: {} used", verdict, format_bytes(memory.capacity), percentage(total, capacity));
}

// What would make it fit.
std::string remedies_text(const MemoryReport& memory, const TextStyle& style) {
  if (memory.remedies.empty())
    return "";
  TextTable table({Align::right, Align::left, Align::left});
  for (const MemoryRemedy& remedy : memory.remedies)
    table.add_row(
        {format_bytes(remedy.total), remedy.fits ? "fits" : "does not", printable_name(describe(remedy))});
  const std::string hopeless = describe_hopelessness(memory.remedies, memory.capacity);
  return style.heading("What would make it fit (each part with --set)") + table.text(section_indent) +
         (hopeless.empty() ? "" : indented(hopeless));
}

}  // namespace

std::string memory_text(const MemoryReport& memory, const TextStyle& style) {
  TextTable table({Align::left, Align::right});
  for (const MemoryPart& part : memory_parts)
    if (const Bytes bytes = memory.peak.*part.bytes; bytes > Bytes{0})
      table.add_row({words(part.key), format_bytes(bytes)});
  table.add_row({"total", format_bytes(memory.peak.total())});
  std::string text = style.heading("Memory of one GPU") + table.text(section_indent);
  if (memory.peak.framework > Bytes{0})
    text +=
        indented(fmt::format("the framework would show {} allocated, {} reserved",
                             format_bytes(memory.peak.allocated()), format_bytes(memory.peak.reserved())));
  if (!memory.moment.empty())
    text += indented(fmt::format("most {} into the iteration, {}", format_duration(memory.since_start),
                                 printable_name(memory.moment)));
  return text + indented(verdict_of(memory, style)) + remedies_text(memory, style);
}

std::string imbalance_text(const Imbalance& imbalance) {
  return indented(fmt::format("GPU 0 computes {} of an iteration, the others {}; it holds {}, they {}",
                              format_duration(imbalance.busy), format_duration(imbalance.others_busy),
                              format_bytes(imbalance.memory), format_bytes(imbalance.others_memory)));
}

}  // namespace lockstep
