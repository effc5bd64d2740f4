// ZeRO stage 3: weights, gradients and optimizer states are partitioned; a module's weights are gathered just
// before it runs, and some modules' ahead of it.
//
// Which gathers a module asks for follows from element counts (fetch_plan); two modules' requests may be
// under way before the host waits for the older. What arrives of several tensors lies rank by rank: beside the
// kernels each tensor is put together again (DeepSpeed's torch.cat; Gemini's chunks are whole as they come).
// Weights below the persistence threshold stay whole and are gathered once, after the optimizer. Gradients
// fill a bucket as backward completes them and are reduce-scattered when it is full (zero_reduction), beside
// backward unless overlap_comm is off. DeepSpeed before 0.6 lists the ranks' parts one by one (part_lister).
// Gathers and reductions share one communicator, in the order they are issued. Volume: 3 (n-1)/n of the weights;
// less where weights are kept for their reuse.
// Reference: Rajbhandari et al., arXiv 1910.02054; deepspeed/runtime/zero/stage3.py, partition_parameters.py
// (all_gather_coalesced, AllGatherCoalescedHandle).

#include <algorithm>

#include "sim/training/fetch_plan.h"
#include "sim/training/part_lister.h"
#include "sim/training/shared_options.h"
#include "sim/training/synchroniser.h"
#include "sim/training/zero_reduction.h"

namespace lockstep::strategies::zero3 {
namespace {

// DeepSpeed's __max_ongoing_fetch_events.
constexpr std::size_t most_requests_under_way = 2;

constexpr std::uint32_t no_module = 0xffffffff;

// Layers with weights to gather; in Gemini's terms chunks of them.
struct Modules {
  std::vector<std::uint32_t> of_layer;
  std::vector<std::int64_t> elements;  // by module
  std::vector<std::int64_t> tensors;   // by module
  std::int64_t persistent = 0;         // elements that stay whole
};

Modules find_modules(const Job& job) {
  const ZeroOptions& options = job.training.zero;
  Modules modules;
  for (const LayerWork& layer : job.layers) {
    std::int64_t gathered = 0;
    std::int64_t tensors = 0;
    for (const std::uint32_t gradient : layer.gradients) {
      const std::int64_t elements = element_count(job.gradients[gradient]);
      const bool stays = elements <= options.stage3_param_persistence_threshold;
      (stays ? modules.persistent : gathered) += elements;
      tensors += stays ? 0 : 1;
    }
    if (gathered == 0) {
      modules.of_layer.push_back(no_module);
      continue;
    }
    if (modules.elements.empty() || modules.elements.back() >= options.chunk_size) {
      modules.elements.push_back(0);
      modules.tensors.push_back(0);
    }
    modules.elements.back() += gathered;
    modules.tensors.back() += tensors;
    modules.of_layer.push_back(static_cast<std::uint32_t>(modules.elements.size() - 1));
  }
  return modules;
}

class PartitionedParameters : public Synchroniser {
 public:
  explicit PartitionedParameters(const StrategyContext& context)
      : Synchroniser(context),
        options_(job_.training.zero),
        reduction_(context),
        modules_(find_modules(job_)),
        arrived_(modules_.elements.size()),
        is_in_pieces_(modules_.elements.size()) {}

  void begin() override {
    start_ = write_mark(context_);
    plan_uses();
  }

  void pre_forward(const MicroBatch&, std::size_t layer) override {
    if (layer == 0)
      current_ = no_module;
    use(layer);
  }
  void post_forward(const MicroBatch&, std::size_t, const std::vector<OpId>& done) override { used(done); }

  void pre_backward(const MicroBatch&, std::size_t layer) override {
    if (layer + 1 == job_.layers.size())
      current_ = no_module;
    use(layer);
  }
  void post_backward(const MicroBatch&, std::size_t, const std::vector<OpId>& done) override { used(done); }

  void gradient_ready(std::uint32_t gradient, const std::vector<OpId>& done) override {
    reduction_.add(gradient, done);
  }
  void finish() override { reduction_.finish(); }

  void clip() override {
    release_used();
    write_partial_clipping(context_, context_.group);
  }
  void update() override {
    write_partial_optimizer(context_, context_.group.members());
    gather_persistent();
  }

 private:
  void plan_uses() {
    std::vector<std::uint32_t> uses;
    for (std::int64_t micro = 0; micro < job_.training.gradient_accumulation; ++micro) {
      append_uses(uses, modules_.of_layer.begin(), modules_.of_layer.end());
      append_uses(uses, modules_.of_layer.rbegin(), modules_.of_layer.rend());
    }
    fetches_ = plan_fetches(uses, modules_.elements,
                            {.prefetch_bucket = options_.stage3_prefetch_bucket_size,
                             .max_live = options_.stage3_max_live_parameters,
                             .max_reuse_distance = options_.stage3_max_reuse_distance});
  }

  // One pass; layers of one chunk that follow each other are one use of it.
  template <class Iterator>
  static void append_uses(std::vector<std::uint32_t>& uses, Iterator first, Iterator last) {
    std::uint32_t current = no_module;
    for (; first != last; ++first)
      if (*first != no_module && *first != current)
        uses.push_back(current = *first);
  }

  // Before a module's first layer runs: its requests, and the wait for its own weights.
  void use(std::size_t layer) {
    const std::uint32_t module = modules_.of_layer[layer];
    if (module == no_module || module == current_)
      return;
    release_used();
    current_ = module;
    const Fetch& fetch = fetches_[next_use_++];
    if (fetch.own)
      gather({module}, "gather " + job_.layers[layer].name);
    if (!fetch.ahead.empty())
      gather(fetch.ahead, "prefetch at " + job_.layers[layer].name);
    put_together(module);
    write_wait(context_, "wait for " + job_.layers[layer].name, arrived_[module]);
  }

  void used(const std::vector<OpId>& done) {
    if (current_ != no_module)
      last_used_ = {current_, done};
    if (ended_.empty() || ended_.back().first != current_)
      ended_.emplace_back(current_, done);
    ended_.back().second = done;
  }

  // The module of the use that has just ended, unless it is used again soon.
  void release_used() {
    if (next_use_ > 0 && fetches_[next_use_ - 1].is_released_after)
      release_at_end(context_, MemoryCategory::parameters,
                     Bytes{modules_.elements[last_used_.first] * weight_bytes(job_)}, last_used_.second);
  }

  // The host waits for the request before the last one: what it was for has run.
  std::vector<OpId> gate() const {
    return ended_.size() < most_requests_under_way ? start_
                                                   : ended_[ended_.size() - most_requests_under_way].second;
  }

  void gather(const std::vector<std::uint32_t>& modules, const std::string& name) {
    std::int64_t elements = 0;
    std::int64_t tensors = 0;
    for (const std::uint32_t module : modules) {
      elements += modules_.elements[module];
      tensors += modules_.tensors[module];
    }
    list_for_gather(context_, tensors);
    const bool goes_ahead = job_.communication.overlap && !options_.lists_parts;
    const std::vector<OpId> asked = goes_ahead ? gate() : write_mark(context_);
    allocate_at_end(context_, MemoryCategory::parameters, Bytes{elements * weight_bytes(job_)}, asked);
    const std::vector<OpId> arrived = write_collective(context_,
                                                       {.name = name,
                                                        .payload = Payload::parameters,
                                                        .op = CollectiveOp::all_gather,
                                                        .bytes = Bytes{elements * weight_bytes(job_)}},
                                                       asked);
    wait_unless_overlapped(context_, arrived);
    const bool is_in_pieces =
        options_.chunk_size == 0 && (modules.size() > 1 || modules_.tensors[modules.front()] > 1);
    for (const std::uint32_t module : modules) {
      arrived_[module] = arrived;
      is_in_pieces_[module] = is_in_pieces;
    }
  }

  // Once, before the first use of what was gathered.
  void put_together(std::uint32_t module) {
    if (!is_in_pieces_[module])
      return;
    is_in_pieces_[module] = false;
    context_.writer.section("put together at use " + std::to_string(next_use_), Category::gradient_copy);
    const KernelWork work =
        copy_work(modules_.tensors[module], Bytes{modules_.elements[module] * weight_bytes(job_)});
    arrived_[module] = job_.communication.overlap ? write_side_kernels(context_, work, arrived_[module])
                                                  : write_kernels(context_, work, arrived_[module]);
  }

  void gather_persistent() {
    if (modules_.persistent == 0)
      return;
    const std::vector<OpId> arrived =
        write_collective(context_,
                         {.name = "gather small weights",
                          .payload = Payload::parameters,
                          .op = CollectiveOp::all_gather,
                          .bytes = Bytes{modules_.persistent * weight_bytes(job_)}},
                         write_mark(context_));
    write_wait(context_, "wait for small weights", arrived);
  }

  const ZeroOptions& options_;
  ZeroReduction reduction_;
  std::vector<OpId> start_;
  Modules modules_;
  std::vector<Fetch> fetches_;  // by use
  std::size_t next_use_ = 0;
  std::uint32_t current_ = no_module;                               // the module in use
  std::vector<std::vector<OpId>> arrived_;                          // by module, by representative
  std::vector<bool> is_in_pieces_;                                  // by module
  std::vector<std::pair<std::uint32_t, std::vector<OpId>>> ended_;  // modules in the order of their uses
  std::pair<std::uint32_t, std::vector<OpId>> last_used_{no_module, {}};  // where its last layer ended
};

// What is below the persistence threshold stays whole.
MemoryShares memory(const Job& job, std::int64_t ranks) {
  std::int64_t persistent = 0;
  for (const Gradient& gradient : job.gradients) {
    const std::int64_t elements = element_count(gradient);
    persistent += elements <= job.training.zero.stage3_param_persistence_threshold ? elements : 0;
  }
  return {.weights = ranks,
          .gradients = ranks,
          .states = ranks,
          .buffers = zero_buffers(job),
          .gathered = Bytes{persistent * weight_bytes(job)}};
}

// A module is gathered for forward and again for backward; small weights once more.
Coupling coupling(const Job& job, std::int64_t ranks) {
  const auto modules = static_cast<std::int64_t>(find_modules(job).elements.size());
  return {.ranks = ranks, .times = 2 * modules * job.training.gradient_accumulation + 1};
}

OptionList options(TrainingSpec& training) {
  ZeroOptions& zero = training.zero;
  OptionList list = zero_options(training);
  const auto add = [&](std::string_view key, std::int64_t& value) {
    list.push_back({key, CountOption{value, 0, most_elements}});
  };
  add("stage3_prefetch_bucket_size", zero.stage3_prefetch_bucket_size);
  add("stage3_param_persistence_threshold", zero.stage3_param_persistence_threshold);
  add("stage3_max_live_parameters", zero.stage3_max_live_parameters);
  add("stage3_max_reuse_distance", zero.stage3_max_reuse_distance);
  add("chunk_size", zero.chunk_size);
  return list;
}

// Modules gathered for forward and for backward, gradients reduced in every micro-batch; the weights that stay
// whole, and the norm, once.
TrafficBound traffic(const TrafficInput& input) {
  const double reduced = most_groups(input, static_cast<double>(input.training.zero.reduce_bucket_size));
  constexpr double persistent_and_clipping = 2;
  return {.collectives = input.micro_batches() * (2 * most_units(input) + reduced) + persistent_and_clipping,
          .volume = 3 * input.micro_batches()};
}

const Registration<Strategy> zero3_registration{
    "zero3",
    {.synchroniser = make_synchroniser<PartitionedParameters>,
     .description = "ZeRO stage 3: weights, gradients and optimizer states partitioned",
     .accepts = {.options = options,
                 .instead_of_compression = "communication_data_type",
                 .gradient_clipping = true},
     .sends = {.at_most = traffic, .every_micro_batch = [](const TrainingSpec&) { return true; }},
     .memory = memory,
     .partition = Partition::weights,
     .updated_tensors = partitioned_tensors,
     .coupling = coupling}};

}  // namespace
}  // namespace lockstep::strategies::zero3
