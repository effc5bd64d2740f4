#include "validate/harness/stand_in/random_order.h"

#include "sim/base/random.h"

namespace lockstep::harness::stand_in {

RandomOrder::RandomOrder(std::uint64_t seed, Streams& streams) : seed_(seed), streams_(streams) {
  eagerness_ = draw(eighths + 1);
}

std::uint64_t RandomOrder::draw(std::uint64_t below) {
  return random_below(keyed_random(seed_, 0, draws_++), below);
}

bool RandomOrder::is_eager() {
  return draw(eighths) < eagerness_;
}

bool RandomOrder::step() {
  if (draw(steps_of_a_priority) == 0)
    ++epoch_;
  CUstream_st* first = nullptr;
  std::uint64_t highest = 0;
  for (const auto& stream : streams_.all()) {
    const std::uint64_t priority = keyed_random(seed_, 1 + stream->line, epoch_);
    if ((first != nullptr && priority <= highest) || !streams_.can_go_on(*stream))
      continue;
    first = stream.get();
    highest = priority;
  }
  if (first == nullptr)
    return false;
  // Without a clock a moment is its place in the order of all.
  streams_.finish_first(*first, static_cast<double>(++steps_) * 1e-6);
  return true;
}

}  // namespace lockstep::harness::stand_in
