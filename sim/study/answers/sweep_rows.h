#pragma once

// The rows of a sweep, each read when it is asked for.
//
// Problem:   a million rows of some fifty values take gigabytes, and the journal holds them already.
// Idea:      where there is a journal a row is the place of its line there; where there is none (the output is a
//            pipe), it is kept. The journal's file outlives its name, so rows can be read for as long as they live.
// Invariant: a row is read as it was put, from wherever it comes.
// Cost:      8 bytes a row with a journal, and a read(2) and a parse each time that it is asked for.

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/study/answers/sweep_journal.h"
#include "sim/study/answers/sweep_row.h"

namespace lockstep {

class SweepRows {
 public:
  // Places that are still empty.
  explicit SweepRows(std::size_t places = 0, std::unique_ptr<SweepJournal> journal = nullptr);
  // All there, and kept.
  explicit SweepRows(std::vector<SweepRow> rows);

  std::size_t size() const { return lines_.size(); }
  bool has(std::size_t place) const { return lines_[place] != none; }
  // One caller at a time; others may ask about other places.
  void put(std::size_t place, SweepRow row);
  // That the journal held before this sweep.
  void find(std::size_t place, const JournalLine& line);
  // Of a place that has one.
  SweepRow operator[](std::size_t place) const;

  // In any order.
  const std::vector<std::size_t>& with_error() const { return with_error_; }
  SweepJournal* journal() { return journal_.get(); }

 private:
  static constexpr std::int64_t none = -1;

  std::vector<std::int64_t> lines_;  // where in the journal; without one only whether it is there
  std::vector<SweepRow> kept_;
  std::vector<std::size_t> with_error_;
  std::unique_ptr<SweepJournal> journal_;
};

}  // namespace lockstep
