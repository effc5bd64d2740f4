#pragma once

// Tables and facts of a page.
//
// Idea:      a cell has the text that people read and, beside it, the number of the JSON document that it stands for
//            (HTML's data element), so that a program reads from the page what --json prints. Bars are drawn
//            inside their row: they line up with what they belong to and shrink with the screen.
// Invariant: a row's first cell heads it; every row has the table's columns.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

struct PageColumn {
  std::string name;
  enum class Kind : std::uint8_t { figure, words, long_words, bar } kind = Kind::figure;
};

// In percent of the bar's column.
struct BarPart {
  double left = 0;
  double width = 0;
  std::string title;
  std::string colour = {};    // CSS; empty: `hue`
  std::string hue = "hue-0";  // a class of style.css
};

struct PageCell {
  PageCell(std::string words) : text(std::move(words)) {}  // NOLINT: text is a cell
  PageCell(const char* words) : text(words) {}             // NOLINT
  PageCell(std::string words, nlohmann::ordered_json number)
      : text(std::move(words)), value(std::move(number)) {}
  PageCell(std::vector<BarPart> bar) : parts(std::move(bar)) {}  // NOLINT

  std::string text = {};
  nlohmann::ordered_json value = {};  // null: the cell stands for no number
  std::vector<BarPart> parts = {};
  std::string swatch = {};  // CSS colour before the text
  std::string style = {};   // a class of style.css beside the column's
};

// "-" of null, else what `text` makes of the number.
PageCell figure(const nlohmann::ordered_json& number, std::string (*text)(double));

class PageTable {
 public:
  PageTable(std::string caption, std::vector<PageColumn> columns);

  void add_row(std::vector<PageCell> cells, bool is_marked = false);
  bool is_empty() const { return rows_.empty(); }
  // What table.html shows; null of no rows, so that a template's section may ask for it.
  nlohmann::ordered_json view() const;

 private:
  std::string caption_;
  std::vector<PageColumn> columns_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
};

// A box of the first screen, for answer.html.
struct PageFact {
  std::string name;
  PageCell cell;
  std::string beside = {};  // a line below
};
nlohmann::ordered_json facts_view(const std::vector<PageFact>& facts);

// For warnings.html: to be merged into a page's view.
nlohmann::ordered_json warnings_view(const nlohmann::ordered_json& warnings);

}  // namespace lockstep
