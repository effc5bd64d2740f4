#include "sim/training/checkpoint.h"

#include <doctest/doctest.h>

#include "sim/run/describe_job.h"
#include "tests/support/scenarios.h"

namespace lockstep::checkpoint_test {

constexpr std::int64_t ranks = 8;

CheckpointBytes checkpoint_of(const std::string& strategy) {
  nlohmann::ordered_json given;
  given["cluster"] = {{"machine", "dgx_a100_40gb"}};
  given["model"] = {{"name", "bert_large"}, {"batch_per_gpu", 1}, {"precision", "bf16"}};
  given["training"] = {{"strategy", strategy}, {"optimizer", "adam"}};
  return checkpoint_bytes(describe_job(scenario_from(given)), ranks);
}

TEST_CASE("under DDP rank 0 writes it all; under ZeRO-1 its states are an eighth; under FSDP all of it is") {
  const CheckpointBytes ddp = checkpoint_of("ddp");
  CHECK(ddp.of_busiest == ddp.total);
  // Weights of 2 bytes; states of 4 + 4 and a copy of 4: 14 P, of which rank 0 writes (2 + 12 / 8) P.
  const CheckpointBytes zero1 = checkpoint_of("zero1");
  CHECK(zero1.of_busiest.count() == zero1.total.count() / 14 * 2 + (zero1.total.count() / 14 * 12 + 7) / 8);
  const CheckpointBytes fsdp = checkpoint_of("fsdp");
  CHECK(fsdp.of_busiest.count() * ranks >= fsdp.total.count());
  CHECK(fsdp.of_busiest.count() * ranks < fsdp.total.count() + 2 * ranks);
}

}  // namespace lockstep::checkpoint_test
