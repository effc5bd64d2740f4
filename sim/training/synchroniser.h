#pragma once

// How gradients and parameters move between ranks that train the same layers on different samples.
//
// Problem:   an iteration is an order of passes, and messages that hang on them. Written as one, every pair
//            of an order and a way to synchronise is a program of its own.
// Idea:      a schedule (training/schedules) owns the order. It tells a synchroniser before and after it
//            writes a layer's pass, and when a gradient is there; the synchroniser appends its messages,
//            copies and waits. Which micro-batches are reduced is the synchroniser's to say, when is the
//            schedule's.
// Invariant: begin; then of each micro-batch pre_forward and post_forward of every layer, and later
//            pre_backward and post_backward of every layer. Of a reduced one gradient_ready once a gradient,
//            between those two of its layer, and finish when all are there; clip and update after everything. A law
//            holds every strategy's schedule to it.
// Cost:      a virtual call a layer and pass while a plan is written, none while it runs.
// Reference: the hooks of torch's FSDP (pre_forward, post_forward, pre_backward, post_backward, where a unit
//            is unsharded and resharded) and of its DDP (autograd_hook, finalize_backward).

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/training/strategy.h"

namespace lockstep {

struct MicroBatch {
  std::int64_t index = 0;
  bool is_reduced = false;  // else its gradients are added to those of the next (no_sync)

  bool is_first() const { return index == 0; }
};

// By itself it sends nothing: every rank trains alone. Ops are by representative.
class Synchroniser {
 public:
  explicit Synchroniser(const StrategyContext& context) : context_(context), job_(context.job) {}
  virtual ~Synchroniser() = default;
  Synchroniser(const Synchroniser&) = delete;
  Synchroniser& operator=(const Synchroniser&) = delete;

  // As its strategy states it (Sending).
  virtual bool reduces_every_micro_batch() const;

  virtual void begin() {}
  virtual void pre_forward(const MicroBatch&, std::size_t /*layer*/) {}
  virtual void post_forward(const MicroBatch&, std::size_t /*layer*/, const std::vector<OpId>& /*done*/) {}
  virtual void pre_backward(const MicroBatch&, std::size_t /*layer*/) {}
  virtual void post_backward(const MicroBatch&, std::size_t /*layer*/, const std::vector<OpId>& /*done*/) {}
  // `done`: the backward of its layer.
  virtual void gradient_ready(std::uint32_t /*gradient*/, const std::vector<OpId>& /*done*/) {}
  virtual void finish() {}
  // Finds the norm of the gradients that the group reduces, where they are to be clipped by it.
  virtual void clip();
  virtual void update();

 protected:
  const StrategyContext& context_;
  const Job& job_;
};

template <class Kind>
std::unique_ptr<Synchroniser> make_synchroniser(const StrategyContext& context) {
  return std::make_unique<Kind>(context);
}

}  // namespace lockstep
