// What must hold of synchronous parameter servers: bytes, times that can be said in advance, memory.
//
// S: the bytes of all gradients, and of all weights; n: workers; N: nodes.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/scenarios.h"

namespace lockstep::parameter_server_test {

using Json = nlohmann::ordered_json;

Report report_of(const Json& given) {
  const Scenario scenario = scenario_from(given);
  return summarise(scenario, simulate(scenario));
}

Json resnet50(std::int64_t nodes, std::int64_t gpus, const Json& options) {
  Json given{{"cluster", {{"machine", "dgx1_v100"}, {"nodes", nodes}, {"gpus_per_node", gpus}}},
             {"model", {{"name", "resnet50"}, {"batch_per_gpu", 32}, {"precision", "fp32"}}},
             {"training", {{"strategy", "ps_sync"}}}};
  for (const auto& [key, value] : options.items()) given["training"][key] = value;
  return given;
}

constexpr std::int64_t resnet50_bytes = 4 * 25'557'032;

void check_bytes(const Json& given, std::int64_t messages) {
  INFO(given.dump());
  const Report report = report_of(given);
  CHECK(report.communication.bytes_per_gpu.count() == resnet50_bytes);
  REQUIRE(report.communication.pushes);
  REQUIRE(report.communication.pulls);
  CHECK(report.communication.pushes->bytes.count() == resnet50_bytes);
  CHECK(report.communication.pulls->bytes.count() == resnet50_bytes);
  Bytes in;
  Bytes out;
  for (const ServerReport& server : report.communication.servers) {
    in += server.bytes_in;
    out += server.bytes_out;
  }
  CHECK(in.count() == messages * resnet50_bytes);
  CHECK(out.count() == messages * resnet50_bytes);
}

TEST_CASE("A worker sends S and receives S, and the servers together n S each way") {
  const Json every_gpu{{"pull_once_per_node", false}, {"local_reduce", "none"}};
  for (const auto& [nodes, gpus] : {std::pair{1, 1}, std::pair{1, 4}, std::pair{2, 1}, std::pair{2, 4}})
    for (const char* placement : {"round_robin", "greedy", "partitioned"})
      for (const char* on : {"cpu", "gpu", "machines"}) {
        Json options = every_gpu;
        options["servers"] = {{"count", nodes}, {"on", on}, {"placement", placement}};
        check_bytes(resnet50(nodes, gpus, options), nodes * gpus);
      }
}

TEST_CASE("Where a node pulls and pushes once, the servers together carry N S each way") {
  for (const char* framework : {"tensorflow_ps", "byteps"})
    check_bytes(resnet50(2, 4, {{"framework", framework}}), 2);
}

TEST_CASE("Half-precision gradients are half the bytes to the servers, and weights come back whole") {
  const Report report = report_of(resnet50(2, 1, {{"framework", "tensorflow_ps"}, {"compression", "fp16"}}));
  CHECK(report.communication.pushes->bytes_on_wire.count() == resnet50_bytes / 2);
  CHECK(report.communication.pulls->bytes_on_wire.count() == resnet50_bytes);
}

// Two hosts of one CPU rank, and one server machine, on links of B bytes/s without latency; one variable of S
// bytes; forward f, backward b, no optimizer. Both workers pull at once, so each gets B / 2: 2 S / B. Both
// push at once, as long again. The server's one handler adds the two one after another, three passes each
// over memory of M bytes/s. Between a rank and its host nothing is modelled: 1 ps a byte. Nobody pulls before
// all is added:
//   T = 2 S / B + S ps + f + b + S ps + 2 S / B + 2 * 3 S / M.
TEST_CASE("A synchronous step is pull, compute, push and add, one after another") {
  constexpr std::int64_t elements = 25'000'000;
  constexpr Bytes size{4 * elements};
  Json given;
  given["cluster"]["nodes"] = 2;
  given["cluster"]["machine"] = {
      {"name", "lab"},
      {"source", "test"},
      {"gpu", "cpu"},
      {"gpus", 1},
      {"gpu_links", {{"kind", "none"}}},
      {"host", {{"memory_bandwidth", "30 GB/s"}}},
      {"nics", {{"count", 1}, {"link", {{"bandwidth", "1 GB/s"}, {"latency", "0 s"}}}}},
      {"fabric", {{"kind", "single_switch"}, {"hop_latency", "0 s"}}},
      {"calibration", "dgx1_v100"},
      {"library", "gloo"}};
  given["model"]["layers"] = Json::array({{{"name", "only"},
                                           {"parameters", {elements}},
                                           {"forward_time", "10 ms"},
                                           {"backward_time", "20 ms"}}});
  given["training"] = {{"strategy", "ps_sync"},
                       {"framework", "tensorflow_ps"},
                       {"optimizer", "none"},
                       {"servers", {{"count", 1}, {"on", "machines"}, {"transport", "direct"}}}};
  Scenario scenario = scenario_from(given);
  scenario.cluster.calibration.rank_variation = Ratio{};  // both workers are equally fast
  // What a library gets out of the wire is calibration.
  const auto cluster = build_cluster(scenario);
  const Bandwidth wire = cluster->topology.effective(LinkClass::network, Bandwidth{1'000'000'000});
  const Duration sharing = time_to_move(size * 2, wire);
  const Duration adding = time_to_move(size * 3, Bandwidth{30'000'000'000});
  const Duration expected =
      sharing * 2 + adding * 2 + Duration::milliseconds(30) + Duration::picoseconds(2 * size.count());
  const Duration found = summarise(scenario, simulate(scenario)).iteration;
  INFO(found.in_seconds(), " s against ", expected.in_seconds(), " s");
  // A rate of one half rounds down to a byte a second: at most a part in 5 * 10^8.
  CHECK(found >= expected);
  CHECK(found <= expected + Duration::microseconds(1));
}

// A handler of h bytes/s that n nodes' pulls and pushes of one variable go through takes at least 2 n S / h.
TEST_CASE("Over gRPC the handler of the largest variable is a bound from below") {
  const Json given = {{"cluster", {{"machine", "p100_4gpu_25gbe"}, {"nodes", 4}}},
                      {"model", {{"name", "vgg16"}, {"batch_per_gpu", 64}, {"precision", "fp32"}}},
                      {"training",
                       {{"strategy", "ps_sync"},
                        {"framework", "tensorflow_ps"},
                        {"servers", {{"count", 4}, {"handler_bandwidth", "500 MB/s"}}}}}};
  constexpr Bytes largest{4 * (25'088 * 4'096)};  // fc6
  const Report report = report_of(given);
  CHECK(report.iteration >= time_to_move(largest * 8, Bandwidth{500'000'000}));
}

TEST_CASE("Pieces that the next forward needs first are worth sending first") {
  const auto iteration = [](const char* scheduling) {
    return report_of({{"cluster", {{"machine", "p100_4gpu_25gbe"}, {"nodes", 2}}},
                      {"model", {{"name", "resnet50"}, {"batch_per_gpu", 8}, {"precision", "fp32"}}},
                      {"training",
                       {{"strategy", "ps_sync"},
                        {"framework", "byteps"},
                        {"scheduling", scheduling},
                        {"servers", {{"count", 2}, {"on", "machines"}}}}}})
        .iteration;
  };
  CHECK(iteration("priority") < iteration("none"));
}

// A worker has messages under way and its compute lane idle only while it waits for messages.
TEST_CASE("What is not hidden of the messages is at most the exposed communication") {
  for (const char* framework : {"tensorflow_ps", "byteps"}) {
    const Report report = report_of(resnet50(2, 4, {{"framework", framework}}));
    CHECK(report.communication.total <= report.iteration);
    CHECK(report.communication.total - report.communication.overlapped <=
          report.breakdown.exposed_communication + report.breakdown.straggler_wait);
  }
}

TEST_CASE("More handlers never make a step longer") {
  Duration before = Duration::seconds(1'000);
  for (const std::int64_t threads : {1, 2, 64}) {
    const Duration now =
        report_of(resnet50(2, 2, {{"framework", "tensorflow_ps"}, {"servers", {{"threads", threads}}}}))
            .iteration;
    CHECK(now <= before);
    before = now;
  }
}

// Adam keeps two fp32 states: with the servers where they update, with the workers where they do not. A
// server that updates holds weights, sums and states of its part; one that only adds holds the sums.
TEST_CASE("Whoever updates keeps the optimizer's states") {
  const auto memory = [](const char* framework) {
    const Report report = report_of(resnet50(2, 2, {{"framework", framework}, {"optimizer", "adam"}}));
    Bytes servers;
    for (const ServerReport& server : report.communication.servers) servers += server.memory;
    return std::pair{report.memory.standing.optimizer_states, servers};
  };
  CHECK(memory("tensorflow_ps") == std::pair{Bytes{0}, Bytes{4 * resnet50_bytes}});
  CHECK(memory("byteps") == std::pair{Bytes{2 * resnet50_bytes}, Bytes{resnet50_bytes}});
}

TEST_CASE("A straggler holds up everybody, and one machine needs no network") {
  Json given = resnet50(1, 4, {});
  const Duration even = report_of(given).iteration;
  given["cluster"]["stragglers"] = Json::array({{{"rank", 3}, {"slowdown", 2.0}}});
  CHECK(report_of(given).iteration * 2 > even * 3);
}

}  // namespace lockstep::parameter_server_test
