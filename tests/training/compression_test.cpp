#include "sim/training/compression.h"

#include <doctest/doctest.h>

#include <numeric>

namespace lockstep::training_compression_test {

Job job_with(std::vector<Gradient> gradients, std::int64_t rank) {
  Job job;
  job.gradients = std::move(gradients);
  job.training.compression = {.kind = CompressionKind::powersgd, .rank = rank};
  return job;
}

LowRank all_of(const Job& job) {
  std::vector<std::uint32_t> all(job.gradients.size());
  std::iota(all.begin(), all.end(), 0u);
  return low_rank(job, all);
}

// A convolution of 64 x (32 x 3 x 3) is a matrix of 64 x 288.
TEST_CASE("a matrix of m x k becomes m r and k r elements") {
  for (const std::int64_t rank : {1, 2, 4}) {
    const LowRank parts =
        all_of(job_with({{.name = "w", .bytes = Bytes{64 * 288 * 4}, .element_bytes = 4, .rows = 64}}, rank));
    CHECK(parts.p.count() == 64 * rank * 4);
    CHECK(parts.q.count() == 288 * rank * 4);
    CHECK(parts.whole.count() == 0);
    CHECK(parts.multiplication == 2 * 64 * 288 * rank);
    CHECK(parts.orthogonalisation == 2 * 64 * rank * rank);
  }
}

TEST_CASE("vectors travel whole") {
  const LowRank parts = all_of(job_with({{.name = "b", .bytes = Bytes{400}, .element_bytes = 4}}, 1));
  CHECK(parts.whole.count() == 400);
  CHECK(parts.whole_tensors == 1);
  CHECK(parts.matrix_tensors == 0);
}

// 20 x 20 = 400 elements; its factors have 40 r: at r = 4 160, less than half; at r = 5 200, which is half
// and not less.
TEST_CASE("a matrix is taken apart only where that saves more than half") {
  const Gradient square{.name = "w", .bytes = Bytes{1600}, .element_bytes = 4, .rows = 20};
  CHECK(all_of(job_with({square}, 4)).matrix_tensors == 1);
  CHECK(all_of(job_with({square}, 5)).whole_tensors == 1);
}

// 3 x 1000: rank 8 is more than the matrix has, and 3 x 1003 is not less than half of 3000.
TEST_CASE("the rank is at most that of the matrix") {
  const LowRank parts =
      all_of(job_with({{.name = "w", .bytes = Bytes{12000}, .element_bytes = 4, .rows = 3}}, 8));
  CHECK(parts.whole_tensors == 1);
}

TEST_CASE("top-k keeps its percentage, rounded up, and at least one element") {
  CHECK(largest_count(1000, Ratio::percent(1)) == 10);
  CHECK(largest_count(1001, Ratio::percent(1)) == 11);
  CHECK(largest_count(5, Ratio::parts_per_million(1'000)) == 1);
  CHECK(largest_count(7, Ratio::one()) == 7);
  CHECK(largest_count(4'000'000'000'000, Ratio::percent(50)) == 2'000'000'000'000);
}

TEST_CASE("error feedback keeps a whole set of gradients, PowerSGD its factors too") {
  Job job = job_with({{.name = "w", .bytes = Bytes{64 * 288 * 4}, .element_bytes = 4, .rows = 64},
                      {.name = "b", .bytes = Bytes{256}, .element_bytes = 4}},
                     2);
  CHECK(compression_state(job).count() == 64 * 288 * 4 + 256 + (64 + 288) * 2 * 4);
  job.training.compression = {.kind = CompressionKind::topk, .kept = Ratio::percent(1)};
  CHECK(compression_state(job).count() == 64 * 288 * 4 + 256);
  job.training.compression = {.kind = CompressionKind::fp16};
  CHECK(compression_state(job).count() == 0);
}

}  // namespace lockstep::training_compression_test
