#pragma once

// Model instances for tests: a shipped one by name, or one from text. Wrong instances throw ConfigError.

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/plan/model_family.h"

namespace lockstep {

inline Model model_of(JsonDocument document, const ModelRequest& request) {
  JsonReader root = document.root();
  Model model = build_model(root, request);
  document.throw_if_problems();
  return model;
}

inline std::filesystem::path models_folder() {
  return std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "models";
}

inline Model shipped_model(const std::string& name, const ModelRequest& request = {}) {
  return model_of(JsonDocument::from_file((models_folder() / (name + ".json")).string()), request);
}

inline Model model_from(std::string_view json_text, const ModelRequest& request = {}) {
  return model_of(JsonDocument::from_text(json_text, "model.json"), request);
}

// Every models/NAME.json, sorted.
inline std::vector<std::string> shipped_model_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(models_folder())) {
    if (entry.path().extension() == ".json")
      names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

inline const Layer& layer_named(const Model& model, std::string_view name) {
  const auto found = std::ranges::find(model.layers, name, &Layer::name);
  if (found == model.layers.end())
    throw std::out_of_range("no layer " + std::string(name));
  return *found;
}

// Per sample, at two bytes an element.
inline std::int64_t saved_bytes_of_block(const Model& model, int block) {
  std::int64_t bytes = 0;
  for (const Layer& layer : model.layers) {
    if (layer.block == block)
      bytes += 2 * layer.saved_elements + layer.saved_bytes;
  }
  return bytes;
}

}  // namespace lockstep
