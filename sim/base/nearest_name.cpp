#include "sim/base/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

constexpr std::size_t most_names_listed = 12;
constexpr std::size_t nearest_names_listed = 3;

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& letter : result) {
    if (letter >= 'A' && letter <= 'Z') {
      letter = static_cast<char>(letter - 'A' + 'a');
    }
  }
  return result;
}

// Optimal string alignment: three rows of the edit matrix, the third to see a swap of neighbours.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before_previous(to.size() + 1);
  std::vector<std::size_t> previous(to.size() + 1);
  std::vector<std::size_t> current(to.size() + 1);
  for (std::size_t column = 0; column <= to.size(); ++column) {
    previous[column] = column;
  }
  for (std::size_t row = 1; row <= from.size(); ++row) {
    current[0] = row;
    for (std::size_t column = 1; column <= to.size(); ++column) {
      const std::size_t substitution = from[row - 1] == to[column - 1] ? 0 : 1;
      current[column] =
          std::min({previous[column] + 1, current[column - 1] + 1, previous[column - 1] + substitution});
      if (row > 1 && column > 1 && from[row - 1] == to[column - 2] && from[row - 2] == to[column - 1]) {
        current[column] = std::min(current[column], before_previous[column - 2] + 1);
      }
    }
    std::swap(before_previous, previous);
    std::swap(previous, current);
  }
  return previous[to.size()];
}

// Lengths that differ by more than the bound are already too far; that also keeps a megabyte of key cheap.
std::size_t bounded_distance(std::string_view from, std::string_view to, std::size_t bound) {
  const std::size_t difference = from.size() > to.size() ? from.size() - to.size() : to.size() - from.size();
  return difference > bound ? bound + 1 : edit_distance(from, to);
}

// A suggestion must keep at least one letter of what was written.
std::size_t furthest_suggestion(std::string_view wanted) {
  const std::size_t bound = std::max<std::size_t>(2, wanted.size() / 3);
  return wanted.empty() ? 0 : std::min(bound, wanted.size() - 1);
}

std::string joined(std::span<const std::string> names) {
  std::string result;
  for (const std::string& name : names) {
    result += (result.empty() ? "" : ", ") + name;
  }
  return result;
}

std::vector<std::string> sorted_by_distance(std::string_view wanted, std::span<const std::string> valid) {
  const std::string written = lower_case(wanted);
  constexpr std::size_t bound = 64;
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& name : valid) {
    ranked.emplace_back(bounded_distance(written, lower_case(name), bound), name);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [distance, name] : ranked) {
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view wanted, std::span<const std::string> valid) {
  const std::string written = lower_case(wanted);
  std::size_t nearest_so_far = furthest_suggestion(wanted) + 1;
  std::optional<std::string> nearest;
  for (const std::string& name : valid) {
    const std::size_t distance = bounded_distance(written, lower_case(name), nearest_so_far);
    if (distance < nearest_so_far) {
      nearest_so_far = distance;
      nearest = name;
    }
  }
  return nearest;
}

std::string describe_choices(std::string_view wanted, std::span<const std::string> valid) {
  if (valid.empty()) {
    return "nothing is valid here";
  }
  const std::optional<std::string> nearest = nearest_name(wanted, valid);
  const std::string suggestion = nearest ? "did you mean \"" + *nearest + "\"? " : "";
  if (valid.size() <= most_names_listed) {
    return suggestion + "valid: " + joined(valid);
  }
  const std::vector<std::string> ranked = sorted_by_distance(wanted, valid);
  return suggestion + "nearest of " + std::to_string(valid.size()) +
         " valid names: " + joined(std::span(ranked).first(nearest_names_listed));
}

}  // namespace lockstep
