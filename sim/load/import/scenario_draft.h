#pragma once

// A scenario while it is put together from another tool's settings.
//
// Problem:   what launches a training says how it trains, but neither on which cluster nor, mostly, which model.
// Idea:      importers write what their file says into the sections of a scenario; `finish` asks for the rest by name.
// Invariant: what the file does not say is asked for or left to Lockstep's own default of that framework; a question
//            names the key of the scenario that answers it.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/load/import/importer.h"
#include "sim/load/import/key_account.h"

namespace lockstep {

class ScenarioDraft {
 public:
  explicit ScenarioDraft(const ImportRequest& request);

  nlohmann::ordered_json& cluster() { return document_["cluster"]; }
  nlohmann::ordered_json& model() { return document_["model"]; }
  nlohmann::ordered_json& training() { return document_["training"]; }
  nlohmann::ordered_json& communication() { return document_["communication"]; }
  nlohmann::ordered_json& compute() { return document_["compute"]; }

  void ask(std::string path, std::string example, std::string why);
  void warn(std::string warning) { imported_.warnings.push_back(std::move(warning)); }
  // Keys of another file that this one names.
  void add_keys(const std::vector<KeyUse>& keys);

  // What only one GPU's samples and the cluster can say: asked for where the file has not said it.
  Imported finish(KeyAccount& keys);

 private:
  nlohmann::ordered_json document_;
  std::vector<KeyUse> other_keys_;
  Imported imported_;
};

// torch.optim's and others' names: "adamw_torch_fused", "Adam", "FusedLAMB". Empty: it is not predicted.
std::string optimizer_named(std::string_view name);

// Degrees of accelerate's ParallelismConfig ("tp_size" after `prefix`) that are above 1: a scenario says them itself.
void refuse_other_dimensions(KeyAccount& keys, const std::string& prefix);

// A training is in one half precision; `fp16`: the key that says the other.
void refuse_beside_bf16(KeyAccount& keys, const std::string& fp16, bool is_bf16, bool is_fp16);

// What a launcher's mixed precision means where weights stay in fp32: "no", "fp16", "bf16", "fp8". Empty: none of them.
std::string autocast_precision(std::string_view name);

}  // namespace lockstep
