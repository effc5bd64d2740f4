#pragma once

// A bench whose device and collectives take virtual time, and a small model to train on it.

#include <memory>
#include <string>
#include <vector>

#include "tests/harness/communication/local_group.h"
#include "tests/harness/measure/virtual_gpu.h"
#include "tests/harness/models/tiny_models.h"
#include "validate/harness/measure/measurement.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness {

struct VirtualBench {
  explicit VirtualBench(const VirtualTimes& times)
      : gpu(times),
        communicator(gpu),
        rendezvous(options_of(listener, 0, 1)),
        ranks(rendezvous),
        bench{.device = gpu,
              .communicator = communicator,
              .ranks = ranks,
              .tell_progress = [this](const std::string& line) { told.push_back(line); }},
        model(make_model(gpu, tiny_mlp())),
        trainer(gpu, communicator, *model, {.optimizer = {.name = "sgd"}}) {
    gpu.marks().forget();
    communicator.forget_tickets();
  }

  // Kernels of one forward and backward.
  std::int64_t kernels_of_pass() {
    const std::int64_t before = gpu.launches();
    StepObserver nobody;
    trainer.pass(nobody);
    gpu.synchronize();
    gpu.marks().forget();
    return gpu.launches() - before;
  }

  VirtualGpu gpu;
  VirtualCommunicator communicator;
  Listener listener;
  Rendezvous rendezvous;
  Ranks ranks;
  std::vector<std::string> told;
  Bench bench;
  std::unique_ptr<TrainingModel> model;
  Trainer trainer;
};

}  // namespace lockstep::harness
