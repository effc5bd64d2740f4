// Where a framework's host waits for its GPU, by framework and release, and what a scenario may say instead.

#include "sim/load/training/host_waits.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/scenario/lab.h"
#include "tests/support/cut_transformer.h"
#include "tests/support/scenarios.h"

namespace lockstep::host_waits_test {

using Json = nlohmann::ordered_json;

HostWaits waits_of(const Json& training) {
  Json all{{"strategy", "ddp"}, {"optimizer", "adamw"}, {"micro_batch", 1}, {"gradient_accumulation", 4}};
  all.update(training);
  return scenario_from(cut_transformer("dgx_a100_80gb", 1, all)).training.host_waits;
}

void check_waits(const Json& training, const HostWaits& expected) {
  CAPTURE(training.dump());
  const HostWaits found = waits_of(training);
  CHECK(found.for_messages == expected.for_messages);
  CHECK(found.for_batch == expected.for_batch);
  CHECK(found.for_loss == expected.for_loss);
}

TEST_CASE("A host waits where its framework's release does") {
  check_waits({{"pipeline_parallel", 2}}, {});
  check_waits({{"framework", "megatron"}, {"framework_version", "0.4"}}, {.for_batch = true});
  check_waits({{"framework", "megatron"}, {"framework_version", "0.5"}}, {.for_loss = true});
  check_waits({{"framework", "megatron"}, {"pipeline_parallel", 2}},
              {.for_messages = true, .for_loss = true});
  check_waits({{"framework", "megatron"},
               {"pipeline_parallel", 2},
               {"pipeline_schedule", "interleaved"},
               {"virtual_stages", 2}},
              {.for_loss = true});
  check_waits({{"framework", "nemo"}, {"tensor_parallel", 2}}, {});
  check_waits({{"framework", "deepspeed"}}, {});
  check_waits({{"framework", "deepspeed"}, {"tensor_parallel", 2}}, {.for_batch = true});
  check_waits({{"framework", "deepspeed"},
               {"framework_version", "0.10"},
               {"tensor_parallel", 2},
               {"pipeline_parallel", 2}},
              {.for_messages = true, .for_batch = true});
}

TEST_CASE("What a scenario says of a host's waits beats its framework") {
  check_waits({{"framework", "megatron"},
               {"pipeline_parallel", 2},
               {"batch_p2p_sync", false},
               {"broadcast_data_sync", true},
               {"check_for_nan_in_loss", false}},
              {.for_batch = true});
}

TEST_CASE("Nothing runs beside kernels that are waited for one by one, and who states otherwise is told") {
  const auto problems = [](const Json& training, const Json& communication) {
    Json given{{"cluster", {{"machine", "dgx_a100_80gb"}}},
               {"model", {{"name", "gpt2"}}},
               {"training",
                {{"framework", "megatron"},
                 {"tensor_parallel", 2},
                 {"micro_batch", 1},
                 {"cuda_launch_blocking", true}}},
               {"communication", communication}};
    given["training"].update(training);
    return testing::problems_of({.text = given.dump(), .overrides = {}});
  };
  CHECK(problems(Json::object(), Json::object()).empty());
  CHECK(problems({{"tensor_parallel_overlap", "none"}}, {{"overlap", false}}).empty());
  CHECK(problems({{"tensor_parallel_overlap", "backward"}}, Json::object()).find("expected none") !=
        std::string::npos);
  CHECK(problems(Json::object(), {{"overlap", true}}).find("expected false") != std::string::npos);
}

}  // namespace lockstep::host_waits_test
