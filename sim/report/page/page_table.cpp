#include "sim/report/page/page_table.h"

#include <fmt/format.h>

#include "sim/base/check.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

std::string_view style_of(PageColumn::Kind kind) {
  switch (kind) {
    case PageColumn::Kind::figure:
      return "";
    case PageColumn::Kind::words:
      return "words";
    case PageColumn::Kind::long_words:
      return "long-words";
    case PageColumn::Kind::bar:
      break;
  }
  return "bar";
}

// Templates take an empty text for something, and false for nothing.
ordered_json text_or_false(std::string_view text) {
  return text.empty() ? ordered_json(false) : ordered_json(text);
}

ordered_json value_of(const PageCell& cell) {
  if (cell.value.is_null())
    return false;
  return cell.value.is_string() ? cell.value : ordered_json(cell.value.dump());
}

ordered_json view_of(const BarPart& part) {
  return {{"left", fmt::format("{:.2f}", part.left)},
          {"width", fmt::format("{:.2f}", part.width)},
          {"title", part.title},
          {"colour", text_or_false(part.colour)},
          {"hue", part.hue}};
}

ordered_json view_of(const PageCell& cell, PageColumn::Kind kind, bool heads_row) {
  std::string style(style_of(kind));
  if (!cell.style.empty())
    style += (style.empty() ? "" : " ") + cell.style;
  ordered_json view{{"element", heads_row ? "th" : "td"},
                    {"scope", heads_row ? ordered_json("row") : ordered_json(false)},
                    {"style", text_or_false(style)},
                    {"swatch", text_or_false(cell.swatch)},
                    {"value", value_of(cell)},
                    {"text", cell.text},
                    {"bar", kind == PageColumn::Kind::bar},
                    {"parts", ordered_json::array()}};
  for (const BarPart& part : cell.parts) view["parts"].push_back(view_of(part));
  return view;
}

}  // namespace

PageCell figure(const ordered_json& number, std::string (*text)(double)) {
  return number.is_null() ? PageCell("-") : PageCell(text(number.get<double>()), number);
}

PageTable::PageTable(std::string caption, std::vector<PageColumn> columns)
    : caption_(std::move(caption)), columns_(std::move(columns)) {}

void PageTable::add_row(std::vector<PageCell> cells, bool is_marked) {
  LOCKSTEP_CHECK(cells.size() == columns_.size(), "a row has the table's columns");
  ordered_json row{{"is_marked", is_marked}, {"cells", ordered_json::array()}};
  for (std::size_t i = 0; i < cells.size(); ++i)
    row["cells"].push_back(view_of(cells[i], columns_[i].kind, i == 0));
  rows_.push_back(std::move(row));
}

ordered_json PageTable::view() const {
  if (rows_.empty())
    return {};
  ordered_json view{{"caption", caption_}, {"columns", ordered_json::array()}, {"rows", rows_}};
  for (const PageColumn& column : columns_)
    view["columns"].push_back({{"heading", column.name}, {"style", text_or_false(style_of(column.kind))}});
  return view;
}

namespace {

constexpr std::size_t few_letters = 24;

ordered_json fact_style(const PageCell& cell) {
  const bool is_long = cell.text.size() > few_letters;
  return text_or_false(cell.style.empty() && is_long ? "many-words" : cell.style);
}

}  // namespace

ordered_json facts_view(const std::vector<PageFact>& facts) {
  ordered_json view{{"facts", ordered_json::array()}};
  for (const PageFact& fact : facts)
    view["facts"].push_back({{"name", fact.name},
                             {"text", fact.cell.text},
                             {"value", value_of(fact.cell)},
                             {"style", fact_style(fact.cell)},
                             {"beside", text_or_false(fact.beside)}});
  return view;
}

ordered_json warnings_view(const ordered_json& warnings) {
  ordered_json view{{"has_warnings", !warnings.empty()}, {"warnings", ordered_json::array()}};
  for (const ordered_json& warning : warnings) view["warnings"].push_back({{"warning", warning}});
  return view;
}

}  // namespace lockstep
