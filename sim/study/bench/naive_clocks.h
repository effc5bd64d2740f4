#pragma once

// Two predictors that know no mechanism, so that the skill of one that does can be seen.
//
// Idea:      a line, alpha + beta times the bytes a rank's link must carry, fitted in logarithms to all
//            tables at hand; and NCCL's cost model read as a clock.
// Invariant: they are fitted on what our own fit was given.
// Reference: Hockney 1994 (the line).

#include <map>
#include <memory>
#include <span>

#include "sim/load/reading/profile_store.h"
#include "sim/study/bench/measured_tables.h"

namespace lockstep {

class NaiveClocks {
 public:
  NaiveClocks(std::span<const MeasuredTable> fitted, const ProfileStore& store);

  double line_s(const MeasuredTable& table, Bytes size) const;
  // Zero where NCCL's model has no answer (messages between pairs).
  double tuner_s(const MeasuredTable& table, Bytes size) const;

 private:
  const ProfileStore& store_;
  double alpha_s_ = 0;
  double beta_s_ = 0;  // seconds a byte
};

}  // namespace lockstep
