// ResNet-50 v1.5 as torchvision has it (the stride is in the 3x3): names, registration order, beginnings.
//
// With one exception: the last norm of each block begins with a gain of 0 (Goyal et al. 1706.02677,
// torchvision's zero_init_residual). A network that begins as its shortcuts learns in a dozen steps from a
// few small images; with gains of 1 its gradient is over a hundred times longer, and too rough to follow.

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "validate/harness/layers/activation.h"
#include "validate/harness/layers/image_layers.h"
#include "validate/harness/layers/linear.h"
#include "validate/harness/layers/norm.h"
#include "validate/harness/models/model_kind.h"
#include "validate/harness/models/pattern_task.h"

namespace lockstep::harness {

namespace {

constexpr std::array<std::int64_t, 4> depths = {3, 4, 6, 3};
constexpr std::int64_t expansion = 4;  // a block's outputs over the width of its 3x3

struct FeatureMap {
  std::int64_t size = 0;  // of a side
  std::int64_t channels = 0;
};

struct ConvolutionNorm {
  std::string convolution = {};
  std::string norm = {};
  std::int64_t outputs = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  bool needs_input_gradient = true;
  float gain = 1;
};

struct Bottleneck {
  std::string name;
  std::int64_t width = 0;
  std::int64_t stride = 1;

  std::int64_t outputs() const { return expansion * width; }
};

class ResNetBuilder {
 public:
  ResNetBuilder(ModuleFactory& factory, const ModelSpec& spec)
      : factory_(factory),
        batch_(spec.batch),
        image_size_(spec.sizes.at("image_size")),
        classes_(spec.sizes.at("classes")) {}

  Network build(std::uint64_t seed) {
    auto body = std::make_unique<Sequential>();
    FeatureMap features = append_stem(*body);
    for (std::size_t stage = 0; stage < depths.size(); ++stage) {
      for (std::int64_t index = 0; index < depths[stage]; ++index) {
        const Bottleneck block{.name = fmt::format("layer{}.{}", stage + 1, index),
                               .width = std::int64_t{64} << stage,
                               .stride = stage > 0 && index == 0 ? 2 : 1};
        features = append_block(*body, block, features);
      }
    }
    append_head(*body, features);
    return {.body = std::move(body),
            .loss = std::make_unique<CrossEntropy>(factory_, "loss", batch_, classes_),
            .task = std::make_unique<PatternTask>(PatternTask::Options{.seed = seed,
                                                                       .height = image_size_,
                                                                       .width = image_size_,
                                                                       .channels = 3,
                                                                       .classes = classes_,
                                                                       .cell = 8})};
  }

 private:
  std::int64_t elements(const FeatureMap& features) const {
    return batch_ * features.size * features.size * features.channels;
  }

  FeatureMap append_convolution_norm(Sequential& to, const ConvolutionNorm& options,
                                     const FeatureMap& input) {
    const Convolution shape{.batch = batch_,
                            .height = input.size,
                            .width = input.size,
                            .inputs = input.channels,
                            .outputs = options.outputs,
                            .kernel = options.kernel,
                            .stride = options.stride,
                            .padding = (options.kernel - 1) / 2};
    const FeatureMap output{.size = shape.output_height(), .channels = options.outputs};
    to.make<Convolution2d>(factory_, options.convolution, shape, options.needs_input_gradient);
    to.make<BatchNorm>(factory_, NormOptions{.name = options.norm,
                                             .rows = batch_ * output.size * output.size,
                                             .columns = output.channels,
                                             .gain = options.gain});
    return output;
  }

  FeatureMap append_stem(Sequential& to) {
    const FeatureMap features = append_convolution_norm(to,
                                                        {.convolution = "conv1",
                                                         .norm = "bn1",
                                                         .outputs = 64,
                                                         .kernel = 7,
                                                         .stride = 2,
                                                         .needs_input_gradient = false},
                                                        {.size = image_size_, .channels = 3});
    to.make<Relu>(factory_, "relu", elements(features));
    const Pooling pooling{.batch = batch_,
                          .height = features.size,
                          .width = features.size,
                          .channels = features.channels,
                          .kernel = 3,
                          .stride = 2,
                          .padding = 1};
    to.make<MaxPool>(factory_, "maxpool", pooling);
    return {.size = pooling.output_height(), .channels = features.channels};
  }

  // One of a block's three: NAME.convI, NAME.bnI.
  FeatureMap append_part(Sequential& path, const Bottleneck& block, int part, ConvolutionNorm options,
                         const FeatureMap& input) {
    options.convolution = fmt::format("{}.conv{}", block.name, part);
    options.norm = fmt::format("{}.bn{}", block.name, part);
    return append_convolution_norm(path, options, input);
  }

  std::unique_ptr<Module> make_path(const Bottleneck& block, const FeatureMap& input) {
    auto path = std::make_unique<Sequential>();
    const FeatureMap reduced = append_part(*path, block, 1, {.outputs = block.width}, input);
    path->make<Relu>(factory_, block.name + ".relu1", elements(reduced));
    const FeatureMap spatial =
        append_part(*path, block, 2, {.outputs = block.width, .kernel = 3, .stride = block.stride}, reduced);
    path->make<Relu>(factory_, block.name + ".relu2", elements(spatial));
    append_part(*path, block, 3, {.outputs = block.outputs(), .gain = 0}, spatial);
    return path;
  }

  // Null where the block's input fits its output.
  std::unique_ptr<Module> make_shortcut(const Bottleneck& block, const FeatureMap& input) {
    if (block.stride == 1 && input.channels == block.outputs())
      return nullptr;
    auto shortcut = std::make_unique<Sequential>();
    append_convolution_norm(*shortcut,
                            {.convolution = block.name + ".downsample.0",
                             .norm = block.name + ".downsample.1",
                             .outputs = block.outputs(),
                             .stride = block.stride},
                            input);
    return shortcut;
  }

  FeatureMap append_block(Sequential& to, const Bottleneck& block, const FeatureMap& input) {
    const FeatureMap output{.size = (input.size - 1) / block.stride + 1, .channels = block.outputs()};
    Residual::Options residual{
        .name = block.name + ".add", .inputs = elements(input), .outputs = elements(output)};
    residual.path = make_path(block, input);
    residual.shortcut = make_shortcut(block, input);
    to.make<Residual>(factory_, std::move(residual));
    to.make<Relu>(factory_, block.name + ".relu", elements(output));
    return output;
  }

  void append_head(Sequential& to, const FeatureMap& features) {
    to.make<GlobalAveragePool>(
        factory_, "avgpool",
        GlobalAveragePool::Shape{
            .batch = batch_, .pixels = features.size * features.size, .channels = features.channels});
    to.make<Linear>(
        factory_,
        LinearOptions{.name = "fc", .rows = batch_, .inputs = features.channels, .outputs = classes_});
  }

  ModuleFactory& factory_;
  std::int64_t batch_;
  std::int64_t image_size_;
  std::int64_t classes_;
};

Network build_resnet50(ModuleFactory& factory, const ModelSpec& spec) {
  return ResNetBuilder(factory, spec).build(spec.seed);
}

// Over one number a variance says nothing: the last maps are an image_size / 32 on a side.
std::string find_resnet50_conflict(const ModelSpec& spec) {
  const std::int64_t last = (spec.sizes.at("image_size") + 31) / 32;
  return spec.batch * last * last > 1 ? ""
                                      : "BatchNorm needs more than one number a channel: a larger batch or "
                                        "image_size";
}

nlohmann::ordered_json resnet50_as_simulated(const ModelSpec& spec) {
  return {{"family", "resnet"},
          {"block", "bottleneck"},
          {"depths", depths},
          {"image_size", spec.sizes.at("image_size")},
          {"classes", spec.sizes.at("classes")}};
}

}  // namespace

ModelKind resnet50_kind() {
  return {.name = "resnet50",
          .sizes = {{.name = "image_size", .usual = 64, .least = 32, .most = 1 << 12},
                    {.name = "classes", .usual = 1000, .least = 2, .most = 1 << 17}},
          .usual_batch = 4,
          .find_conflict = find_resnet50_conflict,
          .build = build_resnet50,
          .simulated_as = resnet50_as_simulated};
}

}  // namespace lockstep::harness
