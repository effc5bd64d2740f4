#include "sim/run/stage_balance.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/base/check.h"
#include "sim/run/describe_job.h"
#include "sim/run/model_stages.h"
#include "sim/run/pricing.h"
#include "sim/training/memory.h"
#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {
namespace {

std::vector<LayerRange> blocks_of(const Job& job) {
  std::vector<std::int64_t> blocks;
  for (const LayerWork& layer : job.layers) blocks.push_back(layer.block);
  return layers_of_blocks(blocks);
}

// By block: the sum of what comes before it; one more at the end.
class Sums {
 public:
  explicit Sums(const std::vector<std::int64_t>& values) {
    for (const std::int64_t value : values) before_.push_back(before_.back() + value);
  }
  std::int64_t of(std::size_t first, std::size_t last) const { return before_[last] - before_[first]; }

 private:
  std::vector<std::int64_t> before_ = {0};
};

// What a part of some blocks takes or holds: `alone`, and `in_flight` for each micro-batch that the part has in flight.
struct PartCosts {
  Sums alone;
  Sums in_flight;
  std::vector<std::int64_t> micro_batches;  // by part

  std::int64_t of(std::size_t part, std::size_t first, std::size_t last) const {
    return alone.of(first, last) + in_flight.of(first, last) * micro_batches[part];
  }
};

class Partitioner {
 public:
  Partitioner(const PartCosts& costs, std::size_t blocks)
      : costs_(costs), parts_(costs.micro_batches.size()), blocks_(blocks) {}

  std::vector<std::int64_t> most_even() {
    const auto greatest = [](Unsigned128 so_far, std::int64_t part) {
      return std::max(so_far, static_cast<Unsigned128>(part));
    };
    const auto squares = [](Unsigned128 so_far, std::int64_t part) {
      return so_far + static_cast<Unsigned128>(part) * static_cast<Unsigned128>(part);
    };
    fill(greatest, std::numeric_limits<std::int64_t>::max());
    const Unsigned128 least = best_[parts_][blocks_].value;
    fill(squares, static_cast<std::int64_t>(least));
    return blocks_by_part();
  }

 private:
  struct Best {
    Unsigned128 value = ~Unsigned128{0};  // none
    std::size_t begin = 0;                // of the last part
  };

  // Of the first parts, up to any block: the least that `add` makes of parts no greater than `most`.
  template <class Add>
  void fill(const Add& add, std::int64_t most) {
    best_.assign(parts_ + 1, std::vector<Best>(blocks_ + 1));
    best_[0][0].value = 0;
    for (std::size_t part = 0; part < parts_; ++part)
      for (std::size_t last = part + 1; last + (parts_ - part - 1) <= blocks_; ++last)
        for (std::size_t first = part; first < last; ++first)
          offer(best_[part + 1][last], best_[part][first], first, costs_.of(part, first, last), add, most);
  }

  template <class Add>
  static void offer(Best& best, const Best& before, std::size_t begin, std::int64_t cost, const Add& add,
                    std::int64_t most) {
    if (before.value == ~Unsigned128{0} || cost > most)
      return;
    if (const Unsigned128 value = add(before.value, cost); value < best.value)
      best = {value, begin};
  }

  std::vector<std::int64_t> blocks_by_part() const {
    std::vector<std::int64_t> counts(parts_);
    std::size_t last = blocks_;
    for (std::size_t part = parts_; part-- > 0;) {
      const std::size_t first = best_[part + 1][last].begin;
      counts[part] = static_cast<std::int64_t>(last - first);
      last = first;
    }
    return counts;
  }

  const PartCosts& costs_;
  std::size_t parts_;
  std::size_t blocks_;
  std::vector<std::vector<Best>> best_;  // by number of parts, by number of blocks
};

template <class OfLayer>
std::vector<std::int64_t> by_block(const std::vector<LayerRange>& blocks, const OfLayer& of_layer) {
  std::vector<std::int64_t> sums;
  for (const LayerRange& block : blocks) {
    std::int64_t& sum = sums.emplace_back(0);
    for (std::size_t layer = block.first; layer < block.last; ++layer) sum += of_layer(layer);
  }
  return sums;
}

PartCosts time_costs(const Scenario& scenario, const Job& job, const std::vector<LayerRange>& blocks) {
  const std::vector<LayerTime> times = layer_times(scenario, job);
  const auto of_layer = [&](std::size_t layer) {
    return (times[layer].forward + times[layer].backward + times[layer].recompute).picoseconds();
  };
  const Layout& layout = scenario.training.layout;
  const auto parts = static_cast<std::size_t>(parts_of_model(layout));
  return {.alone = Sums(by_block(blocks, of_layer)),
          .in_flight = Sums(std::vector<std::int64_t>(blocks.size())),
          .micro_batches = std::vector<std::int64_t>(parts)};
}

// By gradient: its weight, itself and its states, as a rank holds them.
class StandingBytes {
 public:
  StandingBytes(const Scenario& scenario, const Job& job)
      : job_(job),
        dense_(memory_shares(job, scenario.synchronised_ranks())),
        experts_(memory_shares(job, copies_of_expert(scenario.training.layout))),
        state_bytes_(state_bytes(job).count() / std::max<std::int64_t>(element_count(job.gradients), 1)),
        half_copy_bytes_(is_mixed(scenario.model.precision) ? 2 : 0),
        roles_(parallel_model(scenario.model.model, scenario.training.layout.degrees).parameters) {}

  std::int64_t of(std::uint32_t gradient) const {
    const bool is_expert = gradient < roles_.size() && roles_[gradient].is_expert;
    const MemoryShares& shares = is_expert ? experts_ : dense_;
    const std::int64_t elements = element_count(job_.gradients[gradient]);
    const std::int64_t bytes = job_.gradients[gradient].bytes.count();
    const auto part = [](std::int64_t whole, std::int64_t parts) {
      return parts == 0 ? 0 : divided_up(whole, parts);
    };
    return part(bytes + elements * half_copy_bytes_, shares.weights) + part(bytes, shares.gradients) +
           part(elements * state_bytes_, shares.states);
  }

 private:
  const Job& job_;
  MemoryShares dense_;
  MemoryShares experts_;
  std::int64_t state_bytes_;
  std::int64_t half_copy_bytes_;  // that AMP keeps beside fp32 weights
  std::vector<ParameterRole> roles_;
};

std::vector<std::int64_t> in_flight_by_part(const Scenario& scenario) {
  const Layout& layout = scenario.training.layout;
  const PipelineSchedule& schedule = pipeline_schedule_named(layout.schedule);
  const PipelineShape shape{.stages = layout.pipeline,
                            .chunks = layout.chunks,
                            .micro_batches = scenario.training.gradient_accumulation};
  std::vector<std::int64_t> most(static_cast<std::size_t>(schedule.parts_of_model(shape)));
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    const std::vector<Pass> passes = schedule.passes(shape, stage);
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      std::vector<Pass> own = passes;
      std::erase_if(own, [chunk](const Pass& pass) { return pass.chunk != chunk; });
      std::int64_t& of_part =
          most[static_cast<std::size_t>(schedule.part(shape, stage, chunk)) % most.size()];
      of_part = std::max(of_part, most_in_flight(own));
    }
  }
  return most;
}

PartCosts memory_costs(const Scenario& scenario, const Job& job, const std::vector<LayerRange>& blocks) {
  const StandingBytes standing(scenario, job);
  const auto stands = [&](std::size_t layer) {
    std::int64_t bytes = 0;
    for (const std::uint32_t gradient : job.layers[layer].gradients) bytes += standing.of(gradient);
    return bytes;
  };
  const auto keeps = [&](std::size_t layer) { return job.layers[layer].kept.count(); };
  return {.alone = Sums(by_block(blocks, stands)),
          .in_flight = Sums(by_block(blocks, keeps)),
          .micro_batches = in_flight_by_part(scenario)};
}

}  // namespace

std::vector<std::int64_t> balanced_blocks(const Scenario& scenario, StageBalance by) {
  const Job job = describe_job(scenario);
  const std::vector<LayerRange> blocks = blocks_of(job);
  const PartCosts costs =
      by == StageBalance::time ? time_costs(scenario, job, blocks) : memory_costs(scenario, job, blocks);
  LOCKSTEP_CHECK(costs.micro_batches.size() <= blocks.size(), "load deals every part a block");
  return Partitioner(costs, blocks.size()).most_even();
}

}  // namespace lockstep
