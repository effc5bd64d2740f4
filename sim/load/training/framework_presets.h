#pragma once

// What each framework does with options that are left out.
//
// Problem:   the same key left out means different things in different frameworks and versions.
// Idea:      a framework is a row of a table: the strategies it has, and a function that fills in its
//            defaults and notes where each comes from. What the user states is read over them.
// Invariant: after apply_preset every option of the strategy is ready for use and every one of them has a
//            note. A default that is ours, because the framework has none, says so.
// Reference: each default names the framework's source file or document it was read from.

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/model.h"
#include "sim/training/options.h"

namespace lockstep {

// A value, and why it is that one where nothing is stated.
template <class T>
struct Default {
  T value;
  std::string_view why;
};

struct Version {
  int major = 0;
  int minor = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};

// "2.8", "1.13.1", "2.1.0a0".
std::optional<Version> parse_version(std::string_view text);

// What the rest of the scenario says that training depends on or must agree with.
struct TrainingFacts {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
  std::optional<std::int64_t> stated_batch = {};  // model.batch_per_gpu
  const Model* model = nullptr;                   // null after a mistake there
  Precision precision = Precision::fp32;
  std::int64_t sockets = 1;  // of a node
  bool has_nics = true;
  bool has_blocks = true;            // of layers: what recomputation forgets and repeats
  bool has_attention = true;         // in those blocks
  bool has_matrices = true;          // whose shapes are known: what PowerSGD takes apart
  bool is_cluster_known = true;      // false after a mistake there: then nothing is held against it
  std::optional<bool> overlap = {};  // of gradients' reduction with backward, where anything states it

  std::int64_t ranks() const { return nodes * gpus_per_node; }
};

// A key below /training ("servers/count" for a nested one) and why it has its value: "default (...)".
using OptionNotes = std::map<std::string, std::string, std::less<>>;

struct PresetInput;

struct FrameworkPreset {
  std::string_view name;
  std::string_view default_version;
  std::vector<std::string_view> strategies;  // the first is its default; one that none names goes with all
  void (*apply)(PresetInput& input);
  std::string_view reduces_late = {};  // the source that says so: after backward, unless it is told otherwise
};

const std::vector<FrameworkPreset>& framework_presets();
const FrameworkPreset* find_preset(std::string_view name);
bool has_strategy(const FrameworkPreset& preset, std::string_view strategy);

// The framework that is meant when only the strategy is stated.
std::string_view usual_framework(std::string_view strategy);

// Fills in what the framework of `spec` does. Strategy, framework, its version and recompute are set already.
OptionNotes apply_preset(TrainingSpec& spec, const TrainingFacts& facts);

// The first bucket when the cap is stated and the first bucket is not; its note, or nothing where it stays.
std::optional<std::string> first_bucket_follows_cap(const TrainingSpec& spec);

// The type that mixed precision computes in, and the type that weights are kept in.
Precision half_or_full(Precision precision);
Precision type_of_weights(Precision precision);

}  // namespace lockstep
