// Laws of what kernels take, on every shipped GPU in every precision that it states, for drawn shapes.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "sim/compute/kernel_time.h"
#include "sim/study/bench/kernel_prediction.h"
#include "tests/support/property.h"
#include "tests/support/scenarios.h"

namespace lockstep::computing_test {

constexpr int cases = 100;

struct Unit {
  GpuSpec gpu;
  Operands operands;

  // As if each row began where a vector load may.
  Duration time(const Kernel& kernel) const {
    Operands padded = operands;
    padded.are_padded = true;
    return product_time(gpu, padded, kernel);
  }
  Duration time_where_rows_begin(const Kernel& kernel) const { return product_time(gpu, operands, kernel); }
  std::string name() const {
    return fmt::format("{} at precision {}", gpu.name, static_cast<int>(operands.precision));
  }
};

const std::vector<Unit>& shipped_units() {
  static const std::vector<Unit> units = [] {
    std::vector<Unit> found;
    for (const std::string& name : shipped_profiles().names(ProfileKind::gpu))
      if (const GpuSpec gpu = load_gpu(name, shipped_profiles()); gpu.kernels)
        for (const auto& [precision, peak] : gpu.peak) found.push_back({gpu, Operands::of(precision)});
    return found;
  }();
  return units;
}

// An octave and a place in it: small sizes are as likely as large ones, and few are powers of two.
std::int64_t drawn(std::int64_t most) {
  const std::int64_t from = std::int64_t{1}
                            << *rc::gen::inRange(0, 63 - std::countl_zero(std::uint64_t(most)) + 1);
  return std::min(*rc::gen::inRange(from, 2 * from), most);
}

GemmShape drawn_product() {
  return {.batch = drawn(64), .m = drawn(30'000), .n = drawn(30'000), .k = drawn(30'000)};
}

ConvolutionShape drawn_convolution() {
  const auto filter = *rc::gen::element<std::int64_t>(1, 3, 5, 7);
  const auto stride = *rc::gen::element<std::int64_t>(1, 1, 2);
  const std::int64_t height = filter + drawn(200);
  return {.batch = drawn(256),
          .in_channels = drawn(1'000),
          .height = height,
          .width = height + drawn(20),
          .out_channels = drawn(1'000),
          .filter_height = filter,
          .filter_width = filter,
          .stride_height = stride,
          .stride_width = stride,
          .pad_height = filter / 2,
          .pad_width = filter / 2};
}

AttentionShape drawn_attention() {
  const auto width = *rc::gen::element<std::int64_t>(32, 64, 80, 128, 192);
  const std::int64_t kv_heads = drawn(16);
  return {.batch = drawn(64),
          .sequence = drawn(10'000),
          .heads = kv_heads * drawn(8),
          .kv_heads = kv_heads,
          .query_width = width,
          .value_width = width,
          .is_causal = *rc::gen::arbitrary<bool>(),
          .fills_cache = *rc::gen::arbitrary<bool>(),
          .library = *rc::gen::element(AttentionLibrary::flash_attention, AttentionLibrary::flash_attention_2,
                                       AttentionLibrary::tensorrt_llm)};
}

// For attention by data stands for its one backward.
KernelDirection drawn_direction() {
  return *rc::gen::element(KernelDirection::forward, KernelDirection::by_data, KernelDirection::by_weights);
}

template <class Shape>
using Sizes = std::vector<std::int64_t Shape::*>;

const Sizes<GemmShape> product_sizes{&GemmShape::batch, &GemmShape::m, &GemmShape::n, &GemmShape::k};
const Sizes<ConvolutionShape> convolution_sizes{&ConvolutionShape::batch, &ConvolutionShape::in_channels,
                                                &ConvolutionShape::height, &ConvolutionShape::width,
                                                &ConvolutionShape::out_channels};
const Sizes<AttentionShape> attention_sizes{&AttentionShape::batch,       &AttentionShape::sequence,
                                            &AttentionShape::heads,       &AttentionShape::kv_heads,
                                            &AttentionShape::query_width, &AttentionShape::value_width};

struct Growth {
  Kernel small;
  Kernel large;
};

// One of the sizes by one or twice as large.
template <class Shape>
Growth drawn_growth(Shape (*draw)(), const Sizes<Shape>& sizes) {
  const Shape shape = draw();
  const KernelDirection direction = drawn_direction();
  const auto size = *rc::gen::elementOf(sizes);
  Shape larger = shape;
  larger.*size = *rc::gen::arbitrary<bool>() ? larger.*size + 1 : larger.*size * 2;
  return {{shape, direction}, {larger, direction}};
}

template <class Shape>
void check_growth(Shape (*draw)(), const Sizes<Shape>& sizes) {
  check_for_all(cases, "a larger kernel takes no less", [&] {
    const Growth growth = drawn_growth(draw, sizes);
    for (const Unit& unit : shipped_units())
      if (unit.time(growth.large) < unit.time(growth.small))
        RC_FAIL(unit.name());
  });
}

TEST_CASE("longer, wider and more attention never takes less") {
  check_growth(drawn_attention, attention_sizes);
}

TEST_CASE("a larger product or convolution never takes less") {
  check_growth(drawn_product, product_sizes);
  check_growth(drawn_convolution, convolution_sizes);
}

TEST_CASE(
    "rows that begin anywhere never make a product faster, nor those at a multiple of 32 bytes slower") {
  check_for_all(cases, "alignment only costs", [&] {
    const KernelDirection direction = drawn_direction();
    const GemmShape shape = drawn_product();
    GemmShape aligned = shape;
    for (std::int64_t* side : {&aligned.n, &aligned.k}) *side = divided_up(*side, 32) * 32;
    for (const Unit& unit : shipped_units())
      if (unit.time_where_rows_begin({shape, direction}) < unit.time({shape, direction}) ||
          unit.time_where_rows_begin({aligned, direction}) != unit.time({aligned, direction}))
        RC_FAIL(unit.name());
  });
}

// A kernel of twice the batch against two of the one, whose start is paid twice. What of a wave is begun may
// be cut in depth for the one and not for two, where there are tiles enough: that is the share allowed
// beyond.
template <class Shape>
void check_twice(Shape (*draw)(), std::int64_t Shape::*size, std::int64_t most_percent) {
  check_for_all(cases, "twice as much takes no more than twice as long", [&] {
    const Shape shape = draw();
    const KernelDirection direction = drawn_direction();
    Shape twice = shape;
    twice.*size *= 2;
    for (const Unit& unit : shipped_units())
      if (unit.time({twice, direction}) * 100 > unit.time({shape, direction}) * 2 * most_percent)
        RC_FAIL(unit.name());
  });
}

TEST_CASE("twice the batch never takes more than twice as long, but for what waves leave over") {
  check_twice(drawn_attention, &AttentionShape::batch, 100);
  check_twice(drawn_attention, &AttentionShape::heads, 100);
  check_twice(drawn_product, &GemmShape::batch, 120);
  check_twice(drawn_product, &GemmShape::m, 120);
  check_twice(drawn_convolution, &ConvolutionShape::batch, 120);
}

// Rounded up, so that peaks of two precisions do not part.
FlopRate more(FlopRate rate, std::int64_t parts, std::int64_t of) {
  return FlopRate{arithmetic::product_divided_up(rate.count(), parts, of)};
}

Unit with_peak(Unit unit, std::int64_t parts, std::int64_t of) {
  for (auto& [precision, peak] : unit.gpu.peak) peak = more(peak, parts, of);
  unit.gpu.vector_peak = more(unit.gpu.vector_peak, parts, of);
  return unit;
}

// SMs of the same rate: more of them raise the peak.
Unit with_sms(Unit unit, std::int64_t sms) {
  const std::int64_t before = std::exchange(unit.gpu.sms, sms);
  return with_peak(std::move(unit), sms, before);
}

Unit with_memory(Unit unit, std::int64_t percent) {
  unit.gpu.memory_bandwidth = Bandwidth{unit.gpu.memory_bandwidth.count() / 100 * percent};
  return unit;
}

Unit with_power(Unit unit, std::int64_t percent) {
  unit.gpu.tdp_milliwatts = unit.gpu.tdp_milliwatts / 100 * percent;
  return unit;
}

Kernel drawn_kernel() {
  const KernelDirection direction = drawn_direction();
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      return {drawn_product(), direction};
    case 1:
      return {drawn_convolution(), direction};
    default:
      return {drawn_attention(), direction};
  }
}

TEST_CASE("a GPU with a higher peak, quicker memory or more SMs is never slower") {
  check_for_all(cases, "a quicker GPU is never slower", [] {
    const Kernel kernel = drawn_kernel();
    const auto percent = *rc::gen::inRange<std::int64_t>(101, 400);
    const auto further_sms = *rc::gen::inRange<std::int64_t>(1, 100);
    for (const Unit& unit : shipped_units()) {
      const Duration time = unit.time(kernel);
      if (with_peak(unit, percent, 100).time(kernel) > time)
        RC_FAIL(unit.name() + " with a higher peak");
      if (with_memory(unit, percent).time(kernel) > time)
        RC_FAIL(unit.name() + " with quicker memory");
      if (with_sms(unit, unit.gpu.sms + further_sms).time(kernel) > time)
        RC_FAIL(unit.name() + " with more SMs");
    }
  });
}

TEST_CASE("a GPU that may draw more is never slower, and one that may draw less never quicker") {
  check_for_all(cases, "more watts never slow a kernel down", [] {
    const Kernel kernel = drawn_kernel();
    const auto more_percent = *rc::gen::inRange<std::int64_t>(101, 400);
    const auto less_percent = *rc::gen::inRange<std::int64_t>(10, 100);
    for (const Unit& unit : shipped_units()) {
      const Duration time = unit.time(kernel);
      if (with_power(unit, more_percent).time(kernel) > time)
        RC_FAIL(unit.name() + " with more watts");
      if (with_power(unit, less_percent).time(kernel) < time)
        RC_FAIL(unit.name() + " with fewer watts");
    }
  });
}

// A large product of a GPU whose units are known to draw more than the half of what it may.
TEST_CASE("a GPU of half the watts multiplies slower, and moves bytes as before") {
  const GpuSpec whole = load_gpu("h100_sxm_80gb", shipped_profiles());
  GpuSpec half = whole;
  half.tdp_milliwatts /= 2;
  const Operands operands = Operands::of(Precision::bf16);
  const Kernel large{.shape = GemmShape{.m = 8192, .n = 8192, .k = 8192}};
  const Kernel thin{.shape = GemmShape{.m = 1, .n = 8192, .k = 8192}};
  CHECK(product_time(half, operands, large) * 4 > product_time(whole, operands, large) * 5);
  CHECK(product_time(half, operands, thin) == product_time(whole, operands, thin));
  CHECK(achieved_memory_bandwidth(half) == achieved_memory_bandwidth(whole));
}

}  // namespace lockstep::computing_test
