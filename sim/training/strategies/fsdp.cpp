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

#include "sim/training/option_spelling.h"
#include "sim/training/shared_options.h"
#include "sim/training/step_writer.h"
#include "sim/training/synchroniser.h"
#include "sim/training/unit_gathers.h"
#include "sim/training/unit_reduction.h"
#include "sim/training/unit_shards.h"
#include "sim/training/units.h"

namespace lockstep::strategies::fsdp {
namespace {

// When units are gathered, left and reduced.
class ShardedUnits : public Synchroniser {
 public:
  explicit ShardedUnits(const StrategyContext& context)
      : Synchroniser(context),
        options_(job_.training.sharded),
        units_(find_units(job_, options_.auto_wrap)),
        shards_(context),
        gathers_(context, shards_, units_.units),
        reduction_(context, shards_, units_.units),
        last_backward_(units_.units.size()) {}

  void begin() override { gathers_.begin(); }

  void pre_forward(const MicroBatch&, std::size_t layer) override {
    if (layer == 0)
      begin_forward();
    if (is_first_of_unit(layer))
      enter_forward(unit_of(layer));
    gathers_.wait_for(unit_of(layer));
  }

  void post_forward(const MicroBatch&, std::size_t layer, const std::vector<OpId>& done) override {
    if (is_last_of_unit(layer))
      gathers_.leave_forward(unit_of(layer), done);
  }

  void pre_backward(const MicroBatch&, std::size_t layer) override {
    if (layer + 1 == job_.layers.size())
      begin_backward();
    if (is_last_of_unit(layer))
      enter_backward(unit_of(layer));
    gathers_.wait_for(unit_of(layer));
  }

  void post_backward(const MicroBatch& micro, std::size_t layer, const std::vector<OpId>& done) override {
    last_backward_[unit_of(layer)] = done;
    if (!job_.layers[layer].gradients.empty())
      reduction_.hold_gradients(unit_of(layer), done);
    if (is_first_of_unit(layer))
      leave_backward(unit_of(layer), micro.is_reduced);
    if (layer == 0)
      leave_backward(root_unit, micro.is_reduced);
  }

  void clip() override {
    reduction_.wait_for_all();
    write_partial_clipping(context_, shards_.holders());
  }
  void update() override { write_partial_optimizer(context_, shards_.holders().members()); }

 private:
  std::uint32_t unit_of(std::size_t layer) const { return units_.unit_of_layer[layer]; }
  std::uint32_t last_unit() const { return static_cast<std::uint32_t>(units_.units.size() - 1); }

  // In the order of forward; the root is entered before all others and left after them.
  bool is_first_of_unit(std::size_t layer) const {
    return unit_of(layer) != root_unit && (layer == 0 || unit_of(layer - 1) != unit_of(layer));
  }
  bool is_last_of_unit(std::size_t layer) const {
    const bool ends = layer + 1 == job_.layers.size() || unit_of(layer + 1) != unit_of(layer);
    return unit_of(layer) != root_unit && ends;
  }

  void begin_forward() {
    gathers_.begin_forward();
    gathers_.gather(root_unit);
  }

  void enter_forward(std::uint32_t unit) {
    gathers_.gather(unit);
    if (options_.forward_prefetch && unit < last_unit())
      gathers_.gather(unit + 1);
  }

  void begin_backward() {
    gathers_.begin_backward();
    if (options_.backward_prefetch != BackwardPrefetch::none)
      gathers_.gather(last_unit());
  }

  void enter_backward(std::uint32_t unit) {
    gathers_.gather(unit);
    if (options_.backward_prefetch == BackwardPrefetch::pre && unit > 1)
      gathers_.gather(unit - 1);
  }

  void leave_backward(std::uint32_t unit, bool reduces) {
    const std::vector<OpId> done = reduction_.concatenate(unit, last_backward_[unit]);
    gathers_.leave_backward(unit, done);
    if (options_.backward_prefetch == BackwardPrefetch::post && unit > 1)
      gathers_.gather(unit - 1);
    if (reduces)
      reduction_.reduce(unit, done);
  }

  const ShardedOptions& options_;
  Units units_;
  UnitShards shards_;
  UnitGathers gathers_;
  UnitReduction reduction_;
  std::vector<std::vector<OpId>> last_backward_;  // by unit, by representative
};

// Experts have fewer ranks to be divided among than a group that shards has.
MemoryShares memory(const Job& job, std::int64_t ranks) {
  const ShardedOptions& options = job.training.sharded;
  const std::int64_t holders = std::min(options.shard_group, ranks);
  return {.weights = holders, .gradients = options.no_sync ? 1 : holders, .states = holders};
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
     .groups = sharding_groups,
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
     .groups = sharding_groups,
     .coupling = coupling}};

}  // namespace
}  // namespace lockstep::strategies::fsdp
