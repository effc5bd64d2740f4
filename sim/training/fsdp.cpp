// Fully sharded data parallelism: each rank keeps a shard of every unit's parameters, gradients and optimizer
// states, and gathers a unit only while it computes with it.
//
// Forward gathers unit after unit, as far ahead of the kernels as the limiter lets it; a unit is freed after
// its forward and gathered again for its backward, the root excepted, which stays. In backward the next unit
// is gathered before the gradients of this one are reduce-scattered (backward_prefetch pre), after that
// (post), or only when it is needed (none). Gathers and reductions go to one communicator, in the order they
// are issued. The first version's parameters are views of one flat tensor: autograd concatenates their
// gradients, and beside backward the sum is divided before it is reduced and after it. The second version
// (fully_shard) copies a gathered unit into its parameters before it computes, copies its gradients together,
// and gathers one unit ahead. Volume: 3 (n-1)/n of the parameters, 2 (n-1)/n with reshard_after_forward off.
//
// Hybrid sharding (hsdp) keeps a whole copy in each of r groups of s ranks: gathers and reductions stay in the
// shard group, and each reduced shard is summed over the ranks that hold the same one, on a communicator and a
// stream of their own. Volume: 3 (s-1)/s of the parameters and 2 (r-1)/r of an s-th of them. A number for
// reshard_after_forward spreads units over so many ranks from forward to backward, where they are gathered
// again.
// Reference: Zhao et al., "PyTorch FSDP", arXiv 2304.11277; torch/distributed/fsdp/_runtime_utils.py
// (_reduce_grad, _div_if_needed), _flat_param.py (_get_unflat_views),
// torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, _fsdp_collectives.py (foreach_reduce).

#include <fmt/format.h>

#include <algorithm>

#include "sim/training/gather_limit.h"
#include "sim/training/option_spelling.h"
#include "sim/training/shared_options.h"
#include "sim/training/side_stream.h"
#include "sim/training/step_writer.h"
#include "sim/training/synchroniser.h"
#include "sim/training/units.h"

namespace lockstep {
namespace {

// torch's _FreeEventQueue: so many units may be gathered and not yet freed.
constexpr std::size_t most_gathers_in_flight = 2;
constexpr std::uint32_t root = 0;

// torch's _get_gradient_predivide_factor: a power of two near the root of the ranks, so that halves neither
// overflow before the sum nor vanish after it.
std::int64_t division_before_sum(std::int64_t ranks) {
  std::int64_t factor = 1;
  while (ranks % factor == 0 && ranks / factor > factor) factor *= 2;
  return factor;
}

bool reshards_in_groups(const ShardedOptions& options) {
  return options.reshard_group != 1 && options.reshard_group != options.shard_group;
}

// A copy of the model is spread over consecutive ranks, and so is a unit within them.
MeshGroups groups(const TrainingSpec& training, std::uint32_t ranks) {
  const auto shard = static_cast<std::uint32_t>(training.sharded.shard_group);
  const bool reshards = reshards_in_groups(training.sharded);
  if (shard == ranks && !reshards)
    return {};
  const std::uint32_t reshard = reshards ? static_cast<std::uint32_t>(training.sharded.reshard_group) : shard;
  MeshGroups wanted{
      .mesh = Mesh({{"reshard", reshard}, {"shard", shard / reshard}, {"replica", ranks / shard}}),
      .sets = {{.name = "shard", .along = {"reshard", "shard"}}}};
  if (shard < ranks)
    wanted.sets.push_back({.name = "replica", .along = {"replica"}});
  if (reshards)
    wanted.sets.push_back({.name = "reshard", .along = {"reshard"}});
  return wanted;
}

// A unit's gradients are one tensor, which is reduced as the unit is left.
class ShardedUnits : public Synchroniser {
 public:
  explicit ShardedUnits(const StrategyContext& context)
      : Synchroniser(context),
        options_(job_.training.sharded),
        units_(find_units(job_, options_.auto_wrap)),
        shards_(context.subgroup("shard") != nullptr ? *context.subgroup("shard") : context.group),
        replicas_(context.subgroup("replica")),
        reshards_(context.subgroup("reshard")),
        stream_(context),
        limit_(options_.limit_all_gathers && options_.version == 1 ? most_gathers_in_flight : 0),
        gathered_(units_.units.size()),
        holds_gradients_(units_.units.size()),
        last_backward_(units_.units.size()) {}

  void begin() override { start_ = write_mark(context_); }

  void pre_forward(const MicroBatch&, std::size_t layer) override {
    if (layer == 0)
      begin_forward();
    if (is_first_of_unit(layer))
      enter_forward(unit_of(layer));
    wait_for(unit_of(layer));
  }

  void post_forward(const MicroBatch&, std::size_t layer, const std::vector<OpId>& done) override {
    if (is_last_of_unit(layer))
      leave_forward(unit_of(layer), done);
  }

  void pre_backward(const MicroBatch&, std::size_t layer) override {
    if (layer + 1 == job_.layers.size())
      begin_backward();
    if (is_last_of_unit(layer))
      enter_backward(unit_of(layer));
    wait_for(unit_of(layer));
  }

  void post_backward(const MicroBatch& micro, std::size_t layer, const std::vector<OpId>& done) override {
    last_backward_[unit_of(layer)] = done;
    if (!job_.layers[layer].gradients.empty())
      hold_gradients(unit_of(layer));
    if (is_first_of_unit(layer))
      leave_backward(unit_of(layer), micro.is_reduced);
    if (layer == 0)
      leave_backward(root, micro.is_reduced);
  }

  void update() override {
    for (const std::vector<OpId>& unit : reduced_) write_wait(context_, "wait for gradients", unit);
    write_partial_update(context_, shards_);
  }

 private:
  std::uint32_t unit_of(std::size_t layer) const { return units_.unit_of_layer[layer]; }
  std::uint32_t last_unit() const { return static_cast<std::uint32_t>(units_.units.size() - 1); }
  std::int64_t shard_of(std::int64_t whole) const { return divided_up(whole, options_.shard_group); }
  // With the padding that makes the shards equal.
  Bytes padded(const Unit& unit, Precision precision) const {
    return Bytes{shard_of(unit.elements) * options_.shard_group * parameter_bytes(precision)};
  }

  // What a rank keeps of a unit from its forward to its backward.
  Bytes spread_part(std::uint32_t unit) const {
    return Bytes{padded(units_.units[unit], options_.param_dtype).count() / options_.reshard_group};
  }

  // In the order of forward; the root is entered before all others and left after them.
  bool is_first_of_unit(std::size_t layer) const {
    return unit_of(layer) != root && (layer == 0 || unit_of(layer - 1) != unit_of(layer));
  }
  bool is_last_of_unit(std::size_t layer) const {
    const bool ends = layer + 1 == job_.layers.size() || unit_of(layer + 1) != unit_of(layer);
    return unit_of(layer) != root && ends;
  }

  void begin_forward() {
    is_backward_ = false;
    gather(root);
  }

  void enter_forward(std::uint32_t unit) {
    gather(unit);
    if (options_.forward_prefetch && unit < last_unit())
      gather(unit + 1);
  }

  void leave_forward(std::uint32_t unit, const std::vector<OpId>& done) {
    if (options_.reshard_group == 1)
      return;
    if (reshards_ != nullptr)
      allocate_at_end(context_, MemoryCategory::parameters, spread_part(unit), done);
    free(unit, done);
    limit_.freed(done);
  }

  void begin_backward() {
    is_backward_ = true;
    limit_.gate();  // the root asks the limiter too, although it is there
    if (options_.backward_prefetch != BackwardPrefetch::none)
      gather(last_unit());
  }

  void enter_backward(std::uint32_t unit) {
    gather(unit);
    if (options_.backward_prefetch == BackwardPrefetch::pre && unit > 1)
      gather(unit - 1);
  }

  void leave_backward(std::uint32_t unit, bool reduces) {
    concatenate(unit);
    free(unit, last_backward_[unit]);
    if (unit != root && reshards_ != nullptr)
      release_at_end(context_, MemoryCategory::parameters, spread_part(unit), last_backward_[unit]);
    if (unit != root)
      limit_.freed(last_backward_[unit]);
    if (options_.backward_prefetch == BackwardPrefetch::post && unit > 1)
      gather(unit - 1);
    if (reduces)
      reduce(unit);
  }

  // The backward of splitting a flat tensor into parameters.
  void concatenate(std::uint32_t index) {
    const Unit& unit = units_.units[index];
    if (options_.version == 2 || unit.elements == 0)
      return;
    context_.writer.section("concatenate " + unit.name, Category::gradient_copy);
    last_backward_[index] = write_kernels(context_, copy_work(1, padded(unit, options_.param_dtype)));
  }

  // Does nothing for a unit that is there already.
  void gather(std::uint32_t index) {
    const Unit& unit = units_.units[index];
    if (is_gathered(index) || unit.elements == 0)
      return;
    std::vector<OpId> ready = options_.version == 1 ? limit_.gate() : copied_out_;
    if (ready.empty())
      ready = start_;
    if (!job_.communication.overlap)
      ready = write_mark(context_);
    // What is spread after forward has been cast already.
    const bool is_spread = is_backward_ && reshards_ != nullptr;
    if (!is_spread)
      ready = cast(ready, unit, shard_bytes(unit) + shard_of(unit.elements) * weight_bytes(job_),
                   options_.param_dtype);
    allocate_at_end(context_, MemoryCategory::parameters, padded(unit, options_.param_dtype), ready);
    gathered_[index].arrived = write_collective(context_,
                                                {.name = "gather " + unit.name,
                                                 .payload = Payload::parameters,
                                                 .op = CollectiveOp::all_gather,
                                                 .bytes = padded(unit, options_.param_dtype),
                                                 .tensors = unit.tensors,
                                                 .group = is_spread ? reshards_ : &shards_},
                                                std::move(ready));
    wait_unless_overlapped(context_, gathered_[index].arrived);
  }

  void free(std::uint32_t unit, const std::vector<OpId>& done) {
    if (is_gathered(unit))
      release_at_end(context_, MemoryCategory::parameters, padded(units_.units[unit], options_.param_dtype),
                     done);
    gathered_[unit] = {};
  }

  // All gradients of a unit are one tensor, there from its first backward until it has been reduced.
  void hold_gradients(std::uint32_t unit) {
    if (holds_gradients_[unit] || options_.no_sync)
      return;
    holds_gradients_[unit] = true;
    allocate_at_start(context_, MemoryCategory::communication_buffers,
                      padded(units_.units[unit], options_.reduce_dtype), last_backward_[unit]);
  }

  bool is_gathered(std::uint32_t unit) const { return !gathered_[unit].arrived.empty(); }

  std::int64_t shard_bytes(const Unit& unit) const {
    return shard_of(unit.elements) * parameter_bytes(options_.param_dtype);
  }

  // The first kernel of a unit waits until it is there; later ones find it there.
  void wait_for(std::uint32_t index) {
    Gathered& unit = gathered_[index];
    if (unit.is_waited_for || unit.arrived.empty())
      return;
    unit.is_waited_for = true;
    write_wait(context_, "wait for " + units_.units[index].name, unit.arrived);
    if (options_.version == 2) {
      context_.writer.section("copy out " + units_.units[index].name, Category::gradient_copy);
      copied_out_ = write_kernels(context_, copy_work(1, padded(units_.units[index], options_.param_dtype)));
    }
  }

  void reduce(std::uint32_t index) {
    const Unit& unit = units_.units[index];
    if (unit.elements == 0)
      return;
    std::vector<OpId> ready = last_backward_[index];
    if (options_.version == 2) {
      context_.writer.section("copy in " + unit.name, Category::gradient_copy);
      ready = write_kernels(context_, copy_work(1, padded(unit, options_.reduce_dtype)));
    }
    const std::int64_t before_sum = divides() ? division_before_sum(options_.shard_group) : 1;
    ready = convert(std::move(ready), unit);
    if (before_sum > 1)
      ready = divide(ready, unit, padded(unit, options_.reduce_dtype));
    std::vector<OpId> reduced = write_collective(context_,
                                                 {.name = "reduce " + unit.name,
                                                  .op = CollectiveOp::reduce_scatter,
                                                  .bytes = padded(unit, options_.reduce_dtype),
                                                  .tensors = unit.tensors,
                                                  .group = &shards_},
                                                 std::move(ready));
    if (holds_gradients_[index])
      release_at_end(context_, MemoryCategory::communication_buffers, padded(unit, options_.reduce_dtype),
                     reduced);
    holds_gradients_[index] = false;
    if (before_sum > 1)
      stream_.follow(reduced);
    if (before_sum > 1 && before_sum < options_.shard_group)
      reduced = divide(reduced, unit, reduced_shard(unit));
    if (replicas_ != nullptr)
      reduced = sum_over_replicas(unit, std::move(reduced));
    reduced_.push_back(
        cast(std::move(reduced), unit,
             shard_of(unit.elements) * (parameter_bytes(options_.reduce_dtype) + weight_bytes(job_)),
             options_.reduce_dtype));
    wait_unless_overlapped(context_, reduced_.back());
  }

  Bytes reduced_shard(const Unit& unit) const {
    return Bytes{shard_of(unit.elements) * parameter_bytes(options_.reduce_dtype)};
  }

  // fully_shard lets the library divide, but for fp16.
  bool divides() const { return options_.version == 1 || options_.reduce_dtype == Precision::fp16; }

  // In place.
  std::vector<OpId> divide(std::span<const OpId> ready, const Unit& unit, Bytes bytes) {
    context_.writer.section("divide " + unit.name, Category::gradient_copy);
    return stream_.write(copy_work(1, bytes), ready);
  }

  // The first version casts whole gradients to the type they are reduced in; the second does as it copies.
  std::vector<OpId> convert(std::vector<OpId> ready, const Unit& unit) {
    if (options_.version == 2 ||
        parameter_bytes(options_.param_dtype) == parameter_bytes(options_.reduce_dtype))
      return ready;
    const Bytes both = padded(unit, options_.param_dtype) + padded(unit, options_.reduce_dtype);
    context_.writer.section("convert " + unit.name, Category::gradient_copy);
    return stream_.write(copy_work(1, Bytes{both.count() / 2}), ready);
  }

  std::vector<OpId> sum_over_replicas(const Unit& unit, std::vector<OpId> ready) {
    return write_collective(context_,
                            {.name = "sum " + unit.name + " over replicas",
                             .op = CollectiveOp::all_reduce,
                             .bytes = reduced_shard(unit),
                             .tensors = unit.tensors,
                             .group = replicas_},
                            std::move(ready));
  }

  // A shard kept in another type is cast on a stream of its own.
  std::vector<OpId> cast(std::vector<OpId> ready, const Unit& unit, std::int64_t both_ways,
                         Precision precision) {
    if (parameter_bytes(precision) == weight_bytes(job_))
      return ready;
    context_.writer.section("cast " + unit.name, Category::gradient_copy);
    return write_side_kernels(context_, copy_work(1, Bytes{both_ways / 2}), ready);
  }

  struct Gathered {
    std::vector<OpId> arrived = {};  // by representative; empty: not asked for
    bool is_waited_for = false;
  };

  const ShardedOptions& options_;
  Units units_;
  const ProcessGroup& shards_;
  const ProcessGroup* replicas_;  // null: nobody holds the same shard
  const ProcessGroup* reshards_;  // null: gathered for backward as for forward
  SideStream stream_;             // of reductions
  bool is_backward_ = false;
  GatherLimit limit_;
  std::vector<OpId> start_;
  std::vector<OpId> copied_out_;                  // of the unit before, version 2
  std::vector<Gathered> gathered_;                // by unit
  std::vector<bool> holds_gradients_;             // by unit
  std::vector<std::vector<OpId>> last_backward_;  // by unit, by representative
  std::vector<std::vector<OpId>> reduced_;
};

MemoryShares memory(const Job& job, std::int64_t) {
  const ShardedOptions& options = job.training.sharded;
  return {.weights = options.shard_group,
          .gradients = options.no_sync ? 1 : options.shard_group,
          .states = options.shard_group};
}

// Nobody has a unit before all of its group have asked for it: for forward, and for backward where it was let go.
Coupling coupling(const Job& job, std::int64_t) {
  const ShardedOptions& options = job.training.sharded;
  const auto units = static_cast<std::int64_t>(find_units(job, options.auto_wrap).units.size());
  const std::int64_t again = options.reshard_group == 1 ? 0 : units - 1;
  return {.ranks = options.shard_group, .times = job.training.gradient_accumulation * (units + again)};
}

// A unit is one flat parameter in version 1 (FlatParamHandle); version 2 leaves parameters as they are.
std::int64_t updated_tensors(const Job& job) {
  const ShardedOptions& options = job.training.sharded;
  return options.version == 1 ? std::ssize(find_units(job, options.auto_wrap).units)
                              : std::ssize(job.gradients);
}

OptionList list_options(ShardedOptions& sharded, bool has_groups) {
  const OptionCondition first_version{"fsdp_version 1; fully_shard always gathers one unit ahead",
                                      [&] { return sharded.version == 1; }};
  OptionList list{{"fsdp_version", CountOption{sharded.version, 1, 2}}};
  if (has_groups)
    list.push_back({"shard_group", CountOption{sharded.shard_group, 1, most_things}});
  for (const Option& option :
       {Option{"reshard_after_forward", SpreadOption{sharded.reshard_group, sharded.shard_group}},
        Option{"backward_prefetch", choice(sharded.backward_prefetch, backward_prefetch_spellings),
               first_version},
        Option{"forward_prefetch", FlagOption{sharded.forward_prefetch}, first_version},
        Option{"limit_all_gathers", FlagOption{sharded.limit_all_gathers}, first_version},
        Option{"auto_wrap", WrapOption{sharded.auto_wrap}},
        Option{"param_dtype", choice(sharded.param_dtype, element_type_spellings)},
        Option{"reduce_dtype", choice(sharded.reduce_dtype, element_type_spellings)},
        Option{"no_sync", FlagOption{sharded.no_sync}}})
    list.push_back(option);
  return list;
}

OptionList fsdp_options(TrainingSpec& training) {
  return list_options(training.sharded, false);
}

OptionList hsdp_options(TrainingSpec& training) {
  return list_options(training.sharded, true);
}

// Into alike groups: parts of a node, or whole nodes.
bool cuts(const ClusterShape& shape, std::int64_t size) {
  return size > 0 && shape.ranks() % size == 0 &&
         (shape.gpus_per_node % size == 0 || size % shape.gpus_per_node == 0);
}

// Those of them that cut a group of `whole` ranks as well.
std::vector<std::int64_t> valid_sizes(const ClusterShape& shape, std::int64_t least, std::int64_t whole) {
  std::vector<std::int64_t> valid;
  for (std::int64_t size = least; size <= whole; ++size)
    if (cuts(shape, size) && whole % size == 0)
      valid.push_back(size);
  return valid;
}

std::string shard_group_problem(const ShardedOptions& sharded, const ClusterShape& shape) {
  if (cuts(shape, sharded.shard_group))
    return "";
  return fmt::format("found {}, which does not cut {} nodes of {} GPUs into alike groups; valid: {}",
                     sharded.shard_group, shape.nodes, shape.gpus_per_node,
                     fmt::join(valid_sizes(shape, 1, shape.ranks()), ", "));
}

std::string reshard_problem(const ShardedOptions& sharded, const ClusterShape& shape) {
  if (!reshards_in_groups(sharded))
    return "";
  if (sharded.version == 1)
    return fmt::format(
        "found {}, but FullyShardedDataParallel spreads units over all {} ranks that share the weights, or "
        "not "
        "at all; valid: true, false, or fsdp_version 2",
        sharded.reshard_group, sharded.shard_group);
  if (cuts(shape, sharded.reshard_group) && sharded.shard_group % sharded.reshard_group == 0)
    return "";
  return fmt::format(
      "found {}, which does not cut the {} ranks that share the weights into alike groups; valid: true, "
      "false, {}",
      sharded.reshard_group, sharded.shard_group,
      fmt::join(valid_sizes(shape, 2, sharded.shard_group), ", "));
}

std::vector<OptionProblem> problems(const TrainingSpec& training, const ClusterShape& shape) {
  std::vector<OptionProblem> found{{"shard_group", shard_group_problem(training.sharded, shape)},
                                   {"reshard_after_forward", reshard_problem(training.sharded, shape)}};
  std::erase_if(found, [](const OptionProblem& problem) { return problem.text.empty(); });
  return found;
}

// A unit is gathered twice, reduced within its group and between the groups.
TrafficBound traffic(const TrafficInput& input) {
  constexpr double clipping = 2;  // the norm of all gradients, in a group and between groups
  return {.collectives = 4 * input.micro_batches() * most_units(input) + clipping,
          .volume = 5 * input.micro_batches()};
}

bool reduces_each(const TrainingSpec& training) {
  return !training.sharded.no_sync;
}

constexpr Sending sends{.at_most = traffic, .every_micro_batch = reduces_each, .once_by = "no_sync"};

Accepted accepted(OptionList (*options)(TrainingSpec&)) {
  return {.options = options,
          .instead_of_compression = "reduce_dtype",
          .gradient_clipping = true,
          .problems = problems};
}

const Registration<Strategy> fsdp{
    "fsdp",
    {.synchroniser = make_synchroniser<ShardedUnits>,
     .description = "PyTorch FSDP: parameters, gradients and optimizer states sharded",
     .accepts = accepted(fsdp_options),
     .sends = sends,
     .memory = memory,
     .partition = Partition::every_weight,
     .updated_tensors = updated_tensors,
     .groups = groups,
     .coupling = coupling}};
const Registration<Strategy> hsdp{
    "hsdp",
    {.synchroniser = make_synchroniser<ShardedUnits>,
     .description = "PyTorch FSDP, hybrid: sharded within groups of ranks, replicated between them",
     .accepts = accepted(hsdp_options),
     .sends = sends,
     .memory = memory,
     .partition = Partition::every_weight_in_groups,
     .updated_tensors = updated_tensors,
     .groups = groups,
     .coupling = coupling}};

}  // namespace
}  // namespace lockstep
