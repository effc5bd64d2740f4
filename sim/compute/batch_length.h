#pragma once

// Batches of sentences: as long as the longest in them, and so is the work.
//
// Problem:   samples of unequal length are padded to the longest of their batch, so ranks that drew short
//            ones wait for the rank that drew a long one.
// Idea:      lengths come from a table of equal cells; the longest of b draws is itself a table, that of the
//            quantile u^(1/b). Grouping by length sorts 50 batches at a time (Hugging Face's
//            LengthGroupedSampler): a batch then is a slice of neighbours, the same slice on every rank, as
//            its distributed form deals a sorted slice round the ranks.
// Invariant: integers once made, and the same table on every system. Work is taken as proportional to the
//            padded length: attention's square is not separated.
// Reference: transformers/trainer_pt_utils.py (get_length_grouped_indices: megabatch_mult = 50).

#include <cstdint>
#include <vector>

#include "sim/base/random_table.h"
#include "sim/base/units.h"

namespace lockstep {

struct LengthDistribution {
  RandomTable factors;       // around the mean
  std::int64_t mean = 1;     // in tokens
  std::int64_t maximum = 1;  // longer ones are cut
  std::int64_t batch = 1;
  bool is_grouped = false;
};

class BatchLengths {
 public:
  explicit BatchLengths(const LengthDistribution& distribution);

  // Tokens of every sample of a batch, padding included; the highest of 64 uniform bits decide.
  std::int64_t draw(std::uint64_t bits) const { return cells_[bits >> 48U]; }
  // Tokens by sample: of a batch's with their padding, and without.
  Ratio mean_padded() const;
  Ratio mean_own() const { return mean_own_; }

 private:
  std::vector<std::int64_t> cells_;  // of equal probability
  Ratio mean_own_;
};

}  // namespace lockstep
