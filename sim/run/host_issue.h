#pragma once

// Where the GPU waits for the host that issues its kernels and messages.
//
// Problem:   an eager framework issues operators one after another. Kernels that are shorter than that leave the
//            GPU idle: small batches, many small layers, optimizers in many passes.
// Idea:      the step is walked in the order of the program. The host adds up what each kernel costs to issue and
//            runs ahead as far as it likes; the GPU starts no kernel that is not issued. What the training loop
//            reads back once a step (a GradScaler's check for infinities, a norm of gradients, before the
//            optimizer) the host waits for, so a step is walked from there; a loop that reads nothing back is behind
//            for good or never.
//            Passes are walked in the order of the schedule, from anew where the host has waited for a message
//            between stages, a micro-batch, its loss or every kernel (HostWaits), or before experts for how many
//            tokens each gets: products of so many rows, and messages of as many, are issued from the host (Megatron-LM
//            core/transformer/moe/token_dispatcher.py, cuda_sync_point; torchtitan's all-to-all splits).
//            What is captured as a CUDA graph is issued with one launch.
//            Messages between ranks only ever delay the GPU: where it does not wait alone it never does, and only
//            the kernels that it waits for alone become ops of a plan.
// Invariant: more kernels, a slower framework or a slower launch never make a step shorter. A step that was
//            measured had its host in it: nothing is added to one. Times that are stated are no kernels' to issue.
//            Kernels that jitter or short batches make faster than usual are judged as usual.
// Cost:      an addition for each kernel of a step, where the host may be behind at all.
// Reference: operators: sitar-lab/NeuSight's timed one by one (operator_time); what of it needs no GPU is measured by
//            validate/measure_operators. Graphs of torch.compile: meta-pytorch/tritonbench pull request 1017.
//            Megatron's modules: eth-easl/sailor's timed layers, VIA-Research/vTrain's iterations.

#include <optional>
#include <vector>

#include "sim/run/pricing.h"
#include "sim/training/job.h"

namespace lockstep {

// What the framework spends on an operator, beside the launch of its kernel.
Duration operator_time(const HostSpec& host);

// Kernels that are issued one after another without anything between: a layer's, one way.
struct IssuedWork {
  const KernelWork* work = nullptr;
  std::int64_t parts = 1;  // into which ranks divide it
  Category category = Category::other;
  Duration on_gpu;
  Duration until_first;      // on the host
  Duration after_first;      // likewise, for the others
  Duration waiting;          // of the GPU, for the first
  bool is_captured = false;  // in a CUDA graph: it starts no sooner than what stands before it is issued
  bool begins_anew = false;  // the host has waited for the GPU before it
  bool counts_rows = false;  // and that for how many rows it has
};

// A step of one GPU of the job from its optimizer on, once it is like the step before it.
std::vector<IssuedWork> issued_step(const Scenario& scenario, const Job& job, const WorkScale& scale);

// The sum of what the GPU waits in it where it is the only one.
Duration waiting_for_host(const Scenario& scenario, const Job& job, const WorkScale& scale);

// Whether a host issues its kernels in the order of the program, and what that takes is known.
bool is_issued_in_order(const Scenario& scenario);

// Whether the step alone was measured, and with it what it waits for.
bool has_host_in_it(const Scenario& scenario);

// Whether any GPU of it waits for its host anywhere.
bool waits_for_host(const Job& job);

// From now on its framework spends so many times as long on an operator.
void slow_host(Scenario& scenario, Ratio times);

// What each GPU's step would gain with such a host, messages left out, where it does not wait for the one it has; zero
// of a pipeline's stages.
Duration waiting_for_slower_host(const Scenario& scenario, const Job& job, Ratio times);

// Where a plan has to wait for the host; none: nowhere.
std::optional<HostWork> describe_host(const Scenario& scenario, const Job& job);
// The same of a stage of a pipeline, whose host issues passes in the order of its schedule.
std::optional<HostWork> describe_host_of_stage(const Scenario& scenario, const Job& whole, std::size_t stage);

}  // namespace lockstep
