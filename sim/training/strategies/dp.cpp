// PyTorch nn.DataParallel: one process and one Python thread a GPU; GPU 0 keeps the model and hands out copies.
//
// Every step GPU 0 scatters its mini-batch, and broadcasts parameters and buffers, flattened into pieces of
// 10 MiB; each GPU runs forward on its part; GPU 0 gathers the outputs, takes the loss of all of them and
// scatters the gradients of the outputs. Backward runs on each GPU; only when it is over are the gradients
// flattened again and reduced to GPU 0, piece by piece, and only GPU 0 steps its optimizer. All of it runs on
// the streams that compute, so nothing overlaps.
//
// Python's interpreter lock lets one of the n threads launch at a time: forward's operators pass through one
// lane of the host, taking turns layer by layer. Backward is launched by autograd's own threads, one a GPU,
// which hold no lock. The training loop reads its loss every step, so no launch runs ahead into the next.
//
// Its order is no schedule's: between the others' passes GPU 0 takes the loss of all of them and launches for
// all of them.
//
// Volume: weights once round the ring from GPU 0, gradients once back, 2 S whatever n. Reference:
// torch/nn/parallel/data_parallel.py, replicate.py; torch/nn/parallel/_functions.py (Broadcast,
// ReduceAddCoalesced); torch/csrc/cuda/comm.cpp.

#include <fmt/format.h>

#include <numeric>

#include "sim/training/memory.h"
#include "sim/training/shared_options.h"
#include "sim/training/step_writer.h"
#include "sim/training/synchroniser.h"

namespace lockstep::strategies::dp {
namespace {

constexpr Bytes piece_bytes{10 * 1024 * 1024};  // buffer_size 10485760 in comm.broadcast_coalesced

class DataParallelIteration {
 public:
  explicit DataParallelIteration(const StrategyContext& context)
      : context_(context),
        job_(context.job),
        ranks_(context.group.members()),
        first_(context.writer.representative_index(Rank{0})) {
    std::vector<BucketTensor> tensors;
    for (const Gradient& gradient : job_.gradients)
      tensors.push_back({gradient.bytes, gradient.element_bytes});
    std::vector<std::uint32_t> as_registered(tensors.size());
    std::iota(as_registered.begin(), as_registered.end(), 0u);
    pieces_ = assign_buckets(tensors, as_registered, {piece_bytes, piece_bytes});
  }

  // What GPU 0 alone holds all the time counts from the iteration's first op to its last.
  void write() {
    context_.writer.section("begin iteration", Category::other);
    const OpId begin = write_mark(context_)[first_];
    for (std::int64_t micro = 0; micro < job_.training.gradient_accumulation; ++micro) write_micro_batch();
    context_.writer.section("optimizer", Category::optimizer);
    const OpId end = write_on_first(job_.optimizer);
    hold_on_first(MemoryCategory::optimizer_states, state_bytes(job_), begin, end);
    hold_on_first(MemoryCategory::gradients, gradient_bytes(job_), begin, end);
  }

 private:
  bool gathers_outputs() const { return job_.training.data_parallel.gather_outputs; }

  void write_micro_batch() {
    const OpId start = write_mark(context_)[first_];
    send("scatter inputs", CollectiveOp::scatter, job_.input_bytes * ranks_);
    broadcast_weights();
    write_forward(start);
    if (gathers_outputs())
      write_loss_on_first();
    else
      send("gather losses", CollectiveOp::gather, Bytes{4} * ranks_);
    write_backward();
    reduce_gradients();
  }

  void broadcast_weights() {
    for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
      const std::string name = "parameters " + std::to_string(piece);
      context_.writer.section("flatten " + name, Category::gradient_copy);
      write_on_first(copy_work(tensors_of(piece), bytes_of(piece)));
      transfer({.name = "broadcast " + name,
                .payload = Payload::parameters,
                .op = CollectiveOp::broadcast,
                .bytes = bytes_of(piece),
                .tensors = static_cast<std::uint32_t>(tensors_of(piece))});
    }
    for (const BufferGroup& group : job_.buffers) {
      context_.writer.section("flatten buffers", Category::gradient_copy);
      write_on_first(copy_work(group.tensors, group.bytes));
      send("broadcast buffers", CollectiveOp::broadcast, group.bytes);
    }
  }

  // Where the outputs are gathered their loss is taken outside of the module that was copied.
  bool runs_on_copies(const LayerWork& layer) const { return !layer.is_loss || !gathers_outputs(); }

  void write_forward(OpId start) {
    const LaneId host = context_.writer.lane({.rank = Rank{0}, .kind = LaneKind::host});
    context_.writer.section("begin launching", Category::host_overhead);
    context_.writer.join(host, std::span(&start, 1));
    for (const LayerWork& layer : job_.layers)
      if (runs_on_copies(layer)) {
        launch(host, layer);
        write_forward_of(context_, layer);
      }
  }

  // The threads take turns at the interpreter.
  void launch(LaneId host, const LayerWork& layer) {
    context_.writer.section("launch " + layer.name, Category::host_overhead);
    const std::int64_t within = layer.forward.library_launches;
    const Duration each = job_.training.data_parallel.operator_time * (layer.forward.launches - within) +
                          job_.host_launch * within;
    for (const LaneId compute : context_.compute) {
      const OpId launched = context_.writer.delay(host, each);
      context_.writer.join(compute, std::span(&launched, 1));
    }
  }

  // The outputs of all GPUs together are `ranks_` times what a GPU's own loss would look at.
  void write_loss_on_first() {
    const OpId begin = write_mark(context_)[first_];
    send("gather outputs", CollectiveOp::gather, job_.output_bytes * ranks_);
    OpId end = begin;
    for (const LayerWork& layer : job_.layers)
      if (layer.is_loss) {
        context_.writer.section("forward " + layer.name, Category::forward);
        end = write_on_first(for_all_ranks(layer.forward));
      }
    for (auto layer = job_.layers.rbegin(); layer != job_.layers.rend(); ++layer)
      if (layer->is_loss) {
        context_.writer.section("backward " + layer->name, Category::backward);
        end = write_on_first(for_all_ranks(layer->backward));
        hold_on_first(MemoryCategory::activations, layer->activations * ranks_, begin, end);
      }
    send("scatter output gradients", CollectiveOp::scatter, job_.output_bytes * ranks_);
    const std::int64_t outputs_and_their_gradients = 2;
    hold_on_first(MemoryCategory::activations, job_.output_bytes * ranks_ * outputs_and_their_gradients,
                  begin, end);
  }

  KernelWork for_all_ranks(KernelWork work) const {
    work.flops *= ranks_;
    work.bytes *= ranks_;
    work.duration = work.duration * ranks_;
    return work;
  }

  void write_backward() {
    for (auto layer = job_.layers.rbegin(); layer != job_.layers.rend(); ++layer)
      if (runs_on_copies(*layer))
        lockstep::write_backward(context_, *layer);
  }

  void reduce_gradients() {
    for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
      const std::string name = "gradients " + std::to_string(piece);
      context_.writer.section("flatten " + name, Category::gradient_copy);
      write_kernels(context_, copy_work(tensors_of(piece), bytes_of(piece)));
      transfer({.name = "reduce " + name,
                .op = CollectiveOp::reduce,
                .bytes = bytes_of(piece),
                .tensors = static_cast<std::uint32_t>(tensors_of(piece))});
    }
  }

  void send(const std::string& name, CollectiveOp op, Bytes bytes) {
    if (bytes > Bytes{0})
      transfer({.name = name, .payload = Payload::other, .op = op, .bytes = bytes});
  }

  // On the streams that compute: what was launched before ends first, and what follows waits.
  void transfer(Message message) {
    const std::string reason = "wait for " + message.name;
    const std::vector<OpId> arrived = write_collective(context_, std::move(message), write_mark(context_));
    write_wait(context_, reason, arrived);
  }

  OpId write_on_first(const KernelWork& work) {
    return context_.writer.kernel(context_.compute[first_], work);
  }

  void hold_on_first(MemoryCategory category, Bytes bytes, OpId begin, OpId end) {
    allocate_at_start(context_, category, bytes, on_first(begin));
    release_at_end(context_, category, bytes, on_first(end));
  }

  std::vector<OpId> on_first(OpId op) const {
    std::vector<OpId> ops(context_.compute.size(), no_op);
    ops[first_] = op;
    return ops;
  }

  std::int64_t tensors_of(std::size_t piece) const {
    return static_cast<std::int64_t>(pieces_[piece].size());
  }

  Bytes bytes_of(std::size_t piece) const {
    Bytes total;
    for (const std::uint32_t tensor : pieces_[piece]) total += job_.gradients[tensor].bytes;
    return total;
  }

  const StrategyContext& context_;
  const Job& job_;
  std::int64_t ranks_;
  std::size_t first_;
  std::vector<Bucket> pieces_;
};

void write_iteration(const StrategyContext& context) {
  DataParallelIteration(context).write();
}

// Of the copies: gradients until they are reduced, and no optimizer.
MemoryShares memory(const Job&, std::int64_t ranks) {
  return {.states = ranks == 1 ? 1 : 0};
}

OptionList options(TrainingSpec& training) {
  DataParallelOptions& own = training.data_parallel;
  return {{"gather_outputs", FlagOption{own.gather_outputs}},
          {"operator_time", DurationOption{own.operator_time, Duration::seconds(1)}}};
}

std::vector<OptionProblem> problems(const TrainingSpec&, const ClusterShape& shape) {
  if (shape.nodes == 1)
    return {};
  return {
      {"strategy", fmt::format("found \"dp\", which drives the GPUs of one machine from one process, with {} "
                               "nodes; valid here: ddp",
                               shape.nodes)}};
}

// In every micro-batch: weights and gradients, piece by piece; batches, outputs and their gradients to and from
// each GPU.
TrafficBound traffic(const TrafficInput& input) {
  const double pieces = most_groups(input, static_cast<double>(piece_bytes.count()) / 4);
  constexpr double buffers = 2;  // by type
  return {.collectives = input.micro_batches() * (2 * pieces + buffers),
          .messages = input.micro_batches() * 4 * input.ranks,
          .volume = input.micro_batches() * 2};
}

std::vector<UnusedKey> unused(const TrainingSpec&) {
  std::vector<UnusedKey> keys =
      unused_in_turn("DataParallel computes and communicates in turn, on one stream a GPU");
  keys.push_back({"communication.algorithm", "broadcasts and reductions to one GPU run round rings alone"});
  return keys;
}

const Registration<Strategy> dp_registration{
    "dp",
    {.synchroniser = make_synchroniser<Synchroniser>,  // with one GPU it calls the module itself
     .description = "PyTorch DataParallel: one process, GPU 0 hands out the model and the batch every step",
     .accepts = {.options = options, .problems = problems, .batches = "one process loads and scatters"},
     .sends = {.at_most = traffic},
     .unused = unused,
     .memory = memory,
     .has_leader = true,
     .write_iteration = write_iteration}};

}  // namespace
}  // namespace lockstep::strategies::dp
