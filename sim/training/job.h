#pragma once

// What a strategy has to get done: the work of one rank's step, its gradients, and its options.
//
// A job says how much, never how long: kernels carry FLOPs and bytes (or the duration a measurement states),
// gradients carry bytes. What its runs of products take stands beside them for who prices the plan: no strategy
// looks at it. Layers stand in forward order; backward walks them from the last.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/collective.h"
#include "sim/plan/communicator.h"
#include "sim/plan/kernel.h"
#include "sim/plan/plan.h"
#include "sim/training/bucketing.h"
#include "sim/training/fusion.h"
#include "sim/training/options.h"
#include "sim/training/parallel_model.h"
#include "sim/training/program.h"

namespace lockstep {

struct Model;

struct Gradient {
  std::string name;
  Bytes bytes;
  std::uint32_t element_bytes = 4;
  std::int64_t rows = 0;  // of the matrix it is, first dimension by the rest; 0: a vector, or not known
};

// Buffers of one type: batch norm's statistics, its counters of batches.
struct BufferGroup {
  std::int64_t element_bytes = 4;
  std::int64_t tensors = 0;
  Bytes bytes = {};
};

// A collective that a layer cannot do without: parts of it are on other ranks.
struct ExchangeWork {
  std::string name;
  ParallelAxis axis = ParallelAxis::tensor;
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;                    // of one micro-batch
  bool is_beside_kernel = false;  // may run beside what is left of its layer
  TokenRouting relayed = {};      // tokens that go to a node once; `bytes` are those of all copies
};

struct LayerExchangeWork {
  std::vector<ExchangeWork> before_forward;
  std::vector<ExchangeWork> after_forward;
  std::vector<ExchangeWork> before_backward;
  std::vector<ExchangeWork> after_backward_input;
  std::vector<ExchangeWork> after_backward;
};

struct LayerWork {
  std::string name;
  KernelWork forward;
  KernelWork backward;  // where `backward_weights` is stated: by the input alone
  std::optional<KernelWork> backward_weights = {};
  LayerExchangeWork exchanges = {};
  std::vector<std::uint32_t> gradients;   // complete when backward ends, in the order they are accumulated
  std::int64_t block = -1;                // the transformer layer it belongs to; -1: outside of all
  std::vector<std::uint32_t> recomputed;  // layers whose forward runs again just before this backward
  bool is_saved = false;                  // its output is, where the rest of its block runs again
  Bytes activations = {};                 // what this backward needs of its forward
  Bytes kept = {};                        // of them, what stays from the forward on
  Bytes backward_workspace = {};          // held while its backward runs
  bool is_loss = false;                   // of the model's outputs, which its caller may take elsewhere
  std::int64_t modules = 1;               // whose kernels are issued one after another
  bool is_formula = false;                // of operators, which a module calls one by one
  bool is_module = false;  // a library's own, such as Transformer Engine's, where kernels are fused
  bool counts_rows = false;  // how many rows its forward has the host reads from the GPU first
};

// Layers [first, last) of a job, one after another.
struct LayerRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

// Of a stage of a pipeline.
struct StageWork {
  std::vector<LayerRange> chunks;  // the parts of the model that it holds, by chunk
  std::vector<Bytes> handed_on;    // by chunk: the output of its last layer, of one micro-batch
  std::optional<std::uint32_t> tied =
      {};  // the gradient of the weights that the first and last stage both have
};

// What a batch takes on its way to one rank.
struct InputWork {
  std::int64_t workers = 0;  // processes that load; none: the training loop does
  std::int64_t prefetch_factor = 2;
  Duration reading;            // a batch from storage, at a rank's share of it
  Duration preparing;          // by one worker
  Duration copying;            // to the device
  bool copies_beside = false;  // on a stream of its own
};

// What the thread that launches a rank's kernels spends, as far as the GPU may wait for it.
struct HostWork {
  // By kernel or run of kernels of the model, in the order in which an iteration is written: until the first of
  // it is issued, since the one before that is not zero. Zero: nothing ever waits for it.
  std::vector<Duration> issuing;
  // Where the host waits for its GPU, and what it has issued until then since the kernel that was waited for last;
  // none: it does not wait. In each iteration before the optimizer steps, and before each pass (empty: for none).
  std::optional<Duration> reads_back = {};
  std::vector<std::optional<Duration>> pass_waits = {};
  std::vector<std::optional<Duration>> count_waits = {};  // likewise before kernels of the model; empty: none
  bool waits_for_kernels = false;                         // and after every one
};

// What a process holds beside the tensors of a step. None of it on a CPU.
struct ProcessMemory {
  Bytes context = {};
  Bytes product_workspaces = {};
  Bytes optimizer_workspace = {};       // of all parameters, while the optimizer runs
  std::int64_t allocated_per_lost = 0;  // an allowance: the framework's allocator loses one byte of so many
};

struct Job;

// Parameters that all copies of the model hold, and experts that fewer ranks do: the job of each kind alone.
struct ParameterKinds {
  std::vector<Job> dense;             // one
  std::vector<Job> experts;           // one
  std::vector<bool> is_expert;        // by gradient of the whole
  std::vector<std::uint32_t> number;  // likewise: among those of its kind
};

struct Job {
  std::vector<LayerWork> layers;
  // Runs of products whose shapes are known, each once, and what each takes on one GPU.
  std::vector<std::vector<Kernel>> products;
  std::vector<RunTime> product_times;
  std::vector<Gradient> gradients;  // in registration order
  KernelWork optimizer;
  std::vector<BufferGroup> buffers;  // by type, in the order in which each first appears
  Bytes input_bytes;                 // of one rank's micro-batch
  Bytes output_bytes;                // that the model makes of it
  ProcessMemory process;
  Duration per_bucket;             // events and flattening around one bucket's launch, on the compute stream
  Duration host_launch;            // what the host spends on launching one kernel
  Duration part_listing = {};      // and on each rank's part of a tensor; zero: nothing is listed
  Duration control_round;          // a few bytes from all ranks to all, by the hosts
  Bytes wider_gradients = {};      // by which gradients that stand in fp32 are more than their weights
  Bytes gradients_beside_sum = {};  // what autograd leaves, until all of it is added to a sum that is wider
  Bytes partial_gradients = {};    // that each rank of a tensor group found for its own tokens: added up once
  std::optional<StageWork> stage;  // left out: there is one, of all layers
  std::shared_ptr<const ParameterKinds>
      kinds;                       // null: all parameters are dense, or all ranks hold all experts
  std::vector<Job> stages;         // of a pipeline, one after another: what each holds of this
  std::vector<FusedGroup> fused;   // what a rehearsal decided to send together; empty: nothing rehearsed yet
  std::optional<InputWork> input;  // left out: batches are always there
  std::optional<HostWork> host;    // left out: it is never behind
  TrainingSpec training;
  CommunicationSpec communication;
  Fidelity fidelity = Fidelity::flow;
  std::shared_ptr<const Program> program = {};  // what ranks do instead; null: what follows from all this
};

// Gradient indices in the order backward completes them.
std::vector<std::uint32_t> gradient_order(const Job& job);
// What one of `parts` ranks does of work that they divide, in as many kernels.
KernelWork divided(KernelWork work, std::int64_t parts);

std::int64_t element_count(const Gradient& gradient);
std::int64_t element_count(const std::vector<Gradient>& gradients);
Bytes gradient_bytes(const Job& job);
std::vector<BufferGroup> buffers_by_type(const Model& model);
Bytes buffer_bytes(const Job& job);
// A weight has its gradient's type.
std::int64_t weight_bytes(const Job& job);
// Of an element that the optimizer updates, and of each of its states: an fp32 copy's where there is one, else the
// weight's own (torch.optim makes them with zeros_like).
std::int64_t updated_bytes(const Job& job);

}  // namespace lockstep
