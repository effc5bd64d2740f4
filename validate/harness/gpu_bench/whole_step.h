#pragma once

// A whole training step of one GPU without communication: forward, backward, optimizer.
//
// Idea:      the usual one is so small that launching it is what it takes.
// Invariant: nothing is loaded, allocated or waited for in a step (bf16 has no loss scale to look at).

#include "validate/harness/communication/local_communicator.h"
#include "validate/harness/models/training_model.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness {

inline ModelSpec small_model() {
  return {.name = "gpt",
          .sizes = {{"layers", 4}, {"hidden", 256}, {"heads", 4}},
          .batch = 4,
          .activations = Type::bf16};
}

class WholeStep {
 public:
  explicit WholeStep(Device& device, const ModelSpec& spec = small_model());
  // Leaves marks behind, which the device keeps until they are forgotten.
  void run();

 private:
  LocalCommunicator communicator_;
  std::unique_ptr<TrainingModel> model_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace lockstep::harness
