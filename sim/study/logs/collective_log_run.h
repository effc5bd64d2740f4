#pragma once

// What a benchmark's log says about its run, beside the rows.
//
// Problem:   which collective ran on what stands in lines that come and go between versions, and executables
//            are also named where nothing ran: by a build, by a loop in a script.
// Idea:      one small reader a fact; each sees every line and is asked when a row comes.
// Invariant: a fact is what the log says about the rows that follow, or nothing.
// Cost:      a few substring searches a line.
// Reference: NVIDIA/nccl-tests src/util.cu (writeDeviceReport).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// "2.18.3" of "NCCL version 2.18.3+cuda12.1", "RCCL version : 2.18.3-develop:29e1567" or
// "nccl-library=21803". Empty when the line does not say it. nccl-tests' own version is another.
std::string library_version_in(std::string_view line);

struct NamedTest {
  std::string name;
  std::int64_t line = 0;
};

// The collective whose executable was named for the rows that follow. Several names at once say nothing,
// unless the benchmark itself announces what it starts.
class TestNames {
 public:
  void read(std::int64_t number, std::string_view line);
  // A row follows one of `current` (empty: the first row). What was named for it since, if anything was.
  std::optional<NamedTest> take(std::string_view current);

 private:
  std::vector<NamedTest> candidates_;
  bool is_announced_ = false;
};

// The collective of the rows so far, from what the benchmark prints at its end.
std::optional<NamedTest> concluded_test_in(std::int64_t number, std::string_view line);

struct RankPlacement {
  std::int64_t line = 0;  // where the list begins
  std::int64_t ranks = 0;
  std::int64_t nodes = 0;
  std::optional<std::int64_t> ranks_per_node;  // when every node has as many
};

// The benchmark's list of ranks, each with its host and GPU. A list that follows rows is another run's.
class DeviceList {
 public:
  // False when the line, without a launcher's prefix, is not of such a list.
  bool read(std::int64_t number, std::string_view text);
  // Rows follow. Nothing when no list was begun since the last ones, or one that does not hold every rank:
  // long lists are printed cut.
  std::optional<RankPlacement> take();
  std::string gpus() const;
  bool has_any() const { return line_ > 0; }

 private:
  void add(std::int64_t number, std::int64_t rank, std::string_view host, std::string_view gpu);

  std::map<std::int64_t, std::string> hosts_;  // by rank
  std::vector<std::string> gpus_;              // different ones, of all lists
  std::int64_t line_ = 0;
};

}  // namespace lockstep
