// ZeRO stages 1 and 2: every rank holds all weights, the optimizer's states (1) and the gradients (2) are
// partitioned.
//
// Gradients are reduced bucket by bucket (zero_reduction), by DeepSpeed in all-reduces of which each rank keeps
// its part. Stage 1 keeps them whole over the
// micro-batches and reduces in the last; stage 2 has nowhere to keep them and reduces in every one. The
// optimizer then updates a rank's own part, and the updated weights are all-gathered piece by piece: before
// the next forward begins, or, with overlap_param_gather, while it runs. Volume: an all-reduce (DeepSpeed) or a
// reduce-scatter of the gradients, for each micro-batch in stage 2, and an all-gather of the weights.
// Reference: Rajbhandari et al., "ZeRO", arXiv 1910.02054; deepspeed/runtime/zero/stage_1_and_2.py.

#include <algorithm>

#include "sim/training/shared_options.h"
#include "sim/training/synchroniser.h"
#include "sim/training/zero_reduction.h"

namespace lockstep::strategies::zero_stages_1_2 {
namespace {

enum class Stage : std::uint8_t { states = 1, gradients = 2 };

template <Stage stage>
class PartitionedOptimizer : public Synchroniser {
 public:
  explicit PartitionedOptimizer(const StrategyContext& context)
      : Synchroniser(context), options_(job_.training.zero), reduction_(context) {}

  void begin() override { pieces_ = gather_weights(); }

  // A layer waits for the piece that ends with its last weight.
  void pre_forward(const MicroBatch&, std::size_t layer) override {
    if (waited_ == pieces_.size())
      return;
    for (const std::uint32_t gradient : job_.layers[layer].gradients)
      needed_ += element_count(job_.gradients[gradient]);
    for (; waited_ < pieces_.size() &&
           options_.allgather_bucket_size * static_cast<std::int64_t>(waited_) < needed_;
         ++waited_)
      write_wait(context_, "wait for weights", pieces_[waited_]);
  }

  void gradient_ready(std::uint32_t gradient, const std::vector<OpId>& done) override {
    reduction_.add(gradient, done);
  }
  void finish() override { reduction_.finish(); }
  void clip() override { write_partial_clipping(context_, context_.group); }
  void update() override { write_partial_optimizer(context_, context_.group.members()); }

 private:
  // The pieces of the weights that the step before has updated; empty where nobody is to wait for them alone.
  std::vector<std::vector<OpId>> gather_weights() {
    std::vector<std::vector<OpId>> pieces;
    const std::int64_t elements = element_count(job_.gradients);
    for (std::int64_t done = 0; done < elements; done += options_.allgather_bucket_size) {
      const std::int64_t piece = std::min(options_.allgather_bucket_size, elements - done);
      pieces.push_back(write_collective(context_,
                                        {.name = "gather weights " + std::to_string(pieces.size()),
                                         .payload = Payload::parameters,
                                         .op = CollectiveOp::all_gather,
                                         .bytes = Bytes{piece * weight_bytes(job_)}},
                                        write_mark(context_)));
    }
    if (options_.overlap_param_gather && job_.communication.overlap)
      return pieces;
    for (const std::vector<OpId>& piece : pieces) write_wait(context_, "wait for weights", piece);
    return {};
  }

  const ZeroOptions& options_;
  ZeroReduction reduction_;
  std::vector<std::vector<OpId>> pieces_;  // of the weights, on their way
  std::size_t waited_ = 0;                 // for so many of them, once
  std::int64_t needed_ = 0;                // elements, by the layers so far
};

// Where no buffer holds them and they are not added up wider themselves.
Bytes copies_in_wider_type(const Job& job) {
  const ZeroOptions& options = job.training.zero;
  if (options.contiguous_gradients || job.wider_gradients.count() > 0)
    return Bytes{0};
  const std::int64_t reduced = parameter_bytes(options.communication_data_type);
  Bytes more;
  for (const Gradient& gradient : job.gradients)
    more += Bytes{std::max<std::int64_t>(reduced - gradient.element_bytes, 0) * element_count(gradient)};
  return more;
}

template <Stage stage>
MemoryShares memory(const Job& job, std::int64_t ranks) {
  return {.gradients = stage == Stage::gradients ? ranks : 1,
          .states = ranks,
          .buffers = zero_buffers(job) + copies_in_wider_type(job)};
}

OptionList options(TrainingSpec& training) {
  OptionList list = zero_options(training);
  list.push_back(
      {"allgather_bucket_size", CountOption{training.zero.allgather_bucket_size, 1, most_elements}});
  list.push_back(
      {"use_multi_rank_bucket_allreduce", FlagOption{training.zero.use_multi_rank_bucket_allreduce}});
  list.push_back({"overlap_param_gather", FlagOption{training.zero.overlap_param_gather}});
  return list;
}

template <Stage stage>
TrafficBound traffic(const TrafficInput& input) {
  const double reduced = most_groups(input, static_cast<double>(input.training.zero.reduce_bucket_size));
  const double gathered = input.elements / static_cast<double>(input.training.zero.allgather_bucket_size) + 1;
  const double reductions = stage == Stage::gradients ? input.micro_batches() : 1;
  constexpr double clipping = 1;
  constexpr double all_reduce = 2;
  return {.collectives = reductions * reduced + gathered + clipping, .volume = 1 + all_reduce * reductions};
}

std::vector<UnusedKey> unused(const TrainingSpec& training) {
  if (training.zero.overlap_comm || training.zero.overlap_param_gather || training.layout.is_cut())
    return {};
  return unused_in_turn("without training.overlap_comm nothing is computed beside a collective");
}

const Accepted accepted{
    .options = options, .instead_of_compression = "communication_data_type", .gradient_clipping = true};

const Registration<Strategy> zero1{"zero1",
                                   {.synchroniser = make_synchroniser<PartitionedOptimizer<Stage::states>>,
                                    .description = "ZeRO stage 1: optimizer states partitioned",
                                    .accepts = accepted,
                                    .sends = {.at_most = traffic<Stage::states>},
                                    .unused = unused,
                                    .memory = memory<Stage::states>,
                                    .partition = Partition::states,
                                    .updated_tensors = partitioned_tensors}};
const Registration<Strategy> zero2{"zero2",
                                   {.synchroniser = make_synchroniser<PartitionedOptimizer<Stage::gradients>>,
                                    .description = "ZeRO stage 2: gradients and optimizer states partitioned",
                                    .accepts = accepted,
                                    .sends = {.at_most = traffic<Stage::gradients>,
                                              .every_micro_batch = [](const TrainingSpec&) { return true; }},
                                    .unused = unused,
                                    .memory = memory<Stage::gradients>,
                                    .partition = Partition::gradients,
                                    .updated_tensors = partitioned_tensors}};

}  // namespace
}  // namespace lockstep::strategies::zero_stages_1_2
