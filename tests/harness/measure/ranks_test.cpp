#include "validate/harness/measure/ranks.h"

#include <doctest/doctest.h>

#include "tests/harness/communication/local_group.h"
#include "validate/harness/measure/measurement.h"

namespace lockstep::harness::ranks_test {

TEST_CASE("every rank learns all rows, exactly, and decides alike") {
  const Listener listener;
  auto threads = start_ranks(3, [&](int rank) {
    Rendezvous rendezvous(options_of(listener, rank, 3));
    Ranks ranks(rendezvous);
    const double third = 1.0 / 3;
    const auto rows = ranks.gather({static_cast<double>(rank), third});
    CHECK(rows.size() == 3);
    CHECK(rows[2] == std::vector<double>{2, third});
    CHECK(ranks.slowest({static_cast<double>(rank), -static_cast<double>(rank)}) ==
          std::vector<double>{2, 0});
    CHECK(ranks.medians({static_cast<double>(rank * rank)}) == std::vector<double>{1});
    CHECK(ranks.slowest(static_cast<double>(10 * rank)) == 20);
  });
  join(threads);
}

TEST_CASE("repeats fill the time there is, within limits") {
  CHECK(count_repeats({.seconds = 2, .least = 3, .most = 200}, 0.1) == 20);
  CHECK(count_repeats({.seconds = 2, .least = 3, .most = 200}, 5) == 3);
  CHECK(count_repeats({.seconds = 2, .least = 3, .most = 200}, 0) == 200);
}

}  // namespace lockstep::harness::ranks_test
