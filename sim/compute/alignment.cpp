#include "sim/compute/alignment.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::int64_t half = 2;  // bytes

// The greatest power of two that divides it.
std::int64_t alignment_of(std::int64_t bytes) {
  return bytes & -bytes;
}

Ratio along_depth(const AlignmentConstants& constants, std::int64_t bytes) {
  const std::int64_t alignment = alignment_of(bytes);
  if (alignment <= 2)
    return constants.depth_by_2;
  if (alignment <= 8)
    return constants.depth_by_4;
  return alignment <= 16 ? constants.depth_by_16 : Ratio{};
}

Ratio across_depth(const AlignmentConstants& constants, std::int64_t bytes) {
  const std::int64_t alignment = alignment_of(bytes);
  if (alignment <= 2)
    return constants.width_by_2;
  return alignment <= 8 ? constants.width_by_4 : Ratio{};
}

// `bound` in what the lanes make of halves; zero: none.
Ratio part_within(const ProductUnit& unit, Ratio bound) {
  if (bound == Ratio{})
    return Ratio::one();
  const std::int64_t fed = unit.lanes_of_sm(bound).count() * half / unit.element_bytes;
  const std::int64_t whole = unit.of_sm(unit.constants.efficiency).count();
  return fed >= whole ? Ratio::one()
                      : Ratio::parts_per_million(arithmetic::product_divided_up(fed, million, whole));
}

}  // namespace

Ratio aligned_part(const ProductUnit& unit, const GemmShape& shape, KernelDirection direction) {
  const AlignmentConstants& constants = unit.alignment;
  const std::int64_t outputs = shape.n * unit.element_bytes;
  const std::int64_t inputs = shape.k * unit.element_bytes;
  const auto worse = [&](Ratio one, Ratio other) {
    return std::min(part_within(unit, one), part_within(unit, other));
  };
  if (direction == KernelDirection::by_weights)
    return worse(across_depth(constants, outputs), across_depth(constants, inputs));
  const bool is_by_data = direction == KernelDirection::by_data;
  return worse(along_depth(constants, is_by_data ? outputs : inputs),
               across_depth(constants, is_by_data ? inputs : outputs));
}

}  // namespace lockstep
