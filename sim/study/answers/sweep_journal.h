#pragma once

// The finished cells of a sweep, on disk before the sweep is done.
//
// Problem:   a sweep that is killed after an hour must not begin again, and must not mix what was computed
//            from one state of its files with what is computed from another.
// Idea:      an append-only file beside the CSV: a line that fingerprints the sweep, then a line for each file
//            that a cell read and one for each finished cell, in the order in which they come. Resuming reads
//            them back and compares the files with what they are now.
// Invariant: a line counts once its newline is there, so a torn last line is a cell that was not finished;
//            what a cell read stands before the cell; lines of another sweep, and lines that no sweep writes, are
//            never taken; two sweeps never
//            write one journal; it is never opened through a link, and never emptied unless that was asked for.
// Cost:      one write(2) a cell and no fsync: a killed process loses nothing, a power cut the last seconds. Of a
//            finished cell only its place in the file is kept in memory.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "sim/study/answers/sweep_row.h"

namespace lockstep {

// A file and a fingerprint of what is in it; empty where it cannot be read.
struct FileState {
  std::string file;
  std::string fingerprint;
};

// Where the line of a finished cell begins.
struct JournalLine {
  std::size_t cell = 0;
  std::int64_t place = 0;
  bool has_error = false;
};

enum class EarlierCells : std::uint8_t { refuse, resume, discard };

class SweepJournal {
 public:
  struct Options {
    std::string path;
    std::string fingerprint;
    EarlierCells earlier = EarlierCells::refuse;
    std::function<std::string(const std::string& file)> fingerprint_of;  // as the file is now
    std::function<bool(const SweepRow& row)> is_of_sweep = {};           // none: every row is
  };

  // Throws ConfigError when the file cannot be written, is in use, is no journal, or is of another sweep.
  explicit SweepJournal(Options options);
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;

  // What was finished before, in the order of the file.
  const std::vector<JournalLine>& finished() const { return finished_; }
  // One caller at a time, as of `append`: what the cells that follow may have read. Known files cost nothing.
  void note(const std::vector<FileState>& files);
  bool knows(const std::string& file) const { return files_.contains(file); }
  // Says where the row is now. Throws EnvironmentError when the disk is full.
  std::int64_t append(const SweepRow& row);
  // From any number of threads, also once the name is gone.
  SweepRow read(std::int64_t place) const;
  // The sweep is complete: its CSV is there, the journal's name goes.
  void remove();

 private:
  void open();
  void lock() const;
  void read_back(const std::string& text);
  bool take_line(const nlohmann::ordered_json& line, std::int64_t place);
  void check_file(const FileState& then);
  void start_over();
  void cut_after(std::size_t bytes);
  void write_line(const nlohmann::ordered_json& line);
  [[noreturn]] void refuse(const std::string& found) const;
  nlohmann::ordered_json first_line() const;

  struct Descriptor {
    int number = -1;
    ~Descriptor();
  };

  Options options_;
  std::vector<JournalLine> finished_;
  std::int64_t end_ = 0;  // of what is written
  std::set<std::string> files_;
  Descriptor descriptor_;
};

}  // namespace lockstep
