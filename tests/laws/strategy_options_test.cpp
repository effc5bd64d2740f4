// Every option that a strategy takes changes what it does, or the table says why it does not.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/same_report.h"
#include "tests/support/scenarios.h"

namespace lockstep::strategy_options_test {

using Json = nlohmann::ordered_json;

struct Option {
  std::string key;
  std::string value;      // other than the default; empty: changes nothing, and `why`
  Overrides others = {};  // under which it matters
  std::string why = {};
};

Option unmoved(std::string key, std::string why) {
  return {.key = std::move(key), .value = "", .others = {}, .why = std::move(why)};
}

std::vector<Option> with_work(std::vector<Option> own) {
  own.push_back({"optimizer", "lamb"});
  own.push_back({"recompute", "full"});
  own.push_back({"gradient_accumulation", "2"});
  return own;
}

std::vector<Option> with_common(std::vector<Option> own) {
  own.push_back({"gradient_clipping", "true"});
  return with_work(std::move(own));
}

std::vector<Option> with_sharding(std::vector<Option> own) {
  own.push_back({"fsdp_version", "2"});
  own.push_back({"reshard_after_forward", "false"});
  own.push_back({"backward_prefetch", "post"});
  own.push_back({"forward_prefetch", "true"});
  own.push_back({"limit_all_gathers", "false"});
  own.push_back({"auto_wrap", "none"});
  own.push_back({"param_dtype", "fp32"});
  own.push_back({"reduce_dtype", "fp32"});
  own.push_back({"no_sync", "true", {{"training.gradient_accumulation", "2"}}});
  own.push_back({"master_weights", "false"});
  own.push_back(unmoved("compression", "its messages have a type of their own"));
  return with_common(std::move(own));
}

std::vector<Option> with_zero(std::vector<Option> own) {
  own.push_back({"reduce_bucket_size", "20000000"});
  own.push_back({"reduce_scatter", "false"});
  own.push_back({"contiguous_gradients", "false"});
  own.push_back({"communication_data_type", "fp32"});
  own.push_back({"master_weights", "false"});
  own.push_back({"broadcast_data_sync", "true"});
  own.push_back({"check_for_nan_in_loss", "true"});
  own.push_back({"cuda_launch_blocking", "true"});
  own.push_back(unmoved("compression", "its messages have a type of their own"));
  return with_common(std::move(own));
}

// Of DistributedDataParallel, so that one change makes a scenario its own baseline.
std::vector<Option> with_buckets_unmoved(std::vector<Option> own) {
  for (const char* key : {"bucket_cap_mb", "first_bucket_mb", "gradient_as_bucket_view", "static_graph",
                          "find_unused_parameters", "broadcast_buffers"})
    own.push_back(unmoved(key, "one GPU's model is not wrapped"));
  return with_common(std::move(own));
}

std::vector<Option> with_stages_1_2(std::vector<Option> own) {
  own.push_back({"overlap_comm", "true", {{"training.reduce_bucket_size", "20000000"}}});
  own.push_back({"allgather_bucket_size", "20000000"});
  own.push_back({"use_multi_rank_bucket_allreduce", "false"});
  own.push_back({"overlap_param_gather", "true", {{"training.allgather_bucket_size", "20000000"}}});
  return with_zero(std::move(own));
}

const std::map<std::string, std::vector<Option>>& options() {
  static const std::map<std::string, std::vector<Option>> table{
      {"single", with_buckets_unmoved({unmoved("compression", "there is nobody to send to")})},
      {"ddp", with_common({{"bucket_cap_mb", "50"},
                           {"first_bucket_mb", "10"},
                           {"gradient_as_bucket_view", "true"},
                           {"static_graph", "true", {{"training.find_unused_parameters", "true"}}},
                           {"find_unused_parameters", "true"},
                           {"broadcast_buffers", "false"},
                           {"compression", "fp16"},
                           {"compression", "powersgd_2"},
                           {"compression", "topk_1"}})},
      {"zero1", with_stages_1_2({})},
      {"zero2", with_stages_1_2({})},
      {"zero3", with_zero({{"overlap_comm", "false", {{"training.reduce_bucket_size", "20000000"}}},
                           {"stage3_prefetch_bucket_size", "1000000"},
                           {"stage3_param_persistence_threshold", "0"},
                           {"stage3_max_live_parameters", "10000000"},
                           {"stage3_max_reuse_distance", "0"},
                           {"chunk_size", "10000000"}})},
      {"fsdp", with_sharding({})},
      {"hsdp", with_sharding({{"shard_group", "4"}})},
      {"dp", with_work({{"gather_outputs", "false"},
                        {"operator_time", "40 us"},
                        unmoved("compression", "the replicas' gradients are added as they are")})},
      {"horovod",
       with_work({{"fusion_threshold_mb", "1"},
                  {"cycle_time_ms", "5"},
                  {"response_cache", "false", {{"training.announce", "computed"}}},
                  {"hierarchical_allreduce", "true"},
                  {"autotune", "true"},
                  unmoved("device", "cpu asks for what a core takes, which this machine does not state"),
                  {"num_groups", "2"},
                  {"batch_d2d_memcopies", "false"},
                  {"announce", "computed"},
                  {"compression", "fp16"}})},
      {"ps_sync", with_work({{"servers", R"({"count": 4})"},
                             {"scheduling", "priority"},
                             {"pull_once_per_node", "false"},
                             {"local_reduce", "none"},
                             {"compression", "fp16"}})},
      {"local_sgd", with_common({{"local_steps", "2"},
                                 {"average_momentum", "true", {{"training.optimizer", "momentum"}}},
                                 unmoved("compression", "weights are averaged as they are")})}};
  return table;
}

// Parameters of a scenario rather than choices of a strategy.
const std::set<std::string> not_options{"strategy",         "framework",       "framework_version",
                                        "data_parallel",    "tensor_parallel", "pipeline_parallel",
                                        "context_parallel", "global_batch",    "vocabulary_multiple"};

// What moves buffers has batch norms, what partitions has blocks of a transformer.
Json base(const std::string& strategy) {
  const bool is_convolutional =
      !strategy.starts_with("zero") && !strategy.ends_with("sdp") && strategy != "single";
  const bool is_one_node = strategy == "single" || strategy == "dp";
  return {{"cluster",
           {{"machine", "dgx_a100_40gb"},
            {"nodes", is_one_node ? 1 : 2},
            {"gpus_per_node", strategy == "single" ? 1 : 8}}},
          {"model",
           {{"name", is_convolutional ? "resnet50" : "gpt2"},
            {"batch_per_gpu", 4},
            {"precision", is_convolutional ? "amp_fp16" : "bf16"}}},
          {"training", {{"strategy", strategy}}}};
}

Report report_of(const std::string& strategy, const Overrides& overrides) {
  const LoadedScenario scenario = scenario_from(base(strategy), {.overrides = overrides});
  return summarise(scenario, simulate(scenario));
}

bool is_same(const Report& a, const Report& b) {
  return first_difference(a, b).empty() && a.memory.peak.total() == b.memory.peak.total() &&
         a.memory.track == b.memory.track && a.communication.bytes_per_gpu == b.communication.bytes_per_gpu;
}

TEST_CASE("Every option of a strategy changes its result, or the table says why it does not") {
  for (const auto& [strategy, of_strategy] : options())
    for (const Option& option : of_strategy) {
      if (option.value.empty())
        continue;
      Overrides changed = option.others;
      changed.emplace_back("training." + option.key, option.value);
      INFO(strategy, ", ", option.key, " = ", option.value);
      CHECK_FALSE(is_same(report_of(strategy, option.others), report_of(strategy, changed)));
    }
}

// ps_async plays its updates one by one: its options are tested with the update loop.
TEST_CASE("The table has every strategy that is there") {
  for (const auto& [strategy, entry] : Registry<Strategy>::all())
    if (strategy != "ps_async") {
      INFO(strategy);
      CHECK(options().contains(strategy));
    }
}

TEST_CASE("The table has every option of the strategies in it") {
  for (const auto& [strategy, of_strategy] : options()) {
    const LoadedScenario loaded = scenario_from(base(strategy));
    for (const auto& [key, value] : loaded.resolved.at("training").items()) {
      INFO(strategy, ", ", key);
      CHECK((not_options.contains(key) ||
             std::any_of(of_strategy.begin(), of_strategy.end(),
                         [&](const Option& option) { return option.key == key; })));
    }
  }
}

}  // namespace lockstep::strategy_options_test
