#pragma once

// The pieces every strategy's step is made of, written once for all representatives at a time.
//
// Idea:      lists of ops run parallel to the representatives: entry i belongs to representative i.
// Invariant: what is appended follows whatever stands on the lanes already.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/collectives/choice.h"
#include "sim/training/strategy.h"

namespace lockstep {

// Runs the same kernel on the compute lane of every representative, each after its own `after`.
std::vector<OpId> write_kernels(const StrategyContext& context, const KernelWork& work,
                                std::span<const OpId> after = {});
// Before the messages of a layer's forward: its host waits for the GPU where it has to read how many rows there are.
void count_rows(const StrategyContext& context, const LayerWork& layer);
enum class PassVerb : std::uint8_t { forward, recompute, backward };
// A layer's own kernels, once the host has issued them.
std::vector<OpId> write_layer_kernels(const StrategyContext& context, const LayerWork& layer, PassVerb verb);
// Its ops are ready with all that stands on the compute lanes; ended, these wait for it.
std::vector<OpId> begin_exchange(const StrategyContext& context, const ExchangeWork& work);
void end_exchange(const StrategyContext& context, const ExchangeWork& work, std::span<const OpId> done);
using BegunExchanges = std::vector<std::vector<OpId>>;  // by exchange
// Of those that ran beside the kernels that were written since.
void end_exchanges(const StrategyContext& context, const std::vector<ExchangeWork>& exchanges,
                   const BegunExchanges& begun);
// What is kept of a layer whose forward is written, or computed once more; then what the next layer waits for, whose
// `kernels` these are, once all is written.
void keep_recomputed(const StrategyContext& context, const LayerWork& layer, std::span<const OpId> kernels);
std::vector<OpId> end_forward(const StrategyContext& context, const LayerWork& layer,
                              std::vector<OpId> kernels);
std::vector<OpId> end_backward(const StrategyContext& context, const LayerWork& layer,
                               std::vector<OpId> kernels);

// A layer's forward and what is kept of it for its backward.
std::vector<OpId> write_forward_of(const StrategyContext& context, const LayerWork& layer);
// Every micro-batch begins with this: it holds the compute lanes until their batches are there.
void write_batch(const StrategyContext& context);
// Every pass begins with this, once its input is there: its host may have waited for that.
void write_pass_begin(const StrategyContext& context);
// The layer's backward, after the forwards that it needs again.
std::vector<OpId> write_backward(const StrategyContext& context, const LayerWork& layer);
// Its two parts: what the layer before waits for, exchanges included, and the gradients of its weights, which
// may come later.
std::vector<OpId> write_backward_input(const StrategyContext& context, const LayerWork& layer);
std::vector<OpId> write_backward_weights(const StrategyContext& context, const LayerWork& layer);
// Of parameters that every rank of a tensor group has whole and saw some tokens of; once an iteration.
void write_partial_sums(const StrategyContext& context);
void write_optimizer(const StrategyContext& context);
// The optimizer on one of `parts` equal parts of the parameters.
void write_partial_optimizer(const StrategyContext& context, std::int64_t parts);
// The norm of gradients, where they are to be clipped: a pass over the `own` ones of each rank, and the sum over
// `holders`, the ranks that hold the others (null: each rank has all of them), and over the tensor group.
void write_clipping(const StrategyContext& context, Bytes own, const ProcessGroup* holders = nullptr);
// Where each of `holders` has an equal part of them.
void write_partial_clipping(const StrategyContext& context, const ProcessGroup& holders);
// The same on streams of their own beside the compute lanes, once `after` has ended.
std::vector<OpId> write_side_kernels(const StrategyContext& context, const KernelWork& work,
                                     std::span<const OpId> after);
// A fixed time on every compute lane; writes nothing when it is zero and then returns `after` as it is.
std::vector<OpId> write_delays(const StrategyContext& context, Duration duration, std::vector<OpId> after);
// An op that ends when all that stands on each compute lane so far has.
std::vector<OpId> write_mark(const StrategyContext& context);
// Without communication.overlap: holds every compute lane until what has just been sent has arrived.
void wait_unless_overlapped(const StrategyContext& context, std::span<const OpId> arrived);
// Holds every compute lane until the op of its representative has ended, for `reason`: exposed communication, or what
// else `category` says.
void write_wait(const StrategyContext& context, std::string_view reason, std::span<const OpId> until,
                Category category = Category::communication);
// The same for the reason "wait for WHAT".
void write_wait_for(const StrategyContext& context, std::string_view what, std::span<const OpId> until);

// So many bytes are held from the start, or from the end, of each representative's op on, or until its end.
void allocate_at_start(const StrategyContext& context, MemoryCategory category, Bytes bytes,
                       std::span<const OpId> ops);
void allocate_at_end(const StrategyContext& context, MemoryCategory category, Bytes bytes,
                     std::span<const OpId> ops);
void release_at_end(const StrategyContext& context, MemoryCategory category, Bytes bytes,
                    std::span<const OpId> ops);

// A workspace, from the start of each representative's op until its end.
void hold_during(const StrategyContext& context, Bytes bytes, std::span<const OpId> ops);

// What is to be sent; `bytes_on_wire` left out: as it is.
struct Message {
  std::string name;
  Payload payload = Payload::gradients;
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;
  std::optional<Bytes> bytes_on_wire = {};
  std::uint32_t tensors = 0;
  const ProcessGroup* group = nullptr;  // null: the one that the strategy was told
  std::string algorithm = {};           // that the strategy insists on; empty: as the scenario says
  TokenRouting routing = {};            // of tokens whose copies travel as one
};

// What the library would choose, remembered where the context does.
Choice choose_in(const StrategyContext& context, const ChoiceRequest& request);

// A collective on the communication lanes with the algorithm and protocol the library chooses, and its entry
// in the iteration's list; returns when each representative holds the result.
std::vector<OpId> write_collective(const StrategyContext& context, Message message, std::vector<OpId> ready);

// `tensors` small kernels that read and write `bytes` each way.
KernelWork copy_work(std::int64_t tensors, Bytes bytes);

}  // namespace lockstep
