// What compression sends, costs and holds, in the whole simulation.

#include "sim/training/compression.h"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/support/scenarios.h"

namespace lockstep::laws_compression_test {

using Json = nlohmann::ordered_json;

struct Compressed {
  Simulation simulation;
  Report report;
};

Compressed compress(const std::string& compression, const Overrides& overrides = {}) {
  Overrides all{{"training.compression", compression}};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const Json base{{"cluster", {{"machine", "p100_4gpu_25gbe"}, {"nodes", 4}}},
                  {"model", {{"name", "vgg16"}, {"batch_per_gpu", 32}, {"precision", "fp32"}}},
                  {"training", {{"strategy", "ddp"}, {"optimizer", "momentum"}}}};
  const Scenario scenario = scenario_from(base, {.overrides = all});
  Simulation simulation = simulate(scenario);
  Report report = summarise(scenario, simulation);
  return {std::move(simulation), std::move(report)};
}

constexpr std::int64_t ranks = 16;

// All-reduce: 2 (n-1)/n of P, of Q and of what stays whole; a byte each message and bucket for rounding.
TEST_CASE("PowerSGD sends r (m + k) elements of each matrix, and the rest whole") {
  for (const std::int64_t rank : {1, 4}) {
    const Compressed found = compress("powersgd_" + std::to_string(rank));
    std::vector<std::uint32_t> all(found.simulation.job.gradients.size());
    std::iota(all.begin(), all.end(), 0u);
    const LowRank parts = low_rank(found.simulation.job, all);
    const std::int64_t published = (parts.whole + parts.p + parts.q).count() * 2 * (ranks - 1) / ranks;
    CHECK(found.report.communication.bytes_per_gpu.count() <= published);
    CHECK(found.report.communication.bytes_per_gpu.count() >= published - 100);
    CHECK(published < gradient_bytes(found.simulation.job).count() / 20);
  }
}

// All-gather: what every rank keeps goes to n - 1 others, 4 bytes of value and 4 of index an element; rounded
// up in each bucket.
TEST_CASE("Top-k sends n - 1 times its values and indices") {
  const Compressed found = compress("topk_1");
  const std::int64_t elements = element_count(found.simulation.job.gradients);
  const std::int64_t published = (ranks - 1) * (elements / 100) * 8;
  CHECK(found.report.communication.bytes_per_gpu.count() >= published);
  CHECK(found.report.communication.bytes_per_gpu.count() <= published + 100 * ranks * 8);
}

TEST_CASE("A cast sends half of what fp32 gradients are") {
  CHECK(compress("fp16").report.communication.bytes_per_gpu.count() ==
        compress("none").report.communication.bytes_per_gpu.count() / 2);
}

// 25 Gbit/s and half a gigabyte of gradients: what saves bytes saves time.
TEST_CASE("Over a slow network a higher rank costs more, and any compression less than none") {
  const Duration whole = compress("none").report.iteration;
  Duration before;
  for (const char* compression : {"powersgd_1", "powersgd_4", "powersgd_32"}) {
    const Duration time = compress(compression).report.iteration;
    INFO(compression);
    CHECK(time > before);
    CHECK(time < whole);
    before = time;
  }
  CHECK(compress("topk_0.1").report.iteration < compress("topk_1").report.iteration);
  CHECK(compress("topk_1").report.iteration < whole);
}

// Sparse values are sent once for every pair of ranks: above a tenth of a per cent times n they cost more
// than the whole.
TEST_CASE("Top-k of everything sends more than no compression at all") {
  CHECK(compress("topk_100").report.communication.bytes_per_gpu >
        compress("none").report.communication.bytes_per_gpu);
}

TEST_CASE("Before its start iteration PowerSGD reduces whole buckets") {
  const Compressed later = compress("powersgd_1");
  const Compressed at_once = compress("powersgd_1", {{"training.powersgd_start_iteration", "0"}});
  CHECK(later.report.times.first.picoseconds() == compress("none").report.times.first.picoseconds());
  CHECK(at_once.report.times.first < later.report.times.first);
  CHECK(at_once.report.iteration == later.report.iteration);
}

TEST_CASE("The errors that are fed back stay in memory from step to step") {
  const Compressed whole = compress("none");
  const Compressed topk = compress("topk_1");
  CHECK((topk.report.memory.standing.allocated() - whole.report.memory.standing.allocated()).count() ==
        gradient_bytes(whole.simulation.job).count());
}

TEST_CASE("What compression allocates for a bucket it releases with the bucket") {
  for (const char* compression : {"fp16", "powersgd_2", "topk_1"}) {
    const Compressed found = compress(compression);
    const MemoryUse standing = found.report.memory.standing;
    const auto moments = track_memory(found.simulation.steady, standing, 0);
    INFO(compression);
    CHECK(moments.back().use.total().count() == standing.total().count());
    Bytes most;
    for (const MemoryMoment& moment : moments) most = std::max(most, moment.use.communication_buffers);
    CHECK(most > standing.communication_buffers);
  }
}

}  // namespace lockstep::laws_compression_test
