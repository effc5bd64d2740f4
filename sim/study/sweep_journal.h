#pragma once

// The finished cells of a sweep, on disk before the sweep is done.
//
// Problem:   a sweep that is killed after an hour must not begin again.
// Idea:      an append-only file beside the CSV: a line that fingerprints the sweep, then one JSON line for
//            each finished cell, in the order in which they finish. Resuming reads them back.
// Invariant: a line counts once its newline is there, so a torn last line is a cell that was not finished;
//            lines of another sweep are never taken; two sweeps never write one journal.
// Cost:      one write(2) a cell and no fsync: a killed process loses nothing, a power cut the last seconds.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/study/sweep_table.h"

namespace lockstep {

class SweepJournal {
 public:
  struct Options {
    std::string path;
    std::string fingerprint;
    bool resume = false;  // else what is there is another day's, and is overwritten
  };

  // Throws ConfigError when the file cannot be written, is in use, or is of another sweep.
  explicit SweepJournal(Options options);
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;

  // What was finished before, in the order of the file.
  const std::vector<SweepRow>& finished() const { return finished_; }
  // One caller at a time. Throws EnvironmentError when the disk is full.
  void append(const SweepRow& row);
  // The sweep is complete: its CSV is there, the journal goes.
  void remove();

 private:
  void lock() const;
  void read_back();
  void start_over();
  void cut_after(std::size_t bytes);
  void write_line(const nlohmann::ordered_json& line);
  [[noreturn]] void refuse_other_sweep() const;
  nlohmann::ordered_json first_line() const;

  struct Descriptor {
    int number;
    ~Descriptor();
  };

  Options options_;
  std::vector<SweepRow> finished_;
  Descriptor descriptor_;
};

}  // namespace lockstep
