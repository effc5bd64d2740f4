// Linear layers with ReLU between them, named as a torch.nn.Sequential names its children: by their place.

#include <string>

#include "validate/harness/layers/activation.h"
#include "validate/harness/layers/linear.h"
#include "validate/harness/models/model_kind.h"
#include "validate/harness/models/pattern_task.h"

namespace lockstep::harness {

namespace {

Network build_mlp(ModuleFactory& factory, const ModelSpec& spec) {
  const std::int64_t layers = spec.sizes.at("layers");
  const std::int64_t hidden = spec.sizes.at("hidden");
  const std::int64_t classes = spec.sizes.at("classes");
  auto body = std::make_unique<Sequential>();
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const bool is_last = layer == layers - 1;
    body->make<Linear>(factory, LinearOptions{.name = std::to_string(2 * layer),
                                              .rows = spec.batch,
                                              .inputs = layer == 0 ? spec.sizes.at("inputs") : hidden,
                                              .outputs = is_last ? classes : hidden,
                                              .needs_input_gradient = layer > 0});
    if (!is_last)
      body->make<Relu>(factory, std::to_string(2 * layer + 1), spec.batch * hidden);
  }
  return {.body = std::move(body),
          .loss = std::make_unique<CrossEntropy>(factory, "loss", spec.batch, classes),
          .task = std::make_unique<PatternTask>(
              PatternTask::Options{.seed = spec.seed, .width = spec.sizes.at("inputs"), .classes = classes})};
}

}  // namespace

ModelKind mlp_kind() {
  return {.name = "mlp",
          .sizes = {{.name = "inputs", .usual = 1024, .most = 1 << 20},
                    {.name = "hidden", .usual = 1024, .most = 1 << 17},
                    {.name = "layers", .usual = 6, .most = 10'000},
                    {.name = "classes", .usual = 10, .least = 2, .most = 1 << 20}},
          .usual_batch = 64,
          .build = build_mlp,
          .simulated_as = [](const ModelSpec&) { return nlohmann::ordered_json(nullptr); }};
}

}  // namespace lockstep::harness
