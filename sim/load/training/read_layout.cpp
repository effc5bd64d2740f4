#include "sim/load/training/read_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"
#include "sim/load/training/layout_presets.h"
#include "sim/run/model_stages.h"
#include "sim/training/schedules/ideal_bubble.h"
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
constexpr std::int64_t most_samples_of_all = most_samples * million * 1'000;

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

constexpr std::array layout_keys{"tensor_parallel",        "pipeline_parallel",       "context_parallel",
                                 "expert_parallel",        "data_parallel",           "placement",
                                 "sequence_parallel",      "virtual_stages",          "context_parallel_kind",
                                 "vocabulary_multiple",    "expert_imbalance",        "stage_layers",
                                 "pipeline_schedule",      "tensor_parallel_overlap", "keeps_gathered_inputs",
                                 "expert_tensor_parallel", "moe_token_dispatcher"};

// The largest that divides `whole` and is no more than `wanted`.
std::int64_t nearest_divisor(std::int64_t whole, std::int64_t wanted) {
  std::int64_t divisor = std::min(whole, wanted);
  while (whole % divisor != 0) --divisor;
  return divisor;
}

struct StatedDegree {
  const char* key;
  std::int64_t* degree;
};

// The dimension whose degree, made smaller, lets the others stay; else the first that is cut.
StatedDegree degree_at_fault(std::int64_t ranks, Layout& layout) {
  const std::array<StatedDegree, 3> all{{{"pipeline_parallel", &layout.pipeline},
                                         {"tensor_parallel", &layout.degrees.tensor},
                                         {"context_parallel", &layout.degrees.context}}};
  const std::int64_t copy = layout.ranks_of_a_copy();
  const auto leaves_others = [&](const StatedDegree& stated) {
    return *stated.degree > 1 && ranks % (copy / *stated.degree) == 0;
  };
  const auto found = std::find_if(all.begin(), all.end(), leaves_others);
  return found != all.end() ? *found : *std::find_if(all.begin(), all.end(), [](const StatedDegree& stated) {
    return *stated.degree > 1;
  });
}

void report_degrees(const JsonReader& json, const TrainingFacts& facts, Layout& layout) {
  const StatedDegree fault = degree_at_fault(facts.ranks(), layout);
  const std::int64_t copy = layout.ranks_of_a_copy();
  const std::int64_t others = copy / *fault.degree;
  const std::string nearest = facts.ranks() % others == 0
                                  ? fmt::format("; nearest that works: {} {}", fault.key,
                                                nearest_divisor(facts.ranks() / others, *fault.degree))
                                  : "";
  json.required(fault.key).problem(
      fmt::format("found {}, but tensor {} x context {} x pipeline {} = {} ranks do not divide the cluster's "
                  "{}{}",
                  *fault.degree, layout.degrees.tensor, layout.degrees.context, layout.pipeline, copy,
                  facts.ranks(), nearest));
  *fault.degree = 1;
}

// What is left of the ranks once the model is cut.
void find_data_degree(const JsonReader& json, const TrainingFacts& facts, Layout& layout) {
  const std::int64_t copy = layout.ranks_of_a_copy();
  const auto stated = json.optional("data_parallel");
  layout.data = std::max<std::int64_t>(facts.ranks() / copy, 1);
  if (layout.data * copy != facts.ranks()) {
    report_degrees(json, facts, layout);
    layout.data = std::max<std::int64_t>(facts.ranks() / layout.ranks_of_a_copy(), 1);
  } else if (stated && stated->integer(1, million) != layout.data) {
    stated->problem(
        layout.is_cut()
            ? fmt::format("found {}, but {} ranks by tensor {} x context {} x pipeline {} leave {}",
                          stated->value().dump(), facts.ranks(), layout.degrees.tensor,
                          layout.degrees.context, layout.pipeline, layout.data)
            : fmt::format("found {}, but the cluster has {} ranks and every other degree is 1",
                          stated->value().dump(), facts.ranks()));
  }
}

void check_sharers(const JsonReader& json, Layout& layout) {
  ParallelDegrees& degrees = layout.degrees;
  if (degrees.expert_tensor == 0 || degrees.tensor % degrees.expert_tensor == 0)
    return;
  json.required("expert_tensor_parallel")
      .problem(fmt::format("found {}, which does not divide tensor_parallel {}; nearest that works: {}",
                           degrees.expert_tensor, degrees.tensor,
                           nearest_divisor(degrees.tensor, degrees.expert_tensor)));
  degrees.expert_tensor = 0;
}

// The most experts' ranks up to those wanted, that are dealt evenly and among which the model's experts are.
std::int64_t nearest_expert_degree(const TrainingFacts& facts, Layout layout) {
  const bool has_experts = facts.model != nullptr && facts.model->transformer;
  const std::int64_t experts = has_experts ? facts.model->transformer->mixture.experts : 0;
  while (!expert_spread(layout) || experts % layout.degrees.expert != 0) --layout.degrees.expert;
  return layout.degrees.expert;
}

void check_experts(const JsonReader& json, const TrainingFacts& facts, Layout& layout) {
  check_sharers(json, layout);
  if (expert_spread(layout))
    return;
  const ParallelDegrees& degrees = layout.degrees;
  const std::int64_t nearest = nearest_expert_degree(facts, layout);
  json.required("expert_parallel")
      .problem(fmt::format(
          "found {}, which does not deal experts evenly among the {} ranks of tensor {} (of which {} "
          "share each), context {} and data {}, in this order; nearest that works: {}",
          degrees.expert, degrees.tensor * degrees.context * layout.data, degrees.tensor,
          sharers_of_expert(degrees), degrees.context, layout.data, nearest));
  layout.degrees.expert = nearest;
}

// Of a product of quotients: how far degrees are from those that were asked for.
struct Distance {
  Unsigned128 greater = 1;
  Unsigned128 smaller = 1;

  void add(std::int64_t one, std::int64_t other) {
    greater *= static_cast<Unsigned128>(std::max(one, other));
    smaller *= static_cast<Unsigned128>(std::min(one, other));
  }
  bool operator<(const Distance& other) const { return greater * other.smaller < other.greater * smaller; }
};

std::vector<std::int64_t> divisors_of(std::int64_t whole) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t divisor = 1; divisor <= whole; ++divisor)
    if (whole % divisor == 0)
      divisors.push_back(divisor);
  return divisors;
}

// The nearest degrees that cut the model and the cluster alike.
class NearestDegrees {
 public:
  NearestDegrees(const TrainingFacts& facts, const Layout& wanted) : facts_(facts), wanted_(wanted) {
    const std::int64_t ranks = facts.ranks() / wanted.pipeline;
    for (const std::int64_t tensor : divisors_of(ranks))
      for (const std::int64_t context : divisors_of(ranks / tensor))
        for (const std::int64_t expert : divisors_of(ranks)) consider(tensor, context, expert);
  }

  // ""; "; on 16 ranks tensor_parallel 4 works".
  std::string text() const {
    if (!best_)
      return "";
    const std::array<std::tuple<const char*, std::int64_t, std::int64_t>, 3> degrees{
        {{"tensor_parallel", best_->tensor, wanted_.degrees.tensor},
         {"context_parallel", best_->context, wanted_.degrees.context},
         {"expert_parallel", best_->expert, wanted_.degrees.expert}}};
    std::vector<std::string> named;
    for (const auto& [key, degree, wanted] : degrees)
      if (degree > 1 || wanted > 1)
        named.push_back(fmt::format("{} {}", key, degree));
    return fmt::format("; on these {} ranks {} works", facts_.ranks(), fmt::join(named, " with "));
  }

 private:
  void consider(std::int64_t tensor, std::int64_t context, std::int64_t expert) {
    ParallelDegrees degrees = wanted_.degrees;
    Distance distance;
    distance.add(tensor, degrees.tensor);
    distance.add(context, degrees.context);
    distance.add(expert, degrees.expert);
    degrees.tensor = tensor;
    degrees.context = context;
    degrees.expert = expert;
    const std::int64_t data = facts_.ranks() / wanted_.pipeline / tensor / context;
    if ((best_ && !(distance < distance_)) || !expert_spread({.degrees = degrees, .data = data}) ||
        !problems(*facts_.model, degrees).empty())
      return;
    best_ = degrees;
    distance_ = distance;
  }

  const TrainingFacts& facts_;
  const Layout& wanted_;
  std::optional<ParallelDegrees> best_ = {};
  Distance distance_ = {};
};

void check_model(const JsonReader& json, const TrainingFacts& facts, Layout& layout) {
  if (facts.model == nullptr || (!layout.is_cut() && layout.degrees.expert_tensor == 0))
    return;
  if (facts.model->layers.empty()) {
    json.problem(
        "a measured model has no layers that could be cut; expected every degree but data_parallel 1");
    layout = {.data = layout.data};
    return;
  }
  const std::vector<std::string> found = problems(*facts.model, layout.degrees);
  if (found.empty())
    return;
  const std::string nearest = NearestDegrees(facts, layout).text();
  for (const std::string& problem : found) json.problem(problem + nearest);
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
  if ((layout.pipeline > 1 || deals_experts(layout)) && strategy.fuse != nullptr)
    return "which decides while it runs what it sends together, the same on all ranks";
  if (strategy.partition == Partition::every_weight_in_groups &&
      (deals_experts(layout) || layout.degrees.context > 1))
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

// As Megatron Core asks: experts of several ranks, and no whole layers computed again.
void check_pairs(const JsonReader& json, const TrainingSpec& training) {
  const Layout& layout = training.layout;
  if (pipeline_schedule_named(layout.schedule).pauses_at == PausesAt::every_exchange)
    return;
  if (layout.degrees.expert == 1)
    json.required("pipeline_schedule")
        .problem(
            fmt::format("found \"{}\", which hides what experts exchange, without expert_parallel above 1; "
                        "without it: interleaved",
                        layout.schedule));
  const RecomputeKind kind = training.recompute.kind;
  if (kind != RecomputeKind::none && kind != RecomputeKind::selective && kind != RecomputeKind::selective_op)
    json.required("recompute")
        .problem(fmt::format("found whole layers that are computed again, which {} does not take; valid with "
                             "it: none, selective",
                             layout.schedule));
}

constexpr std::array balances{std::pair{"balanced_time", StageBalance::time},
                              std::pair{"balanced_memory", StageBalance::memory}};

// In words: how blocks are dealt. Nothing: evenly.
std::optional<StageBalance> read_balance(const JsonReader& stated) {
  std::vector<std::string> names{"even"};
  for (const auto& [name, balance] : balances) names.emplace_back(name);
  const std::string found = stated.one_of(names);
  for (const auto& [name, balance] : balances)
    if (found == name)
      return balance;
  return std::nullopt;
}

// By part, as stated.
void read_stage_blocks(const JsonReader& stated, std::int64_t blocks, Layout& layout) {
  const std::int64_t parts = parts_of_model(layout);
  std::int64_t sum = 0;
  for (const JsonReader& count : stated.elements()) {
    layout.stage_blocks.push_back(count.integer(1, million));
    sum += layout.stage_blocks.back();
  }
  if (std::ssize(layout.stage_blocks) == parts && sum == blocks)
    return;
  stated.problem(fmt::format(
      "found {} numbers that add up to {}; expected one for each of the {} parts, {} in all, or \"even\", "
      "\"balanced_time\" or \"balanced_memory\"",
      layout.stage_blocks.size(), sum, parts, blocks));
  layout.stage_blocks.clear();
}

// Named by the strategy, a degree has no key of its own.
void report_pipeline(const JsonReader& json, const std::string& problem) {
  const auto degree = json.optional("pipeline_parallel");
  (degree ? *degree : json.required("strategy")).problem(problem);
}

void check_parts(const JsonReader& json, const TrainingFacts& facts, std::int64_t blocks, Layout& layout) {
  const std::int64_t parts = parts_of_model(layout);
  if (parts <= blocks)
    return;
  const std::int64_t of_stage = parts / layout.pipeline;
  const std::int64_t others = layout.degrees.tensor * layout.degrees.context;
  const std::int64_t nearest =
      nearest_divisor(facts.ranks() / others, std::max<std::int64_t>(blocks / of_stage, 1));
  const std::string of_each = of_stage == 1 ? "" : fmt::format(" of {} parts each", of_stage);
  report_pipeline(
      json, fmt::format("found {} stages{}, but the model has {} layers to deal; nearest that works: {} "
                        "stages{}",
                        layout.pipeline, of_each, blocks, nearest,
                        of_stage > 1 && nearest * of_stage > blocks ? " of one part" : ""));
  layout.pipeline = nearest;
  layout.chunks = 1;
}

std::optional<StageBalance> read_stages(const JsonReader& json, const TrainingFacts& facts, Layout& layout) {
  const std::int64_t blocks = facts.model == nullptr ? parts_of_model(layout) : most_parts(*facts.model);
  std::optional<StageBalance> balance;
  if (const auto stated = json.optional("stage_layers")) {
    if (stated->is_string())
      balance = read_balance(*stated);
    else
      read_stage_blocks(*stated, blocks, layout);
  }
  check_parts(json, facts, blocks, layout);
  return layout.pipeline > 1 ? balance : std::nullopt;
}

std::vector<std::string> schedule_names() {
  return Registry<PipelineSchedule>::names();
}

std::optional<StageBalance> read_pipeline(const JsonReader& json, const TrainingFacts& facts,
                                          Layout& layout) {
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
      if (!stages->is_string())
        stages->problem("found the stages of a pipeline without one; expected pipeline_parallel above 1");
    return std::nullopt;
  }
  const ChunkRange range = pipeline_schedule_named(layout.schedule).chunks;
  layout.chunks = chunks ? chunks->integer(1, million) : range.least;
  return read_stages(json, facts, layout);
}

std::int64_t degree_of(const JsonReader& json, std::string_view key, const TrainingFacts& facts,
                       const WholeDimension* whole) {
  if (whole == nullptr || whole->degree != key)
    return read_degree(json, key, 1);
  const std::int64_t ranks = facts.ranks();
  const std::int64_t degree = read_degree(json, key, ranks);
  if (const auto stated = json.optional(key); stated && stated->value() == degree && degree != ranks)
    stated->problem(
        fmt::format("found {}, but strategy \"{}\" cuts the model over all {} GPUs; expected {}, or another "
                    "strategy, such as \"ddp\", beside a smaller degree",
                    degree, whole->name, ranks, ranks));
  return ranks;
}

void read_degrees(const JsonReader& json, const TrainingFacts& facts, const WholeDimension* whole,
                  Layout& layout) {
  layout.degrees.tensor = degree_of(json, "tensor_parallel", facts, whole);
  layout.degrees.context = degree_of(json, "context_parallel", facts, whole);
  layout.degrees.expert = read_degree(json, "expert_parallel", 1);
  layout.degrees.expert_tensor = integer_or(json, "expert_tensor_parallel", 0, {1, million});
  layout.pipeline = degree_of(json, "pipeline_parallel", facts, whole);
}

void read_options(const JsonReader& json, Layout& layout) {
  read_placement(json, layout);
  ParallelDegrees& degrees = layout.degrees;
  degrees.sequence_parallel = boolean_or(json, "sequence_parallel", degrees.sequence_parallel);
  degrees.keeps_gathered_inputs = boolean_or(json, "keeps_gathered_inputs", degrees.keeps_gathered_inputs);
  degrees.context_kind =
      spelled_or(json, "context_parallel_kind", degrees.context_kind, context_kind_spellings);
  degrees.tensor_overlap =
      spelled_or(json, "tensor_parallel_overlap", degrees.tensor_overlap, tensor_overlap_spellings);
  if (const auto multiple = json.optional("vocabulary_multiple"))
    degrees.vocabulary_multiple = multiple->integer(1, million);
  degrees.expert_imbalance = ratio_or(json, "expert_imbalance", degrees.expert_imbalance, {1, 1000});
  degrees.token_dispatch =
      spelled_or(json, "moe_token_dispatcher", degrees.token_dispatch, token_dispatch_spellings);
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

std::optional<StageBalance> read_layout(const JsonReader& json, const Place& place,
                                        const TrainingFacts& facts, TrainingSpec& training,
                                        const WholeDimension* whole) {
  if (!facts.is_cluster_known) {
    for (const char* key : layout_keys) json.optional(key);
    return std::nullopt;
  }
  Layout& layout = training.layout;
  read_degrees(json, facts, whole, layout);
  for (const auto& [key, note] : apply_layout_preset(training, facts)) (place / key).note(note);
  read_options(json, layout);
  find_data_degree(json, facts, layout);
  check_experts(json, facts, layout);
  check_model(json, facts, layout);
  check_strategy(json, training.strategy, layout);
  const std::optional<StageBalance> balance = read_pipeline(json, facts, layout);
  if (!json.optional("data_parallel"))
    (place / "data_parallel").note("derived: the ranks by the other degrees");
  return balance;
}

namespace {

void check_divides(const JsonReader& global, std::int64_t found, std::int64_t of) {
  if (found % of != 0)
    global.problem(fmt::format("found {}, which is no multiple of {}; nearest that works: {}{}", found, of,
                               found > of ? fmt::format("{} and ", found / of * of) : "",
                               (found / of + 1) * of));
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
  const std::int64_t found = global->integer(1, most_samples_of_all);
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

std::string few_micro_batches(const TrainingSpec& training) {
  const Layout& layout = training.layout;
  const PipelineShape shape{
      .stages = layout.pipeline, .chunks = layout.chunks, .micro_batches = training.gradient_accumulation};
  if (shape.stages == 1 || shape.micro_batches >= shape.stages ||
      !problems_of_shape(layout.schedule, shape).empty())
    return "";
  const IdealBubble bubble = ideal_bubble(layout.schedule, shape);
  return fmt::format(
      "the pipeline has fewer micro-batches ({}) than stages ({}): with {} a stage idles {} % of its time "
      "even if all take equally long; {} or more keep all stages at work at once",
      shape.micro_batches, shape.stages, layout.schedule, (100 * bubble.idle + bubble.span / 2) / bubble.span,
      shape.stages);
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

// Only where the framework is named: else it is the first that has the strategy.
void check_framework(const JsonReader& json, const TrainingSpec& training) {
  const auto framework = json.optional("framework");
  if (!framework)
    return;
  for (const MissingOption& missing : missing_in_framework(training)) {
    const auto stated = json.optional(missing.key);
    (stated ? *stated : *framework).problem(missing.text);
  }
}

}  // namespace

void check_pipeline(const JsonReader& json, const TrainingSpec& training) {
  const Layout& layout = training.layout;
  if (layout.pipeline > 1) {
    check_chunks(json, training);
    check_schedule(
        json,
        {.stages = layout.pipeline, .chunks = layout.chunks, .micro_batches = training.gradient_accumulation},
        layout.schedule);
    check_pairs(json, training);
  }
  check_framework(json, training);
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
