#pragma once

// What a network must say about itself to become a TrainingModel.
//
// Problem:   models differ in their layers; sizes, batches, loss, mixed precision and errors do not.
// Idea:      a model is a ModelKind: its sizes with their limits, and a function that makes its modules.
//            Adding a model is one file with such a table, and one line in make_model.cpp.
// Invariant: `build` is given a spec with every size present and within its limits.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "validate/harness/layers/composite.h"
#include "validate/harness/layers/cross_entropy.h"
#include "validate/harness/models/task.h"
#include "validate/harness/models/training_model.h"

namespace lockstep::harness {

struct SizeRule {
  std::string name = {};
  std::int64_t usual = 0;
  std::int64_t least = 1;
  std::int64_t most = 0;
};

struct Network {
  std::unique_ptr<Module> body;  // from the task's inputs to logits
  std::unique_ptr<CrossEntropy> loss;
  std::unique_ptr<Task> task;
  std::vector<Buffer> scratch = {};
};

struct ModelKind {
  std::string name = {};
  std::vector<SizeRule> sizes;
  std::int64_t usual_batch = 1;
  // What sizes that are fine by themselves get wrong together; empty where all is well.
  std::string (*find_conflict)(const ModelSpec& spec) = nullptr;
  Network (*build)(ModuleFactory& factory, const ModelSpec& spec) = nullptr;
  nlohmann::ordered_json (*simulated_as)(const ModelSpec& spec) = nullptr;
};

ModelKind mlp_kind();
ModelKind gpt_kind();
ModelKind resnet50_kind();

// The spec with what was left out. Throws ConfigError that names every size that is wrong.
ModelSpec completed(const ModelKind& kind, ModelSpec spec);

}  // namespace lockstep::harness
