#include <fmt/format.h>

#include <algorithm>

#include "sim/base/printable.h"
#include "sim/base/quantity_text.h"
#include "sim/report/text/sections.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

constexpr std::size_t path_kinds_shown = 6;

// Pieces by the first word of their name: "backward layer4.2" is a piece of backward.
struct PieceKind {
  std::string name;
  Duration total;
  std::size_t pieces = 0;
  PathItem longest;
};

void add_piece(const PathItem& item, PieceKind& kind) {
  kind.total += item.end - item.start;
  kind.pieces += 1;
  if (item.end - item.start > kind.longest.end - kind.longest.start)
    kind.longest = item;
}

// Those that take longest first.
std::vector<PieceKind> kinds_of(const std::vector<PathItem>& path) {
  std::vector<PieceKind> kinds;
  for (const PathItem& item : path) {
    const std::string name = item.what.substr(0, item.what.find(' '));
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const PieceKind& k) { return k.name == name; });
    if (kind == kinds.end())
      kind = kinds.insert(kinds.end(), {.name = name, .total = {}, .pieces = 0, .longest = item});
    add_piece(item, *kind);
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const PieceKind& left, const PieceKind& right) { return left.total > right.total; });
  return kinds;
}

std::string longest_of(const PieceKind& kind) {
  if (kind.pieces == 1)
    return printable_name(kind.longest.what);
  return fmt::format("{} pieces, longest {} ({})", kind.pieces, printable_name(kind.longest.what),
                     format_duration(kind.longest.end - kind.longest.start));
}

}  // namespace

std::string critical_path_text(const std::vector<PathItem>& path, const TextStyle& style) {
  if (path.empty())
    return "";
  const Duration whole = path.back().end;  // the last iteration, which may be unlike the mean
  const std::vector<PieceKind> kinds = kinds_of(path);
  TextTable table({Align::left, Align::right, Align::right, Align::left});
  for (std::size_t kind = 0; kind < std::min(kinds.size(), path_kinds_shown); ++kind)
    table.add_row({printable_name(kinds[kind].name), format_duration(kinds[kind].total),
                   percentage(kinds[kind].total.in_seconds(), whole.in_seconds()), longest_of(kinds[kind])});
  return style.heading("Critical path: what the end of the iteration waits for") + table.text(section_indent);
}

}  // namespace lockstep
