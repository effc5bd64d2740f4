#include "sim/training/shared_options.h"

#include <fmt/format.h>

#include "sim/training/option_spelling.h"

namespace lockstep {
namespace {

constexpr double least_bucket_mb = 0.001;
constexpr double most_bucket_mb = 1e6;
constexpr std::int64_t most_threads = 1024;

OptionList list(ServerSpec& servers) {
  return {{"count", CountOption{servers.count, 1, most_things}},
          {"on", choice(servers.on, server_place_spellings)},
          {"placement", choice(servers.placement, shard_placement_spellings)},
          {"partition_bytes",
           BytesOption{servers.partition},
           {"placement partitioned", [&] { return servers.placement == ShardPlacement::partitioned; }}},
          {"update", choice(servers.update, update_lock_spellings)},
          {"updates_weights", FlagOption{servers.updates_weights}},
          {"threads", CountOption{servers.threads, 1, most_threads}},
          {"transport", choice(servers.transport, server_transport_spellings)},
          {"handler_bandwidth",
           OptionalRateOption{servers.handler_bandwidth},
           {"transport grpc", [&] { return servers.transport == ServerTransport::grpc; }}}};
}

}  // namespace

OptionList ddp_options(TrainingSpec& training) {
  DdpOptions& ddp = training.ddp;
  const auto factorises = [&] { return training.compression.kind == CompressionKind::powersgd; };
  return {{"bucket_cap_mb", MebibytesOption{ddp.bucket_cap, least_bucket_mb, most_bucket_mb}},
          {"first_bucket_mb", MebibytesOption{ddp.first_bucket, least_bucket_mb, most_bucket_mb}},
          {"gradient_as_bucket_view", FlagOption{ddp.gradient_as_bucket_view}},
          {"static_graph", FlagOption{ddp.static_graph}},
          {"find_unused_parameters", FlagOption{ddp.find_unused_parameters}},
          {"broadcast_buffers", FlagOption{ddp.broadcast_buffers}},
          {"powersgd_start_iteration",
           CountOption{ddp.powersgd_start_iteration, 0, INT64_MAX},
           {"compression powersgd_R", factorises}}};
}

OptionList zero_options(TrainingSpec& training) {
  ZeroOptions& zero = training.zero;
  return {{"reduce_bucket_size", CountOption{zero.reduce_bucket_size, 1, most_elements}},
          {"overlap_comm", FlagOption{zero.overlap_comm}},
          {"reduce_scatter", FlagOption{zero.reduce_scatter}},
          {"contiguous_gradients", FlagOption{zero.contiguous_gradients}},
          {"communication_data_type", choice(zero.communication_data_type, element_type_spellings)}};
}

OptionList server_options(TrainingSpec& training) {
  ParameterServerOptions& options = training.parameter_server;
  return {{"servers", NestedOption{"a number of servers", list(options.servers)}},
          {"scheduling", choice(options.scheduling, server_scheduling_spellings)},
          {"pull_once_per_node", FlagOption{options.pull_once_per_node}},
          {"local_reduce", choice(options.local_reduce, local_reduce_spellings)}};
}

const ServerSpec& stated_servers(const TrainingSpec& training) {
  return training.parameter_server.servers;
}

std::vector<OptionProblem> server_problems(const TrainingSpec& training, const ClusterShape& shape) {
  const ServerSpec& servers = training.parameter_server.servers;
  const std::int64_t sockets = std::int64_t{shape.nodes} * shape.sockets;
  std::vector<OptionProblem> problems;
  if (servers.on == ServerPlace::gpu && servers.count > shape.ranks())
    problems.push_back(
        {"servers", fmt::format("found {} servers on {} GPUs; expected at most one a GPU, or \"on\": \"cpu\"",
                                servers.count, shape.ranks())});
  if (servers.on == ServerPlace::cpu && servers.count > sockets)
    problems.push_back(
        {"servers",
         fmt::format(
             "found {} servers on {} CPU sockets; expected at most one a socket, or \"on\": \"machines\"",
             servers.count, sockets)});
  if (servers.on == ServerPlace::machines && !shape.has_nics)
    problems.push_back(
        {"servers", "found servers on machines of their own, but this machine has no NICs; valid: cpu, gpu"});
  return problems;
}

std::vector<UnusedKey> unused_in_turn(std::string_view why) {
  return {{"communication.overlap", why},
          {"communication.collectives_in_flight", why},
          {"compute.slowdown_during_communication", why}};
}

std::vector<UnusedKey> unused_with_servers(const TrainingSpec&) {
  constexpr std::string_view no_collectives = "workers and servers send each other messages, no collectives";
  return {{"communication.algorithm", no_collectives},
          {"communication.protocol", no_collectives},
          {"communication.collectives_in_flight", no_collectives},
          {"compute.slowdown_during_communication", "pushes and pulls run no kernels on a GPU"}};
}

TrafficBound server_traffic_bound(const TrafficInput& input) {
  const double partition = static_cast<double>(input.training.parameter_server.servers.partition.count());
  const double pieces = input.tensors + 8 * input.elements / partition;
  constexpr double ops_per_piece = 16;  // pull, push and update, each with its copies and handlers
  return {.messages = ops_per_piece * pieces, .volume = 2 * input.ranks};
}

}  // namespace lockstep
