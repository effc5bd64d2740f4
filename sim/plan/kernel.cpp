#include "sim/plan/kernel.h"

namespace lockstep {
namespace {

GemmShape grown(GemmShape shape, std::int64_t samples, bool has_weights) {
  (has_weights ? shape.m : shape.batch) *= samples;
  return shape;
}

template <class Shape>
Shape grown(Shape shape, std::int64_t samples, bool) {
  shape.batch *= samples;
  return shape;
}

}  // namespace

ProductShape for_samples(const ProductShape& shape, std::int64_t samples, bool has_weights) {
  return std::visit([&](const auto& one) { return ProductShape(grown(one, samples, has_weights)); }, shape);
}

}  // namespace lockstep
