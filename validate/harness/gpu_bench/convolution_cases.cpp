#include "validate/harness/gpu_bench/convolution_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace lockstep::harness {
namespace {

constexpr std::int64_t image_size = 224;

bool are_equal(const Convolution& a, const Convolution& b) {
  return a.batch == b.batch && a.height == b.height && a.width == b.width && a.inputs == b.inputs &&
         a.outputs == b.outputs && a.kernel == b.kernel && a.stride == b.stride && a.padding == b.padding;
}

class DistinctConvolutions {
 public:
  explicit DistinctConvolutions(std::int64_t batch) : batch_(batch) {}

  // Returns the side of what comes out.
  std::int64_t add(std::int64_t side, std::int64_t inputs, std::int64_t outputs, std::int64_t kernel,
                   std::int64_t stride) {
    const Convolution shape{.batch = batch_,
                            .height = side,
                            .width = side,
                            .inputs = inputs,
                            .outputs = outputs,
                            .kernel = kernel,
                            .stride = stride,
                            .padding = kernel / 2};
    const bool is_new = std::none_of(shapes_.begin(), shapes_.end(),
                                     [&](const Convolution& other) { return are_equal(shape, other); });
    if (is_new)
      shapes_.push_back(shape);
    return shape.output_height();
  }
  const std::vector<Convolution>& shapes() const { return shapes_; }

 private:
  std::int64_t batch_;
  std::vector<Convolution> shapes_;
};

const char* direction_of(ConvolutionPass pass) {
  if (pass == ConvolutionPass::forward)
    return "fwd";
  return pass == ConvolutionPass::by_data ? "bwd_data" : "bwd_weight";
}

void append_passes(std::vector<ConvolutionCase>& cases, const std::vector<Convolution>& shapes,
                   const std::string& precision) {
  for (const Convolution& shape : shapes)
    for (const ConvolutionPass pass :
         {ConvolutionPass::forward, ConvolutionPass::by_data, ConvolutionPass::by_weight})
      if (pass != ConvolutionPass::by_data || shape.inputs > 3)
        cases.push_back({.precision = precision, .shape = shape, .pass = pass});
}

}  // namespace

std::vector<Convolution> resnet50_convolutions(std::int64_t batch) {
  constexpr std::array<std::int64_t, 4> depths = {3, 4, 6, 3};
  DistinctConvolutions list(batch);
  std::int64_t side = list.add(image_size, 3, 64, 7, 2) / 2;  // and a pool
  std::int64_t channels = 64;
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    const std::int64_t width = std::int64_t{64} << stage;
    for (std::int64_t block = 0; block < depths[stage]; ++block) {
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      list.add(side, channels, width, 1, 1);
      const std::int64_t reduced = list.add(side, width, width, 3, stride);
      list.add(reduced, width, 4 * width, 1, 1);
      if (block == 0)
        list.add(side, channels, 4 * width, 1, stride);  // the shortcut's
      side = reduced;
      channels = 4 * width;
    }
  }
  return list.shapes();
}

std::vector<Convolution> vgg16_convolutions(std::int64_t batch) {
  constexpr std::array<std::int64_t, 5> depths = {2, 2, 3, 3, 3};
  DistinctConvolutions list(batch);
  std::int64_t side = image_size;
  std::int64_t inputs = 3;
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    const std::int64_t outputs = std::min<std::int64_t>(std::int64_t{64} << stage, 512);
    for (std::int64_t layer = 0; layer < depths[stage]; ++layer) {
      list.add(side, inputs, outputs, 3, 1);
      inputs = outputs;
    }
    side /= 2;
  }
  return list.shapes();
}

std::vector<ConvolutionCase> convolution_cases() {
  std::vector<ConvolutionCase> cases;
  for (const std::int64_t batch : {256, 32})
    for (const std::string precision : {"fp16", "tf32", "bf16", "fp32"})
      append_passes(cases, resnet50_convolutions(batch), precision);
  for (const std::int64_t batch : {32, 256})
    for (const std::string precision : {"fp16", "tf32", "bf16", "fp32"})
      append_passes(cases, vgg16_convolutions(batch), precision);
  return cases;
}

TableLayout convolution_table_layout() {
  const Cells key = {"precision", "batch",    "in_channels", "height", "width", "out_channels", "filter_h",
                     "filter_w",  "stride_h", "stride_w",    "pad_h",  "pad_w", "direction"};
  TableLayout layout{.columns = {"gpu"}, .key = key};
  layout.columns.insert(layout.columns.end(), key.begin(), key.end());
  for (const char* column : {"algorithm", "time_us", "source", "p10", "p90", "clock_mhz", "cold"})
    layout.columns.emplace_back(column);
  return layout;
}

Cells key_cells(const ConvolutionCase& convolution) {
  const Convolution& shape = convolution.shape;
  Cells cells = {convolution.precision};
  for (const std::int64_t size :
       {shape.batch, shape.inputs, shape.height, shape.width, shape.outputs, shape.kernel, shape.kernel,
        shape.stride, shape.stride, shape.padding, shape.padding})
    cells.push_back(fmt::to_string(size));
  cells.emplace_back(direction_of(convolution.pass));
  return cells;
}

}  // namespace lockstep::harness
