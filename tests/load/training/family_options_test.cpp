#include "sim/load/training/family_options.h"

#include <doctest/doctest.h>

#include <set>

#include "sim/training/strategy.h"
#include "tests/scenario/lab.h"

namespace lockstep::family_options_test {

constexpr TrainingFacts two_nodes{.nodes = 2, .gpus_per_node = 8, .precision = Precision::bf16};

struct Reading {
  TrainingSpec training;
  std::string problems;
};

// What a strategy makes of these keys.
Reading read(const std::string& strategy, const std::string& text, const TrainingFacts& facts = two_nodes) {
  static const ProfileStore store("");
  LoadContext context{.store = store, .folder = ""};
  JsonDocument document = JsonDocument::from_text(text, "s");
  Reading reading;
  reading.training.strategy = strategy;
  reading.training.framework = usual_framework(strategy);
  reading.training.framework_version = find_preset(reading.training.framework)->default_version;
  apply_preset(reading.training, facts);
  const JsonReader json = document.root();
  read_family_options(json, {context, ""}, facts, reading.training);
  json.finish();
  for (const std::string& problem : document.problems()) {
    reading.problems += problem + "\n";
  }
  return reading;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Every part stands in what reading these keys complains about.
void check_refused(const std::string& strategy, const std::string& text,
                   std::initializer_list<const char*> parts) {
  const std::string found = read(strategy, text).problems;
  CAPTURE(text);
  CAPTURE(found);
  for (const char* part : parts) {
    CHECK(contains(found, part));
  }
}

TEST_CASE("what a strategy writes, it reads back to the same, and refuses nothing of it") {
  for (const std::string& strategy : strategies_in_order()) {
    CAPTURE(strategy);
    nlohmann::ordered_json written = nlohmann::ordered_json::object();
    write_family_options(read(strategy, "{}").training, written);
    const Reading again = read(strategy, written.dump());
    CHECK(again.problems == "");
    nlohmann::ordered_json rewritten = nlohmann::ordered_json::object();
    write_family_options(again.training, rewritten);
    CHECK(rewritten.dump() == written.dump());
  }
}

TEST_CASE("options that differ from the defaults read back as well") {
  const std::vector<std::pair<std::string, std::string>> given{
      {"ddp",
       R"({"bucket_cap_mb": 12.5, "first_bucket_mb": 3, "static_graph": true, "broadcast_buffers": false})"},
      {"zero2", R"({"reduce_bucket_size": 2e8, "gradient_clipping": true})"},
      {"zero3", R"({"stage3_prefetch_bucket_size": 0, "chunk_size": 1e6})"},
      {"hsdp",
       R"({"shard_group": 4, "reshard_after_forward": false, "auto_wrap": "size_1000", "reduce_dtype": "fp32"})"},
      {"fsdp", R"({"fsdp_version": 2, "reshard_after_forward": false, "no_sync": true})"},
      {"horovod",
       R"({"fusion_threshold_mb": 0.5, "cycle_time_ms": 3.5, "response_cache": false, "device": "cpu"})"},
      {"ps_async", R"({"servers": {"count": 4, "on": "gpu", "placement": "round_robin", "update": "locked",
                       "transport": "grpc", "handler_bandwidth": "265 MB/s"}, "staleness_bound": 8})"},
      {"local_sgd", R"({"local_steps": 8, "average_momentum": true})"},
      {"dp", R"({"gather_outputs": false})"}};
  for (const auto& [strategy, text] : given) {
    CAPTURE(strategy);
    const Reading first = read(strategy, text);
    CHECK(first.problems == "");
    nlohmann::ordered_json written = nlohmann::ordered_json::object();
    write_family_options(first.training, written);
    const auto stated = nlohmann::ordered_json::parse(text);
    for (const auto& item : stated.items()) {
      if (item.value().is_primitive()) {
        CHECK(written[item.key()] == item.value());
      }
    }
    nlohmann::ordered_json rewritten = nlohmann::ordered_json::object();
    write_family_options(read(strategy, written.dump()).training, rewritten);
    CHECK(rewritten.dump() == written.dump());
  }
}

TEST_CASE("a key of another strategy is refused with the strategies that have it") {
  check_refused("ddp", R"({"reduce_bucket_size": 1000})",
                {"/reduce_bucket_size: found 1000", "belongs to zero1, zero2, zero3", "this is ddp"});
  check_refused("zero2", R"({"servers": 4})",
                {"/servers: found 4", "belongs to ps_sync, ps_async", "this is zero2"});
  check_refused("fsdp", R"({"bucket_cap_mb": 25})",
                {"/bucket_cap_mb: found 25", "belongs to ddp", "this is fsdp"});
  check_refused("ps_sync", R"({"staleness_bound": 2})", {"/staleness_bound: ", "belongs to ps_async"});
  check_refused("ddp", R"({"local_steps": 2})", {"/local_steps: ", "belongs to local_sgd"});
  check_refused("zero1", R"({"stage3_prefetch_bucket_size": 1})", {"belongs to zero3", "this is zero1"});
  check_refused("zero3", R"({"allgather_bucket_size": 1})", {"belongs to zero1, zero2", "this is zero3"});
  check_refused("fsdp", R"({"shard_group": 8})", {"/shard_group: ", "belongs to hsdp"});
  check_refused("ddp", R"({"master_weights": true})", {"belongs to zero1, zero2, zero3, fsdp, hsdp"});
}

TEST_CASE("a key that another option rules out is refused with that option") {
  check_refused("ddp", R"({"powersgd_start_iteration": 10})", {"belongs to compression powersgd_R"});
  check_refused("fsdp", R"({"fsdp_version": 2, "backward_prefetch": "post"})",
                {"/backward_prefetch: ", "belongs to fsdp_version 1"});
  check_refused("ps_sync", R"({"servers": {"placement": "greedy", "partition_bytes": "1 MiB"}})",
                {"/servers/partition_bytes: ", "belongs to placement partitioned"});
}

TEST_CASE("more servers than can be held is refused with what would hold them") {
  check_refused("ps_sync", R"({"servers": {"count": 99, "on": "cpu"}})",
                {"/servers: found 99 servers on ", "CPU sockets", "\"on\": \"machines\""});
  check_refused("ps_sync", R"({"servers": {"count": 99, "on": "gpu"}})",
                {"/servers: found 99 servers on ", "GPUs", "at most one a GPU"});
}

TEST_CASE("a number of servers is their count, and the rest stays as the framework has it") {
  const ServerSpec servers = read("ps_sync", R"({"servers": 5})").training.parameter_server.servers;
  CHECK(servers.count == 5);
  CHECK(servers.placement == read("ps_sync", "{}").training.parameter_server.servers.placement);
  check_refused("ps_sync", R"({"servers": 0})", {"/servers: found 0", "from 1 to"});
  check_refused("ps_sync", R"({"servers": "many"})", {"/servers: ", "a number of servers or an object"});
  check_refused("ps_sync", R"({"servers": {"cont": 4}})", {"/servers/cont: ", "\"count\""});
  // 2 nodes of 8 GPUs hold 16 servers.
  check_refused("ps_sync", R"({"servers": {"count": 17, "on": "gpu"}})", {"17 servers on 16 GPUs", "cpu"});
}

TEST_CASE("a shard group cuts the cluster into alike parts of nodes or whole nodes") {
  for (const char* size : {"1", "2", "4", "8", "16"}) {
    CHECK(read("hsdp", std::string(R"({"shard_group": )") + size + "}").problems == "");
  }
  check_refused("hsdp", R"({"shard_group": 3})",
                {"/shard_group: found 3", "2 nodes of 8 GPUs", "valid: 1, 2, 4, 8, 16"});
  check_refused("hsdp", R"({"shard_group": 0})", {"/shard_group: found 0"});
  // Three nodes: 6 and 12 divide 24 ranks, but neither divides a node nor is made of whole ones.
  const TrainingFacts three_nodes{.nodes = 3, .gpus_per_node = 8};
  CHECK(contains(read("hsdp", R"({"shard_group": 6})", three_nodes).problems, "valid: 1, 2, 4, 8, 24"));
}

TEST_CASE("resharding is over all the ranks that share the weights, or none; by fully_shard over some too") {
  const auto reshard_group = [](const char* value) {
    return read("fsdp", std::string(R"({"reshard_after_forward": )") + value + "}")
        .training.sharded.reshard_group;
  };
  CHECK(reshard_group("true") == 16);
  CHECK(reshard_group("false") == 1);
  CHECK(reshard_group("16") == 16);
  check_refused("fsdp", R"({"reshard_after_forward": 4})",
                {"found 4", "all 16 ranks", "valid: true, false, or fsdp_version 2"});
  CHECK(reshard_group(R"(4, "fsdp_version": 2)") == 4);
  check_refused("fsdp", R"({"reshard_after_forward": 3, "fsdp_version": 2})",
                {"found 3", "the 16 ranks", "valid: true, false, 2, 4, 8, 16"});
  check_refused("hsdp", R"({"reshard_after_forward": 8, "shard_group": 4, "fsdp_version": 2})",
                {"found 8", "the 4 ranks", "valid: true, false, 2, 4"});
  check_refused("fsdp", R"({"reshard_after_forward": 0})", {"found 0"});
  check_refused("fsdp", R"({"reshard_after_forward": "half"})", {"true, false or a number of ranks"});
}

TEST_CASE("hsdp reshards within its shard group, whatever its size") {
  CHECK(read("hsdp", R"({"shard_group": 4})").training.sharded.reshard_group == 4);
}

TEST_CASE("gradients are reduced in the type of the weights unless a type is stated") {
  const ShardedOptions sharded = read("fsdp", R"({"param_dtype": "fp32"})").training.sharded;
  CHECK(sharded.reduce_dtype == Precision::fp32);
  CHECK(read("fsdp", R"({"reduce_dtype": "fp32"})").training.sharded.param_dtype == Precision::bf16);
}

TEST_CASE("values out of range or without a meaning here are refused") {
  check_refused("local_sgd", R"({"local_steps": 0})", {"/local_steps: found 0", "from 1 to"});
  check_refused("ps_async", R"({"staleness_bound": -1})", {"/staleness_bound: found -1", "from 0 to"});
  check_refused("fsdp", R"({"auto_wrap": "size_0"})", {"/auto_wrap: ", "size_N"});
  check_refused("fsdp", R"({"reduce_dtype": "fp8"})", {"/reduce_dtype: ", "fp32, fp16, bf16"});
  check_refused("horovod", R"({"cycle_time_ms": -1})", {"/cycle_time_ms: found -1"});
  check_refused("horovod", R"({"num_groups": -1})", {"/num_groups: found -1"});
  check_refused("horovod", R"({"announce": "later"})", {"/announce: found \"later\"", "launched"});
  check_refused("ddp", R"({"fusion_threshold_mb": 64})", {"belongs to horovod", "this is ddp"});
  const TrainingFacts fp32{.nodes = 2, .gpus_per_node = 8};
  CHECK(contains(read("zero1", R"({"master_weights": true})", fp32).problems, "fp32 themselves"));
}

TEST_CASE("every strategy but single has options, each named once") {
  for (const std::string& strategy : strategies_in_order()) {
    TrainingSpec training;
    training.strategy = strategy;
    const std::vector<std::string> keys = option_keys(training);
    CHECK_FALSE(keys.empty());
    CHECK(std::set<std::string>(keys.begin(), keys.end()).size() == keys.size());
  }
}

}  // namespace lockstep::family_options_test
