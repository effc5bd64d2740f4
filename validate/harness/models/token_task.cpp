#include "validate/harness/models/token_task.h"

#include <numeric>

#include "sim/base/random.h"

namespace lockstep::harness {

namespace {

constexpr std::uint64_t surprise_every = 8;

std::int64_t below(std::uint64_t bits, std::int64_t bound) {
  return static_cast<std::int64_t>(random_below(bits, static_cast<std::uint64_t>(bound)));
}

std::int64_t factor_without_common_divisor(std::int64_t first_tried, std::int64_t vocabulary) {
  while (std::gcd(first_tried, vocabulary) != 1) ++first_tried;
  return first_tried;
}

}  // namespace

TokenTask::TokenTask(std::uint64_t seed, std::int64_t sequence, std::int64_t vocabulary)
    : seed_(mixed_bits(seed + 1)),
      sequence_(sequence),
      vocabulary_(vocabulary),
      factor_(factor_without_common_divisor(1 + below(mixed_bits(seed + 2), vocabulary), vocabulary)),
      offset_(below(mixed_bits(seed + 3), vocabulary)) {}

TaskShape TokenTask::shape() const {
  return {.input_type = Type::int32, .inputs = sequence_, .targets = sequence_};
}

// Even draws choose tokens, odd ones whether the rule is broken.
void TokenTask::write(std::int64_t sample, const HostSample& to) const {
  const auto draw = [&](std::size_t number) {
    return keyed_random(seed_, static_cast<std::uint64_t>(sample), number);
  };
  std::int64_t token = below(draw(0), vocabulary_);
  for (std::size_t position = 0; position < to.tokens.size(); ++position) {
    to.tokens[position] = static_cast<std::int32_t>(token);
    const bool is_surprise = random_below(draw(2 * position + 1), surprise_every) == 0;
    token = is_surprise ? below(draw(2 * position + 2), vocabulary_) : rule(token);
    to.targets[position] = static_cast<std::int32_t>(token);
  }
}

}  // namespace lockstep::harness
