#include "sim/study/answers/sweep_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "sim/study/answers/result_examples.h"
#include "sim/study/answers/sweep_table.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// Of which more is better, beside rates.
constexpr std::array<std::string_view, 5> gains{"scaling_efficiency", "mfu", "memory_bytes.fits",
                                                "communication.overlapped_s", "goodput.fraction"};

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

std::size_t find_key(const std::string& option, const std::string& key) {
  const std::vector<std::string> keys = result_keys();
  const auto found = std::find(keys.begin(), keys.end(), key);
  if (found == keys.end()) {
    throw ConfigError(fmt::format("{}: found \"{}\", {}", option, key, describe_keys(key, keys)));
  }
  return static_cast<std::size_t>(found - keys.begin());
}

// What kind of value stands there where one is known.
std::vector<ordered_json> examples() {
  return pick_results(fullest_result(), result_keys());
}

ordered_json example_of(std::size_t key) {
  return examples()[key];
}

// Those of which there is a least and a most.
std::vector<std::string> keys_to_rank_by() {
  const std::vector<std::string> keys = result_keys();
  const std::vector<ordered_json> values = examples();
  std::vector<std::string> ranked;
  for (std::size_t place = 0; place < keys.size(); ++place)
    if (values[place].is_number() || values[place].is_boolean())
      ranked.push_back(keys[place]);
  return ranked;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

struct Sign {
  std::string_view text;
  Comparison comparison;
};

// The longer before those that they begin with.
constexpr std::array<Sign, 7> signs{{{"<=", Comparison::at_most},
                                     {">=", Comparison::at_least},
                                     {"==", Comparison::equal},
                                     {"!=", Comparison::unequal},
                                     {"<", Comparison::less},
                                     {">", Comparison::more},
                                     {"=", Comparison::equal}}};

std::optional<double> read_bound(std::string_view text) {
  if (text == "true" || text == "false") {
    return text == "true" ? 1 : 0;
  }
  double bound = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bound);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size() && std::isfinite(bound);
  return is_whole ? std::optional(bound) : std::nullopt;
}

[[noreturn]] void refuse_condition(const std::string& text, const std::string& why) {
  throw ConfigError(
      fmt::format("--where: found \"{}\", {}; expected a key that is true or false, such as "
                  "memory_bytes.fits, or a bound, such as \"iteration_time_s<0.5\"",
                  text, why));
}

SweepCondition read_comparison(const std::string& text, std::string_view key, std::string_view rest) {
  const auto sign =
      std::find_if(signs.begin(), signs.end(), [&](const Sign& each) { return rest.starts_with(each.text); });
  if (sign == signs.end()) {
    refuse_condition(text, "which is no comparison");
  }
  const std::string_view bound_text = trimmed(rest.substr(sign->text.size()));
  const auto bound = read_bound(bound_text);
  if (!bound) {
    refuse_condition(text, fmt::format("where \"{}\" is no number", bound_text));
  }
  const std::size_t place = find_key("--where", std::string(key));
  if (example_of(place).is_string()) {
    refuse_condition(text, fmt::format("where {} is a text", key));
  }
  return {.key = place, .comparison = sign->comparison, .bound = *bound, .text = text};
}

}  // namespace

SweepGoal find_goal(const std::string& key, bool is_largest) {
  const char* const option = is_largest ? "--maximize" : "--minimize";
  if (const std::vector<std::string> keys = keys_to_rank_by();
      std::find(keys.begin(), keys.end(), key) == keys.end())
    throw ConfigError(fmt::format("{}: found \"{}\", {}", option, key, describe_keys(key, keys)));
  const std::size_t place = find_key(option, key);
  const bool is_gain = key.ends_with("per_s") || std::find(gains.begin(), gains.end(), key) != gains.end();
  const bool is_loss = key.ends_with("_s") && !is_gain;
  if (is_largest ? is_loss : is_gain) {
    throw ConfigError(fmt::format("{}: found \"{}\", of which the {} is best; expected {} {}", option, key,
                                  is_largest ? "least" : "most", is_largest ? "--minimize" : "--maximize",
                                  key));
  }
  return {.key = place, .is_largest = is_largest};
}

SweepCondition parse_condition(const std::string& text) {
  const std::size_t end = std::min(text.find_first_of("<>=!"), text.size());
  const std::string_view key = trimmed(std::string_view(text).substr(0, end));
  if (end < text.size()) {
    return read_comparison(text, key, std::string_view(text).substr(end));
  }
  const std::size_t place = find_key("--where", std::string(key));
  if (!example_of(place).is_boolean()) {
    refuse_condition(text, "which is neither true nor false");
  }
  return {.key = place, .text = text};
}

bool SweepCondition::holds(const ordered_json& value) const {
  if (!value.is_number() && !value.is_boolean()) {
    return false;
  }
  const double found = value.is_boolean() ? (value.get<bool>() ? 1 : 0) : value.get<double>();
  switch (comparison) {
    case Comparison::less:
      return found < bound;
    case Comparison::at_most:
      return found <= bound;
    case Comparison::more:
      return found > bound;
    case Comparison::at_least:
      return found >= bound;
    case Comparison::equal:
      return found == bound;
    case Comparison::unequal:
      return found != bound;
  }
  return false;
}

}  // namespace lockstep
