#include "sim/engine/jitter.h"

#include <utility>

#include "sim/base/random.h"
#include "sim/base/units.h"

namespace lockstep {
namespace {

std::optional<RandomTable> table_of(const JitterSpec& spec) {
  if (spec.distribution == JitterDistribution::none || spec.coefficient_of_variation == Ratio{})
    return std::nullopt;
  return spec.distribution == JitterDistribution::gamma
             ? RandomTable::gamma(spec.coefficient_of_variation)
             : RandomTable::lognormal(spec.coefficient_of_variation);
}

// Each iteration has this many draws of its own; key 0 belongs to what never changes (permanent stragglers).
constexpr std::uint64_t draws_per_iteration = 1'024;

constexpr auto parts_of_one = static_cast<std::uint64_t>(Ratio::one().parts_per_million());

}  // namespace

Jitter::Jitter(const JitterSpec& spec, std::vector<PassingStraggler> stragglers, std::int64_t seed)
    : table_(table_of(spec)), stragglers_(std::move(stragglers)), seed_(static_cast<std::uint64_t>(seed)) {}

Ratio Jitter::factor(std::uint32_t rank, std::int64_t iteration) const {
  std::uint64_t key = (static_cast<std::uint64_t>(iteration) + 1) * draws_per_iteration;
  Ratio factor = table_ ? table_->draw(keyed_random(seed_, rank, key)) : Ratio::one();
  for (const PassingStraggler& straggler : stragglers_) {
    const std::uint64_t draw = random_below(keyed_random(seed_, rank, ++key), parts_of_one);
    if (Ratio::parts_per_million(static_cast<std::int64_t>(draw)) < straggler.probability)
      factor = scaled_up(factor, straggler.slowdown);
  }
  return factor;
}

}  // namespace lockstep
