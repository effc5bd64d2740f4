#include "validate/harness/presets.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::harness {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

ModelSpec mlp(std::int64_t width, std::int64_t layers, std::int64_t batch) {
  return {.name = "mlp",
          .sizes = {{"inputs", width}, {"hidden", width}, {"layers", layers}, {"classes", 1000}},
          .batch = batch};
}

// GPT-2's smallest: 124 million parameters.
ModelSpec gpt2(std::int64_t batch) {
  return {
      .name = "gpt",
      .sizes = {{"layers", 12}, {"hidden", 768}, {"heads", 12}, {"sequence", 1024}, {"vocabulary", 50257}},
      .batch = batch};
}

ModelSpec resnet50(std::int64_t image_size, std::int64_t batch) {
  return {.name = "resnet50", .sizes = {{"image_size", image_size}, {"classes", 1000}}, .batch = batch};
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {{.name = "h100",
                                           .models = {mlp(8192, 8, 8192), gpt2(16), resnet50(224, 256)},
                                           .most_curve_bytes = 1024 * mebibyte},
                                          {.name = "a100",
                                           .models = {mlp(4096, 8, 4096), gpt2(8), resnet50(224, 96)},
                                           .most_curve_bytes = 1024 * mebibyte},
                                          {.name = "small",
                                           .models = {mlp(1024, 6, 256), gpt2(1), resnet50(224, 8)},
                                           .most_curve_bytes = 64 * mebibyte}};
  return all;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  return names;
}

void apply_preset(const Preset& preset, ModelSpec& spec) {
  const auto model = std::ranges::find(preset.models, spec.name, &ModelSpec::name);
  if (model == preset.models.end())
    return;
  spec.sizes.insert(model->sizes.begin(), model->sizes.end());
  if (spec.batch == 0)
    spec.batch = model->batch;
}

std::string describe_presets() {
  std::string text = "Presets:\n";
  for (const Preset& preset : presets())
    for (const ModelSpec& model : preset.models) {
      text += fmt::format("  {:<6} {:<9} batch {}", preset.name, model.name, model.batch);
      for (const auto& [name, size] : model.sizes) text += fmt::format(", {} {}", name, size);
      text += fmt::format("; --curve-up-to {} MiB\n", preset.most_curve_bytes / mebibyte);
    }
  return text;
}

}  // namespace lockstep::harness
