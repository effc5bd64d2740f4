#include "sim/base/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <variant>

#include "sim/base/error.h"
#include "sim/base/json_record.h"
#include "sim/base/json_text.h"
#include "sim/base/nearest_name.h"

namespace lockstep {

using nlohmann::ordered_json;

// What was asked of one object. Kept by pointer text rather than by address, so that set() may move values
// about.
struct AskedKeys {
  std::vector<std::string> keys;
  bool all = false;
};

struct JsonDocumentState {
  std::string file_name;
  std::string base_pointer;
  ordered_json own;
  const ordered_json* value = &own;
  std::vector<std::string> problems;
  std::size_t unlisted_problems = 0;
  std::map<std::string, AskedKeys> asked;
  JsonRecord* record = nullptr;
};

namespace {

constexpr std::size_t most_problems_listed = 50;
constexpr std::size_t longest_assignment_path = 64;
constexpr double largest_exact_double = 9007199254740992.0;  // 2^53

const ordered_json absent_value;

void record(JsonDocumentState& state, std::string line) {
  if (std::find(state.problems.begin(), state.problems.end(), line) != state.problems.end())
    return;  // a value that is read twice is wrong once
  if (state.problems.size() < most_problems_listed)
    state.problems.push_back(std::move(line));
  else
    ++state.unlisted_problems;
}

std::string problem_line(const std::string& file_name, const std::string& pointer, std::string_view message) {
  const std::string place = pointer.empty() ? "" : abbreviated(pointer) + ": ";
  return fmt::format("{}: {}{}", file_name, place, message);
}

void ask(JsonDocumentState& state, const std::string& pointer, std::string_view key) {
  std::vector<std::string>& keys = state.asked[pointer].keys;
  if (std::find(keys.begin(), keys.end(), key) == keys.end())
    keys.emplace_back(key);
}

std::vector<std::string> split_path(std::string_view dotted_path) {
  std::vector<std::string> segments(1);
  for (const char letter : dotted_path)
    if (letter == '.')
      segments.emplace_back();
    else
      segments.back() += letter;
  return segments;
}

// One `--set`, for the messages about it.
struct Assignment {
  std::string_view file_name;
  std::string_view path;
  std::string_view value_text;
};

[[noreturn]] void refuse(const Assignment& assignment, std::string_view message) {
  throw ConfigError(fmt::format("{}: --set {}={}: {}", assignment.file_name, abbreviated(assignment.path),
                                abbreviated(assignment.value_text), message));
}

ordered_json& element_at(ordered_json& array, const std::string& segment, const std::string& pointer,
                         const Assignment& assignment) {
  std::size_t index = 0;
  const char* end = segment.data() + segment.size();
  const auto [rest, error] = std::from_chars(segment.data(), end, index);
  if (error != std::errc{} || rest != end || index >= array.size()) {
    refuse(assignment, fmt::format("{} is an array of {}; found \"{}\", expected an index below {}", pointer,
                                   array.size(), abbreviated(segment), array.size()));
  }
  return array[index];
}

ordered_json& descend(ordered_json& value, const std::string& segment, const std::string& pointer,
                      const Assignment& assignment) {
  if (value.is_array())
    return element_at(value, segment, pointer, assignment);
  if (value.is_null())
    value = ordered_json::object();
  if (!value.is_object()) {
    refuse(assignment, fmt::format("{} is {}, which has no \"{}\" inside; expected an object or an array",
                                   pointer, describe_value(value), abbreviated(segment)));
  }
  return value[segment];
}

ordered_json read_assigned_value(const Assignment& assignment) {
  try {
    return parse_json_text(assignment.value_text, "--set");
  } catch (const ConfigError&) {
    return ordered_json(std::string(assignment.value_text));
  }
}

void check_assignment(const Assignment& assignment, const std::vector<std::string>& segments) {
  if (!is_utf8(assignment.path) || !is_utf8(assignment.value_text))
    refuse(assignment, "found bytes that are not UTF-8 text");
  if (std::find(segments.begin(), segments.end(), "") != segments.end()) {
    refuse(assignment,
           "found an empty name in the path, expected names joined by dots such as cluster.nodes");
  }
  if (segments.size() > longest_assignment_path) {
    refuse(assignment, fmt::format("found a path of {} names, expected at most {}", segments.size(),
                                   longest_assignment_path));
  }
}

std::string describe_integers(std::int64_t minimum, std::int64_t maximum) {
  if (minimum == INT64_MIN && maximum == INT64_MAX)
    return "an integer";
  if (maximum == INT64_MAX)
    return fmt::format("an integer of at least {}", minimum);
  return fmt::format("an integer from {} to {}", minimum, maximum);
}

std::string describe_numbers(double minimum, double maximum, std::string_view meaning) {
  std::string text = "a number";
  if (std::isfinite(minimum) && minimum > std::numeric_limits<double>::lowest()) {
    text += std::isfinite(maximum) && maximum < std::numeric_limits<double>::max()
                ? fmt::format(" from {} to {}", minimum, maximum)
                : fmt::format(" of at least {}", minimum);
  } else if (std::isfinite(maximum) && maximum < std::numeric_limits<double>::max()) {
    text += fmt::format(" of at most {}", maximum);
  }
  return meaning.empty() ? text : fmt::format("{} ({})", text, meaning);
}

std::optional<std::int64_t> exact_integer(const ordered_json& value) {
  if (value.is_number_integer())
    return value.get<std::int64_t>();
  if (!value.is_number_float())
    return std::nullopt;
  const double number = value.get<double>();
  const bool is_exact = std::abs(number) <= largest_exact_double && std::trunc(number) == number;
  return is_exact ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
}

}  // namespace

JsonDocument::JsonDocument(std::unique_ptr<JsonDocumentState> state) : state_(std::move(state)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

JsonDocument JsonDocument::from_file(const std::string& path) {
  return from_text(read_json_file(path), path);
}

JsonDocument JsonDocument::from_text(std::string_view text, std::string file_name) {
  auto state = std::make_unique<JsonDocumentState>();
  state->own = parse_lockstep_file(text, file_name);
  state->file_name = std::move(file_name);
  return JsonDocument(std::move(state));
}

JsonDocument JsonDocument::from_value(const ordered_json& value, std::string file_name,
                                      std::string base_pointer) {
  auto state = std::make_unique<JsonDocumentState>();
  state->own = value;
  state->file_name = std::move(file_name);
  state->base_pointer = std::move(base_pointer);
  return JsonDocument(std::move(state));
}

JsonDocument JsonDocument::over(const ordered_json& value, std::string file_name) {
  auto state = std::make_unique<JsonDocumentState>();
  state->value = &value;
  state->file_name = std::move(file_name);
  return JsonDocument(std::move(state));
}

void JsonDocument::set(std::string_view dotted_path, std::string_view value_text) {
  const Assignment assignment{.file_name = state_->file_name, .path = dotted_path, .value_text = value_text};
  const std::vector<std::string> segments = split_path(dotted_path);
  check_assignment(assignment, segments);
  if (state_->value != &state_->own)
    state_->own = *std::exchange(state_->value, &state_->own);
  ordered_json* target = &state_->own;
  std::string pointer = state_->base_pointer;
  for (const std::string& segment : segments) {
    target = &descend(*target, segment, pointer.empty() ? "the document" : abbreviated(pointer), assignment);
    pointer = extended_pointer(pointer, segment);
  }
  *target = read_assigned_value(assignment);
}

void JsonDocument::record_into(JsonRecord& record) {
  state_->record = &record;
}

JsonReader JsonDocument::root() {
  return JsonReader(*state_->value, state_->base_pointer, *state_);
}

const ordered_json& JsonDocument::value() const {
  return *state_->value;
}

const std::string& JsonDocument::file_name() const {
  return state_->file_name;
}

std::vector<std::string> JsonDocument::problems() const {
  std::vector<std::string> lines = state_->problems;
  if (state_->unlisted_problems > 0)
    lines.push_back(fmt::format("... and {} more", state_->unlisted_problems));
  return lines;
}

void JsonDocument::throw_if_problems() const {
  if (!state_->problems.empty())
    throw ConfigError(problems());
}

// A kind that is looked for is one that may stand there.
bool JsonReader::is_of(std::string_view kind, bool answer) const {
  if (state_->record != nullptr) {
    state_->record->note_kind(pointer_, kind);
    state_->record->at(pointer_).is_free_text |= kind == "string";
  }
  return answer;
}

bool JsonReader::is_object() const {
  return is_of("object", value_->is_object());
}
bool JsonReader::is_array() const {
  return is_of("array", value_->is_array());
}
bool JsonReader::is_string() const {
  return is_of("string", value_->is_string());
}
bool JsonReader::is_number() const {
  return is_of("number", value_->is_number());
}
bool JsonReader::is_bool() const {
  return is_of("boolean", value_->is_boolean());
}
bool JsonReader::is_null() const {
  return value_->is_null();
}

const std::string& JsonReader::file_name() const {
  return state_->file_name;
}

JsonReader JsonReader::child(std::string_view key, const ordered_json& value) const {
  return JsonReader(value, extended_pointer(pointer_, key), *state_);
}

JsonReader JsonReader::missing(std::string_view key) const {
  JsonReader reader = child(key, absent_value);
  reader.is_missing_ = true;
  return reader;
}

// Also remembers that the key was asked for.
const ordered_json* JsonReader::find(std::string_view key) const {
  ask(*state_, pointer_, key);
  const auto found = value_->find(key);
  return found == value_->end() ? nullptr : &*found;
}

bool JsonReader::expect_object() const {
  if (!is_missing_ && !is_object())
    expected("an object");
  return !is_missing_ && is_object();
}

JsonReader JsonReader::required(std::string_view key) const {
  if (state_->record != nullptr)
    state_->record->note_key(pointer_, key, true);
  if (!expect_object())
    return missing(key);
  const ordered_json* value = find(key);
  if (value == nullptr) {
    problem(fmt::format("found no \"{}\", which is required", key));
    return missing(key);
  }
  return child(key, *value);
}

std::optional<JsonReader> JsonReader::optional(std::string_view key) const {
  if (state_->record != nullptr)
    state_->record->note_key(pointer_, key, false);
  const ordered_json* value = expect_object() ? find(key) : nullptr;
  return value == nullptr || value->is_null() ? std::nullopt : std::optional(child(key, *value));
}

std::vector<JsonReader> JsonReader::elements() const {
  std::vector<JsonReader> readers;
  if (!is_array()) {
    expected("an array");
    return readers;
  }
  for (const ordered_json& element : *value_)
    readers.push_back(child(std::to_string(readers.size()), element));
  return readers;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::members() const {
  std::vector<std::pair<std::string, JsonReader>> readers;
  if (!expect_object())
    return readers;
  state_->asked[pointer_].all = true;
  if (state_->record != nullptr)
    state_->record->at(pointer_).has_any_key = true;
  for (const auto& [key, value] : value_->get_ref<const ordered_json::object_t&>())
    readers.emplace_back(key, child(key, value));
  return readers;
}

void JsonReader::finish() const {
  if (state_->record != nullptr)
    state_->record->at(pointer_).is_closed = true;
  if (!expect_object())
    return;
  const AskedKeys& asked = state_->asked[pointer_];
  if (asked.all)
    return;
  for (const auto& [key, value] : value_->get_ref<const ordered_json::object_t&>())
    if (std::find(asked.keys.begin(), asked.keys.end(), key) == asked.keys.end())
      describe_unknown_key(key, asked.keys);
}

void JsonReader::describe_unknown_key(const std::string& key, const std::vector<std::string>& asked) const {
  if (state_->problems.size() == most_problems_listed) {
    ++state_->unlisted_problems;  // nobody will read the description
    return;
  }
  child(key, absent_value).problem("found an unknown key; " + describe_choices(key, asked));
}

std::string JsonReader::text() const {
  is_of("string", true);
  if (value_->is_string() && value_->get_ref<const std::string&>().find('\0') == std::string::npos)
    return value_->get<std::string>();
  expected(value_->is_string() ? "a string without NUL"
                               : "a string");  // the system would read a file's name up to it
  return {};
}

bool JsonReader::boolean() const {
  if (is_bool())
    return value_->get<bool>();
  expected("true or false");
  return false;
}

std::int64_t JsonReader::integer(std::int64_t minimum, std::int64_t maximum) const {
  if (state_->record != nullptr)
    state_->record->note_minimum(pointer_, "integer", static_cast<double>(minimum));
  const std::optional<std::int64_t> number = exact_integer(*value_);
  if (number && *number >= minimum && *number <= maximum)
    return *number;
  expected(describe_integers(minimum, maximum));
  return std::clamp<std::int64_t>(0, minimum, maximum);
}

double JsonReader::number(double minimum, double maximum, std::string_view meaning) const {
  if (state_->record != nullptr)
    state_->record->note_minimum(pointer_, "number", minimum);
  if (value_->is_number()) {
    const double number = value_->get<double>();
    if (number >= minimum && number <= maximum)
      return number;
  }
  expected(describe_numbers(minimum, maximum, meaning));
  return std::clamp(0.0, minimum, maximum);
}

std::string JsonReader::one_of(std::span<const std::string> valid) const {
  if (state_->record != nullptr)
    state_->record->note_choices(pointer_, {valid.begin(), valid.end()});
  const bool is_text = value_->is_string();
  const std::string found = is_text ? value_->get<std::string>() : "";
  if (is_text && std::find(valid.begin(), valid.end(), found) != valid.end())
    return found;
  expected("a valid name; " + describe_choices(found, valid));
  return valid.empty() ? "" : valid.front();
}

template <class T>
T JsonReader::quantity(Parsed<T> (*parse)(std::string_view), std::string_view example, T fallback) const {
  if (state_->record != nullptr)
    state_->record->note_quantity(pointer_, example);
  if (!value_->is_string()) {
    expected(fmt::format("a quantity with a unit such as \"{}\"", example));
    return fallback;
  }
  const Parsed<T> parsed = parse(value_->get_ref<const std::string&>());
  if (const auto* failure = std::get_if<ParseFailure>(&parsed)) {
    problem(fmt::format("found {}: {}", describe_value(*value_), abbreviated(failure->message)));
    return fallback;
  }
  return std::get<T>(parsed);
}

// The fallback of a rate is 1 rather than 0, so that a caller may divide by it before the problems are
// thrown.
Bytes JsonReader::bytes() const {
  return quantity(parse_bytes, "25 MiB", Bytes{0});
}
Bandwidth JsonReader::bandwidth() const {
  return quantity(parse_bandwidth, "450 GB/s", Bandwidth{1});
}
Duration JsonReader::duration() const {
  return quantity(parse_duration, "3 us", Duration::zero());
}
Horizon JsonReader::horizon() const {
  return quantity(parse_horizon, "30 days", Horizon{0});
}
Flops JsonReader::flops() const {
  return quantity(parse_flops, "2.1 GFLOP", Flops{0});
}
FlopRate JsonReader::flop_rate() const {
  return quantity(parse_flop_rate, "312 TFLOP/s", FlopRate{1});
}
std::int64_t JsonReader::milliwatts() const {
  return quantity(parse_power, "300 W", std::int64_t{0});
}

void JsonReader::problem(std::string_view message) const {
  if (!is_missing_)
    record(*state_, problem_line(state_->file_name, pointer_, message));
}

void JsonReader::expected(std::string_view expectation) const {
  problem(fmt::format("found {}, expected {}", describe_value(*value_), expectation));
}

}  // namespace lockstep
