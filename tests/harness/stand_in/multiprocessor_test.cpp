#include "validate/harness/stand_in/multiprocessor.h"

#include <doctest/doctest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "validate/harness/stand_in/simt.h"

namespace lockstep::harness::stand_in::multiprocessor_test {

// A thread's place in its block.
unsigned own_place() {
  return threadIdx.y * blockDim.x + threadIdx.x;
}

// In which order the threads of one block were run.
std::vector<unsigned> order_of_threads(std::uint64_t seed) {
  std::vector<unsigned> order;
  seed_threads(seed);
  run_grid({1}, {64}, [&] { order.push_back(threadIdx.x); });
  return order;
}

// The sum of a block's threads by halves, each of which a barrier ends; without them it is a race.
unsigned sum_by_halves(std::uint64_t seed, bool has_barriers) {
  std::vector<unsigned> shared(64);
  seed_threads(seed);
  run_grid({1}, {64}, [&] {
    shared[threadIdx.x] = threadIdx.x;
    for (unsigned half = 32; half > 0; half /= 2) {
      if (has_barriers)
        __syncthreads();
      if (threadIdx.x < half)
        shared[threadIdx.x] += shared[threadIdx.x + half];
    }
  });
  return shared[0];
}

template <class Kernel>
std::string failure_of(Kernel kernel) {
  try {
    run_grid({2}, {64}, kernel);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("every thread of every block runs once and knows where it is") {
  std::vector<int> visits(3 * 2 * 32 * 4);
  run_grid({3, 2}, {32, 4}, [&] {
    CHECK(gridDim.x == 3);
    CHECK(gridDim.y == 2);
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    ++visits[block * 128 + own_place()];
  });
  CHECK(visits == std::vector<int>(visits.size(), 1));
}

TEST_CASE("threads run in an order that the seed alone decides") {
  CHECK(order_of_threads(1) == order_of_threads(1));
  CHECK(order_of_threads(1) != order_of_threads(2));
  std::vector<unsigned> sorted(64);
  std::iota(sorted.begin(), sorted.end(), 0U);
  CHECK(order_of_threads(1) != sorted);
}

TEST_CASE(
    "a barrier holds all threads until the last has come; where it is missing, orders differ in the sum") {
  std::set<unsigned> with;
  std::set<unsigned> without;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    with.insert(sum_by_halves(seed, true));
    without.insert(sum_by_halves(seed, false));
  }
  CHECK(with == std::set<unsigned>{63 * 64 / 2});
  CHECK(without.size() > 1);
}

TEST_CASE("a shuffle gives each lane what the lane beside it in its own warp holds, time after time") {
  run_grid({2}, {32, 4}, [&] {
    for (int distance = 1; distance < 32; distance *= 2) {
      const unsigned value = own_place() * 100 + static_cast<unsigned>(distance);
      const unsigned beside = own_place() ^ static_cast<unsigned>(distance);
      CHECK(__shfl_xor_sync(0xffffffffU, value, distance) == beside * 100 + static_cast<unsigned>(distance));
    }
  });
}

TEST_CASE("threads that end before a barrier others wait at are an error, which names the place") {
  const std::string failure = failure_of([] {
    if (threadIdx.x != 5)
      __syncthreads();
  });
  CHECK(contains(failure, "wait for others that will not come"));
  CHECK(contains(failure, "multiprocessor_test.cpp:"));
  CHECK(contains(failure, "1 of 64 have ended"));
}

TEST_CASE("threads that wait at two barriers at once are an error") {
  const std::string failure = failure_of([] {
    if (threadIdx.x < 32)
      __syncthreads();
    else
      __syncthreads();
  });
  CHECK(contains(failure, "threads of one block part"));
}

TEST_CASE("a lane that takes no part in its warp's shuffle is an error") {
  CHECK(contains(failure_of([] {
                   if (threadIdx.x % 32 != 7)
                     __shfl_xor_sync(0xffffffffU, 1, 16);
                 }),
                 "2 of 64 have ended"));
  CHECK(contains(failure_of([] {
                   if (threadIdx.x % 32 != 7)
                     __shfl_xor_sync(0xffffffffU, 1, 16);
                   else
                     __syncthreads();
                 }),
                 "wait for others that will not come"));
}

TEST_CASE("what a thread throws ends the grid, and the next grid runs as if nothing had been") {
  CHECK(failure_of([] {
          __syncthreads();
          if (threadIdx.x == 9)
            throw EnvironmentError("told");
          __syncthreads();
        }) == "told");
  int threads = 0;
  CHECK(failure_of([&] {
          __syncthreads();
          ++threads;
        }) == "none");
  CHECK(threads == 128);
}

}  // namespace lockstep::harness::stand_in::multiprocessor_test
