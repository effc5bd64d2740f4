#include "validate/harness/models/pattern_task.h"

#include "sim/base/random.h"
#include "validate/harness/layers/draws.h"

namespace lockstep::harness {

namespace {

// What a draw is for; the seed itself draws parameters.
enum class Use : std::uint64_t { answers = 1, patterns = 2, noise = 3 };

std::uint64_t seed_for(Use use, std::uint64_t seed) {
  return mixed_bits(seed + static_cast<std::uint64_t>(use));
}

}  // namespace

TaskShape PatternTask::shape() const {
  return {.inputs = options_.height * options_.width * options_.channels, .targets = 1};
}

float PatternTask::pattern(std::uint64_t wanted_class, std::int64_t element) const {
  const std::int64_t channel = element % options_.channels;
  const std::int64_t column = element / options_.channels % options_.width / options_.cell;
  const std::int64_t row = element / options_.channels / options_.width / options_.cell;
  const std::int64_t cell = (row * options_.width + column) * options_.channels + channel;
  return normal_draw(
      keyed_random(seed_for(Use::patterns, options_.seed), wanted_class, static_cast<std::uint64_t>(cell)));
}

void PatternTask::write(std::int64_t sample, const HostSample& to) const {
  const auto number = static_cast<std::uint64_t>(sample);
  const std::uint64_t answer = random_below(keyed_random(seed_for(Use::answers, options_.seed), number, 0),
                                            static_cast<std::uint64_t>(options_.classes));
  to.targets[0] = static_cast<std::int32_t>(answer);
  const std::uint64_t noise_seed = seed_for(Use::noise, options_.seed);
  for (std::size_t element = 0; element < to.numbers.size(); ++element) {
    to.numbers[element] = pattern(answer, static_cast<std::int64_t>(element)) +
                          normal_draw(keyed_random(noise_seed, number, element));
  }
}

}  // namespace lockstep::harness
