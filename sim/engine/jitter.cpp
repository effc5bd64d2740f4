#include "sim/engine/jitter.h"

#include <utility>

#include "sim/base/random.h"
#include "sim/base/units.h"

namespace lockstep {
namespace {

std::optional<RandomTable> table_of(const JitterSpec& spec) {
  if (spec.distribution == JitterDistribution::none || spec.coefficient_of_variation_ppm == 0)
    return std::nullopt;
  return spec.distribution == JitterDistribution::gamma
             ? RandomTable::gamma(spec.coefficient_of_variation_ppm)
             : RandomTable::lognormal(spec.coefficient_of_variation_ppm);
}

// Each iteration has this many draws of its own; key 0 belongs to what never changes (permanent stragglers).
constexpr std::uint64_t draws_per_iteration = 1'024;

}  // namespace

Jitter::Jitter(const JitterSpec& spec, std::vector<PassingStraggler> stragglers, std::int64_t seed)
    : table_(table_of(spec)), stragglers_(std::move(stragglers)), seed_(static_cast<std::uint64_t>(seed)) {}

std::int64_t Jitter::factor_ppm(std::uint32_t rank, std::int64_t iteration) const {
  std::uint64_t key = (static_cast<std::uint64_t>(iteration) + 1) * draws_per_iteration;
  std::int64_t factor = table_ ? table_->draw(keyed_random(seed_, rank, key)) : million;
  for (const PassingStraggler& straggler : stragglers_) {
    const std::uint64_t draw = random_below(keyed_random(seed_, rank, ++key), million);
    if (static_cast<std::int64_t>(draw) < straggler.probability_ppm)
      factor = arithmetic::product_divided_up(factor, straggler.slowdown_ppm, million);
  }
  return factor;
}

}  // namespace lockstep
