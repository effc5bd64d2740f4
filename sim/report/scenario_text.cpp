#include "sim/report/scenario_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/json_text.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t origin_column = 58;
constexpr std::size_t longest_inline = 48;
constexpr std::size_t most_elements_shown = 4;

// {"a": 1, "b": "x"} as "a 1, b x".
std::string inline_text(const ordered_json& value) {
  if (value.is_string())
    return value.get<std::string>();
  if (!value.is_object())
    return value.dump();
  std::string text;
  for (const auto& item : value.items())
    text += (text.empty() ? "" : ", ") + item.key() + " " + inline_text(item.value());
  return text.empty() ? "{}" : text;
}

bool is_array_of_objects(const ordered_json& value) {
  return value.is_array() && !value.empty() && value.front().is_object();
}

bool is_flat(const ordered_json& value) {
  return std::none_of(
      value.begin(), value.end(), [](const ordered_json& member) { return member.is_structured(); });
}

class Listing {
 public:
  explicit Listing(const LoadedScenario& scenario) : provenance_(scenario.provenance) {}

  std::string write(const ordered_json& resolved) {
    write_members(resolved, "", 0);
    return std::move(text_);
  }

 private:
  void write_members(const ordered_json& object, const std::string& pointer, std::size_t depth) {
    const std::string origin = origin_of(pointer);
    for (const auto& item : object.items()) {
      const bool is_said = item.key() == "source" && item.value().is_string() &&
                           origin.ends_with(item.value().get_ref<const std::string&>());
      if (!is_said)
        write_value(item.key(), item.value(), extended_pointer(pointer, item.key()), depth);
    }
  }

  void write_value(const std::string& key, const ordered_json& value, const std::string& pointer,
                   std::size_t depth) {
    if (is_array_of_objects(value)) {
      write_line(depth, key, origin_of(pointer));
      write_elements(value, pointer, depth + 1);
    } else if (value.is_object() && !fits_one_line(value, pointer)) {
      write_line(depth, key, origin_of(pointer));
      write_members(value, pointer, depth + 1);
    } else {
      write_line(depth, fmt::format("{}: {}", key, inline_text(value)), origin_of(pointer));
    }
  }

  void write_elements(const ordered_json& array, const std::string& pointer, std::size_t depth) {
    const bool is_long = array.size() > most_elements_shown && is_flat(array.front());
    for (std::size_t index = 0; index < array.size(); ++index) {
      const bool is_middle =
          index >= most_elements_shown / 2 && index + most_elements_shown / 2 < array.size();
      if (!is_long || !is_middle)
        write_element(array[index], extended_pointer(pointer, std::to_string(index)), depth);
      else if (index == most_elements_shown / 2)
        write_line(depth, fmt::format("... {} more ...", array.size() - most_elements_shown), "");
    }
  }

  void write_element(const ordered_json& element, const std::string& pointer, std::size_t depth) {
    write_line(depth, "- " + inline_text(element), origin_of(pointer));
  }

  bool fits_one_line(const ordered_json& object, const std::string& pointer) const {
    return is_flat(object) && display_width(inline_text(object)) <= longest_inline &&
           !has_origin_below(pointer);
  }

  bool has_origin_below(const std::string& pointer) const {
    for (const auto& item : provenance_.items())
      if (item.key().starts_with(pointer + "/"))
        return true;
    return false;
  }

  std::string origin_of(const std::string& pointer) const {
    const auto found = provenance_.find(pointer);
    return found == provenance_.end() ? "" : found->get<std::string>();
  }

  // A left side that is too long pushes its origin to a line of its own.
  void write_line(std::size_t depth, const std::string& left, const std::string& origin) {
    std::string line = std::string(2 * depth, ' ') + left;
    const std::size_t width = display_width(line);
    if (!origin.empty()) {
      const bool has_room = width + 2 <= origin_column;
      line += has_room ? std::string(origin_column - width, ' ') : "\n" + std::string(origin_column, ' ');
      line += origin;
    }
    text_ += line + "\n";
  }

  const ordered_json& provenance_;
  std::string text_;
};

}  // namespace

std::string listing_of(const LoadedScenario& scenario) {
  return Listing(scenario).write(scenario.resolved);
}

}  // namespace lockstep
