// Layouts: degrees of one change nothing, bubbles are the published ones, folding is exact, and what cannot be cut
// is refused with what can.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/run/cluster.h"
#include "sim/run/describe_job.h"
#include "sim/training/schedules/pipeline_schedule.h"
#include "sim/training/strategy.h"
#include "tests/support/cut_transformer.h"
#include "tests/support/disturbed_scenarios.h"
#include "tests/support/property.h"
#include "tests/support/same_report.h"
#include "tests/support/scenarios.h"

namespace lockstep::layout_test {

using Json = nlohmann::ordered_json;

// Eight layers of equal length; sending what they say nothing of takes no time worth mentioning.
Json equal_layers(std::int64_t ranks, const Json& training) {
  Json layers = Json::array();
  for (int layer = 0; layer < 8; ++layer)
    layers.push_back({{"name", "layer" + std::to_string(layer)},
                      {"parameters", {1}},
                      {"forward_time", "10 ms"},
                      {"backward_time", "20 ms"}});
  Json all = training;
  all["optimizer"] = "none";
  return {{"name", "equal layers"},
          {"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", ranks}}},
          {"model", {{"layers", layers}}},
          {"training", all}};
}

Json transformer(const std::string& machine, std::int64_t nodes, const Json& training) {
  Json all = training;
  all["optimizer"] = "adam";
  return cut_transformer(machine, nodes, all);
}

Report report_of(const Json& given) {
  const LoadedScenario scenario = scenario_from(given);
  return summarise(scenario, simulate(scenario));
}

double share(Duration part, Duration whole) {
  return part.in_seconds() / whole.in_seconds();
}

TEST_CASE("Degrees of one are plain data parallelism to the picosecond") {
  Json plain = transformer("dgx_a100_80gb", 2, {{"strategy", "ddp"}, {"gradient_accumulation", 2}});
  plain["model"]["batch_per_gpu"] = 1;
  Json stated = plain;
  for (const char* key : {"tensor_parallel", "context_parallel", "expert_parallel", "pipeline_parallel"})
    stated["training"][key] = 1;
  stated["training"]["data_parallel"] = 16;
  CHECK(first_difference(report_of(plain), report_of(stated)) == "");
}

// Stages that are done early wait for the norm of all gradients as they would wait for the next batch.
TEST_CASE("Who waits for another stage waits for no straggler") {
  for (const char* schedule : {"gpipe", "1f1b", "zb_h1"}) {
    const auto of = [&](bool clips) {
      return report_of(equal_layers(4, {{"strategy", "pp"},
                                        {"micro_batch", 1},
                                        {"gradient_accumulation", 6},
                                        {"gradient_clipping", clips},
                                        {"pipeline_schedule", schedule}}));
    };
    CAPTURE(schedule);
    const Report clipped = of(true);
    CHECK(clipped.breakdown.straggler_wait == Duration::zero());
    CHECK(clipped.disturbance.waiting.max == Duration::zero());
    CHECK(share(clipped.breakdown.pipeline_bubble, clipped.iteration) ==
          doctest::Approx(share(of(false).breakdown.pipeline_bubble, of(false).iteration)).epsilon(0.05));
  }
}

// A message between stages is of both, and one of them sends it.
TEST_CASE("What a rank sends along the dimensions of its layout adds up to all that it sends") {
  for (const Json& degrees :
       {Json{{"pipeline_parallel", 4}}, Json{{"pipeline_parallel", 2}, {"tensor_parallel", 2}},
        Json{{"pipeline_parallel", 2}, {"context_parallel", 2}},
        Json{{"context_parallel", 2}, {"tensor_parallel", 2}}}) {
    Json training{{"strategy", "ddp"},
                  {"framework", "megatron"},
                  {"micro_batch", 1},
                  {"gradient_accumulation", 4},
                  {"sequence_parallel", degrees.contains("tensor_parallel")}};
    training.update(degrees);
    const CommunicationReport report = report_of(transformer("dgx_a100_80gb", 1, training)).communication;
    Bytes sent;
    INFO(degrees.dump());
    for (const DimensionReport& dimension : report.dimensions) {
      INFO(dimension.name);
      sent += dimension.sent;
      CHECK(dimension.active <= report.total);
      CHECK(dimension.exposed <= report.total - report.overlapped);
    }
    CHECK(sent == report.bytes_per_gpu);
  }
}

// Of the first stage, whose passes reach from the begin of an iteration to its end.
double bubble_of(std::int64_t stages, std::int64_t micro_batches, const Json& schedule,
                 const std::string& backward = "20 ms") {
  Json training{{"strategy", "pp"}, {"micro_batch", 1}, {"gradient_accumulation", micro_batches}};
  training.update(schedule);
  Json given = equal_layers(stages, training);
  for (Json& layer : given["model"]["layers"]) layer["backward_time"] = backward;
  const Report report = report_of(given);
  return share(report.breakdown.pipeline_bubble + report.breakdown.exposed_communication, report.iteration);
}

TEST_CASE("GPipe and 1F1B idle p - 1 of m + p - 1, interleaved ones a part of that") {
  constexpr double messages = 1e-3;  // what sending one element takes, of 30 ms
  for (const std::int64_t p : {2, 4, 8})
    for (const std::int64_t m : {std::int64_t{1} * p, std::int64_t{2} * p, std::int64_t{4} * p}) {
      INFO(p, " stages, ", m, " micro-batches");
      const double expected = static_cast<double>(p - 1) / static_cast<double>(m + p - 1);
      CHECK(std::abs(bubble_of(p, m, {{"pipeline_schedule", "gpipe"}}) - expected) < messages);
      CHECK(std::abs(bubble_of(p, m, {{"pipeline_schedule", "1f1b"}}) - expected) < messages);
      for (const std::int64_t v : {2, 4})
        if (p * v <= 8)
          CHECK(std::abs(bubble_of(p, m, {{"virtual_stages", v}}) -
                         static_cast<double>(p - 1) / static_cast<double>(v * m + p - 1)) < messages);
    }
}

// A stated backward has no half for the weights: with F = B the formula's (p / 2 - 1) (F&B + B - 3 W) are so many times
// 3 F, beside the 2 F of every micro-batch.
TEST_CASE("DualPipe idles 3 (p / 2 - 1) of 2 m + 3 (p / 2 - 1) where backward takes as long as forward") {
  constexpr double messages = 1e-3;
  for (const std::int64_t p : {2, 4, 8})
    for (const std::int64_t m : {2 * p, 4 * p}) {
      INFO(p, " stages, ", m, " micro-batches");
      const auto idle = static_cast<double>(3 * (p / 2 - 1));
      const double expected = idle / (static_cast<double>(2 * m) + idle);
      CHECK(std::abs(bubble_of(p, m, {{"pipeline_schedule", "dualpipe"}}, "10 ms") - expected) < messages);
    }
}

// A stage's tensor group sums up after every half of a block; a pass alone waits for that.
TEST_CASE("What one of two joined passes waits for hides behind the other") {
  const auto exposed = [](const char* schedule) {
    const Report report = report_of(transformer("dgx_a100_80gb", 1,
                                                {{"strategy", "ddp"},
                                                 {"pipeline_parallel", 2},
                                                 {"tensor_parallel", 4},
                                                 {"tensor_parallel_overlap", "none"},
                                                 {"micro_batch", 4},
                                                 {"gradient_accumulation", 16},
                                                 {"pipeline_schedule", schedule}}));
    return share(report.breakdown.exposed_communication, report.iteration);
  };
  // Of 16 micro-batches 13 forwards are joined with a backward.
  CHECK(exposed("dualpipe") < exposed("zb_h1") * 0.8);
}

Json mixture(const std::string& machine, std::int64_t nodes, const Json& training) {
  Json given = transformer(machine, nodes, training);
  given["model"].update({{"style", "llama"}, {"experts", 8}, {"experts_per_token", 2}});
  return given;
}

// Experts across nodes exchange four times a layer, and nearly all turns are pairs.
TEST_CASE("What experts exchange hides behind the other of two combined passes") {
  const auto predicted = [](const char* schedule) {
    Json given = mixture("dgx_a100_80gb", 2,
                         {{"strategy", "zero1"},
                          {"framework", "megatron"},
                          {"pipeline_parallel", 2},
                          {"placement", "tp-cp-pp-ep-dp"},
                          {"expert_parallel", 8},
                          {"micro_batch", 4},
                          {"gradient_accumulation", 32},
                          {"virtual_stages", 2},
                          {"pipeline_schedule", schedule}});
    given["training"]["framework_version"] = "0.14";
    given["model"]["hidden"] = 4096;  // or the host is what it waits for
    return report_of(given);
  };
  const Report apart = predicted("interleaved");
  const Report combined = predicted("combined_1f1b");
  CHECK(combined.breakdown.exposed_communication.picoseconds() <
        apart.breakdown.exposed_communication.picoseconds() * 6 / 10);
  CHECK(combined.iteration < apart.iteration);
  CHECK(combined.memory.peak.activations > apart.memory.peak.activations);
}

// Two copies of the model, which two stages share as they share two parts; each holds what both directions need.
TEST_CASE("DualPipe holds parameters twice, and p + 1 micro-batches of activations where 1F1B holds p") {
  const auto memory = [](const char* schedule) {
    return report_of(transformer("dgx_a100_80gb", 1,
                                 {{"strategy", "ddp"},
                                  {"pipeline_parallel", 4},
                                  {"tensor_parallel", 2},
                                  {"micro_batch", 1},
                                  {"gradient_accumulation", 16},
                                  {"pipeline_schedule", schedule}}))
        .memory.peak;
  };
  const MemoryUse both = memory("dualpipe");
  const MemoryUse one = memory("1f1b");
  CHECK(both.parameters > one.parameters);
  CHECK(both.parameters <= one.parameters * 2);
  CHECK(both.activations * 4 <= one.activations * 5);
}

// Gradients of the last micro-batch of each chunk, as the passes of a stage find them.
std::vector<std::uint32_t> gradients_found(const Job& stage, std::span<const Pass> passes) {
  std::vector<std::uint32_t> found;
  for (std::size_t at = 0; at < passes.size(); ++at) {
    const auto comes_again = [&](const Pass& later) {
      return completes_gradients(later) && later.chunk == passes[at].chunk;
    };
    const auto later = passes.subspan(at + 1);
    if (!completes_gradients(passes[at]) || std::any_of(later.begin(), later.end(), comes_again))
      continue;
    const LayerRange& layers = stage.stage->chunks[static_cast<std::size_t>(passes[at].chunk)];
    for (std::size_t layer = layers.last; layer-- > layers.first;)
      found.insert(found.end(), stage.layers[layer].gradients.begin(), stage.layers[layer].gradients.end());
  }
  return found;
}

TEST_CASE("Every stage of every schedule finds its gradients in the order that synchronisers go by") {
  for (const auto& [name, schedule] : Registry<PipelineSchedule>::all())
    for (std::int64_t chunks = schedule.chunks.least;
         chunks <= std::min<std::int64_t>(schedule.chunks.most, 3); ++chunks)
      for (std::int64_t micro_batches = 1; micro_batches <= 8; ++micro_batches) {
        const PipelineShape shape{.stages = 2, .chunks = chunks, .micro_batches = micro_batches};
        if (!problems_of_shape(name, shape).empty())
          continue;
        INFO(name, ", ", chunks, " chunks, ", micro_batches, " micro-batches");
        Json training{{"strategy", "zero1"},         {"pipeline_parallel", 2},
                      {"pipeline_schedule", name},   {"micro_batch", 1},
                      {"virtual_stages", chunks},    {"gradient_accumulation", micro_batches},
                      {"reduce_bucket_size", 100000}};
        const bool is_of_experts = schedule.pauses_at == PausesAt::exchanges_of_experts;
        if (is_of_experts)
          training["expert_parallel"] = 2;
        const LoadedScenario scenario =
            scenario_from(is_of_experts ? mixture("dgx_a100_80gb", 1, training)
                                        : transformer("dgx_a100_80gb", 1, training));
        const Job job = describe_job(scenario);
        for (std::int64_t stage = 0; stage < 2; ++stage) {
          const Job& own = job.stages[static_cast<std::size_t>(stage)];
          CHECK(gradients_found(own, schedule.passes(shape, stage)) == gradient_order(own));
        }
        CHECK(sum(summarise(scenario, simulate(scenario)).breakdown) > Duration::zero());
      }
}

TEST_CASE("GPipe keeps the activations of every micro-batch, 1F1B of as many as there are stages") {
  const auto activations = [](const char* schedule, std::int64_t micro_batches) {
    return report_of(transformer("dgx_a100_80gb", 1,
                                 {{"strategy", "ddp"},
                                  {"pipeline_parallel", 4},
                                  {"tensor_parallel", 2},
                                  {"micro_batch", 1},
                                  {"gradient_accumulation", micro_batches},
                                  {"pipeline_schedule", schedule}}))
        .memory.peak.activations;
  };
  CHECK(activations("1f1b", 16) == activations("1f1b", 8));
  CHECK(activations("gpipe", 16).count() > activations("gpipe", 8).count() * 19 / 10);
  CHECK(activations("gpipe", 16) > activations("1f1b", 16) * 3);
}

std::vector<Json> layouts() {
  std::vector<Json> all;
  const auto add = [&](std::int64_t t, std::int64_t p, std::int64_t c, Json more) {
    Json training{{"strategy", "ddp"},     {"tensor_parallel", t}, {"pipeline_parallel", p},
                  {"context_parallel", c}, {"micro_batch", 1},     {"gradient_accumulation", 4}};
    training.update(more);
    all.push_back(training);
  };
  add(2, 1, 1, Json::object());
  add(8, 1, 1, {{"sequence_parallel", true}});
  add(1, 2, 1, Json::object());
  add(1, 4, 1, {{"strategy", "zero1"}, {"framework", "megatron"}});
  add(2, 2, 1, {{"pipeline_schedule", "gpipe"}});
  add(2, 2, 1, {{"placement", "pp-dp-tp-cp-ep"}});
  add(4, 2, 1, {{"virtual_stages", 2}, {"sequence_parallel", true}});
  add(2, 4, 1, {{"pipeline_schedule", "zb_h1"}});
  add(1, 2, 2, {{"context_parallel_kind", "ring"}});
  add(2, 1, 4, {{"context_parallel_kind", "all_gather"}});
  add(1, 1, 2, {{"context_parallel_kind", "ulysses"}});
  add(1, 1, 4, {{"context_parallel_kind", "rotate_all_gather"}});
  add(2, 1, 2, {{"context_parallel_kind", "rotate_all_to_all"}, {"strategy", "fsdp"}});
  add(2, 2, 1, {{"pipeline_schedule", "dualpipe"}});
  add(1, 2, 1, {{"pipeline_schedule", "dualpipe"}, {"strategy", "zero1"}, {"gradient_clipping", true}});
  add(2, 1, 1, {{"strategy", "fsdp"}});
  add(1, 2, 1, {{"strategy", "zero2"}});
  add(1, 2, 1, {{"strategy", "zero1"}, {"virtual_stages", 2}, {"reduce_bucket_size", 1'000'000}});
  add(1, 2, 1, {{"strategy", "zero1"}, {"pipeline_schedule", "zb_v"}, {"reduce_bucket_size", 1'000'000}});
  return all;
}

std::vector<Json> layouts_of_mixtures() {
  std::vector<Json> all;
  const auto add = [&](std::int64_t tensor, std::int64_t context, std::int64_t expert, Json more) {
    Json training{
        {"strategy", "ddp"},         {"tensor_parallel", tensor},       {"context_parallel", context},
        {"expert_parallel", expert}, {"sequence_parallel", tensor > 1}, {"micro_batch", 1},
        {"gradient_accumulation", 2}};
    training.update(more);
    all.push_back(training);
  };
  add(1, 1, 4, Json::object());
  add(1, 2, 4, {{"strategy", "zero1"}, {"framework", "megatron"}});  // over the context group and two copies
  add(1, 4, 2, Json::object());                                      // over half the context group
  add(4, 1, 2, {{"expert_tensor_parallel", 2}});
  add(4, 1, 1, {{"expert_tensor_parallel", 1}});  // of which every rank has all experts
  add(4, 1, 2, {{"expert_tensor_parallel", 1}, {"strategy", "zero1"}});
  add(2, 2, 8,
      {{"expert_tensor_parallel", 1},
       {"pipeline_parallel", 2},
       {"strategy", "zero1"},
       {"framework", "megatron"}});
  add(2, 1, 8, {{"expert_tensor_parallel", 1}, {"strategy", "fsdp"}});
  add(4, 1, 4, {{"expert_tensor_parallel", 1}, {"placement", "dp-tp-cp-ep-pp"}});
  add(1, 1, 4, {{"pipeline_parallel", 2}, {"virtual_stages", 2}, {"pipeline_schedule", "combined_1f1b"}});
  return all;
}

std::vector<Json> meshes_on(std::int64_t nodes) {
  std::vector<Json> scenarios;
  for (const Json& training : layouts()) scenarios.push_back(transformer("dgx_a100_80gb", nodes, training));
  for (const Json& training : layouts_of_mixtures())
    if (nodes > 1)
      scenarios.push_back(mixture("dgx_a100_80gb", nodes, training));
  return scenarios;
}

std::string folding_difference(const Json& given) {
  LoadedScenario scenario = scenario_from(given);
  scenario.simulation.fold = true;
  const Json folded = to_json(summarise(scenario, simulate(scenario)), scenario);
  scenario.simulation.fold = false;
  return first_difference(folded, to_json(summarise(scenario, simulate(scenario)), scenario));
}

TEST_CASE("Folding changes nothing on any mesh") {
  for (const std::int64_t nodes : {1, 2, 4})
    for (const Json& given : meshes_on(nodes)) {
      INFO(given.dump());
      CHECK(folding_difference(given) == "");
    }
}

Json fat_tree(std::int64_t nodes_of_a_leaf, double oversubscription) {
  return {{"kind", "fat_tree"},
          {"hop_latency", "1 us"},
          {"ports_per_leaf", 8 * nodes_of_a_leaf},
          {"oversubscription", oversubscription}};
}

// Leaves of three nodes: groups of two and of four nodes lie below one leaf or across two, and cross at other places.
TEST_CASE("Folding changes nothing on any mesh where groups lie nearer and farther apart") {
  std::int64_t clipped = 0;
  for (const double oversubscription : {1.0, 4.0})
    for (Json given : meshes_on(4)) {
      given["cluster"]["fabric"] = fat_tree(3, oversubscription);
      INFO(given.dump());
      CHECK(folding_difference(given) == "");
      given["training"]["gradient_clipping"] = true;
      if (scenario_if_valid(given)) {
        CHECK(folding_difference(given) == "");
        ++clipped;
      }
    }
  CHECK(clipped > 30);
}

// One hop of a level leaves its leaf alone, while those beside it share links.
TEST_CASE("Folding changes nothing where the hops of a small tree share links unequally") {
  for (const std::int64_t nodes : {5, 6, 7}) {
    Json given = transformer("dgx_a100_80gb", nodes,
                             {{"strategy", "zero1"},
                              {"framework", "megatron"},
                              {"tensor_parallel", 8},
                              {"gradient_clipping", true},
                              {"micro_batch", 1}});
    given["cluster"]["fabric"] = fat_tree(nodes - 2, 1);
    INFO(nodes);
    CHECK(folding_difference(given) == "");
  }
}

TEST_CASE("Folding changes nothing on any mesh of any fabric") {
  std::size_t turn = 0;
  std::map<std::string, int> tried;
  const std::vector<Json> meshes = meshes_on(nodes_of_every_fabric);
  for (std::size_t round = 0; round < 8; ++round)
    for (const auto& [kind, _] : Registry<FabricKind>::all()) {
      Json given = meshes[turn++ % meshes.size()];
      given["cluster"]["fabric"] = fabric_of_kind(kind);
      if (!scenario_if_valid(given))
        continue;
      ++tried[kind];
      INFO(given.dump());
      CHECK(folding_difference(given) == "");
    }
  for (const auto& [kind, _] : Registry<FabricKind>::all())
    if (kind != "graph")  // which is drawn for nodes of one NIC
      CHECK(tried[kind] > 4);
}

TEST_CASE("Experts that a tensor group shares take as long and as much memory, stated or not") {
  for (const std::int64_t expert : {1, 4}) {
    Json training{{"strategy", "zero1"},       {"framework", "megatron"},   {"tensor_parallel", 4},
                  {"expert_parallel", expert}, {"sequence_parallel", true}, {"micro_batch", 1}};
    const Report silent = report_of(mixture("dgx_a100_80gb", 2, training));
    training["expert_tensor_parallel"] = 4;
    CHECK(first_difference(silent, report_of(mixture("dgx_a100_80gb", 2, training))) == "");
  }
}

// As many ranks hold a rank's experts and its optimizer's part of them, whoever shares them with whom: 8 experts over 8
// ranks, an expert each or two halves.
TEST_CASE("Standing memory of experts does not tell how a tensor group holds them") {
  const auto standing = [](std::int64_t expert, std::int64_t sharers) {
    const Report report = report_of(mixture("dgx_a100_80gb", 2,
                                            {{"strategy", "ddp"},
                                             {"tensor_parallel", 2},
                                             {"expert_parallel", expert},
                                             {"expert_tensor_parallel", sharers},
                                             {"sequence_parallel", true},
                                             {"micro_batch", 1}}));
    const MemoryUse& peak = report.memory.peak;
    return peak.parameters + peak.gradients + peak.optimizer_states;
  };
  CHECK(standing(8, 1) == standing(4, 2));
  CHECK(standing(4, 1) == standing(2, 2));
  CHECK(standing(8, 1) < standing(4, 1));
}

TEST_CASE("Alike ranks of a layout are simulated once") {
  const auto classes = [](const Json& training) {
    const LoadedScenario scenario = scenario_from(transformer("dgx_a100_80gb", 8, training));
    return build_cluster(scenario)->symmetry.roles.representatives.size();
  };
  CHECK(classes({{"strategy", "ddp"}, {"tensor_parallel", 8}, {"micro_batch", 1}}) <= 8);
  CHECK(
      classes({{"strategy", "ddp"}, {"tensor_parallel", 8}, {"pipeline_parallel", 4}, {"micro_batch", 1}}) <=
      32);
}

// Eight of 72 GPUs a node, each beside a NIC of its own: stages are all that tells ranks apart.
TEST_CASE(
    "Alike ranks of a layout are simulated once where a part of a machine is in use, and folding is exact") {
  Json given = transformer("gb200_nvl72", 2,
                           {{"strategy", "zero1"},
                            {"framework", "megatron"},
                            {"tensor_parallel", 2},
                            {"pipeline_parallel", 4},
                            {"micro_batch", 1},
                            {"gradient_accumulation", 4}});
  given["cluster"]["gpus_per_node"] = 8;
  LoadedScenario scenario = scenario_from(given);
  CHECK(build_cluster(scenario)->symmetry.roles.representatives.size() == 4);
  const Json folded = to_json(summarise(scenario, simulate(scenario)), scenario);
  scenario.simulation.fold = false;
  CHECK(first_difference(folded, to_json(summarise(scenario, simulate(scenario)), scenario)) == "");
}

TEST_CASE(
    "The accounts of a layout add up, and more bandwidth never makes it slower by more than it plans with") {
  for (const Json& training : layouts()) {
    Json given = transformer("dgx_a100_80gb", 2, training);
    INFO(training.dump());
    const Report report = report_of(given);
    CHECK(sum(report.breakdown) == report.iteration);
    LoadedScenario faster = scenario_from(given);
    for (NicSpec& nic : faster.cluster.machine.nics)
      nic.link.bandwidth = Bandwidth{nic.link.bandwidth.count() * 2};
    // A collective takes as much of the memory's bandwidth as it is planned to send, which is more with faster NICs.
    CHECK(summarise(faster, simulate(faster)).iteration <= scaled(report.iteration, 1'001, 1'000));
  }
}

TEST_CASE("Fewer micro-batches than stages are warned of with their bubble") {
  const auto warning = [](const char* strategy, const char* schedule, std::int64_t micro_batches) {
    const LoadedScenario scenario =
        scenario_from(equal_layers(4, {{"strategy", strategy},
                                       {"micro_batch", 1},
                                       {"pipeline_schedule", schedule},
                                       {"gradient_accumulation", micro_batches}}));
    for (const std::string& found : scenario.warnings)
      if (found.find("than stages (4)") != std::string::npos)
        return found;
    return std::string();
  };
  CHECK(warning("pp", "1f1b", 2).find("idles 60 %") != std::string::npos);  // 3 of 2 + 3
  CHECK(warning("pp", "gpipe", 1).find("idles 75 %") != std::string::npos);
  CHECK(warning("pp", "1f1b", 4) == "");
  CHECK(warning("mp", "1f1b", 1) == "");
}

std::string problem_of(const Json& given) {
  try {
    scenario_from(given);
  } catch (const ConfigError& error) {
    return error.problems.front();
  }
  return "";
}

TEST_CASE("A layout that cannot be is refused with one that can") {
  const auto refused = [](const Json& training, const char* why) {
    const std::string problem = problem_of(transformer("dgx_a100_80gb", 2, training));
    INFO(training.dump(), ": ", problem);
    CHECK(problem.find(why) != std::string::npos);
  };
  refused({{"strategy", "ddp"}, {"tensor_parallel", 3}, {"micro_batch", 1}},
          "nearest that works: tensor_parallel 2");
  refused({{"strategy", "ddp"}, {"tensor_parallel", 2}, {"data_parallel", 4}, {"micro_batch", 1}}, "leave 8");
  refused({{"strategy", "ddp"}, {"pipeline_parallel", 16}, {"micro_batch", 1}}, "8 layers to deal");
  refused({{"strategy", "ddp"}, {"pipeline_parallel", 2}, {"micro_batch", 1}, {"global_batch", 20}},
          "no multiple of 8");
  refused({{"strategy", "ddp"},
           {"pipeline_parallel", 2},
           {"virtual_stages", 2},
           {"micro_batch", 1},
           {"gradient_accumulation", 3}},
          "gradient_accumulation");
  refused({{"strategy", "ddp"}, {"tensor_parallel", 2}, {"context_parallel", 3}, {"micro_batch", 1}},
          "nearest that works: context_parallel 2");
  refused({{"strategy", "pp"}, {"micro_batch", 1}}, "nearest that works: 8 stages");
  for (const auto& [strategy, degree] :
       {std::pair{"cp", "context_parallel"}, {"tp", "tensor_parallel"}, {"pp", "pipeline_parallel"}})
    refused({{"strategy", strategy}, {degree, 2}, {"micro_batch", 1}}, "cuts the model over all 16 GPUs");
  refused({{"strategy", "ddp"}, {"pipeline_parallel", 2}, {"micro_batch", 1}, {"global_batch", 20}},
          "16 and 24");
  refused({{"strategy", "dp"}, {"tensor_parallel", 2}, {"micro_batch", 1}}, "valid here");
  refused({{"strategy", "ddp"}, {"tensor_parallel", 2}, {"placement", "tp-pp"}, {"micro_batch", 1}},
          "tp-cp-ep-dp-pp");
  const auto mixture_refused = [](Json training, const char* why) {
    training.update({{"strategy", "ddp"}, {"micro_batch", 1}, {"sequence_parallel", true}});
    const std::string problem = problem_of(mixture("dgx_a100_80gb", 2, training));
    INFO(training.dump(), ": ", problem);
    CHECK(problem.find(why) != std::string::npos);
  };
  mixture_refused({{"tensor_parallel", 4}, {"expert_tensor_parallel", 3}},
                  "found 3, which does not divide tensor_parallel 4; nearest that works: 2");
  mixture_refused(
      {{"tensor_parallel", 4}, {"expert_parallel", 8}},
      "found 8, which does not deal experts evenly among the 16 ranks of tensor 4 (of which 4 share each), "
      "context 1 and data 4, in this order; nearest that works: 4");
  mixture_refused({{"expert_tensor_parallel", 2}}, "found 2, which does not divide tensor_parallel 1");
  // Nearest degrees are looked for among tensor groups that are smaller than those that share an expert.
  CHECK(problem_of(mixture("dgx_a100_80gb", 2,
                           {{"strategy", "ddp"},
                            {"tensor_parallel", 4},
                            {"expert_tensor_parallel", 2},
                            {"micro_batch", 1}}))
            .find("needs sequence_parallel") != std::string::npos);
  refused({{"strategy", "ddp"}, {"tensor_parallel", 2}, {"expert_tensor_parallel", 1}, {"micro_batch", 1}},
          "has no experts to divide");
  Json uneven = transformer("dgx_a100_80gb", 3,
                            {{"tensor_parallel", 4},
                             {"pipeline_parallel", 3},
                             {"micro_batch", 1},
                             {"placement", "tp-cp-ep-pp-dp"}});
  CHECK(problem_of(uneven).find("the 3 ranks of the pipeline dimension, 4 apart, at other GPUs") !=
        std::string::npos);
  uneven["training"]["placement"] = "tp-cp-ep-dp-pp";
  CHECK(problem_of(uneven).empty());
  refused({{"strategy", "zero2"},
           {"pipeline_parallel", 2},
           {"virtual_stages", 2},
           {"micro_batch", 1},
           {"gradient_accumulation", 4}},
          "found \"zero2\", which reduces the gradients of every micro-batch, with 2 parts of the model on a "
          "stage (interleaved)");
  Json twelve_heads = transformer("dgx_a100_80gb", 2, {{"tensor_parallel", 8}, {"micro_batch", 1}});
  twelve_heads["model"]["heads"] = 12;
  twelve_heads["model"]["hidden"] = 768;
  CHECK(problem_of(twelve_heads).find("on these 16 ranks tensor_parallel 4 works") != std::string::npos);
  Json with_batch = transformer("dgx_a100_80gb", 2, {{"strategy", "ddp"}, {"tensor_parallel", 2}});
  with_batch["model"]["batch_per_gpu"] = 4;
  CHECK(problem_of(with_batch).find("training.micro_batch") != std::string::npos);
  Json with_loaders = transformer("dgx_a100_80gb", 1,
                                  {{"strategy", "ddp"},
                                   {"pipeline_parallel", 4},
                                   {"pipeline_schedule", "dualpipe"},
                                   {"micro_batch", 1},
                                   {"gradient_accumulation", 8}});
  CHECK(problem_of(with_loaders).empty());
  with_loaders["input"] = {{"workers", 2}};
  CHECK(problem_of(with_loaders).find("loaders of the last stage are not modelled") != std::string::npos);
  refused({{"strategy", "ddp"},
           {"tensor_parallel", 2},
           {"micro_batch", 1},
           {"global_batch", std::int64_t{1} << 62}},
          "from 1 to 1000000000000000");
}

// Stages end their gradients at other times than their neighbours, experts than dense parameters.
TEST_CASE("What is fused as it comes is fused on all ranks alike, so that no rank has gradients of its own") {
  for (const std::string& strategy : strategies_in_order()) {
    if (strategy_named(strategy).fuse == nullptr)
      continue;
    for (const char* degree : {"pipeline_parallel", "expert_parallel"}) {
      Json given = transformer("dgx_a100_80gb", 2, {{"strategy", strategy}, {degree, 2}, {"micro_batch", 1}});
      given["model"].update({{"style", "llama"}, {"experts", 8}, {"experts_per_token", 2}});
      CHECK(problem_of(given).find("the same on all ranks") != std::string::npos);
    }
  }
}

// Eight layers of a narrow mixture keep the host for longer than the GPU.
TEST_CASE("A host that is behind issues the optimizer of dense parameters and experts once") {
  for (const char* strategy : {"ddp", "zero1", "fsdp"}) {
    Json given =
        transformer("dgx_a100_80gb", 1, {{"strategy", strategy}, {"expert_parallel", 4}, {"micro_batch", 1}});
    given["model"].update(
        {{"style", "llama"}, {"hidden", 256}, {"heads", 8}, {"experts", 8}, {"experts_per_token", 2}});
    INFO(given.dump());
    const Report report = report_of(given);
    CHECK(report.breakdown.host_overhead > Duration::zero());
    CHECK(sum(report.breakdown) == report.iteration);
  }
}

// A rank has fewer experts and divides them with fewer others. What a process holds besides is no expert's.
TEST_CASE(
    "However experts are dealt, sharded states take as much of a GPU, and so does what is no parameter") {
  for (const char* strategy : {"zero1", "zero2", "zero3", "fsdp"}) {
    const auto peak = [&](std::int64_t degree) {
      Json given = transformer("dgx_a100_80gb", 1,
                               {{"strategy", strategy}, {"expert_parallel", degree}, {"micro_batch", 1}});
      given["model"].update(
          {{"style", "llama"}, {"hidden", 256}, {"heads", 8}, {"experts", 8}, {"experts_per_token", 2}});
      return report_of(given).memory.peak;
    };
    const MemoryUse whole = peak(1);
    CHECK(whole.framework > Bytes{0});
    for (const std::int64_t degree : {2, 4, 8}) {
      INFO(strategy, ", experts dealt to ", degree);
      const MemoryUse dealt = peak(degree);
      CHECK(dealt.optimizer_states == whole.optimizer_states);
      CHECK(dealt.framework == whole.framework);
      CHECK(dealt.allocator > Bytes{0});
    }
  }
}

TEST_CASE(
    "Stages of several parts take strategies that reduce once an iteration, and others by their option") {
  for (const std::string schedule : {"interleaved", "zb_v"})
    for (const std::string& strategy : strategies_in_order()) {
      Json training{{"strategy", strategy},          {"pipeline_parallel", 2}, {"virtual_stages", 2},
                    {"pipeline_schedule", schedule}, {"micro_batch", 1},       {"gradient_accumulation", 4}};
      INFO(training.dump());
      const Sending& sends = strategy_named(strategy).sends;
      const auto is_refused = [&] {
        return problem_of(transformer("dgx_a100_80gb", 2, training)).find("every micro-batch") !=
               std::string::npos;
      };
      CHECK(is_refused() == (sends.every_micro_batch != nullptr));
      if (!sends.once_by.empty()) {
        training[std::string(sends.once_by)] = true;
        CHECK(!is_refused());
      }
    }
}

}  // namespace lockstep::layout_test
