#include "sim/base/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

constexpr std::size_t most_names_listed = 12;

bool separates(char letter) {
  return letter == '_' || letter == '-' || letter == '.' || letter == ' ';
}

char lower_case(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char letter) { return lower_case(letter); });
  return result;
}

// In lower case, cut where separators stand.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char letter : text)
    if (separates(letter))
      words.emplace_back();
    else
      words.back() += lower_case(letter);
  std::erase_if(words, [](const std::string& word) { return word.empty(); });
  return words;
}

// Optimal string alignment: three rows of the edit matrix, the third to see a swap of neighbours. Two rows wholly beyond
// `bound` end it: whatever follows is further still.
std::size_t edit_distance(std::string_view from, std::string_view to, std::size_t bound) {
  std::vector<std::size_t> before_previous(to.size() + 1);
  std::vector<std::size_t> previous(to.size() + 1);
  std::vector<std::size_t> current(to.size() + 1);
  for (std::size_t column = 0; column <= to.size(); ++column) previous[column] = column;
  std::size_t least_of_previous = 0;
  for (std::size_t row = 1; row <= from.size(); ++row) {
    current[0] = row;
    std::size_t least = row;
    for (std::size_t column = 1; column <= to.size(); ++column) {
      const std::size_t substitution = from[row - 1] == to[column - 1] ? 0 : 1;
      current[column] =
          std::min({previous[column] + 1, current[column - 1] + 1, previous[column - 1] + substitution});
      if (row > 1 && column > 1 && from[row - 1] == to[column - 2] && from[row - 2] == to[column - 1])
        current[column] = std::min(current[column], before_previous[column - 2] + 1);
      least = std::min(least, current[column]);
    }
    if (std::min(least, least_of_previous) > bound)
      return bound + 1;
    least_of_previous = least;
    std::swap(before_previous, previous);
    std::swap(previous, current);
  }
  return previous[to.size()];
}

// Lengths that differ by more than the bound are already too far; that also keeps a megabyte of key cheap.
std::size_t bounded_distance(std::string_view from, std::string_view to, std::size_t bound) {
  const std::size_t difference = from.size() > to.size() ? from.size() - to.size() : to.size() - from.size();
  return difference > bound ? bound + 1 : edit_distance(from, to, bound);
}

// Distances are counted in halves of an edit, so that a word that is cut short is nearer than a wrong letter.
constexpr std::size_t edit = 2;
constexpr std::size_t too_far = 1000;

// A suggestion must keep at least one letter of what was written, and of three or more at least two.
std::size_t furthest_suggestion(std::string_view wanted) {
  const std::size_t bound = std::max<std::size_t>(2, wanted.size() / 3);
  return wanted.empty() ? 0 : edit * std::min(bound, wanted.size() - (wanted.size() < 3 ? 1 : 2));
}

// 0: the same; 1: `wanted` is the beginning of it, with three letters at least.
std::optional<std::size_t> word_distance(const std::string& wanted, const std::string& word) {
  if (wanted == word)
    return 0;
  return wanted.size() >= 3 && word.starts_with(wanted) ? std::optional<std::size_t>(1) : std::nullopt;
}

// Where every word that was written is one of the name's, in any order: half an edit for each word cut short,
// and for each that was left out.
std::size_t distance_of_words(const std::vector<std::string>& wanted, std::vector<std::string> name) {
  std::size_t distance = 0;
  for (const std::string& word : wanted) {
    auto nearest = name.end();
    for (auto other = name.begin(); other != name.end(); ++other) {
      const auto found = word_distance(word, *other);
      if (found && (nearest == name.end() || *found < *word_distance(word, *nearest)))
        nearest = other;
    }
    if (nearest == name.end())
      return too_far;
    distance += *word_distance(word, *nearest);
    name.erase(nearest);
  }
  return distance + name.size();
}

// What was written, prepared once for all names it is compared with.
class Wanted {
 public:
  explicit Wanted(std::string_view text) {
    if (text.size() > longest)
      return;
    text_ = lower_case(text);
    words_ = words_of(text);
    for (const std::string& word : words_) letters_ += word;
  }

  // At most `furthest`, which also stands for all that is further.
  std::size_t distance_to(const std::string& name, std::size_t furthest) const {
    if (words_.empty())
      return std::min(too_far, furthest);
    const std::vector<std::string> words = words_of(name);
    std::string letters;
    for (const std::string& word : words) letters += word;
    // Separators that differ are half an edit, however many.
    return std::min({edit * bounded_distance(text_, lower_case(name), furthest / edit),
                     edit * bounded_distance(letters_, letters, furthest / edit) + 1,
                     distance_of_words(words_, words), furthest});
  }

 private:
  static constexpr std::size_t longest = 256;  // of what could be meant for a name
  std::string text_;
  std::vector<std::string> words_;
  std::string letters_;
};

std::string joined(std::span<const std::string> names) {
  std::string result;
  for (const std::string& name : names) result += (result.empty() ? "" : ", ") + name;
  return result;
}

// Up to `most` names nearer than `furthest`, the nearest first, equally near ones in the given order.
std::vector<std::string> nearest_names(std::string_view text, std::span<const std::string> valid,
                                       std::size_t most, std::size_t furthest) {
  const Wanted wanted(text);
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& name : valid) {
    const std::size_t bound = ranked.size() < most ? furthest : ranked.back().first;
    const std::size_t distance = wanted.distance_to(name, bound);
    if (distance == bound)
      continue;
    const auto after = std::upper_bound(ranked.begin(), ranked.end(), distance,
                                        [](std::size_t value, const auto& one) { return value < one.first; });
    ranked.emplace(after, distance, name);
    ranked.resize(std::min(ranked.size(), most));
  }
  std::vector<std::string> names;
  for (auto& [distance, name] : ranked) names.push_back(std::move(name));
  return names;
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view text, std::span<const std::string> valid) {
  std::vector<std::string> names =
      nearest_names(text, valid, 1, std::min(furthest_suggestion(text) + 1, too_far));
  return names.empty() ? std::nullopt : std::optional(std::move(names.front()));
}

std::string describe_choices(std::string_view wanted, std::span<const std::string> valid) {
  if (valid.empty())
    return "nothing is valid here";
  const std::optional<std::string> nearest = nearest_name(wanted, valid);
  const std::string suggestion = nearest ? "did you mean \"" + *nearest + "\"? " : "";
  if (valid.size() <= most_names_listed)
    return suggestion + "valid: " + joined(valid);
  return suggestion + "nearest of " + std::to_string(valid.size()) +
         " valid names: " + joined(nearest_names(wanted, valid, most_names_listed, too_far + 1));
}

}  // namespace lockstep
