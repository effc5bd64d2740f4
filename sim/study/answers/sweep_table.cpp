#include "sim/study/answers/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "sim/base/printable.h"
#include "sim/study/answers/result_examples.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// What names the scenario, repeats it, or is about the simulator.
constexpr std::array<std::string_view, 5> not_columns{"schema", "name", "bottleneck_link", "scenario",
                                                      "engine"};

// What stands open in the barest result is as the fullest has it.
void append_keys(const ordered_json& barest, const ordered_json& fullest, const std::string& prefix,
                 std::vector<std::string>& keys) {
  for (const auto& [name, found] : barest.items()) {
    if (prefix.empty() && std::find(not_columns.begin(), not_columns.end(), name) != not_columns.end()) {
      continue;
    }
    const ordered_json& full = fullest.at(name);
    const ordered_json& value = found.is_null() ? full : found;
    if (value.is_object()) {
      append_keys(value, full, prefix + name + ".", keys);
    } else if (!value.is_array()) {
      keys.push_back(prefix + name);
    }
  }
}

ordered_json value_at(const ordered_json& json, const std::string& dotted_key) {
  const std::size_t dot = dotted_key.find('.');
  const auto value = json.find(dotted_key.substr(0, dot));
  if (value == json.end() || value->is_null())
    return nullptr;
  return dot == std::string::npos ? *value : value_at(*value, dotted_key.substr(dot + 1));
}

std::string plain_text(const ordered_json& value) {
  if (value.is_null()) {
    return "";
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
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

// Beside the predicted iteration, where something was measured.
constexpr std::array measured_columns{"measured.iteration_time_s", "measured.iteration_time_p10_s",
                                      "measured.iteration_time_p90_s", "measured.error_percent"};

ordered_json iteration_of(const SweepTable& table, const SweepRow& row) {
  const auto key = std::find(table.keys.begin(), table.keys.end(), "iteration_time_s");
  return key == table.keys.end() ? ordered_json()
                                 : row.results[static_cast<std::size_t>(key - table.keys.begin())];
}

void append_measured(const SweepTable& table, const SweepRow& row, std::vector<std::string>& fields) {
  const MeasuredPoint* point = table.measured->of_cell(row.cell);
  if (point == nullptr) {
    fields.resize(fields.size() + measured_columns.size());
    return;
  }
  const auto text_of = [](const std::optional<double>& value) {
    return value ? ordered_json(*value).dump() : std::string();
  };
  const ordered_json predicted = row.error.empty() ? iteration_of(table, row) : ordered_json();
  fields.push_back(text_of(point->median_s));
  fields.push_back(text_of(point->p10_s));
  fields.push_back(text_of(point->p90_s));
  fields.push_back(predicted.is_number() ? text_of(point->error_percent(predicted.get<double>())) : "");
}

std::vector<std::string> header(const SweepTable& table) {
  std::vector<std::string> fields;
  for (const SweepAxis& axis : table.grid.axes()) {
    fields.push_back(axis.path);
  }
  fields.insert(fields.end(), table.keys.begin(), table.keys.end());
  if (table.measured)
    fields.insert(fields.end(), measured_columns.begin(), measured_columns.end());
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
  if (table.measured)
    append_measured(table, row, fields);
  fields.push_back(row.error);
  return fields;
}

}  // namespace

std::vector<std::string> result_keys() {
  std::vector<std::string> keys;
  append_keys(barest_result(), fullest_result(), "", keys);
  keys.insert(keys.end(), {"goodput.fraction", "goodput.samples_per_s"});  // of whose failures are stated
  return keys;
}

std::vector<ordered_json> pick_results(const ordered_json& result, const std::vector<std::string>& keys) {
  std::vector<ordered_json> values;
  for (const std::string& key : keys) {
    values.push_back(value_at(result, key));
  }
  return values;
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

void write_csv(const SweepTable& table, const std::function<void(std::string_view line)>& take) {
  take(csv_line(header(table)));
  for (std::size_t place = 0; place < table.rows.size(); ++place) {
    take(csv_line(fields_of(table, table.rows[place])));
  }
}

std::string to_csv(const SweepTable& table) {
  std::string text;
  write_csv(table, [&](std::string_view line) { text += line; });
  return text;
}

std::string varied_text(const ordered_json& value) {
  return value.is_null() ? "null" : plain_text(value);
}

std::string choice_text(const SweepTable& table, std::size_t cell) {
  std::string choice;
  const std::vector<ordered_json> values = table.grid.values_at(cell);
  for (std::size_t axis = 0; axis < values.size(); ++axis) {
    choice += fmt::format("{}{}={}", axis == 0 ? "" : "  ", table.grid.axes()[axis].path,
                          varied_text(values[axis]));
  }
  return choice;
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

}  // namespace lockstep
