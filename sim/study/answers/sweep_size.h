#pragma once

// Whether a sweep is more than anybody meant to ask for.
//
// Problem:   three ranges of a thousand values are 10^9 cells, and a year; who waits for that learns nothing.
// Idea:      cells are counted by arithmetic. How long one takes is measured of a few that lie evenly among them,
//            each a second time, when what it shares with others has been read; what they answer is dropped.
// Invariant: nothing of the sweep is written or allocated before. What no memory should hold is refused whatever is
//            accepted. A sweep of so few cells that it could not take
//            longer than is allowed, each being as large as a simulation may be, is not measured.
// Cost:      a few cells.

#include <cstddef>
#include <functional>

namespace lockstep {

inline constexpr std::size_t most_cells = 1'000'000;
inline constexpr double most_sweep_seconds = 3600;
// Of which the places of their rows alone take 0.8 GB.
inline constexpr std::size_t most_cells_at_all = 100'000'000;

struct SweepSize {
  std::size_t cells = 0;
  int threads = 1;
  bool is_accepted = false;  // --yes
};

// `run` predicts the cell at a place. Throws ConfigError, with the count and the estimate, where it is too much.
void refuse_large_sweep(const SweepSize& size, const std::function<void(std::size_t place)>& run);

}  // namespace lockstep
