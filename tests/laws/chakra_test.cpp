// A plan that leaves as Chakra traces and comes back takes the same time, whatever wrote it.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/report/chakra_export.h"
#include "tests/support/chakra_files.h"
#include "tests/support/scenarios.h"

namespace lockstep::chakra_test {

using testing::TraceFolder;
using Json = nlohmann::ordered_json;

Duration iteration_of(const Scenario& scenario) {
  return reported_iteration(scenario, simulate(scenario, {.with_first = false}));
}

void export_into(const TraceFolder& folder, const LoadedScenario& scenario) {
  export_chakra(scenario, folder.prefix(),
                [&](const std::string& path, std::string_view bytes) { folder.write(path, bytes); });
}

// The scenario that was written beside the traces.
LoadedScenario exported_in(const TraceFolder& folder, bool fold = true) {
  return load({.path = folder.prefix() + ".json", .data_directory = LOCKSTEP_SOURCE_DIR, .fold = fold});
}

void check_round_trip(const Json& given) {
  const LoadedScenario scenario = scenario_from(given);
  if (const std::string reason = reason_against_chakra(scenario); !reason.empty()) {
    const TraceFolder folder;
    CHECK_THROWS_AS(export_into(folder, scenario), ConfigError);
    return;
  }
  const TraceFolder folder;
  export_into(folder, scenario);
  const std::int64_t expected = iteration_of(scenario).picoseconds();
  for (const bool fold : {true, false}) {
    INFO(given.dump(), fold ? " folded" : " unfolded");
    CHECK(iteration_of(exported_in(folder, fold)).picoseconds() == expected);
  }
  // Traces do not say what a message is about: all of them count, scalars and losses too.
  const auto sent = [](const LoadedScenario& loaded) {
    return predict(loaded).report.communication.bytes_per_gpu;
  };
  CHECK(sent(exported_in(folder)) >= sent(scenario));
}

Json data_parallel(const std::string& strategy, const std::string& machine, std::int64_t nodes,
                   std::int64_t gpus) {
  const bool is_alone = strategy_named(strategy).accepts.one_gpu_only;
  const bool is_led = strategy_named(strategy).has_leader;
  return {{"cluster",
           {{"machine", machine},
            {"nodes", is_alone || is_led ? 1 : nodes},
            {"gpus_per_node", is_alone ? 1 : gpus}}},
          {"model", {{"name", "gpt2"}, {"batch_per_gpu", 2}, {"precision", "fp32"}}},
          {"training", {{"strategy", strategy}, {"gradient_accumulation", 2}}}};
}

TEST_CASE("Every strategy comes back from its traces to the picosecond") {
  struct Place {
    const char* machine;
    std::int64_t nodes, gpus;
  };
  for (const auto& [name, strategy] : Registry<Strategy>::all())
    for (const Place& place : {Place{"dgx_a100_40gb", 2, 8}, {"abci_v", 3, 4}, {"dgx1_v100", 1, 8}})
      check_round_trip(data_parallel(name, place.machine, place.nodes, place.gpus));
}

TEST_CASE("Every strategy comes back at fidelity step") {
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    Json given = data_parallel(name, "abci_v", 2, 2);
    given["simulation"]["fidelity"] = "step";
    check_round_trip(given);
  }
}

TEST_CASE("Gloo, with two collectives in flight, comes back") {
  for (const char* strategy : {"ddp", "fsdp"}) {
    Json given = data_parallel(strategy, "cpu_gloo", 4, 1);
    check_round_trip(given);
  }
}

TEST_CASE("Layouts come back, with their groups, messages and schedules") {
  const std::vector<Json> layouts{
      {{"tensor_parallel", 4}},
      {{"tensor_parallel", 2}, {"pipeline_parallel", 2}, {"gradient_accumulation", 4}},
      {{"pipeline_parallel", 4}, {"gradient_accumulation", 4}, {"pipeline_schedule", "zb_h1"}},
      {{"pipeline_parallel", 2},
       {"virtual_stages", 2},
       {"gradient_accumulation", 4},
       {"pipeline_schedule", "interleaved"}},
      {{"context_parallel", 2}, {"tensor_parallel", 2}},
      {{"strategy", "zero1"}, {"tensor_parallel", 2}},
      {{"strategy", "fsdp"}, {"tensor_parallel", 2}},
      {{"strategy", "hsdp"}, {"shard_group", 4}}};
  for (const Json& layout : layouts) {
    const bool is_cut = !layout.contains("shard_group");
    Json training{{"strategy", "ddp"}};
    if (is_cut)
      training["micro_batch"] = 2;
    training.merge_patch(layout);
    Json model{{"name", "gpt2"}, {"precision", "bf16"}, {"attention", "fused"}};
    if (!is_cut)
      model["batch_per_gpu"] = 2;
    check_round_trip({{"cluster", {{"machine", "dgx_a100_80gb"}, {"nodes", 2}, {"gpus_per_node", 8}}},
                      {"model", model},
                      {"training", training}});
  }
}

TEST_CASE("Stragglers of the cluster slow the kernels of a trace down as they did those of the model") {
  Json given = data_parallel("ddp", "dgx_a100_40gb", 2, 8);
  given["cluster"]["stragglers"] = Json::array({{{"rank", 3}, {"slowdown", 1.5}}});
  check_round_trip(given);
}

TEST_CASE("The same scenario makes the same files") {
  const LoadedScenario scenario = scenario_from(data_parallel("fsdp", "dgx_a100_40gb", 2, 8));
  std::vector<std::string> first, second;
  export_chakra(scenario, "x",
                [&](const std::string&, std::string_view bytes) { first.emplace_back(bytes); });
  export_chakra(scenario, "x",
                [&](const std::string&, std::string_view bytes) { second.emplace_back(bytes); });
  CHECK(first == second);
  CHECK(first.size() == 16 + 2);
}

// A model of two layers, whose traces are short enough for every byte of them.
Json of_two_layers() {
  const auto layer = [] {
    return Json{{"parameters", {1000}}, {"forward_time", "1 ms"}, {"backward_time", "2 ms"}};
  };
  return {{"cluster", {{"machine", "abci_v"}, {"nodes", 1}, {"gpus_per_node", 2}}},
          {"model", {{"layers", {layer(), layer()}}, {"batch_per_gpu", 1}}},
          {"training", {{"strategy", "ddp"}}}};
}

TEST_CASE("A trace that lost a byte anywhere, or has another, is read or refused, and never more than that") {
  const TraceFolder folder;
  export_into(folder, scenario_from(of_two_layers()));
  const std::string path = chakra_file_of(folder.prefix(), 1);
  std::ifstream file(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  constexpr std::size_t simulated_every = 64;
  std::size_t read = 0;
  const auto meet = [&](const std::string& damaged) {
    folder.write(path, damaged);
    try {
      read_chakra_program(folder.prefix());
      if (read++ % simulated_every == 0)
        simulate(exported_in(folder), {.with_first = false});
    } catch (const ConfigError& error) {
      CHECK(!error.problems.empty());
    }
  };
  for (std::size_t at = 0; at < whole.size(); ++at) {
    INFO("byte ", at);
    meet(whole.substr(0, at) + whole.substr(at + 1));
    for (const char bit : {'\x01', '\x08', '\x40'}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ bit);
      meet(changed);
    }
  }
  CHECK(read > 0);
}

}  // namespace lockstep::chakra_test
