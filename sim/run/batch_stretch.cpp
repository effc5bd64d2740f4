#include "sim/run/batch_stretch.h"

#include "sim/base/random.h"
#include "sim/run/describe_input.h"

namespace lockstep {
namespace {

// Draws for lengths share nothing with those for other purposes.
constexpr std::uint64_t purpose = 0x6c656e67746873;

bool depends_on_length(Category category) {
  return category == Category::forward || category == Category::backward || category == Category::recompute;
}

}  // namespace

void stretch_by_length(Plan& plan, const std::vector<OpId>& begins, const Scenario& scenario) {
  const BatchLengths lengths = describe_lengths(scenario);
  const bool is_grouped = scenario.input->lengths->is_grouped;
  const std::uint64_t seed = mixed_bits(static_cast<std::uint64_t>(scenario.simulation.seed) ^ purpose);
  std::size_t batch = 0;
  std::size_t section = 0;
  for (const auto& [op, kernel] : plan.kernel_of) {
    while (batch < begins.size() && begins[batch] <= op) ++batch;
    while (section + 1 < plan.sections.size() && plan.sections[section + 1].first <= op) ++section;
    if (batch == 0 || !plan.kernels[kernel].is_model_work ||
        !depends_on_length(plan.sections[section].category))
      continue;
    const std::uint64_t rank = is_grouped ? 0 : plan.lanes[plan.lane[op.index]].rank.index;
    const std::int64_t tokens = lengths.draw(keyed_random(seed, rank, batch));
    std::int64_t& amount = plan.amount[op.index];
    amount =
        scaled(Duration::picoseconds(amount), tokens, scenario.model.model.tokens_per_sample).picoseconds();
  }
}

}  // namespace lockstep
