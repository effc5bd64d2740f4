#include "sim/study/answers/sweep_ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lockstep {
namespace {

constexpr std::uint8_t no_objection = 0;
constexpr std::uint8_t memory_objection = 1;
constexpr std::size_t first_condition = 2;

double number_of(const nlohmann::ordered_json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

SweepRanking::SweepRanking(const SweepTable& table, SweepQuestion question)
    : question_(std::move(question)), keys_(table.keys), best_(question_.goals.size()) {
  const auto found = std::find(keys_.begin(), keys_.end(), "memory_bytes.fits");
  const auto fits =
      found == keys_.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - keys_.begin()));
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    add(table.rows[row], fits);
  }
  find_best();
  find_front();
  for (std::size_t row = 0; best_[0] && row < table.rows.size(); ++row) {
    most_excess_ = std::max(most_excess_, has_value(row) ? excess(row) : 0);
  }
}

void SweepRanking::add(const SweepRow& row, std::optional<std::size_t> fits) {
  for (const SweepGoal& goal : question_.goals) {
    values_.push_back(number_of(row.results[goal.key]));
  }
  std::uint8_t objection = no_objection;
  if (fits && !question_.allows_out_of_memory && row.results[*fits] == false) {
    objection = memory_objection;
  }
  for (std::size_t index = 0; objection == no_objection && index < question_.conditions.size(); ++index) {
    const SweepCondition& condition = question_.conditions[index];
    if (!condition.holds(row.results[condition.key])) {
      objection = static_cast<std::uint8_t>(std::min<std::size_t>(first_condition + index, UINT8_MAX));
    }
  }
  objections_.push_back(objection);
}

bool SweepRanking::has_value(std::size_t row, std::size_t goal) const {
  return !std::isnan(value(row, goal));
}

double SweepRanking::value(std::size_t row, std::size_t goal) const {
  return values_[row * question_.goals.size() + goal];
}

std::string SweepRanking::objection(std::size_t row) const {
  if (objections_[row] == no_objection) {
    return "";
  }
  return objections_[row] == memory_objection
             ? "does not fit in memory"
             : "fails " + question_.conditions[objections_[row] - first_condition].text;
}

std::string SweepRanking::needs() const {
  std::string needs = question_.allows_out_of_memory ? "" : "fits in memory";
  for (const SweepCondition& condition : question_.conditions) {
    needs += (needs.empty() ? "keeps " : " and keeps ") + condition.text;
  }
  return needs;
}

double SweepRanking::excess(std::size_t row) const {
  const double above = value(row) - value(*best_[0]);
  return question_.goals[0].is_largest ? -above : above;
}

bool SweepRanking::is_better(std::size_t row, std::size_t other, std::size_t goal) const {
  return question_.goals[goal].is_largest ? value(row, goal) > value(other, goal)
                                          : value(row, goal) < value(other, goal);
}

bool SweepRanking::is_as_good(std::size_t row, std::size_t other) const {
  for (std::size_t goal = 0; goal < question_.goals.size(); ++goal) {
    if (is_better(other, row, goal)) {
      return false;
    }
  }
  return true;
}

void SweepRanking::find_best() {
  for (std::size_t goal = 0; goal < question_.goals.size(); ++goal) {
    for (std::size_t row = 0; row < objections_.size(); ++row) {
      if (has_value(row, goal) && will_do(row) && (!best_[goal] || is_better(row, *best_[goal], goal))) {
        best_[goal] = row;
      }
    }
  }
}

// Sorted by one goal after another, a row can only be beaten by one before it.
void SweepRanking::find_front() {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < objections_.size(); ++row) {
    bool is_complete = will_do(row);
    for (std::size_t goal = 0; goal < question_.goals.size(); ++goal) {
      is_complete = is_complete && has_value(row, goal);
    }
    if (is_complete) {
      rows.push_back(row);
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t left, std::size_t right) {
    std::size_t goal = 0;
    while (goal + 1 < question_.goals.size() && value(left, goal) == value(right, goal)) {
      ++goal;
    }
    return is_better(left, right, goal);
  });
  for (const std::size_t row : rows) {
    if (std::none_of(front_.begin(), front_.end(),
                     [&](std::size_t other) { return is_as_good(other, row); })) {
      front_.push_back(row);
    }
  }
}

}  // namespace lockstep
