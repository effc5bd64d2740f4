#include "sim/training/epoch.h"

#include <algorithm>

namespace lockstep {
namespace {

std::int64_t divided_up(std::int64_t whole, std::int64_t parts) {
  return whole / parts + (whole % parts > 0 ? 1 : 0);
}

}  // namespace

Epoch deal(const Dealing& dealing) {
  Epoch epoch;
  epoch.samples_per_rank =
      dealing.drop_last ? dealing.samples / dealing.ranks : divided_up(dealing.samples, dealing.ranks);
  epoch.repeated = std::max<std::int64_t>(epoch.samples_per_rank * dealing.ranks - dealing.samples, 0);
  epoch.batches_per_rank = dealing.drop_last ? epoch.samples_per_rank / dealing.batch
                                             : divided_up(epoch.samples_per_rank, dealing.batch);
  const std::int64_t rest = epoch.samples_per_rank % dealing.batch;
  epoch.last_batch = epoch.batches_per_rank == 0 ? 0 : rest == 0 || dealing.drop_last ? dealing.batch : rest;
  if (dealing.drop_last)
    epoch.left_out = dealing.samples - epoch.batches_per_rank * dealing.batch * dealing.ranks;
  epoch.iterations = divided_up(epoch.batches_per_rank, dealing.micro_batches);
  return epoch;
}

}  // namespace lockstep
