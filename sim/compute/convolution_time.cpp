#include "sim/compute/convolution_time.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::int64_t tensor_channels = 32;  // of one step through a filter's tap, whole or not
constexpr std::int64_t few_channels = 16;     // at least; DeepBench's images take a V100 as long as 20 would
constexpr std::int64_t least_winograd_depth = 24;  // channels that are summed over, or stand for fewer
constexpr std::int64_t large_tile = 6;             // of Winograd's transform through memory
constexpr std::int64_t frequency_tile = 32;        // of Fourier's
constexpr Duration one_start = Duration::microseconds(4);

// FLOPs that a vector lane could do while it visits one tap of a depthwise filter. Of four bytes frameworks run loops
// of their own, whose addresses and edges cost more than the product: 5 x 5 over 8 x 64 x 1024 x 1008 points takes an
// A100 25.0 ms forward and 89.0 ms backward (pytorch/pytorch pull requests 125362 and 129609; the GPU is taken to be
// one), 37 a visit forward; the maps (below) leave 70 for the data. 3 x 3 on a V100 gives 111 for both together
// (PaddlePaddle/Paddle 46332). Of two bytes libraries have kernels that are 1.2 to 5.8 times as quick on an A100
// (pytorch/pytorch 91735), whose cost by shape nobody published: 0.7 of the loops', backward the mean of both ways,
// between what EfficientNets' steps of a V100 and of an RTX 3090 say (0.5 to 1; README, computing without an anchor).
struct VisitCosts {
  std::int64_t forward;
  std::int64_t by_data;
  std::int64_t by_weights;  // 0: bound by the maps
};
constexpr VisitCosts loop_visits{37, 70, 0};
constexpr VisitCosts half_visits{26, 46, 46};

// A loop for the weights has a block for each tap, and each reads both maps once more, mostly from the cache: seven
// shapes on a V100 take 1.07 to 1.75 TB/s of them (PaddlePaddle/Paddle 46332), 1.65 times its memory's bandwidth in
// the mean.
constexpr Ratio maps_over_memory = Ratio::percent(165);

// A product at so much of the unit's efficiency: as one that is so much deeper.
struct ScaledProduct {
  GemmShape shape;
  std::int64_t elements;
  Ratio efficiency;
};

class ConvolutionTimer {
 public:
  ConvolutionTimer(const ProductUnit& unit, const ConvolutionConstants& constants,
                   const ConvolutionShape& shape, KernelDirection direction)
      : unit_(unit), constants_(constants), shape_(shape), direction_(direction) {}

  Duration time() const {
    if (shape_.is_depthwise())
      return std::max(memory_time(elements()), visiting()) + unit_.constants.start;
    Duration best = time_of({implicit_product(), elements(), efficiency()}) + filling();
    if (may_transform(3) && is_data() && constants_.winograd > Ratio{})
      best = std::min(best, time_of({small_winograd(), elements(), constants_.winograd}));
    if ((may_transform(3) || may_transform(5)) && constants_.large_winograd > Ratio{})
      best = std::min(best, large_winograd_time());
    if (may_use_frequencies())
      best = std::min(best, frequency_time());
    return best;
  }

 private:
  bool is_data() const { return direction_ != KernelDirection::by_weights; }
  bool is_backward_data() const { return direction_ == KernelDirection::by_data; }
  std::int64_t inputs() const { return shape_.in_channels / shape_.groups; }
  std::int64_t outputs() const { return shape_.out_channels / shape_.groups; }
  std::int64_t summed() const { return is_backward_data() ? outputs() : inputs(); }
  // A transform sums whole steps: a few channels cost as much as these.
  std::int64_t transformed_depth() const { return std::max(summed(), least_winograd_depth); }
  std::int64_t made() const { return is_backward_data() ? inputs() : outputs(); }
  std::int64_t strides() const { return shape_.stride_height * shape_.stride_width; }

  Ratio efficiency() const {
    return is_backward_data() ? constants_.by_data : (is_data() ? constants_.forward : constants_.by_weights);
  }

  std::int64_t taps() const { return shape_.filter_height * shape_.filter_width; }

  // Every tap of every point is visited by a vector lane.
  Duration visiting() const {
    const VisitCosts& costs = unit_.element_bytes > 2 ? loop_visits : half_visits;
    if (!is_data() && costs.by_weights == 0)
      return reading_maps_for_each_tap();
    const std::int64_t points = shape_.batch * shape_.out_height() * shape_.out_width();
    const std::int64_t visit =
        is_data() ? (is_backward_data() ? costs.by_data : costs.forward) : costs.by_weights;
    return time_to_compute(Flops{points * shape_.out_channels * taps() * visit}, unit_.lanes);
  }

  Duration reading_maps_for_each_tap() const {
    return time_to_move(Bytes{elements() * taps() * unit_.element_bytes}, unit_.memory_at(maps_over_memory));
  }

  std::int64_t padded(std::int64_t channels) const {
    if (!unit_.has_tensor_cores)
      return channels;
    return channels <= few_channels ? few_channels : divided_up(channels, tensor_channels) * tensor_channels;
  }

  // Tensor cores take the channels of neighbouring groups in one step: what lies beside the diagonal is multiplied with
  // nothing.
  std::int64_t groups_of_step() const {
    const std::int64_t width = std::max(inputs(), outputs());
    return unit_.has_tensor_cores ? std::clamp<std::int64_t>(tensor_channels / width, 1, shape_.groups) : 1;
  }

  // Tensor cores' kernels step through the taps that a parity of the stride meets, others through as many as any does.
  std::int64_t depth_of_parity(std::int64_t parities, std::int64_t channels) const {
    if (unit_.has_tensor_cores)
      return divided_up(channels * taps(), parities);
    return channels * divided_up(shape_.filter_height, shape_.stride_height) *
           divided_up(shape_.filter_width, shape_.stride_width);
  }

  // By data there is a product for each parity of the stride that meets a tap of the filter.
  GemmShape implicit_product() const {
    const std::int64_t points = shape_.batch * shape_.out_height() * shape_.out_width();
    const std::int64_t together = groups_of_step();
    const std::int64_t groups = divided_up(shape_.groups, together);
    const std::int64_t inputs = this->inputs() * together;
    const std::int64_t outputs = this->outputs() * together;
    if (!is_data())
      return {.batch = groups, .m = outputs, .n = inputs * taps(), .k = points};
    if (!is_backward_data())
      return {.batch = groups, .m = points, .n = outputs, .k = padded(inputs) * taps()};
    const std::int64_t parities = std::min(shape_.filter_height, shape_.stride_height) *
                                  std::min(shape_.filter_width, shape_.stride_width);
    return {.batch = groups * parities,
            .m = shape_.batch * divided_up(shape_.height, shape_.stride_height) *
                 divided_up(shape_.width, shape_.stride_width),
            .n = inputs,
            .k = depth_of_parity(parities, padded(outputs))};
  }

  // What no tap of a strided filter reaches is set to nothing first.
  Duration filling() const {
    return is_backward_data() && strides() > 1 ? one_start + memory_time(input_elements()) : Duration::zero();
  }

  bool may_transform(std::int64_t filter) const {
    return shape_.groups == 1 && strides() == 1 && shape_.filter_height == filter &&
           shape_.filter_width == filter;
  }

  std::int64_t tiles_of(std::int64_t side) const {
    const std::int64_t height = is_backward_data() ? shape_.height : shape_.out_height();
    const std::int64_t width = is_backward_data() ? shape_.width : shape_.out_width();
    return shape_.batch * divided_up(height, side) * divided_up(width, side);
  }

  // 16 products for the 4 outputs of a tile, where there were 36.
  GemmShape small_winograd() const {
    return {.m = 4 * tiles_of(2), .n = made(), .k = 4 * transformed_depth()};
  }

  // Tiles of 6 x 6 through memory: a product for each of the 36 places.
  Duration large_winograd_time() const {
    return transformed_time({.tiles = tiles_of(large_tile + 1 - shape_.filter_height),
                             .places = large_tile * large_tile,
                             .numbers = 1,
                             .multiplications = 1});
  }

  bool may_use_frequencies() const {
    return constants_.large_winograd > Ratio{} && shape_.groups == 1 && strides() == 1 &&
           std::min(shape_.filter_height, shape_.filter_width) > 3 &&
           std::max(shape_.filter_height, shape_.filter_width) <= frequency_tile / 2;
  }

  // Fourier's transform of tiles of 32 x 32: half of the frequencies tell the rest, and a complex product is
  // four.
  Duration frequency_time() const {
    const std::int64_t filter = std::max(shape_.filter_height, shape_.filter_width);
    return transformed_time({.tiles = tiles_of(frequency_tile + 1 - filter),
                             .places = frequency_tile * (frequency_tile / 2 + 1),
                             .numbers = 2,
                             .multiplications = 4});
  }

  // What becomes of maps and filters tile by tile, in memory.
  struct Transform {
    std::int64_t tiles;
    std::int64_t places;           // of a tile, each with a product of its own
    std::int64_t numbers;          // at each place
    std::int64_t multiplications;  // of two of them
  };

  Duration transformed_time(const Transform& transform) const {
    const auto& [tiles, places, numbers, multiplications] = transform;
    const GemmShape product =
        is_data()
            ? GemmShape{.batch = places, .m = tiles, .n = made(), .k = transformed_depth() * multiplications}
            : GemmShape{.batch = places, .m = outputs(), .n = inputs(), .k = tiles * multiplications};
    const std::int64_t transformed =
        places * numbers * (tiles * (inputs() + outputs()) + inputs() * outputs());
    const Duration transforms =
        divided_up(memory_time(elements() + transformed), std::max(constants_.transform, Ratio::smallest()));
    return time_of({product, transformed, constants_.large_winograd}) + transforms + one_start * 3;
  }

  std::int64_t input_elements() const {
    return shape_.batch * shape_.in_channels * shape_.height * shape_.width;
  }
  std::int64_t elements() const {
    const std::int64_t made = shape_.batch * shape_.out_channels * shape_.out_height() * shape_.out_width();
    const std::int64_t filters = shape_.out_channels * inputs() * shape_.filter_height * shape_.filter_width;
    return input_elements() + made + filters;
  }

  Duration memory_time(std::int64_t elements) const {
    return time_to_move(Bytes{elements * unit_.element_bytes},
                        unit_.memory_at(unit_.constants.memory_efficiency));
  }

  Duration time_of(const ScaledProduct& product) const {
    GemmShape shape = product.shape;
    shape.k = divided_up(shape.k, std::max(product.efficiency, Ratio::smallest()));
    return product_time(unit_, shape, product.elements);
  }

  const ProductUnit& unit_;
  const ConvolutionConstants& constants_;
  const ConvolutionShape& shape_;
  KernelDirection direction_;
};

}  // namespace

Duration convolution_time(const ProductUnit& unit, const ConvolutionConstants& constants,
                          const ConvolutionShape& shape, KernelDirection direction) {
  return ConvolutionTimer(unit, constants, shape, direction).time();
}

}  // namespace lockstep
