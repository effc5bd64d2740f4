#include "sim/study/answers/sweep_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/report/text_table.h"
#include "sim/study/answers/sweep_shape.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_rows_shown = 30;
constexpr std::size_t widest_bar = 24;
constexpr std::size_t longest_error_shown = 90;

bool has_many_goals(const SweepRanking& ranking) {
  return ranking.question().goals.size() > 1;
}

std::string shortened(std::string text) {
  if (text.size() <= longest_error_shown) {
    return text;
  }
  text.resize(longest_error_shown);
  while ((static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U) {
    text.pop_back();  // a character is not cut in two
  }
  text.pop_back();
  return text + "...";
}

std::string distance(const SweepRanking& ranking, std::size_t row) {
  if (row == ranking.best()) {
    return "best";
  }
  if (!ranking.best()) {
    return "";
  }
  const double best = ranking.value(*ranking.best());
  const double signed_excess = ranking.value(row) - best;
  return best > 0 ? fmt::format("{:+.1f} %", 100 * signed_excess / best)
                  : fmt::format("{:+.4g}", signed_excess);
}

// Its length is the distance from the best row: what the choice would cost.
std::string bar(const SweepRanking& ranking, std::size_t row) {
  const double most = ranking.most_excess();
  const double part = most > 0 ? std::max(0.0, ranking.excess(row)) / most : 0;
  std::string bar;
  for (auto left = std::lround(part * static_cast<double>(widest_bar)); left > 0; --left) {
    bar += "█";
  }
  return bar;
}

std::vector<std::string> varied_cells(const SweepTable& table, std::size_t cell) {
  std::vector<std::string> cells;
  for (const ordered_json& value : table.grid.values_at(cell)) {
    cells.push_back(varied_text(value));
  }
  return cells;
}

// Why there is no value, where the result says it.
std::string reason_of(const SweepTable& table, const SweepRow& row, const std::string& key) {
  const auto found = std::find(table.keys.begin(), table.keys.end(), key + "_reason");
  if (found == table.keys.end()) {
    return "";
  }
  const ordered_json& reason = row.results[static_cast<std::size_t>(found - table.keys.begin())];
  return reason.is_string() ? shortened(reason.get<std::string>()) : "";
}

std::vector<std::string> value_cells(const SweepRanking& ranking, std::size_t place) {
  std::vector<std::string> cells;
  for (std::size_t goal = 0; goal < ranking.question().goals.size(); ++goal) {
    const bool has_value = ranking.has_value(place, goal);
    cells.push_back(has_value ? fmt::format("{:.6g}", ranking.value(place, goal)) : "-");
  }
  return cells;
}

std::string note_of(const SweepTable& table, const SweepRanking& ranking, const SweepRow& row,
                    std::size_t place) {
  if (!row.error.empty()) {
    return "error: " + shortened(row.error);
  }
  if (!ranking.has_value(place)) {
    return reason_of(table, row, ranking.key_of(0));
  }
  return ranking.will_do(place) ? bar(ranking, place) : ranking.objection(place);
}

void add_row(TextTable& text, const SweepTable& table, const SweepRanking& ranking, std::size_t place) {
  const SweepRow row = table.rows[place];
  std::vector<std::string> cells = varied_cells(table, row.cell);
  const std::vector<std::string> values = value_cells(ranking, place);
  cells.insert(cells.end(), values.begin(), values.end());
  cells.push_back(ranking.has_value(place) ? distance(ranking, place) : "");
  cells.push_back(note_of(table, ranking, row, place));
  text.add_row(std::move(cells));
}

TextTable table_with_titles(const SweepTable& table, const SweepRanking& ranking) {
  std::vector<std::string> titles;
  for (const SweepAxis& axis : table.grid.axes()) {
    titles.push_back(axis.path);
  }
  for (std::size_t goal = 0; goal < ranking.question().goals.size(); ++goal) {
    titles.push_back(ranking.key_of(goal));
  }
  titles.emplace_back(ranking.question().goals.front().is_largest ? "below best" : "above best");
  std::vector<Align> columns(titles.size(), Align::right);
  columns.push_back(Align::left);
  TextTable text(columns);
  text.add_row(std::move(titles));
  return text;
}

// The rows at these places, as many as one likes to read.
template <typename PlaceOf>
std::string rows_text(const SweepTable& table, const SweepRanking& ranking, std::size_t count,
                      const PlaceOf& place_of) {
  TextTable text = table_with_titles(table, ranking);
  for (std::size_t index = 0; index < std::min(count, most_rows_shown); ++index) {
    add_row(text, table, ranking, place_of(index));
  }
  if (count > most_rows_shown) {
    text.add_note(fmt::format("... and {} rows more in the CSV", count - most_rows_shown));
  }
  return text.text(0);
}

std::string verdict(const SweepTable& table, const SweepRanking& ranking, std::size_t goal) {
  const auto best = ranking.best(goal);
  if (!best) {
    const std::string needs = ranking.needs();
    return fmt::format("no row{} has a value of {}\n", needs.empty() ? "" : " that " + needs,
                       ranking.key_of(goal));
  }
  return fmt::format("{} {}: {:.6g} at {}\n",
                     ranking.question().goals[goal].is_largest ? "largest" : "smallest", ranking.key_of(goal),
                     ranking.value(*best, goal), choice_text(table, table.rows[*best].cell));
}

std::string front_text(const SweepTable& table, const SweepRanking& ranking) {
  return fmt::format("\nPareto: {} of {} rows, of which none is beaten in one goal without losing another\n",
                     ranking.front().size(), table.rows.size()) +
         rows_text(table, ranking, ranking.front().size(),
                   [&](std::size_t index) { return ranking.front()[index]; });
}

ordered_json rows_json(const SweepTable& table, const std::vector<std::size_t>& places) {
  ordered_json rows = ordered_json::array();
  for (const std::size_t place : places) {
    rows.push_back(row_json(table, table.rows[place]));
  }
  return rows;
}

ordered_json best_json(const SweepTable& table, const SweepRanking& ranking, std::size_t goal) {
  const auto best = ranking.best(goal);
  return best ? row_json(table, table.rows[*best]) : ordered_json(nullptr);
}

void add_goals(ordered_json& json, const SweepTable& table, const SweepRanking& ranking) {
  json["goals"] = ordered_json::array();
  for (std::size_t goal = 0; goal < ranking.question().goals.size(); ++goal) {
    json["goals"].push_back(
        {{ranking.question().goals[goal].is_largest ? "maximize" : "minimize", ranking.key_of(goal)},
         {"best", best_json(table, ranking, goal)}});
  }
  json["pareto"] = rows_json(table, ranking.front());
}

}  // namespace

std::string to_text(const SweepTable& table, const SweepRanking& ranking) {
  std::string text =
      rows_text(table, ranking, table.rows.size(), [](std::size_t index) { return index; }) + "\n";
  for (std::size_t goal = 0; goal < ranking.question().goals.size(); ++goal) {
    text += verdict(table, ranking, goal);
  }
  if (const auto shape = find_shape(table, ranking)) {
    text += to_text(*shape);
  }
  return has_many_goals(ranking) ? text + front_text(table, ranking) : text;
}

ordered_json to_json(const SweepTable& table, const SweepRanking& ranking) {
  ordered_json json{{"schema", "lockstep.sweep/1"}, {"varied", ordered_json::array()}};
  for (const SweepAxis& axis : table.grid.axes()) {
    json["varied"].push_back(axis.path);
  }
  json[ranking.question().goals.front().is_largest ? "maximize" : "minimize"] = ranking.key_of(0);
  for (const SweepCondition& condition : ranking.question().conditions) {
    json["where"].push_back(condition.text);
  }
  json["rows"] = ordered_json::array();
  for (std::size_t place = 0; place < table.rows.size(); ++place) {
    json["rows"].push_back(row_json(table, table.rows[place]));
  }
  json["best"] = best_json(table, ranking, 0);
  if (has_many_goals(ranking)) {
    add_goals(json, table, ranking);
  }
  if (const auto shape = find_shape(table, ranking)) {
    json["shape"] = to_json(*shape);
  }
  return json;
}

}  // namespace lockstep
