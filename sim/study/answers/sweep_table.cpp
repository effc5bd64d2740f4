#include "sim/study/answers/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "sim/base/printable.h"
#include "sim/report/report_json.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_rows_shown = 30;
constexpr std::size_t widest_bar = 24;
constexpr std::size_t longest_error_shown = 90;

// What names the scenario, repeats it, or is about the simulator.
constexpr std::array<std::string_view, 5> not_columns{"schema", "name", "bottleneck_link", "scenario",
                                                      "engine"};

// Of which more is better, beside rates.
constexpr std::array<std::string_view, 4> gains{"scaling_efficiency", "mfu", "memory_bytes.fits",
                                                "communication.overlapped_s"};

void append_keys(const ordered_json& json, const std::string& prefix, std::vector<std::string>& keys) {
  for (const auto& [name, value] : json.items()) {
    if (prefix.empty() && std::find(not_columns.begin(), not_columns.end(), name) != not_columns.end()) {
      continue;
    }
    if (value.is_object()) {
      append_keys(value, prefix + name + ".", keys);
    } else if (!value.is_array()) {
      keys.push_back(prefix + name);
    }
  }
}

ordered_json value_at(const ordered_json& json, const std::string& dotted_key) {
  const std::size_t dot = dotted_key.find('.');
  const ordered_json& value = json.at(dotted_key.substr(0, dot));
  return dot == std::string::npos ? value : value_at(value, dotted_key.substr(dot + 1));
}

std::string plain_text(const ordered_json& value) {
  if (value.is_null()) {
    return "";
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// A value that was varied: here null is a choice, and must look like one.
std::string varied_text(const ordered_json& value) {
  return value.is_null() ? "null" : plain_text(value);
}

bool is_number_text(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

// What a spreadsheet would compute instead of showing it (OWASP, "CSV Injection"). A number is only shown.
bool is_formula(std::string_view text) {
  return !text.empty() && std::string_view("=+-@\t").find(text.front()) != text.npos && !is_number_text(text);
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    line += csv_field(field) + ",";
  }
  line.back() = '\n';
  return line;
}

std::vector<std::string> header(const SweepTable& table) {
  std::vector<std::string> fields;
  for (const SweepAxis& axis : table.grid.axes()) {
    fields.push_back(axis.path);
  }
  fields.insert(fields.end(), table.keys.begin(), table.keys.end());
  fields.emplace_back("error");
  return fields;
}

std::vector<std::string> fields_of(const SweepTable& table, const SweepRow& row) {
  std::vector<std::string> fields;
  for (const ordered_json& value : table.grid.values_at(row.cell)) {
    fields.push_back(varied_text(value));
  }
  for (const ordered_json& value : row.results) {
    fields.push_back(plain_text(value));
  }
  fields.push_back(row.error);
  return fields;
}

ordered_json row_json(const SweepTable& table, const SweepRow& row) {
  ordered_json json;
  const std::vector<ordered_json> values = table.grid.values_at(row.cell);
  for (std::size_t axis = 0; axis < values.size(); ++axis) {
    json[table.grid.axes()[axis].path] = values[axis];
  }
  for (std::size_t key = 0; key < table.keys.size(); ++key) {
    json[table.keys[key]] = row.results[key];
  }
  json["error"] = row.error.empty() ? ordered_json(nullptr) : ordered_json(row.error);
  return json;
}

// "exposed_communication" means breakdown_s.exposed_communication, which no count of edits would find.
std::string describe_keys(const std::string& wanted, const std::vector<std::string>& keys) {
  std::vector<std::string> last_names;
  for (const std::string& key : keys) {
    last_names.push_back(key.substr(key.rfind('.') + 1));
  }
  const auto nearest = nearest_name(wanted, keys) ? std::nullopt : nearest_name(wanted, last_names);
  const auto place =
      nearest ? std::find(last_names.begin(), last_names.end(), *nearest) - last_names.begin() : 0;
  return describe_choices(nearest ? keys[static_cast<std::size_t>(place)] : wanted, keys);
}

// The values of the goal's key, and how far each row is from the best.
class Ranking {
 public:
  Ranking(const SweepTable& table, const SweepGoal& goal)
      : table_(table), goal_(goal), best_(find_best_row(table, goal)) {
    for (std::size_t row = 0; best_ && row < table.rows.size(); ++row) {
      most_excess_ = std::max(most_excess_, is_number(row) ? excess(row) : 0);
    }
  }

  std::optional<std::size_t> best() const { return best_; }
  const SweepGoal& goal() const { return goal_; }
  bool is_number(std::size_t row) const { return table_.rows[row].results[goal_.key].is_number(); }
  double value(std::size_t row) const { return table_.rows[row].results[goal_.key].get<double>(); }
  bool is_choice(std::size_t row) const {
    return goal_.allows_out_of_memory || fits_in_memory(table_, table_.rows[row]);
  }

  std::string distance(std::size_t row) const {
    if (row == best_) {
      return "best";
    }
    if (!best_) {
      return "";
    }
    const double signed_excess = goal_.is_largest ? -excess(row) : excess(row);
    return value(*best_) > 0 ? fmt::format("{:+.1f} %", 100 * signed_excess / value(*best_))
                             : fmt::format("{:+.4g}", signed_excess);
  }
  // Its length is the distance from the best row: what the choice would cost.
  std::string bar(std::size_t row) const {
    const double part = best_ && most_excess_ > 0 ? std::max(0.0, excess(row)) / most_excess_ : 0;
    const auto length = static_cast<std::size_t>(std::lround(part * static_cast<double>(widest_bar)));
    std::string bar;
    for (std::size_t step = 0; step < length; ++step) {
      bar += "█";
    }
    return bar;
  }

 private:
  // How much worse; below 0 where only memory stands against a better row.
  double excess(std::size_t row) const {
    const double above = value(row) - value(*best_);
    return goal_.is_largest ? -above : above;
  }

  const SweepTable& table_;
  SweepGoal goal_;
  std::optional<std::size_t> best_;
  double most_excess_ = 0;
};

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

std::vector<std::string> varied_cells(const SweepTable& table, const SweepRow& row) {
  std::vector<std::string> cells;
  for (const ordered_json& value : table.grid.values_at(row.cell)) {
    cells.push_back(varied_text(value));
  }
  return cells;
}

// Why there is no value, where the result says it.
std::string reason_of(const SweepTable& table, const SweepRow& row, const SweepGoal& goal) {
  const auto found = std::find(table.keys.begin(), table.keys.end(), table.keys[goal.key] + "_reason");
  if (found == table.keys.end())
    return "";
  const ordered_json& reason = row.results[static_cast<std::size_t>(found - table.keys.begin())];
  return reason.is_string() ? shortened(reason.get<std::string>()) : "";
}

void add_text_row(TextTable& text, const SweepTable& table, const Ranking& ranking, std::size_t index) {
  const SweepRow& row = table.rows[index];
  std::vector<std::string> cells = varied_cells(table, row);
  if (!row.error.empty()) {
    cells.insert(cells.end(), {"-", "", "error: " + shortened(row.error)});
  } else if (!ranking.is_number(index)) {
    cells.insert(cells.end(), {"-", "", reason_of(table, row, ranking.goal())});
  } else {
    cells.insert(cells.end(),
                 {fmt::format("{:.6g}", ranking.value(index)), ranking.distance(index),
                  ranking.is_choice(index) ? ranking.bar(index) : "does not fit in memory"});
  }
  text.add_row(std::move(cells));
}

std::string verdict(const SweepTable& table, const Ranking& ranking, const SweepGoal& goal) {
  const std::string& key = table.keys[goal.key];
  if (!ranking.best()) {
    return fmt::format("\nno row that fits in memory has a value of {}\n", key);
  }
  std::string choice;
  const std::vector<std::string> cells = varied_cells(table, table.rows[*ranking.best()]);
  for (std::size_t axis = 0; axis < cells.size(); ++axis) {
    choice += fmt::format("{}{}={}", axis == 0 ? "" : "  ", table.grid.axes()[axis].path, cells[axis]);
  }
  return fmt::format("\n{} {}: {:.6g} at {}\n", goal.is_largest ? "largest" : "smallest", key,
                     ranking.value(*ranking.best()), choice);
}

}  // namespace

bool SweepTable::is_all_errors() const {
  return !rows.empty() &&
         std::all_of(rows.begin(), rows.end(), [](const SweepRow& row) { return !row.error.empty(); });
}

std::vector<std::string> result_keys() {
  std::vector<std::string> keys;
  append_keys(to_json(Report{}, LoadedScenario{}), "", keys);
  return keys;
}

std::vector<ordered_json> pick_results(const ordered_json& result, const std::vector<std::string>& keys) {
  std::vector<ordered_json> values;
  for (const std::string& key : keys) {
    values.push_back(value_at(result, key));
  }
  return values;
}

SweepGoal find_goal(const std::string& key, bool is_largest) {
  const char* const option = is_largest ? "--maximize" : "--minimize";
  const std::vector<std::string> keys = result_keys();
  const auto found = std::find(keys.begin(), keys.end(), key);
  if (found == keys.end()) {
    throw ConfigError(fmt::format("{}: found \"{}\", {}", option, key, describe_keys(key, keys)));
  }
  const bool is_gain = key.ends_with("per_s") || std::find(gains.begin(), gains.end(), key) != gains.end();
  const bool is_loss = key.ends_with("_s") && !is_gain;
  if (is_largest ? is_loss : is_gain) {
    throw ConfigError(fmt::format("{}: found \"{}\", of which the {} is best; expected {} {}", option, key,
                                  is_largest ? "least" : "most", is_largest ? "--minimize" : "--maximize", key));
  }
  return {.key = static_cast<std::size_t>(found - keys.begin()), .is_largest = is_largest};
}

bool fits_in_memory(const SweepTable& table, const SweepRow& row) {
  const auto found = std::find(table.keys.begin(), table.keys.end(), "memory_bytes.fits");
  if (found == table.keys.end()) {
    return true;
  }
  const ordered_json& fits = row.results[static_cast<std::size_t>(found - table.keys.begin())];
  return !fits.is_boolean() || fits.get<bool>();
}

std::optional<std::size_t> find_best_row(const SweepTable& table, const SweepGoal& goal) {
  const auto value = [&](std::size_t row) { return table.rows[row].results[goal.key].get<double>(); };
  std::optional<std::size_t> best;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (!table.rows[row].results[goal.key].is_number() ||
        !(goal.allows_out_of_memory || fits_in_memory(table, table.rows[row]))) {
      continue;
    }
    if (!best || (goal.is_largest ? value(row) > value(*best) : value(row) < value(*best))) {
      best = row;
    }
  }
  return best;
}

std::string csv_field(const std::string& content) {
  const std::string text = fmt::format("{}{}", is_formula(content) ? "'" : "", printable(content));
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char letter : text) {
    quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  }
  return quoted + "\"";
}

std::string to_csv(const SweepTable& table) {
  std::string text = csv_line(header(table));
  for (const SweepRow& row : table.rows) {
    text += csv_line(fields_of(table, row));
  }
  return text;
}

ordered_json to_json(const SweepTable& table, const SweepGoal& goal) {
  ordered_json json{{"schema", "lockstep.sweep/1"}, {"varied", ordered_json::array()}};
  for (const SweepAxis& axis : table.grid.axes()) {
    json["varied"].push_back(axis.path);
  }
  json[goal.is_largest ? "maximize" : "minimize"] = table.keys[goal.key];
  json["rows"] = ordered_json::array();
  for (const SweepRow& row : table.rows) {
    json["rows"].push_back(row_json(table, row));
  }
  const auto best = find_best_row(table, goal);
  json["best"] = best ? row_json(table, table.rows[*best]) : ordered_json(nullptr);
  return json;
}

std::string to_text(const SweepTable& table, const SweepGoal& goal) {
  const Ranking ranking(table, goal);
  std::vector<Align> columns(table.grid.axes().size() + 2, Align::right);
  columns.push_back(Align::left);
  TextTable text(columns);
  std::vector<std::string> titles = header(table);
  titles.resize(table.grid.axes().size());
  titles.insert(titles.end(), {table.keys[goal.key], goal.is_largest ? "below best" : "above best"});
  text.add_row(std::move(titles));
  for (std::size_t row = 0; row < std::min(table.rows.size(), most_rows_shown); ++row) {
    add_text_row(text, table, ranking, row);
  }
  if (table.rows.size() > most_rows_shown) {
    text.add_note(fmt::format("... and {} rows more in the CSV", table.rows.size() - most_rows_shown));
  }
  return text.text(0) + verdict(table, ranking, goal);
}

}  // namespace lockstep
