#pragma once

// Which rows of a sweep will do, which of them is best, and which no other beats.
//
// Problem:   the question is asked of every row, and a row is dear to read.
// Idea:      one pass keeps the numbers that the goals are about and what stands against a row; all answers come
//            from those. A row is on the Pareto front where no row that will do is as good in every goal and better
//            in one.
// Invariant: of equals the first counts, in the best row and on the front.
// Cost:      a pass over the rows, 8 bytes a row and goal; the front takes rows x its length.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/answers/sweep_question.h"
#include "sim/study/answers/sweep_table.h"

namespace lockstep {

class SweepRanking {
 public:
  SweepRanking(const SweepTable& table, SweepQuestion question);

  const SweepQuestion& question() const { return question_; }
  const std::string& key_of(std::size_t goal) const { return keys_[question_.goals[goal].key]; }

  // Nothing where no row that will do has a value.
  std::optional<std::size_t> best(std::size_t goal = 0) const { return best_[goal]; }
  // Rows with a value for every goal that no other beats, the best of the first goal first.
  const std::vector<std::size_t>& front() const { return front_; }

  bool has_value(std::size_t row, std::size_t goal = 0) const;
  double value(std::size_t row, std::size_t goal = 0) const;
  // What stands against it: "does not fit in memory", "fails mfu>0.4"; empty: nothing.
  std::string objection(std::size_t row) const;
  bool will_do(std::size_t row) const { return objections_[row] == 0; }

  // How much worse than the best of the first goal; below 0 where only an objection stands against a better row.
  double excess(std::size_t row) const;
  double most_excess() const { return most_excess_; }
  // What a choice has to meet, for a sentence: "fits in memory and keeps mfu>0.4"; empty: nothing.
  std::string needs() const;

 private:
  void add(const SweepRow& row, std::optional<std::size_t> fits);
  bool is_better(std::size_t row, std::size_t other, std::size_t goal) const;
  bool is_as_good(std::size_t row, std::size_t other) const;
  void find_best();
  void find_front();

  SweepQuestion question_;
  std::vector<std::string> keys_;
  std::vector<double> values_;            // goals of a row side by side; not a number: there is none
  std::vector<std::uint8_t> objections_;  // 0: none; 1: memory; from 2: a condition
  std::vector<std::optional<std::size_t>> best_;
  std::vector<std::size_t> front_;
  double most_excess_ = 0;
};

}  // namespace lockstep
