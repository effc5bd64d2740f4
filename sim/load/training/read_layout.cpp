#include "sim/load/training/read_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"
#include "sim/run/model_stages.h"
#include "sim/training/schedules/pipeline_schedule.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

// A gradient that no other rank has is reduced by nobody; along sequences every rank has all of them.
constexpr std::array whole_dimensions{
    WholeDimension{.name = "mp", .degree = "pipeline_parallel", .reduces = false},
    WholeDimension{.name = "pp", .degree = "pipeline_parallel", .reduces = false},
    WholeDimension{.name = "tp", .degree = "tensor_parallel", .reduces = false},
    WholeDimension{.name = "cp", .degree = "context_parallel", .reduces = true}};

constexpr std::int64_t most_samples = 1'000'000;  // of a micro-batch

void read_placement(const JsonReader& json, Layout& layout) {
  const auto found = json.optional("placement");
  if (!found)
    return;
  if (auto placement = parse_placement(found->text()))
    layout.placement = *std::move(placement);
  else
    found->expected("each dimension once, those that share a node first: \"" + std::string(usual_placement) +
                    "\"");
}

std::int64_t read_degree(const JsonReader& json, std::string_view key, std::int64_t fallback) {
  return integer_or(json, key, fallback, {1, million});
}

constexpr std::array layout_keys{"tensor_parallel",     "pipeline_parallel",      "context_parallel",
                                 "expert_parallel",     "data_parallel",          "placement",
                                 "sequence_parallel",   "virtual_stages",         "context_parallel_kind",
                                 "vocabulary_multiple", "expert_imbalance",       "stage_layers",
                                 "pipeline_schedule",   "tensor_parallel_overlap"};

// The largest that divides `whole` and is no more than `wanted`.
std::int64_t nearest_divisor(std::int64_t whole, std::int64_t wanted) {
  std::int64_t divisor = std::min(whole, wanted);
  while (whole % divisor != 0) --divisor;
  return divisor;
}

// What is left of the ranks once the model is cut.
void find_data_degree(const JsonReader& json, const TrainingFacts& facts, Layout& layout) {
  const std::int64_t copy = layout.ranks_of_a_copy();
  const auto stated = json.optional("data_parallel");
  layout.data = std::max<std::int64_t>(facts.ranks() / copy, 1);
  const std::string product = fmt::format("tensor {} x context {} x pipeline {}", layout.degrees.tensor,
                                          layout.degrees.context, layout.pipeline);
  if (layout.data * copy != facts.ranks()) {
    const char* key = layout.pipeline > 1         ? "pipeline_parallel"
                      : layout.degrees.tensor > 1 ? "tensor_parallel"
                                                  : "context_parallel";
    std::int64_t& degree = layout.pipeline > 1         ? layout.pipeline
                           : layout.degrees.tensor > 1 ? layout.degrees.tensor
                                                       : layout.degrees.context;
    const std::int64_t others = copy / degree;
    const std::string nearest =
        facts.ranks() % others == 0
            ? fmt::format("; nearest that works: {} {}", key, nearest_divisor(facts.ranks() / others, degree))
            : "";
    json.required(key).problem(fmt::format("found {}, but {} = {} ranks do not divide the cluster's {}{}",
                                           degree, product, copy, facts.ranks(), nearest));
    degree = 1;
    layout.data = facts.ranks() / layout.ranks_of_a_copy();
  } else if (stated && stated->integer(1, million) != layout.data) {
    stated->problem(layout.is_cut()
                        ? fmt::format("found {}, but {} ranks by {} leave {}", stated->value().dump(),
                                      facts.ranks(), product, layout.data)
                        : fmt::format("found {}, but the cluster has {} ranks and every other degree is 1",
                                      stated->value().dump(), facts.ranks()));
  }
}

void check_experts(const JsonReader& json, Layout& layout) {
  if (layout.data % layout.degrees.expert == 0)
    return;
  json.required("expert_parallel")
      .problem(fmt::format("found {}, which does not divide data_parallel {}; nearest that works: {}",
                           layout.degrees.expert, layout.data,
                           nearest_divisor(layout.data, layout.degrees.expert)));
  layout.degrees.expert = 1;
}

// The key of the degree that a problem of parallel_model is about; its first word names it.
void check_model(const JsonReader& json, const TrainingFacts& facts, Layout& layout) {
  if (facts.model == nullptr || !layout.is_cut())
    return;
  if (facts.model->layers.empty()) {
    json.problem(
        "a measured model has no layers that could be cut; expected every degree but data_parallel 1");
    layout = {.data = layout.data};
    return;
  }
  const std::vector<std::string> found = problems(*facts.model, layout.degrees);
  for (const std::string& problem : found) json.problem(problem);
  if (!found.empty())
    layout.degrees = {};
}

// Why a strategy's ranks cannot each hold a part of the model; empty: they can.
std::string why_whole(const Strategy& strategy, const Layout& layout) {
  if (strategy.hosts != nullptr || strategy.servers != nullptr)
    return "whose servers know whole models only";
  if (strategy.has_leader || strategy.write_iteration != nullptr)
    return "where rank 0 leads";
  if (strategy.is_asynchronous)
    return "whose workers wait for nobody";
  if (layout.pipeline > 1 && strategy.fuse != nullptr)
    return "which decides while it runs what it sends together, the same on all ranks";
  if (strategy.partition == Partition::every_weight_in_groups &&
      (layout.degrees.expert > 1 || layout.degrees.context > 1))
    return "which cuts up the ranks that sequences and experts are dealt among";
  return "";
}

void check_strategy(const JsonReader& json, std::string_view name, Layout& layout) {
  const Strategy* strategy = Registry<Strategy>::find(name);
  const std::string why = strategy != nullptr && layout.is_cut() ? why_whole(*strategy, layout) : "";
  if (why.empty())
    return;
  std::vector<std::string> valid = strategies_in_order();
  std::erase_if(valid, [&](const std::string& other) {
    return !why_whole(strategy_named(other), layout).empty() || strategy_named(other).accepts.one_gpu_only;
  });
  json.required("strategy")
      .problem(fmt::format("found \"{}\", {}, with a model that is cut; valid here: {}", name, why,
                           fmt::join(valid, ", ")));
  layout = {.data = layout.data * layout.ranks_of_a_copy()};
}

void check_schedule(const JsonReader& json, const PipelineShape& shape, std::string_view schedule) {
  for (const ShapeProblem& problem : problems_of_shape(schedule, shape)) {
    const auto stated = json.optional(problem.key);
    (stated ? *stated : json).problem(problem.text);
  }
}

void read_stages(const JsonReader& json, const TrainingFacts& facts, Layout& layout) {
  const std::int64_t parts = layout.pipeline * layout.chunks;
  const std::int64_t blocks = facts.model == nullptr ? parts : most_parts(*facts.model);
  const auto stated = json.optional("stage_layers");
  if (stated) {
    std::int64_t sum = 0;
    for (const JsonReader& count : stated->elements()) {
      layout.stage_blocks.push_back(count.integer(1, million));
      sum += layout.stage_blocks.back();
    }
    if (std::ssize(layout.stage_blocks) == parts && sum == blocks)
      return;
    stated->problem(
        fmt::format("found {} numbers that add up to {}; expected one for each of the {} parts, "
                    "{} in all",
                    layout.stage_blocks.size(), sum, parts, blocks));
    layout.stage_blocks.clear();
  }
  if (parts > blocks) {
    json.required("pipeline_parallel")
        .problem(fmt::format("found {} stages of {} parts each, but the model has {} layers to deal; nearest "
                             "that works: {}",
                             layout.pipeline, layout.chunks, blocks,
                             std::max<std::int64_t>(blocks / layout.chunks, 1)));
    layout.pipeline = layout.chunks = 1;
  }
}

std::vector<std::string> schedule_names() {
  return Registry<PipelineSchedule>::names();
}

void read_pipeline(const JsonReader& json, const TrainingFacts& facts, Layout& layout) {
  const auto schedule = json.optional("pipeline_schedule");
  const auto chunks = json.optional("virtual_stages");
  if (schedule)
    layout.schedule = schedule->one_of(schedule_names());
  else if (chunks && chunks->integer(1, million) > 1)
    layout.schedule = "interleaved";
  if (layout.pipeline == 1) {
    if (chunks && chunks->integer(1, million) > 1)
      chunks->problem("found more than 1 without a pipeline; expected pipeline_parallel above 1");
    if (const auto stages = json.optional("stage_layers"))
      stages->problem("found the stages of a pipeline without one; expected pipeline_parallel above 1");
    return;
  }
  const ChunkRange range = pipeline_schedule_named(layout.schedule).chunks;
  layout.chunks = chunks ? chunks->integer(1, million) : range.least;
  read_stages(json, facts, layout);
}

std::int64_t degree_of(const JsonReader& json, std::string_view key, const TrainingFacts& facts,
                       const WholeDimension* whole) {
  return read_degree(json, key, whole != nullptr && whole->degree == key ? facts.ranks() : 1);
}

}  // namespace

const WholeDimension* find_whole_dimension(std::string_view name) {
  const auto found = std::find_if(whole_dimensions.begin(), whole_dimensions.end(),
                                  [&](const WholeDimension& whole) { return whole.name == name; });
  return found == whole_dimensions.end() ? nullptr : &*found;
}

std::vector<std::string> names_of_whole_dimensions() {
  std::vector<std::string> names;
  for (const WholeDimension& whole : whole_dimensions) names.emplace_back(whole.name);
  return names;
}

Layout read_layout(const JsonReader& json, const Place& place, const TrainingFacts& facts,
                   const std::string& strategy, const WholeDimension* whole) {
  if (!facts.is_cluster_known) {
    for (const char* key : layout_keys) json.optional(key);
    return {};
  }
  Layout layout;
  read_placement(json, layout);
  ParallelDegrees& degrees = layout.degrees;
  degrees.tensor = degree_of(json, "tensor_parallel", facts, whole);
  degrees.context = degree_of(json, "context_parallel", facts, whole);
  degrees.expert = read_degree(json, "expert_parallel", 1);
  layout.pipeline = degree_of(json, "pipeline_parallel", facts, whole);
  degrees.sequence_parallel = boolean_or(json, "sequence_parallel", false);
  degrees.context_kind =
      spelled_or(json, "context_parallel_kind", degrees.context_kind, context_kind_spellings);
  degrees.tensor_overlap =
      spelled_or(json, "tensor_parallel_overlap", degrees.tensor_overlap, tensor_overlap_spellings);
  if (const auto multiple = json.optional("vocabulary_multiple"))
    degrees.vocabulary_multiple = multiple->integer(1, million);
  degrees.expert_imbalance_ppm =
      parts_per_million_or(json, "expert_imbalance", degrees.expert_imbalance_ppm, {1, 1000});
  find_data_degree(json, facts, layout);
  check_experts(json, layout);
  check_model(json, facts, layout);
  check_strategy(json, strategy, layout);
  read_pipeline(json, facts, layout);
  if (!json.optional("data_parallel"))
    (place / "data_parallel").note("derived: the ranks by the other degrees");
  return layout;
}

namespace {

void check_divides(const JsonReader& global, std::int64_t found, std::int64_t of) {
  if (found % of != 0)
    global.problem(fmt::format("found {}, which is no multiple of {}; nearest that works: {}", found, of,
                               std::max<std::int64_t>(found / of, 1) * of));
}

}  // namespace

void check_batch_key(const JsonReader& json, const Layout& layout, const TrainingFacts& facts) {
  if (layout.is_cut() && facts.stated_batch)
    json.problem(
        fmt::format("model.batch_per_gpu is {}, but a GPU has no batch of its own in a model that is cut; "
                    "expected training.micro_batch",
                    *facts.stated_batch));
}

BatchSizes read_batch_sizes(const JsonReader& json, const Layout& layout, const TrainingFacts& facts) {
  check_batch_key(json, layout, facts);
  const auto micro = json.optional("micro_batch");
  const auto accumulation = json.optional("gradient_accumulation");
  const auto global = json.optional("global_batch");
  const std::int64_t copies = layout.is_cut() ? layout.data : facts.ranks();
  BatchSizes sizes{.micro_batch = facts.stated_batch.value_or(1)};
  if (micro)
    sizes.micro_batch = micro->integer(1, most_samples);
  if (micro && facts.stated_batch && *facts.stated_batch != sizes.micro_batch)
    micro->problem(fmt::format("found {}, but model.batch_per_gpu is {}; expected one of the two",
                               sizes.micro_batch, *facts.stated_batch));
  if (accumulation)
    sizes.micro_batches = accumulation->integer(1, million);
  if (!global || !facts.is_cluster_known)
    return sizes;
  const std::int64_t found = global->integer(1, INT64_MAX);
  if (!accumulation) {
    const std::int64_t at_once = sizes.micro_batch * copies;
    check_divides(*global, found, at_once);
    sizes.micro_batches = std::clamp<std::int64_t>(found / at_once, 1, million);
  } else if (!micro && !facts.stated_batch) {
    const std::int64_t in_turn = sizes.micro_batches * copies;
    check_divides(*global, found, in_turn);
    sizes.micro_batch = std::clamp<std::int64_t>(found / in_turn, 1, most_samples);
  } else if (found != sizes.micro_batch * sizes.micro_batches * copies) {
    global->problem(fmt::format("found {}, but {} {} x gradient_accumulation {} x {} {} = {}", found,
                                micro ? "micro_batch" : "batch_per_gpu", sizes.micro_batch,
                                sizes.micro_batches, copies, layout.is_cut() ? "copies" : "ranks",
                                sizes.micro_batch * sizes.micro_batches * copies));
  }
  return sizes;
}

namespace {

bool runs_chunks(const std::string& name, const Layout& layout) {
  const Strategy& strategy = strategy_named(name);
  return strategy.sends.every_micro_batch == nullptr && why_whole(strategy, layout).empty() &&
         !strategy.accepts.one_gpu_only;
}

// Each chunk of a stage ends its micro-batches in an order of its own: reductions of every micro-batch would mix
// them. torch.distributed.pipelining puts them off to the last (stage.py, backward_maybe_with_nosync), as no_sync does.
void check_chunks(const JsonReader& json, const TrainingSpec& training) {
  const Layout& layout = training.layout;
  if (layout.chunks == 1 || !reduces_every_micro_batch(training))
    return;
  std::vector<std::string> valid = strategies_in_order();
  std::erase_if(valid, [&](const std::string& other) { return !runs_chunks(other, layout); });
  const std::string_view option = strategy_named(training.strategy).sends.once_by;
  const std::string once = option.empty() ? "" : fmt::format("training.{} true, ", option);
  json.optional("strategy")
      .value_or(json)
      .problem(fmt::format(
          "found \"{}\", which reduces the gradients of every micro-batch, with {} parts of the model on a "
          "stage ({}): that is not modelled; valid here: {}one part a stage (1f1b), {}",
          training.strategy, layout.chunks, layout.schedule, once, fmt::join(valid, ", ")));
}

}  // namespace

void check_pipeline(const JsonReader& json, const TrainingSpec& training) {
  const Layout& layout = training.layout;
  if (layout.pipeline == 1)
    return;
  check_chunks(json, training);
  check_schedule(
      json,
      {.stages = layout.pipeline, .chunks = layout.chunks, .micro_batches = training.gradient_accumulation},
      layout.schedule);
}

TrainingFacts facts_of_copies(const TrainingFacts& facts, const Layout& layout) {
  if (!layout.is_cut() || !facts.is_cluster_known)
    return facts;
  std::int64_t stride = 1;
  std::int64_t in_node = 1;  // ranks of one node that hold the same parameters
  for (const LayoutAxis axis : layout.placement) {
    const bool is_copy = axis != LayoutAxis::tensor && axis != LayoutAxis::pipeline;
    const std::int64_t size = size_of(layout, axis);
    if (is_copy && stride < facts.gpus_per_node)
      in_node *= std::min(size, std::max<std::int64_t>(facts.gpus_per_node / stride, 1));
    stride *= size;
  }
  TrainingFacts copies = facts;
  copies.gpus_per_node = in_node;
  copies.nodes = std::max<std::int64_t>(layout.data * layout.degrees.context / in_node, 1);
  return copies;
}

}  // namespace lockstep
