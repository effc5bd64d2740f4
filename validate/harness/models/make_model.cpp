#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "validate/harness/models/network_model.h"

namespace lockstep::harness {

std::unique_ptr<TrainingModel> make_model(Device& device, const ModelSpec& spec) {
  const std::array<ModelKind, 3> kinds = {mlp_kind(), gpt_kind(), resnet50_kind()};
  const auto kind = std::ranges::find(kinds, spec.name, &ModelKind::name);
  if (kind == kinds.end()) {
    std::vector<std::string> names;
    for (const ModelKind& known : kinds) names.push_back(known.name);
    throw ConfigError(fmt::format("no model \"{}\"; {}", spec.name, describe_choices(spec.name, names)));
  }
  return std::make_unique<NetworkModel>(device, *kind, completed(*kind, spec));
}

}  // namespace lockstep::harness
