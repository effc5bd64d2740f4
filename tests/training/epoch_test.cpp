#include "sim/training/epoch.h"

#include <doctest/doctest.h>

namespace lockstep::epoch_test {

// 1003 samples on 4 ranks: 251 each with one repeated; batches of 50: five of 50 and one of 1.
TEST_CASE("the sampler repeats samples until the ranks have equally many") {
  const Epoch epoch = deal({.samples = 1003, .ranks = 4, .batch = 50, .micro_batches = 4});
  CHECK(epoch.samples_per_rank == 251);
  CHECK(epoch.repeated == 1);
  CHECK(epoch.left_out == 0);
  CHECK(epoch.batches_per_rank == 6);
  CHECK(epoch.last_batch == 1);
  CHECK(epoch.iterations == 2);
}

// 250 each, five whole batches of 50: 1003 - 1000 are left out. With batches of 60 four are whole: 1003 -
// 960.
TEST_CASE("with drop_last nobody repeats, and what does not fill a batch is left out") {
  const Epoch even = deal({.samples = 1003, .ranks = 4, .batch = 50, .drop_last = true});
  CHECK(even.samples_per_rank == 250);
  CHECK(even.repeated == 0);
  CHECK(even.left_out == 3);
  CHECK(even.last_batch == 50);
  const Epoch uneven = deal({.samples = 1003, .ranks = 4, .batch = 60, .drop_last = true});
  CHECK(uneven.batches_per_rank == 4);
  CHECK(uneven.left_out == 43);
}

TEST_CASE("fewer samples than ranks are repeated, or all left out") {
  CHECK(deal({.samples = 3, .ranks = 8, .batch = 4}).repeated == 5);
  const Epoch none = deal({.samples = 3, .ranks = 8, .batch = 4, .drop_last = true});
  CHECK(none.batches_per_rank == 0);
  CHECK(none.left_out == 3);
  CHECK(none.iterations == 0);
}

}  // namespace lockstep::epoch_test
