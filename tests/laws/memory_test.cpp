// What a GPU holds over an iteration, whatever the strategy.

#include <doctest/doctest.h>

#include "sim/training/units.h"
#include "tests/support/scenarios.h"

namespace lockstep::laws_memory_test {

using Json = nlohmann::ordered_json;

Json gpt2(const std::string& strategy, std::int64_t batch = 4) {
  const bool is_alone = strategy == "single";
  const std::int64_t nodes = is_alone || strategy == "dp" ? 1 : 2;
  return {{"cluster", {{"machine", "dgx_a100_40gb"}, {"nodes", nodes}, {"gpus_per_node", is_alone ? 1 : 8}}},
          {"model", {{"name", "gpt2"}, {"batch_per_gpu", batch}, {"precision", "bf16"}}},
          {"training", {{"strategy", strategy}}}};
}

// ps_async plays its updates one by one and has no plan to follow.
std::vector<std::string> planned_strategies() {
  std::vector<std::string> names;
  for (const auto& [name, strategy] : Registry<Strategy>::all())
    if (name != "ps_async")
      names.push_back(name);
  return names;
}

struct Held {
  Simulation simulation;
  MemoryReport report;
};

Held hold(const Json& given) {
  const Scenario scenario = scenario_from(given);
  Simulation simulation = simulate(scenario);
  MemoryReport report = summarise(scenario, simulation).memory;
  return {std::move(simulation), std::move(report)};
}

TEST_CASE("What an iteration allocates it releases, category by category") {
  for (const std::string& name : planned_strategies())
    for (const char* recompute : {"none", "selective", "selective_op", "full", "every_3", "one_in_2"}) {
      Json given = gpt2(name);
      given["training"]["recompute"] = recompute;
      given["training"]["gradient_accumulation"] = name == "dp" ? 1 : 2;
      const Scenario scenario = scenario_from(given);
      const Simulation simulation = simulate(scenario);
      INFO(name, ", recompute ", recompute);
      const std::vector<MemoryUse> standing = standing_memory(scenario, simulation);
      for (std::size_t i = 0; i < simulation.steady.lanes.compute.size(); ++i) {
        MemoryUse last = track_memory(simulation.steady, standing[i], i).back().use;
        MemoryUse first = standing[i];
        for (int category = 0; category <= static_cast<int>(MemoryCategory::framework); ++category)
          CHECK(last.of(MemoryCategory{static_cast<std::uint8_t>(category)}).count() ==
                first.of(MemoryCategory{static_cast<std::uint8_t>(category)}).count());
      }
    }
}

TEST_CASE("No category ever falls below what stands, and the peak is the most there is") {
  for (const std::string& name : planned_strategies()) {
    const Scenario scenario = scenario_from(gpt2(name));
    const Simulation simulation = simulate(scenario);
    INFO(name);
    std::vector<MemoryUse> standing = standing_memory(scenario, simulation);
    const Bytes peak = summarise(scenario, simulation).memory.peak.total();
    for (std::size_t i = 0; i < simulation.steady.lanes.compute.size(); ++i)
      for (MemoryMoment& moment : track_memory(simulation.steady, standing[i], i)) {
        CHECK(moment.use.total() <= peak);
        for (int category = 0; category <= static_cast<int>(MemoryCategory::framework); ++category)
          CHECK(moment.use.of(MemoryCategory{static_cast<std::uint8_t>(category)}) >=
                standing[i].of(MemoryCategory{static_cast<std::uint8_t>(category)}));
      }
  }
}

// Every layer's activations are there when forward ends and nothing else moves; the loss, whose backward is the first,
// then makes gradients of all logits, more than any later layer does beside what is released by then.
TEST_CASE(
    "Where only activations move and none is computed again, the peak is all of them and the loss's "
    "gradients") {
  for (const char* name : {"single", "ddp", "zero1", "zero2"}) {
    const Held held = hold(gpt2(name));
    const std::vector<LayerWork>& layers = held.simulation.job.layers;
    Bytes all;
    for (const LayerWork& layer : layers) all += layer.activations;
    REQUIRE(layers.back().is_loss);
    const Bytes gradients = layers.back().backward_workspace;
    INFO(name);
    CHECK(held.report.peak.activations.count() == all.count());
    CHECK(held.report.peak.allocated().count() ==
          (held.report.standing.allocated() + all + gradients).count());
  }
}

// 5 % of what the allocator hands out, and the rest is what it is.
TEST_CASE("The parts of a peak are its total; reserved is allocated and one byte in twenty") {
  for (const std::string& name : planned_strategies())
    for (const char* precision : {"fp32", "bf16", "amp_fp16"})
      for (const char* optimizer : {"sgd", "adamw"})
        for (const char* kernels : {"eager", "compiled", "fused", "primitives"}) {
          Json given = gpt2(name);
          given["model"]["precision"] = precision;
          given["training"]["optimizer"] = optimizer;
          given["compute"]["kernels"] = kernels;
          INFO(name, ", ", precision, ", ", optimizer, ", ", kernels);
          const MemoryReport report = hold(given).report;
          Bytes sum;
          for (const MemoryPart& part : memory_parts) sum += report.peak.*part.bytes;
          CHECK(sum == report.peak.total());
          CHECK(report.peak.reserved() - report.peak.allocated() == divided_up(report.peak.allocated(), 20));
          Bytes most;
          for (const auto& [time, bytes] : report.track) most = std::max(most, bytes);
          CHECK(most == report.peak.total());
        }
}

TEST_CASE(
    "Compiled and fused kernels never hold more than eager ones, and computing again never holds more") {
  for (const char* name : {"ddp", "zero2", "zero3", "fsdp"})
    for (const char* precision : {"bf16", "amp_bf16"}) {
      const auto peak = [&](const char* kernels, const char* recompute) {
        Json given = gpt2(name);
        given["model"]["precision"] = precision;
        given["training"]["recompute"] = recompute;
        given["compute"]["kernels"] = kernels;
        return hold(given).report.peak.total();
      };
      INFO(name, ", ", precision);
      for (const char* kernels : {"eager", "compiled", "fused"}) {
        CHECK(peak(kernels, "none") <= peak("eager", "none"));
        CHECK(peak(kernels, "selective") <= peak(kernels, "none"));
        CHECK(peak(kernels, "full") <= peak(kernels, "selective"));
      }
    }
}

TEST_CASE("More ranks never make what they divide larger") {
  for (const char* name : {"zero1", "zero2", "zero3", "fsdp"}) {
    Json given = gpt2(name);
    MemoryUse before;
    for (const int nodes : {1, 2, 4}) {
      given["cluster"]["nodes"] = nodes;
      const MemoryUse standing = hold(given).report.standing;
      INFO(name, ", ", nodes, " nodes");
      if (nodes > 1) {
        CHECK(standing.optimizer_states <= before.optimizer_states);
        CHECK(standing.gradients <= before.gradients);
        CHECK(standing.parameters <= before.parameters);
      }
      before = standing;
    }
  }
}

// With full recomputation a block keeps its input until its backward, when all of it is there again. The
// blocks are alike, so the most is held either when forward ends (every block's input, and all outside of the
// blocks), or when the last block is there again (every block's input, the rest of one block, and what stands
// before the blocks); what is behind the blocks has been released by then.
TEST_CASE("With full recomputation the peak is the inputs of all blocks and one block in full") {
  Json given = gpt2("single");
  given["training"]["recompute"] = "full";
  const Held held = hold(given);
  Bytes inputs;
  Bytes block;
  Bytes before;
  Bytes behind;
  bool has_met_block = false;
  for (const LayerWork& layer : held.simulation.job.layers) {
    has_met_block = has_met_block || layer.block >= 0;
    if (layer.block >= 0)
      inputs += layer.kept;
    else
      (has_met_block ? behind : before) += layer.activations;
    if (layer.block == 0)
      block += layer.activations - layer.kept;
  }
  CHECK(held.report.peak.activations.count() == (before + inputs + std::max(behind, block)).count());
}

// From nothing to all of it, along each of the ways that lead there.
TEST_CASE("Recomputing more never holds more activations, and never takes less time") {
  const std::vector<std::vector<const char*>> ways{{"none", "selective", "full"},
                                                   {"none", "selective_op", "full"},
                                                   {"none", "one_in_4", "one_in_2", "full"}};
  for (const std::vector<const char*>& way : ways) {
    Bytes before{INT64_MAX};
    Duration time;
    for (const char* recompute : way) {
      Json given = gpt2("ddp", 8);
      given["training"]["recompute"] = recompute;
      const Scenario scenario = scenario_from(given);
      const Report report = summarise(scenario, simulate(scenario));
      INFO(recompute);
      CHECK(report.memory.peak.activations <= before);
      CHECK(report.iteration >= time);
      before = report.memory.peak.activations;
      time = report.iteration;
    }
  }
}

TEST_CASE("A larger micro-batch never holds less") {
  for (const std::string& name : planned_strategies()) {
    Bytes before;
    for (const std::int64_t batch : {8, 16, 32}) {
      const Bytes held = hold(gpt2(name, batch)).report.peak.total();
      INFO(name, ", batch ", batch);
      CHECK(held >= before);
      before = held;
    }
  }
}

// Never more than the root, two units gathered ahead of the one that runs, and the gradients of the root and
// of two units on their way: in all less than the whole model, which is there without a limit.
TEST_CASE("FSDP gathers no more than its limiter lets it") {
  Json given = gpt2("fsdp");
  const Held held = hold(given);
  const Units units = find_units(held.simulation.job, {});
  std::int64_t largest = 0;
  for (std::size_t unit = 1; unit < units.units.size(); ++unit)
    largest = std::max(largest, units.units[unit].elements);
  constexpr std::int64_t bytes_each = 2;
  constexpr std::int64_t padding = 16 * bytes_each;
  const std::int64_t gathered = (held.report.peak.parameters - held.report.standing.parameters).count();
  CHECK(gathered >= units.units.front().elements * bytes_each);
  CHECK(gathered <= (units.units.front().elements + 3 * largest) * bytes_each + 4 * padding);

  given["training"]["limit_all_gathers"] = false;
  CHECK(hold(given).report.peak.parameters > held.report.peak.parameters);
}

// Without resharding every unit is there when backward begins: the whole model, beside the shard.
TEST_CASE("FSDP without resharding holds the whole model when backward begins") {
  Json given = gpt2("fsdp");
  given["training"]["reshard_after_forward"] = false;
  const Held held = hold(given);
  const std::int64_t gathered = (held.report.peak.parameters - held.report.standing.parameters).count();
  const std::int64_t whole = gradient_bytes(held.simulation.job).count();
  CHECK(gathered >= whole);
  CHECK(gathered <= whole + 16 * 2 * 13);
}

// From forward to backward a rank keeps a unit whole, a quarter of it, or its shard.
TEST_CASE("The fewer ranks fully_shard spreads units over after forward, the more weights each holds") {
  const auto peak = [](const Json& reshards) {
    Json given = gpt2("fsdp");
    given["training"]["fsdp_version"] = 2;
    given["training"]["reshard_after_forward"] = reshards;
    return hold(given).report.peak.parameters;
  };
  CHECK(peak(true) < peak(4));
  CHECK(peak(4) < peak(2));
  CHECK(peak(2) < peak(false));
}

TEST_CASE("Local SGD's flat buffer is there only while it averages") {
  const Held held = hold(gpt2("local_sgd", 1));
  Bytes most;
  const MemoryUse standing = held.report.standing;
  for (const MemoryMoment& moment : track_memory(held.simulation.steady, standing, 0))
    most = std::max(most, moment.use.communication_buffers - standing.communication_buffers);
  CHECK(most.count() == gradient_bytes(held.simulation.job).count());
}

}  // namespace lockstep::laws_memory_test
