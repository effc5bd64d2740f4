#include "sim/study/harness/harness_scenario.h"

#include <algorithm>
#include <cstdint>

#include "sim/load/reading/exact_text.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Duration duration_of(double seconds) {
  return Duration::picoseconds(static_cast<std::int64_t>(seconds * 1e12));
}

std::string text_of(double seconds) {
  return exact_text(duration_of(seconds));
}

// One processor, no links between several. The library is what such a machine may have: nobody communicates.
Json lone_machine(const HarnessRun& run, const Json& processor) {
  Json machine{{"name", "as_measured"}, {"source", run.file}, {"gpu", processor}, {"gpus", 1}};
  machine["gpu_links"]["kind"] = "none";
  machine["library"] = run.backend == "cpu" || processor == "cpu" ? "gloo" : "nccl";
  return machine;
}

// Medians of different iterations: the last gradient's may lie behind that of the backward it ends. All are
// then scaled alike, so that their order stays.
double ready_scale(const HarnessRun& run) {
  double last = 0;
  for (const RunParameter& parameter : run.model.parameters)
    last = std::max(last, parameter.gradient_ready_s);
  return last > run.alone->backward.median ? run.alone->backward.median / last : 1;
}

Json parameter_json(const RunParameter& parameter, double scale) {
  return {{"name", parameter.name},
          {"elements", parameter.elements},
          {"gradient_ready", text_of(parameter.gradient_ready_s * scale)}};
}

Json measured_model(const HarnessRun& run) {
  const StepStatistics& alone = *run.alone;
  Json measured{{"forward", text_of(alone.forward.median)},
                {"backward", text_of(alone.backward.median)},
                {"optimizer", text_of(alone.optimizer.median)},
                {"parameters", Json::array()}};
  const double scale = ready_scale(run);
  for (const RunParameter& parameter : run.model.parameters)
    measured["parameters"].push_back(parameter_json(parameter, scale));
  return {{"measured", measured}, {"batch_per_gpu", run.model.batch_per_rank}};
}

Json layer_json(const HarnessRun& run, const RunLayer& layer) {
  Json json{{"name", layer.name}, {"parameters", Json::array()}};
  for (const std::uint32_t index : layer.parameters)
    json["parameters"].push_back(run.model.parameters[index].elements);
  json["forward_time"] = text_of(layer.forward_s);
  json["backward_time"] = text_of(layer.backward_s);
  return json;
}

Json single_training(const std::string& optimizer) {
  return {{"strategy", one_gpu_strategy()}, {"optimizer", optimizer}};
}

Json cluster_scenario(const HarnessRun& run, const RunMachine& machine) {
  Json scenario{{"name", run.name}};
  scenario["cluster"] = {
      {"machine", machine.machine}, {"nodes", machine.nodes}, {"gpus_per_node", machine.gpus_per_node}};
  return scenario;
}

// The harness keeps masters and gradients in fp32 whatever it multiplies in.
std::string precision_of(const RunModel& model) {
  return model.precision == "fp16" || model.precision == "bf16" ? "amp_" + model.precision : model.precision;
}

}  // namespace

RunMachine machine_of_links(const HarnessRun& run, const RunLink& link, const Json& calibration) {
  Json machine = lone_machine(run, "cpu");
  machine["nics"] = {
      {"count", 1},
      {"link", {{"bandwidth", exact_text(link.bandwidth)}, {"latency", exact_text(link.latency)}}}};
  if (!calibration.is_null())
    machine["calibration"] = calibration;
  return {.machine = machine, .nodes = run.ranks, .gpus_per_node = 1};
}

Json communication_scenario(const HarnessRun& run, const RunMachine& machine) {
  const Json idle{{"parameters", Json::array({1})}, {"forward_time", "1 us"}, {"backward_time", "1 us"}};
  Json scenario = cluster_scenario(run, machine);
  scenario["model"]["layers"] = Json::array({idle});
  return scenario;
}

Json data_parallel_scenario(const HarnessRun& run, const MeasuredIteration& setting,
                            const RunMachine& machine) {
  Json scenario = cluster_scenario(run, machine);
  scenario["model"] = measured_model(run);
  // 1.13: the first bucket has its own limit of 1 MiB whatever the cap, which is the harness's rule.
  scenario["training"] = {{"framework", "pytorch_ddp"},
                          {"framework_version", "1.13"},
                          {"bucket_cap_mb", setting.bucket_cap_mb},
                          {"gradient_accumulation", setting.gradient_accumulation},
                          {"compression", setting.compression}};
  scenario["communication"] = {{"overlap", setting.overlap}};
  if (run.library == RunLibrary::nccl)
    scenario["communication"]["library"] = "nccl";
  return scenario;
}

Json layers_scenario(const HarnessRun& run) {
  Json scenario{{"name", run.name}};
  scenario["cluster"]["machine"] = lone_machine(run, "cpu");
  // The optimizer's time was measured: it stands as a layer that only has a forward.
  Json layers = Json::array({Json{{"name", "optimizer"},
                                  {"forward_time", text_of(run.alone->optimizer.median)},
                                  {"backward_time", "0 us"}}});
  for (const RunLayer& layer : run.layers) layers.push_back(layer_json(run, layer));
  scenario["model"] = {{"layers", layers}, {"batch_per_gpu", run.model.batch_per_rank}};
  scenario["training"] = single_training("none");
  return scenario;
}

Json roofline_scenario(const HarnessRun& run, const Json& processor) {
  Json scenario{{"name", run.name}};
  scenario["cluster"]["machine"] = lone_machine(run, processor);
  scenario["model"] = run.model.simulated_as;
  scenario["model"]["batch_per_gpu"] = run.model.batch_per_rank;
  scenario["model"]["precision"] = precision_of(run.model);
  scenario["training"] = single_training(run.model.optimizer);
  // Its loss writes the gradient as well, reading the logits three times (device/kernels.h, cross_entropy).
  scenario["compute"] = {{"cross_entropy_loss_fusion", true}};
  return scenario;
}

}  // namespace lockstep
