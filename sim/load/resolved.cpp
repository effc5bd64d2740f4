#include "sim/load/resolved.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/base/json_text.h"
#include "sim/collectives/nccl_tuner.h"
#include "sim/load/hardware/kernel_constants_json.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/load/hardware/write_calibration.h"
#include "sim/load/measured_steps.h"
#include "sim/load/read_comparison.h"
#include "sim/load/reading/exact_text.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"
#include "sim/load/training/family_options.h"
#include "sim/load/training/layout_presets.h"
#include "sim/load/training/option_text.h"
#include "sim/training/megatron.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

ordered_json write_link(const LinkSpec& link) {
  ordered_json json;
  if (!link.name.empty()) {
    json["name"] = link.name;
  }
  json["bandwidth"] = exact_text(link.bandwidth);
  json["latency"] = exact_text(link.latency);
  json["class"] = name_of(link.link_class, link_class_spellings);
  if (link.nccl_bandwidth) {
    json["nccl_bandwidth"] = exact_text(*link.nccl_bandwidth);
  }
  if (!link.protocols.empty())
    json["protocols"] = link.protocols;
  return json;
}

ordered_json write_curve(const std::vector<EfficiencyPoint>& curve) {
  ordered_json json = ordered_json::array();
  for (const EfficiencyPoint& point : curve) {
    json.push_back({{"flops", exact_text(point.flops)}, {"efficiency", point.efficiency.in_real()}});
  }
  return json;
}

}  // namespace

ordered_json write_gpu(const GpuSpec& gpu) {
  ordered_json json{{"name", gpu.name}, {"source", gpu.source}};
  if (gpu.compute_capability > 0) {
    json["compute_capability"] =
        fmt::format("{}.{}", gpu.compute_capability / 10, gpu.compute_capability % 10);
  }
  for (const auto& [precision, peak] : gpu.peak) {
    json["peak"][name_of(precision, precision_spellings)] = exact_text(peak);
  }
  json["vector_peak"] = exact_text(gpu.vector_peak);
  json["memory"] = exact_text(gpu.memory);
  json["memory_bandwidth"] = exact_text(gpu.memory_bandwidth);
  if (!gpu.kernels) {
    json["memory_efficiency"] = gpu.memory_efficiency.in_real();
  }
  if (gpu.l2 > Bytes{0}) {
    json["l2"] = exact_text(gpu.l2);
  }
  json["sms"] = gpu.sms;
  if (gpu.tdp_milliwatts > 0)
    json["tdp"] = exact_power_text(gpu.tdp_milliwatts);
  json["kernel_launch"] = exact_text(gpu.kernel_launch);
  json["host_launch"] = exact_text(gpu.host_launch);
  for (const auto& [precision, curve] : gpu.matmul_efficiency) {
    json["matmul_efficiency"][name_of(precision, precision_spellings)] = write_curve(curve);
  }
  if (gpu.kernels) {
    json["compute"] = write_kernel_constants(*gpu.kernels);
  }
  return json;
}

namespace {

ordered_json write_gpu_links(const GpuLinks& links) {
  ordered_json json{{"kind", name_of(links.kind, gpu_link_spellings)}};
  if (links.kind == GpuLinkKind::nvswitch || links.kind == GpuLinkKind::mesh) {
    json["link"] = write_link(links.link);
  }
  if (links.kind == GpuLinkKind::nvswitch) {
    json["links_per_gpu"] = links.links_per_gpu;
  }
  if (links.kind == GpuLinkKind::mesh) {
    json["matrix"] = links.matrix;
  }
  return json;
}

ordered_json write_host(const HostSpec& host) {
  ordered_json json{{"sockets", host.sockets}};
  if (host.socket_link) {
    json["socket_link"] = write_link(*host.socket_link);
  }
  if (host.pcie) {
    json["pcie"] = write_link(*host.pcie);
  }
  if (host.memory_bandwidth) {
    json["memory_bandwidth"] = exact_text(*host.memory_bandwidth);
  }
  if (host.operator_time) {
    json["operator_time"] = exact_text(*host.operator_time);
  }
  if (!host.peer_to_peer) {
    json["peer_to_peer"] = false;
  }
  if (!host.pcie_switches.empty()) {
    json["pcie_switches"] = host.pcie_switches;
  }
  return json;
}

// In the short form where it says the same.
ordered_json write_nics(const MachineSpec& machine) {
  ordered_json nics = ordered_json::array();
  for (const NicSpec& nic : machine.nics) {
    nics.push_back({{"link", write_link(nic.link)}, {"gpus", nic.gpus}});
  }
  const auto count = static_cast<std::int64_t>(machine.nics.size());
  const std::vector<NicSpec> spread = spread_nics(machine.nics.front().link, count, machine.gpus);
  const ordered_json link = nics.front()["link"];
  for (std::size_t nic = 0; nic < spread.size(); ++nic) {
    if (spread[nic].gpus != machine.nics[nic].gpus || nics[nic]["link"] != link) {
      return nics;
    }
  }
  return {{"count", count}, {"link", link}};
}

ordered_json write_machine(const ClusterSpec& cluster) {
  const MachineSpec& machine = cluster.machine;
  ordered_json json{{"name", machine.name}, {"source", machine.source}, {"gpu", write_gpu(cluster.gpu)}};
  json["gpus"] = machine.gpus;
  json["gpu_links"] = write_gpu_links(machine.gpu_links);
  json["host"] = write_host(machine.host);
  if (!machine.nics.empty()) {
    json["nics"] = write_nics(machine);
  }
  json["library"] = name_of(machine.library, library_spellings);
  json["calibration"] = write_calibration(cluster.calibration);
  if (machine.price) {
    json["price"] = {{"usd_per_gpu_hour", machine.price->usd_per_gpu_hour},
                     {"date", machine.price->date},
                     {"source", machine.price->source}};
  }
  return json;
}

void write_shape(const FabricSpec& fabric, ordered_json& json) {
  if (fabric.kind == "torus") {
    json["dims"] = fabric.dims;
  }
  if (fabric.kind == "dragonfly") {
    json["groups"] = fabric.groups;
    json["routers_per_group"] = fabric.routers_per_group;
    json["nodes_per_router"] = fabric.nodes_per_router;
  }
  if (fabric.kind == "graph") {
    json["switches"] = fabric.switches;
    for (const auto& link : fabric.links) {
      json["links"].push_back({link.from, link.to, write_link(link.link)});
    }
  }
}

ordered_json write_fabric(const FabricSpec& fabric) {
  ordered_json json;
  if (!fabric.name.empty()) {
    json["name"] = fabric.name;
  }
  json["kind"] = fabric.kind;
  json["oversubscription"] = fabric.oversubscription;
  json["hop_latency"] = exact_text(fabric.hop_latency);
  json["ports_per_leaf"] = fabric.ports_per_leaf;
  json["in_network_reduction"] = fabric.in_network_reduction;
  write_shape(fabric, json);
  return json;
}

ordered_json write_straggler(const Straggler& straggler) {
  ordered_json json;
  if (straggler.rank) {
    json["rank"] = *straggler.rank;
  } else if (straggler.probability) {
    json["probability"] = straggler.probability->in_real();
  } else {
    json["fraction"] = straggler.fraction.in_real();
  }
  json["slowdown"] = straggler.slowdown.in_real();
  return json;
}

ordered_json write_slow_link(const SlowLink& slow) {
  ordered_json json{{"node", slow.node}};
  if (slow.nic) {
    json["nic"] = *slow.nic;
  }
  json["slowdown"] = slow.slowdown.in_real();
  return json;
}

ordered_json write_faults(const FaultSpec& faults) {
  return {{"mtbf_per_node", exact_text(faults.mtbf_per_node)},
          {"restart", exact_text(faults.restart)},
          {"checkpoint_interval",
           faults.checkpoint_interval ? exact_text(*faults.checkpoint_interval) : "optimal"},
          {"checkpoint_bandwidth", exact_text(faults.checkpoint_bandwidth)},
          {"horizon", exact_text(faults.horizon)}};
}

ordered_json write_cluster(const ClusterSpec& cluster) {
  ordered_json json{{"machine", write_machine(cluster)},
                    {"nodes", cluster.nodes},
                    {"gpus_per_node", cluster.gpus_per_node},
                    {"fabric", write_fabric(cluster.fabric)}};
  for (const Straggler& straggler : cluster.stragglers) {
    json["stragglers"].push_back(write_straggler(straggler));
  }
  for (const SlowLink& slow : cluster.slow_links) {
    json["slow_links"].push_back(write_slow_link(slow));
  }
  if (cluster.jitter.distribution != JitterDistribution::none) {
    json["jitter"] = {{"distribution", name_of(cluster.jitter.distribution, jitter_spellings)},
                      {"coefficient_of_variation", cluster.jitter.coefficient_of_variation.in_real()}};
  }
  if (cluster.faults) {
    json["faults"] = write_faults(*cluster.faults);
  }
  return json;
}

ordered_json write_summary(const Model& model) {
  ordered_json json{{"parameters", parameter_count(model)}, {"tensors", model.parameters.size()}};
  if (!model.layers.empty()) {
    json["layers"] = model.layers.size();
    json["forward_flops_per_sample"] = exact_text(Flops{forward_flops(model)});
  }
  return json;
}

// What the user wrote about the model is complete but for these; a named model stays a name.
ordered_json write_model(const LoadedScenario& scenario) {
  const ModelUse& use = scenario.model;
  ordered_json json = scenario.given.at("model");
  if (!scenario.training.layout.is_cut())
    json["batch_per_gpu"] = use.batch_per_gpu;
  json["precision"] = name_of(use.precision, precision_spellings);
  if (use.model.tokens_per_sample > 0) {
    json["sequence_length"] = use.model.tokens_per_sample;
  }
  json["summary"] = write_summary(use.model);
  return json;
}

ordered_json write_input(const InputSpec& input) {
  ordered_json json{{"workers", input.workers}};
  if (input.workers > 0) {
    json["prefetch_factor"] = input.prefetch_factor;
  }
  json["sample_time"] = exact_text(input.sample_time);
  if (input.cores) {
    json["cores"] = *input.cores;
  }
  if (input.storage_bandwidth) {
    json["sample_bytes"] = exact_text(input.sample_bytes);
    json["storage_bandwidth"] = exact_text(*input.storage_bandwidth);
  }
  json["copy"] = name_of(input.copy, batch_copy_spellings);
  if (input.tensor_bytes > Bytes{0}) {
    json["tensor_bytes"] = exact_text(input.tensor_bytes);
  }
  if (input.dataset_samples) {
    json["dataset_samples"] = *input.dataset_samples;
    json["drop_last"] = input.drop_last;
  }
  if (input.lengths) {
    json["lengths"] = {{"distribution", input.lengths->distribution},
                       {"mean", input.lengths->mean},
                       {"coefficient_of_variation", input.lengths->coefficient_of_variation.in_real()},
                       {"maximum", input.lengths->maximum}};
    json["group_by_length"] = input.lengths->is_grouped;
  }
  return json;
}

void write_layout(const Scenario& scenario, ordered_json& json) {
  const Layout& layout = scenario.training.layout;
  json["micro_batch"] = scenario.model.batch_per_gpu;
  json["expert_parallel"] = layout.degrees.expert;
  if (layout.degrees.expert_tensor > 0)
    json["expert_tensor_parallel"] = layout.degrees.expert_tensor;
  json["placement"] = text_of(layout.placement);
  if (layout.degrees.tensor > 1) {
    json["sequence_parallel"] = layout.degrees.sequence_parallel;
    json["tensor_parallel_overlap"] = name_of(layout.degrees.tensor_overlap, tensor_overlap_spellings);
    json["keeps_gathered_inputs"] = layout.degrees.keeps_gathered_inputs;
  }
  if (layout.degrees.context > 1)
    json["context_parallel_kind"] = name_of(layout.degrees.context_kind, context_kind_spellings);
  if (layout.degrees.expert > 1)
    json["moe_token_dispatcher"] = name_of(layout.degrees.token_dispatch, token_dispatch_spellings);
  if (layout.degrees.expert_imbalance != Ratio::one())
    json["expert_imbalance"] = layout.degrees.expert_imbalance.in_real();
  if (layout.pipeline == 1)
    return;
  json["pipeline_schedule"] = layout.schedule;
  json["virtual_stages"] = layout.chunks;
  if (!layout.stage_blocks.empty())
    json["stage_layers"] = layout.stage_blocks;
}

void write_host_waits(const TrainingSpec& training, ordered_json& json) {
  const HostWaits& waits = training.host_waits;
  const bool may_wait = runs_megatron(training.framework) || training.framework == "deepspeed";
  if (training.layout.pipeline > 1)
    json["batch_p2p_sync"] = waits.for_messages;
  if (may_wait || waits.for_batch)
    json["broadcast_data_sync"] = waits.for_batch;
  if (may_wait || waits.for_loss)
    json["check_for_nan_in_loss"] = waits.for_loss;
  if (may_wait || waits.for_kernels)
    json["cuda_launch_blocking"] = waits.for_kernels;
}

// One that was not named may lack an option of the layout: named it would be refused, left out it is the usual one again.
void write_framework(const TrainingSpec& training, ordered_json& json) {
  if (missing_in_framework(training).empty())
    json["framework"] = training.framework;
}

ordered_json write_training(const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  const Layout& layout = training.layout;
  ordered_json json{{"strategy", training.strategy}};
  write_framework(training, json);
  json["framework_version"] = training.framework_version;
  json["data_parallel"] = scenario.copies_of_model();
  json["tensor_parallel"] = layout.degrees.tensor;
  json["pipeline_parallel"] = layout.pipeline;
  json["context_parallel"] = layout.degrees.context;
  json["gradient_accumulation"] = training.gradient_accumulation;
  json["global_batch"] =
      scenario.model.batch_per_gpu * training.gradient_accumulation * scenario.copies_of_model();
  if (layout.is_cut())
    write_layout(scenario, json);
  if (scenario.model.model.transformer)
    json["vocabulary_multiple"] = layout.degrees.vocabulary_multiple;
  write_host_waits(training, json);
  write_family_options(training, json);
  if (runs_megatron(training.framework) || training.accumulate_allreduce_grads_in_fp32)
    json["accumulate_allreduce_grads_in_fp32"] = training.accumulate_allreduce_grads_in_fp32;
  json["optimizer"] = name_of(training.optimizer, optimizer_spellings);
  json["compression"] = text_of(training.compression);
  json["recompute"] = text_of(training.recompute);
  return json;
}

// Each with all that it is set to, and without what only the scenario's own strategy knows, so that laid over that
// strategy's section, with every default of it written out, it means what it did.
ordered_json write_compared(const ComparisonSpec& comparison, const ordered_json& own) {
  ordered_json strategies = ordered_json::array();
  for (std::size_t index = 0; index < comparison.strategies.size(); ++index) {
    ordered_json entry = ordered_json::object();
    if (comparison.training[index].contains("name"))
      entry["name"] = comparison.training[index]["name"];
    entry.update(write_training(comparison.strategies[index]));
    for (const auto& [key, value] : own.items())
      if (!entry.contains(key))
        entry[key] = nullptr;
    strategies.push_back(std::move(entry));
  }
  return strategies;
}

ordered_json write_communication(const CommunicationSpec& communication) {
  ordered_json json{{"library", name_of(communication.library, library_spellings)},
                    {"algorithm", communication.algorithm},
                    {"protocol", communication.protocol},
                    {"overlap", communication.overlap},
                    {"collectives_in_flight", communication.collectives_in_flight}};
  if (communication.library_version > 0) {
    json["library_version"] = nccl_version_text(communication.library_version);
  }
  if (communication.channels) {
    json["channels"] = *communication.channels;
  }
  if (communication.timeout) {
    json["timeout"] = exact_text(*communication.timeout);
  }
  return json;
}

ordered_json write_anchor(const Anchor& anchor) {
  ordered_json json{{"set", ordered_json::object()}, {"iteration_time", exact_text(anchor.iteration_time)}};
  for (const auto& [path, text] : anchor.set) {
    json["set"][path] = ordered_json::parse(text);
  }
  return json;
}

// Without slowdown_during_communication the calibration's compute_slowdown and sm_interference hold.
ordered_json write_compute(const LoadedScenario& scenario) {
  const ComputeSpec& compute = scenario.compute;
  ordered_json json{{"preset", compute.preset},
                    {"kernels", name_of(compute.kernels, kernel_style_spellings)},
                    {"optimizer_kernels", name_of(compute.optimizer_kernels, optimizer_kernels_spellings)},
                    {"modules", name_of(compute.modules, module_style_spellings)},
                    {"cuda_graph_scope", name_of(compute.cuda_graph_scope, cuda_graph_scope_spellings)},
                    {"autocast", compute.autocast},
                    {"cross_entropy_loss_fusion", compute.cross_entropy_loss_fusion},
                    {"gradient_accumulation_fusion", compute.gradient_accumulation_fusion},
                    {"moe_grouped_gemm", compute.moe_grouped_gemm},
                    {"moe_router_fusion", compute.moe_router_fusion},
                    {"moe_permute_fusion", compute.moe_permute_fusion},
                    {"memory_format", name_of(compute.memory_format, memory_format_spellings)},
                    {"attention_backend", name_of(compute.attention_backend, attention_backend_spellings)},
                    {"fp8_recipe", name_of(compute.fp8_recipe, fp8_recipe_spellings)},
                    {"rotary_embedding", name_of(compute.rotary_embedding, rotary_embedding_spellings)}};
  write_measured_steps(scenario, json);
  if (compute.anchor) {
    json["anchor"] = write_anchor(*compute.anchor);
  } else {
    json["scale"] = compute.scale.in_real();
  }
  if (compute.slowdown_during_communication) {
    json["slowdown_during_communication"] = compute.slowdown_during_communication->in_real();
  }
  return json;
}

ordered_json write_plan(const LoadedScenario& scenario) {
  ordered_json json = scenario.given["plan"];
  json["precision"] = name_of(scenario.model.precision, precision_spellings);
  return json;
}

bool is_leaf(const ordered_json& json) {
  return !json.is_object() &&
         !(json.is_array() &&
           std::any_of(json.begin(), json.end(), [](const auto& item) { return item.is_object(); }));
}

const ordered_json* child_of(const ordered_json* json, const std::string& key) {
  if (json == nullptr || !json->is_object()) {
    return nullptr;
  }
  const auto found = json->find(key);
  return found == json->end() || found->is_null() ? nullptr : &*found;
}

// Walks the resolved scenario beside the given one and writes an entry wherever the origin changes.
class Tracer {
 public:
  Tracer(const std::map<std::string, std::string>& origins, ordered_json& entries)
      : origins_(origins), entries_(entries) {}

  void trace(const ordered_json& json, const ordered_json* given, const std::string& pointer,
             const std::string& above) {
    const std::string origin = origin_of(json, given, pointer, above);
    if (origin != above) {
      entries_[pointer] = origin;
    }
    if (is_leaf(json)) {
      return;
    }
    std::size_t index = 0;
    for (const auto& item : json.items()) {
      const std::string key = json.is_array() ? std::to_string(index) : item.key();
      const ordered_json* beside = json.is_array() ? element_of(given, index) : child_of(given, key);
      trace(item.value(), beside, extended_pointer(pointer, key), origin);
      ++index;
    }
  }

 private:
  static const ordered_json* element_of(const ordered_json* given, std::size_t index) {
    return given != nullptr && given->is_array() && index < given->size() ? &(*given)[index] : nullptr;
  }

  // A container is given when all that is in it is.
  static bool is_given(const ordered_json& json, const ordered_json* given) {
    if (is_leaf(json)) {
      return given != nullptr;
    }
    std::size_t index = 0;
    for (const auto& item : json.items()) {
      if (!is_given(item.value(), json.is_array() ? element_of(given, index) : child_of(given, item.key()))) {
        return false;
      }
      ++index;
    }
    return !json.empty();
  }

  std::string origin_of(const ordered_json& json, const ordered_json* given, const std::string& pointer,
                        const std::string& above) const {
    if (const auto noted = origins_.find(pointer); noted != origins_.end()) {
      return noted->second;
    }
    if (is_given(json, given) && !pointer.empty()) {
      return "given";
    }
    if (!is_leaf(json)) {
      return above;
    }
    return above.empty() ? "default" : above;
  }

  const std::map<std::string, std::string>& origins_;
  ordered_json& entries_;
};

}  // namespace

ordered_json resolved_scenario(const LoadedScenario& scenario) {
  ordered_json json{{"name", scenario.name}};
  for (const char* key : {"description", "source"}) {
    if (scenario.given.contains(key)) {
      json[key] = scenario.given[key];
    }
  }
  json["cluster"] = write_cluster(scenario.cluster);
  if (scenario.program) {
    json["plan"] = write_plan(scenario);
  } else {
    json["model"] = write_model(scenario);
    if (scenario.input) {
      json["input"] = write_input(*scenario.input);
    }
    json["training"] = write_training(scenario);
  }
  json["communication"] = write_communication(scenario.communication);
  if (!scenario.program) {
    json["compute"] = write_compute(scenario);
  }
  json["simulation"] = {{"fidelity", name_of(scenario.simulation.fidelity, fidelity_spellings)},
                        {"iterations", scenario.simulation.iterations},
                        {"seed", scenario.simulation.seed}};
  if (scenario.comparison) {
    json["compare"] = write_comparison(*scenario.comparison);
    json["compare"]["strategies"] = write_compared(*scenario.comparison, json["training"]);
  }
  return json;
}

ordered_json provenance_of(const LoadedScenario& scenario,
                           const std::map<std::string, std::string>& origins) {
  ordered_json entries = ordered_json::object();
  Tracer(origins, entries).trace(scenario.resolved, &scenario.given, "", "");
  return entries;
}

}  // namespace lockstep
