#include "sim/load/training/family_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/json_text.h"
#include "sim/load/reading/exact_text.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"
#include "sim/load/training/option_text.h"
#include "sim/load/training/strategy_rules.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t picoseconds_per_millisecond = 1'000'000'000;
constexpr RatioRange mebibyte_range{0.001, 1e6};
constexpr RatioRange fusion_range{0, 1e6};
constexpr RatioRange millisecond_range{0, 1e5};
constexpr Duration longest_operator = Duration::seconds(1);
constexpr IntegerRange element_range{1, 1'000'000'000'000};
constexpr IntegerRange element_or_none_range{0, 1'000'000'000'000};
constexpr IntegerRange count_range{1, million};

// ---- the lists ----

template <class Fields>
void visit(Fields& fields, const TrainingSpec& training, DdpOptions& ddp) {
  fields.mebibytes("bucket_cap_mb", ddp.bucket_cap_mb);
  fields.mebibytes("first_bucket_mb", ddp.first_bucket_mb);
  fields.flag("gradient_as_bucket_view", ddp.gradient_as_bucket_view);
  fields.flag("static_graph", ddp.static_graph);
  fields.flag("find_unused_parameters", ddp.find_unused_parameters);
  fields.flag("broadcast_buffers", ddp.broadcast_buffers);
  if (training.compression.kind == CompressionKind::powersgd) {
    fields.count("powersgd_start_iteration", ddp.powersgd_start_iteration, {0, INT64_MAX});
  } else {
    fields.absent("powersgd_start_iteration", "compression powersgd_R");
  }
}

template <class Fields>
void visit(Fields& fields, const TrainingSpec& training, ZeroOptions& zero) {
  const bool is_stage3 = training.strategy == "zero3";
  fields.count("reduce_bucket_size", zero.reduce_bucket_size, element_range);
  fields.flag("overlap_comm", zero.overlap_comm);
  fields.flag("reduce_scatter", zero.reduce_scatter);
  fields.flag("contiguous_gradients", zero.contiguous_gradients);
  fields.name("communication_data_type", zero.communication_data_type, element_type_spellings);
  if (!is_stage3) {
    fields.count("allgather_bucket_size", zero.allgather_bucket_size, element_range);
    fields.flag("overlap_param_gather", zero.overlap_param_gather);
    return;
  }
  fields.count("stage3_prefetch_bucket_size", zero.stage3_prefetch_bucket_size, element_or_none_range);
  fields.count("stage3_param_persistence_threshold", zero.stage3_param_persistence_threshold,
               element_or_none_range);
  fields.count("stage3_max_live_parameters", zero.stage3_max_live_parameters, element_or_none_range);
  fields.count("stage3_max_reuse_distance", zero.stage3_max_reuse_distance, element_or_none_range);
  fields.count("chunk_size", zero.chunk_size, element_or_none_range);
}

template <class Fields>
void visit(Fields& fields, const TrainingSpec& training, ShardedOptions& sharded) {
  fields.count("fsdp_version", sharded.version, {1, 2});
  if (training.strategy == "hsdp") {
    fields.count("shard_group", sharded.shard_group, count_range);
  }
  fields.reshard("reshard_after_forward", sharded.reshard_group, sharded.shard_group);
  if (sharded.version == 1) {
    fields.name("backward_prefetch", sharded.backward_prefetch, backward_prefetch_spellings);
    fields.flag("forward_prefetch", sharded.forward_prefetch);
    fields.flag("limit_all_gathers", sharded.limit_all_gathers);
  } else {
    for (const char* key : {"backward_prefetch", "forward_prefetch", "limit_all_gathers"}) {
      fields.absent(key, "fsdp_version 1; fully_shard always gathers one unit ahead");
    }
  }
  fields.wrap("auto_wrap", sharded.auto_wrap);
  fields.name("param_dtype", sharded.param_dtype, element_type_spellings);
  fields.name("reduce_dtype", sharded.reduce_dtype, element_type_spellings);
  fields.flag("no_sync", sharded.no_sync);
}

template <class Fields>
void visit(Fields& fields, const TrainingSpec&, HorovodOptions& horovod) {
  fields.mebibytes("fusion_threshold_mb", horovod.fusion_threshold);
  fields.milliseconds("cycle_time_ms", horovod.cycle_time);
  fields.flag("response_cache", horovod.response_cache);
  fields.flag("hierarchical_allreduce", horovod.hierarchical_allreduce);
  fields.flag("autotune", horovod.autotune);
  fields.name("device", horovod.device, collective_device_spellings);
  fields.count("num_groups", horovod.num_groups, {0, million});
  fields.flag("batch_d2d_memcopies", horovod.batch_d2d_memcopies);
  fields.name("announce", horovod.announce, announcement_spellings);
}

template <class Fields>
void visit(Fields& fields, ServerSpec& servers) {
  fields.count("count", servers.count, count_range);
  fields.name("on", servers.on, server_place_spellings);
  fields.name("placement", servers.placement, shard_placement_spellings);
  if (servers.placement == ShardPlacement::partitioned) {
    fields.bytes("partition_bytes", servers.partition);
  } else {
    fields.absent("partition_bytes", "placement partitioned");
  }
  fields.name("update", servers.update, update_lock_spellings);
  fields.flag("updates_weights", servers.updates_weights);
  fields.count("threads", servers.threads, {1, 1024});
  fields.name("transport", servers.transport, server_transport_spellings);
  if (servers.transport == ServerTransport::grpc) {
    fields.rate_if_stated("handler_bandwidth", servers.handler_bandwidth);
  } else {
    fields.absent("handler_bandwidth", "transport grpc");
  }
}

template <class Fields>
void visit(Fields& fields, const TrainingSpec& training, ParameterServerOptions& options) {
  fields.servers("servers", options.servers);
  fields.name("scheduling", options.scheduling, server_scheduling_spellings);
  fields.flag("pull_once_per_node", options.pull_once_per_node);
  fields.name("local_reduce", options.local_reduce, local_reduce_spellings);
  if (training.strategy == "ps_async") {
    fields.count_if_stated("staleness_bound", options.staleness_bound, {0, million});
  }
}

template <class Fields>
void visit(Fields& fields, const TrainingSpec&, LocalSgdOptions& local) {
  fields.count("local_steps", local.local_steps, count_range);
  fields.flag("average_momentum", local.average_momentum);
}

template <class Fields>
void visit(Fields& fields, const TrainingSpec&, DataParallelOptions& data_parallel) {
  fields.flag("gather_outputs", data_parallel.gather_outputs);
  fields.duration("operator_time", data_parallel.operator_time, longest_operator);
}

// A single GPU is what DistributedDataParallel is on one rank, so that one change makes a scenario its own
// baseline.
template <class Fields>
void visit_family(Fields& fields, TrainingSpec& training) {
  const std::string& strategy = training.strategy;
  if (strategy == "single" || strategy == "ddp") {
    visit(fields, training, training.ddp);
  } else if (strategy.starts_with("zero")) {
    visit(fields, training, training.zero);
  } else if (strategy == "fsdp" || strategy == "hsdp") {
    visit(fields, training, training.sharded);
  } else if (strategy == "horovod") {
    visit(fields, training, training.horovod);
  } else if (strategy.starts_with("ps_")) {
    visit(fields, training, training.parameter_server);
  } else if (strategy == "local_sgd") {
    visit(fields, training, training.local_sgd);
  } else if (strategy == "dp") {
    visit(fields, training, training.data_parallel);
  }
  const StrategyRules& rules = rules_of(strategy);
  if (rules.shards_optimizer) {
    fields.flag("master_weights", training.master_weights);
  }
  if (rules.clips_gradients) {
    fields.flag("gradient_clipping", training.gradient_clipping);
  }
}

// ---- what walks them ----

class FieldReader {
 public:
  FieldReader(const JsonReader& json, const Place& place) : json_(json), place_(place) {}

  void flag(std::string_view key, bool& value) { value = boolean_or(json_, key, value); }

  void count(std::string_view key, std::int64_t& value, IntegerRange range) {
    value = integer_or(json_, key, value, range);
  }

  void count_if_stated(std::string_view key, std::optional<std::int64_t>& value, IntegerRange range) {
    if (const auto found = json_.optional(key)) {
      value = found->integer(range.minimum, range.maximum);
    }
  }

  template <class Value, std::size_t size>
  void name(std::string_view key, Value& value, const std::array<Spelling<Value>, size>& spellings) {
    value = spelled_or(json_, key, value, spellings);
  }

  void mebibytes(std::string_view key, double& value) {
    if (const auto found = json_.optional(key)) {
      value = found->number(mebibyte_range.minimum, mebibyte_range.maximum, "MiB");
    }
  }

  void mebibytes(std::string_view key, Bytes& value) {
    if (const auto found = json_.optional(key)) {
      const double found_mb = found->number(fusion_range.minimum, fusion_range.maximum, "MiB");
      value = Bytes{static_cast<std::int64_t>(found_mb * static_cast<double>(mebi))};
    }
  }

  void milliseconds(std::string_view key, Duration& value) {
    if (const auto found = json_.optional(key)) {
      const double found_ms = found->number(millisecond_range.minimum, millisecond_range.maximum, "ms");
      value = Duration::picoseconds(
          static_cast<std::int64_t>(found_ms * static_cast<double>(picoseconds_per_millisecond) + 0.5));
    }
  }

  void duration(std::string_view key, Duration& value, Duration longest) {
    const auto found = json_.optional(key);
    if (!found) {
      return;
    }
    value = found->duration();
    if (value > longest) {
      found->expected("at most " + format_duration(longest));
    }
  }

  void bytes(std::string_view key, Bytes& value) {
    const auto found = json_.optional(key);
    if (!found) {
      return;
    }
    value = found->bytes();
    if (value == Bytes{0} && is_readable(*found, parse_bytes)) {
      found->expected("at least 1 B");
    }
  }

  void rate_if_stated(std::string_view key, std::optional<Bandwidth>& value) {
    if (const auto found = json_.optional(key)) {
      value = found->bandwidth();
    }
  }

  void wrap(std::string_view key, AutoWrap& value) {
    if (const auto found = json_.optional(key)) {
      const auto parsed = parse_auto_wrap(found->text());
      value = parsed.value_or(value);
      if (!parsed && found->is_string()) {
        found->expected(auto_wrap_forms);
      }
    }
  }

  // true: over the whole shard group; false: not at all; a number: over that many ranks.
  void reshard(std::string_view key, std::int64_t& ranks, std::int64_t shard_group) {
    const auto found = json_.optional(key);
    if (!found || found->is_bool()) {
      ranks = !found || found->boolean() ? shard_group : 1;
    } else if (found->is_number()) {
      ranks = found->integer(1, million);
    } else {
      found->expected("true, false or a number of ranks");
    }
  }

  // A number is the count; everything else stays as the framework has it.
  void servers(std::string_view key, ServerSpec& value) {
    const auto found = json_.optional(key);
    if (!found) {
      return;
    }
    if (found->is_number()) {
      value.count = found->integer(count_range.minimum, count_range.maximum);
      (place_ / key / "count").note("given");
    } else if (found->is_object()) {
      FieldReader fields(*found, place_ / key);
      visit(fields, value);
      found->finish();
    } else {
      found->expected("a number of servers or an object");
    }
  }

  void absent(std::string_view key, std::string_view belongs_to) {
    if (const auto found = json_.optional(key)) {
      found->problem(fmt::format("found {}; belongs to {}", describe_value(found->value()), belongs_to));
    }
  }

 private:
  const JsonReader& json_;
  Place place_;
};

class FieldWriter {
 public:
  explicit FieldWriter(ordered_json& into) : into_(into) {}

  void flag(std::string_view key, bool value) { put(key, value); }
  void count(std::string_view key, std::int64_t value, IntegerRange) { put(key, value); }
  void count_if_stated(std::string_view key, std::optional<std::int64_t> value, IntegerRange) {
    if (value) {
      put(key, *value);
    }
  }
  template <class Value, std::size_t size>
  void name(std::string_view key, Value value, const std::array<Spelling<Value>, size>& spellings) {
    put(key, name_of(value, spellings));
  }
  void mebibytes(std::string_view key, double value) { put(key, value); }
  void mebibytes(std::string_view key, Bytes value) {
    put(key, static_cast<double>(value.count()) / static_cast<double>(mebi));
  }
  void milliseconds(std::string_view key, Duration value) {
    put(key, static_cast<double>(value.picoseconds()) / static_cast<double>(picoseconds_per_millisecond));
  }
  void duration(std::string_view key, Duration value, Duration) { put(key, exact_text(value)); }
  void bytes(std::string_view key, Bytes value) { put(key, exact_text(value)); }
  void rate_if_stated(std::string_view key, std::optional<Bandwidth> value) {
    if (value) {
      put(key, exact_text(*value));
    }
  }
  void wrap(std::string_view key, const AutoWrap& value) { put(key, text_of(value)); }
  void reshard(std::string_view key, std::int64_t ranks, std::int64_t shard_group) {
    if (ranks == shard_group || ranks == 1) {
      put(key, ranks == shard_group);
    } else {
      put(key, ranks);
    }
  }
  void servers(std::string_view key, ServerSpec& value) {
    ordered_json json;
    FieldWriter fields(json);
    visit(fields, value);
    put(key, std::move(json));
  }
  void absent(std::string_view, std::string_view) {}

 private:
  template <class Value>
  void put(std::string_view key, Value&& value) {
    into_[std::string(key)] = std::forward<Value>(value);
  }

  ordered_json& into_;
};

// Every key, also those that are written only where they are stated.
class KeyLister {
 public:
  void flag(std::string_view key, bool) { add(key); }
  void count(std::string_view key, std::int64_t, IntegerRange) { add(key); }
  void count_if_stated(std::string_view key, std::optional<std::int64_t>, IntegerRange) { add(key); }
  template <class Value, std::size_t size>
  void name(std::string_view key, Value, const std::array<Spelling<Value>, size>&) {
    add(key);
  }
  template <class Value>
  void mebibytes(std::string_view key, Value) {
    add(key);
  }
  void milliseconds(std::string_view key, Duration) { add(key); }
  void duration(std::string_view key, Duration, Duration) { add(key); }
  void wrap(std::string_view key, const AutoWrap&) { add(key); }
  void reshard(std::string_view key, std::int64_t, std::int64_t) { add(key); }
  void servers(std::string_view key, const ServerSpec&) { add(key); }
  void absent(std::string_view key, std::string_view) { add(key); }

  std::vector<std::string> keys;

 private:
  void add(std::string_view key) { keys.emplace_back(key); }
};

// ---- keys of other strategies ----

bool has_key(std::string_view strategy, std::string_view key) {
  TrainingSpec training;
  training.strategy = strategy;
  const std::vector<std::string> keys = option_keys(training);
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string owners_of(std::string_view key) {
  std::string owners;
  for (const StrategyRules& rules : strategy_rules()) {
    if (rules.strategy != "single" && has_key(rules.strategy, key)) {
      owners += (owners.empty() ? "" : ", ") + std::string(rules.strategy);
    }
  }
  return owners;
}

void refuse_foreign_options(const JsonReader& json, const TrainingSpec& training) {
  if (!json.is_object()) {
    return;
  }
  const std::vector<std::string> own = option_keys(training);
  for (const auto& item : json.value().items()) {
    const std::string& key = item.key();
    const bool is_own = std::find(own.begin(), own.end(), key) != own.end();
    const std::string owners = is_own ? "" : owners_of(key);
    if (const auto found = owners.empty() ? std::nullopt : json.optional(key)) {
      found->problem(fmt::format("found {}; belongs to {}; this is {}, which has {}",
                                 describe_value(found->value()), owners, training.strategy,
                                 fmt::join(own, ", ")));
    }
  }
}

// ---- what the options must agree with ----

// A cap that is stated caps the first bucket as well, unless that is stated too.
void let_first_bucket_follow(const JsonReader& json, const Place& place, TrainingSpec& training) {
  if (!json.optional("bucket_cap_mb") || json.optional("first_bucket_mb")) {
    return;
  }
  if (const auto note = first_bucket_follows_cap(training)) {
    training.ddp.first_bucket_mb = training.ddp.bucket_cap_mb;
    (place / "first_bucket_mb").note(*note);
  }
}

// MixedPrecision: a reduce_dtype that is left out is the param_dtype.
void let_reduce_dtype_follow(const JsonReader& json, TrainingSpec& training) {
  if (json.optional("param_dtype") && !json.optional("reduce_dtype")) {
    training.sharded.reduce_dtype = training.sharded.param_dtype;
  }
}

std::string listed(const std::vector<std::int64_t>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ", "));
}

// Sizes that cut the cluster into alike groups: parts of a node, or whole nodes.
std::vector<std::int64_t> valid_shard_groups(const TrainingFacts& facts) {
  std::vector<std::int64_t> valid;
  for (std::int64_t size = 1; size <= facts.ranks(); ++size) {
    const bool is_grid = facts.gpus_per_node % size == 0 || size % facts.gpus_per_node == 0;
    if (facts.ranks() % size == 0 && is_grid) {
      valid.push_back(size);
    }
  }
  return valid;
}

void check_shard_group(const JsonReader& json, const TrainingFacts& facts, std::int64_t shard_group) {
  const auto found = json.optional("shard_group");
  if (!found || !facts.is_cluster_known) {
    return;
  }
  const std::vector<std::int64_t> valid = valid_shard_groups(facts);
  if (std::find(valid.begin(), valid.end(), shard_group) == valid.end()) {
    found->problem(
        fmt::format("found {}, which does not cut {} nodes of {} GPUs into alike groups; valid: {}",
                    shard_group, facts.nodes, facts.gpus_per_node, listed(valid)));
  }
}

void check_reshard_group(const JsonReader& json, const TrainingFacts& facts, const ShardedOptions& sharded) {
  const auto found = json.optional("reshard_after_forward");
  if (!found || !facts.is_cluster_known || sharded.reshard_group == 1 ||
      sharded.reshard_group == sharded.shard_group) {
    return;
  }
  std::vector<std::int64_t> valid = valid_shard_groups(facts);
  std::erase_if(valid, [&](std::int64_t size) { return size == 1 || sharded.shard_group % size != 0; });
  if (sharded.version == 1) {
    found->problem(
        fmt::format("found {}, but FullyShardedDataParallel spreads units over all {} ranks that share the "
                    "weights, or not "
                    "at all; valid: true, false, or fsdp_version 2",
                    sharded.reshard_group, sharded.shard_group));
  } else if (std::find(valid.begin(), valid.end(), sharded.reshard_group) == valid.end()) {
    found->problem(
        fmt::format("found {}, which does not cut the {} ranks that share the weights into alike "
                    "groups; valid: true, false, {}",
                    sharded.reshard_group, sharded.shard_group, listed(valid)));
  }
}

void check_servers(const JsonReader& json, const TrainingFacts& facts, const ServerSpec& servers) {
  const auto found = json.optional("servers");
  if (!found || !facts.is_cluster_known) {
    return;
  }
  if (servers.on == ServerPlace::gpu && servers.count > facts.ranks()) {
    found->problem(fmt::format("found {} servers on {} GPUs; expected at most one a GPU, or \"on\": \"cpu\"",
                               servers.count, facts.ranks()));
  }
  const std::int64_t sockets = facts.nodes * facts.sockets;
  if (servers.on == ServerPlace::cpu && servers.count > sockets) {
    found->problem(fmt::format(
        "found {} servers on {} CPU sockets; expected at most one a socket, or \"on\": \"machines\"",
        servers.count, sockets));
  }
  if (servers.on == ServerPlace::machines && !facts.has_nics) {
    found->problem("found servers on machines of their own, but this machine has no NICs; valid: cpu, gpu");
  }
}

void check_master_weights(const JsonReader& json, const TrainingSpec& training, Precision precision) {
  const auto found = json.optional("master_weights");
  if (found && training.master_weights && type_of_weights(precision) == Precision::fp32) {
    found->problem(
        "found true, but the weights are fp32 themselves; expected model.precision fp16 or bf16, or false");
  }
}

}  // namespace

std::vector<std::string> option_keys(const TrainingSpec& training) {
  TrainingSpec copy = training;
  KeyLister keys;
  visit_family(keys, copy);
  return std::move(keys.keys);
}

void read_family_options(const JsonReader& json, const Place& place, const TrainingFacts& facts,
                         TrainingSpec& training) {
  refuse_foreign_options(json, training);
  FieldReader fields(json, place);
  visit_family(fields, training);
  if (has_key(training.strategy, "bucket_cap_mb")) {
    let_first_bucket_follow(json, place, training);
  }
  if (has_key(training.strategy, "reshard_after_forward")) {
    let_reduce_dtype_follow(json, training);
    check_shard_group(json, facts, training.sharded.shard_group);
    check_reshard_group(json, facts, training.sharded);
  }
  if (has_key(training.strategy, "servers")) {
    check_servers(json, facts, training.parameter_server.servers);
  }
  if (has_key(training.strategy, "master_weights")) {
    check_master_weights(json, training, facts.precision);
  }
}

void write_family_options(const TrainingSpec& training, ordered_json& into) {
  TrainingSpec copy = training;
  FieldWriter fields(into);
  visit_family(fields, copy);
}

}  // namespace lockstep
