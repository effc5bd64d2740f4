#include "sim/load/key_defaults.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/json_text.h"
#include "sim/load/key_meanings.h"
#include "sim/load/load.h"
#include "sim/load/training/family_options.h"
#include "sim/load/training/framework_presets.h"
#include "sim/load/training/read_training.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

using LeftOut = std::map<std::string, DefaultValue>;  // by dotted path

// They differ in all that a default may follow from: GPU, whether there is a network, GPUs of a node, model, precision.
constexpr std::array circumstances{
    R"({"cluster": {"machine": "dgx_h100", "nodes": 3}, "model": {"name": "llama2_7b", "batch_per_gpu": 8}})",
    R"({"cluster": {"machine": "dgx2_v100", "nodes": 1},
        "model": {"name": "llama3_8b", "batch_per_gpu": 2, "precision": "fp16"}})"};

// Some strategies are for one node.
constexpr std::array cluster_sizes{R"({})", R"({"cluster": {"nodes": 1}})"};

// What brings further keys up, whoever trains.
constexpr std::array usual_changes{
    R"({})", R"({"cluster": {"nodes": null}})",
    R"({"cluster": {"faults": {"mtbf_per_node": "1 year", "restart": "5 min", "checkpoint_bandwidth": "1 GB/s"}}})",
    R"({"input": {"dataset_samples": 1000, "lengths": {"mean": 8, "coefficient_of_variation": 0.1}}})",
    R"({"input": {"workers": 1}})"};

// And what brings up further options of a strategy.
constexpr std::array training_changes{R"({})",
                                      R"({"model": {"batch_per_gpu": null},
        "training": {"micro_batch": 1, "tensor_parallel": 2, "pipeline_parallel": 2, "context_parallel": 2}})",
                                      R"({"training": {"compression": "powersgd_2"}})",
                                      R"({"training": {"servers": {"placement": "partitioned"}}})"};

std::string text_of(const ordered_json& value) {
  if (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>())
    return std::to_string(value.get<std::int64_t>());
  return value.dump();
}

// "default (the machine's)": what stands in the brackets. Where a profile says it, nothing.
std::string why_of(std::string_view note) {
  constexpr std::string_view of_default = "default (";
  constexpr std::string_view of_ours = "our choice: ";
  if (note == "given" || note == "default" || note.starts_with("profile"))
    return "";
  if (note.starts_with(of_default))
    note = note.substr(of_default.size(), note.size() - of_default.size() - 1);
  if (note.starts_with(of_ours))
    note.remove_prefix(of_ours.size());
  return std::string(note);
}

// What a resolved scenario holds and the given one does not, and why.
struct Defaults {
  LeftOut values = {};
  LeftOut reasons = {};
};

class DefaultsReader {
 public:
  static Defaults read(const LoadedScenario& scenario) {
    DefaultsReader reader(scenario);
    reader.collect(scenario.resolved, &scenario.given, "", "");
    return std::move(reader.found_);
  }

 private:
  explicit DefaultsReader(const LoadedScenario& scenario) : scenario_(scenario) {}

  void collect(const ordered_json& value, const ordered_json* given, const std::string& path,
               const std::string& pointer) {
    if (is_profile(path) || path == "model.summary" || path == "compare.strategies")
      return;
    if (value.is_object())
      return collect_members(value, given, path, pointer);
    if (given != nullptr && !given->is_null())
      return;
    const auto note = scenario_.provenance.find(pointer);
    found_.values[path] = {.text = text_of(value)};
    found_.reasons[path] = {
        .text = note == scenario_.provenance.end() ? "" : why_of(note->get<std::string>()), .is_why = true};
  }

  void collect_members(const ordered_json& value, const ordered_json* given, const std::string& path,
                       const std::string& pointer) {
    for (const auto& [key, member] : value.items()) {
      const bool is_given = given != nullptr && given->is_object() && given->contains(key);
      collect(member, is_given ? &(*given)[key] : nullptr, path.empty() ? key : path + "." + key,
              extended_pointer(pointer, key));
    }
  }

  const LoadedScenario& scenario_;
  Defaults found_ = {};
};

// Loads small scenarios, in each circumstance.
class SmallScenarios {
 public:
  explicit SmallScenarios(const ProfileStore& store) : store_(store) {}

  // Changed one after another. Nothing: there is no such scenario.
  std::optional<LeftOut> left_out(const std::vector<ordered_json>& changes) const {
    for (const std::string_view size : cluster_sizes) {
      std::optional<Defaults> one = load_in(circumstances.front(), size, changes);
      const std::optional<Defaults> other = load_in(circumstances.back(), size, changes);
      if (one && other)
        return agreed(std::move(*one), *other);
    }
    return std::nullopt;
  }

 private:
  std::optional<Defaults> load_in(std::string_view circumstance, std::string_view size,
                                  const std::vector<ordered_json>& changes) const {
    ordered_json document = ordered_json::parse(circumstance);
    document.merge_patch(ordered_json::parse(size));
    for (const ordered_json& change : changes) document.merge_patch(change);
    try {
      return DefaultsReader::read(load_value(document, {.store = store_}));
    } catch (const ConfigError&) {
      return std::nullopt;
    }
  }

  // What follows from the circumstances is why it does, as the second, less usual ones have it.
  static LeftOut agreed(Defaults one, const Defaults& other) {
    for (auto& [path, value] : one.values)
      if (const auto there = other.values.find(path); there != other.values.end() && there->second != value)
        value = other.reasons.at(path);
    return std::move(one.values);
  }

  const ProfileStore& store_;
};

// Of one strategy with one framework; no name: the usual one.
LeftOut left_out_of_training(const SmallScenarios& scenarios, const std::string& strategy,
                             const std::string& framework) {
  ordered_json training{{"strategy", strategy}};
  if (!framework.empty())
    training["framework"] = framework;
  LeftOut found;
  for (const std::string_view change : training_changes)
    if (auto more = scenarios.left_out({{{"training", training}}, ordered_json::parse(change)}))
      found.merge(*more);
  return found;
}

bool is_of_training(std::string_view path) {
  return path.starts_with("training.");
}

class DefaultsByKey {
 public:
  void add_usual(const LeftOut& found) {
    for (const auto& [path, value] : found) defaults[path].values = {{.value = value, .strategies = {}}};
  }

  void add_strategy(const std::string& strategy, const LeftOut& found) {
    for (const auto& [path, value] : found)
      if (is_of_training(path))
        add(strategy, value, defaults[path]);
  }

  // What it has otherwise than the usual one.
  void add_framework(const LeftOut& usual, const LeftOut& found) {
    for (const auto& [path, value] : found) {
      const auto there = usual.find(path);
      const bool differs = there == usual.end() || there->second != value;
      defaults[path].differs_by_framework |= differs;
    }
  }

  std::map<std::string, KeyDefault> defaults = {};

 private:
  static void add(const std::string& strategy, const DefaultValue& value, KeyDefault& into) {
    for (StrategyDefault& known : into.values)
      if (known.value == value)
        return known.strategies.push_back(strategy);
    into.values.push_back({.value = value, .strategies = {strategy}});
  }
};

// Of a scenario that says nothing of training, which is everybody's but for training's own.
// All but the baseline of one GPU, which has no options that others have not.
std::vector<std::string> strategies_of_ranks() {
  std::vector<std::string> names = strategies_in_order();
  std::erase_if(names, [](const std::string& name) { return strategy_named(name).accepts.one_gpu_only; });
  return names;
}

LeftOut left_out_by_all(const SmallScenarios& scenarios) {
  LeftOut found;
  for (const std::string_view change : usual_changes)
    if (auto more = scenarios.left_out({ordered_json::parse(change)}))
      found.merge(*more);
  const ordered_json comparing{{"strategies", {strategies_of_ranks().front()}},
                               {"learning", ordered_json::object()}};
  if (auto more = scenarios.left_out({ordered_json{{"compare", comparing}}}))
    found.merge(*more);
  std::erase_if(found, [](const auto& entry) {
    return is_of_training(entry.first) && entry.first != "training.strategy";
  });
  return found;
}

}  // namespace

std::map<std::string, KeyDefault> find_key_defaults(const ProfileStore& store) {
  const SmallScenarios scenarios(store);
  DefaultsByKey by_key;
  by_key.add_usual(left_out_by_all(scenarios));
  for (const std::string& strategy : strategies_of_ranks()) {
    const LeftOut usual = left_out_of_training(scenarios, strategy, "");
    by_key.add_strategy(strategy, usual);
    for (const std::string& framework : valid_frameworks())
      if (framework != usual_framework(strategy) && has_strategy(*find_preset(framework), strategy))
        by_key.add_framework(usual, left_out_of_training(scenarios, strategy, framework));
  }
  return std::move(by_key.defaults);
}

std::map<std::string, std::vector<std::string>> strategies_by_option() {
  std::map<std::string, std::vector<std::string>> found;
  for (const std::string& strategy : strategies_of_ranks()) {
    TrainingSpec training;
    training.strategy = strategy;
    for (const std::string& key : option_keys(training)) found["training." + key].push_back(strategy);
  }
  return found;
}

}  // namespace lockstep
