#include "sim/report/held_clock.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/compute/kernel_time.h"

namespace lockstep {
namespace {

// Of a product that nothing but its tiles holds up.
constexpr GemmShape large{.m = 8192, .n = 8192, .k = 8192};

struct HeldClock {
  PowerLimit limit;
  double drawn_watts = 0;  // at the boost clock, standby and all
  double share = 1;        // of the boost clock
};

double watts(Milliwatts power) {
  return static_cast<double>(power.count) / 1e3;
}

HeldClock held_clock(const Scenario& scenario) {
  const GpuSpec& gpu = scenario.cluster.gpu;
  Operands operands = Operands::of(scenario.model.precision);
  HeldClock clock{.limit = power_limit(gpu, operands.precision)};
  if (clock.limit.draw.count == 0)
    return clock;
  const double held_s = product_time(gpu, operands, {.shape = large}).in_seconds();
  operands.clock = Clock::boost;
  const double boost_s = product_time(gpu, operands, {.shape = large}).in_seconds();
  const double teraflops = 2e-12 * static_cast<double>(large.m * large.n * large.k);
  const double standby = watts(gpu.kernels->memory.standby) * static_cast<double>(gpu.sms);
  clock.drawn_watts = standby + teraflops / boost_s * watts(clock.limit.draw);
  clock.share = boost_s / held_s;
  return clock;
}

double board_watts(const Scenario& scenario) {
  return watts({scenario.cluster.gpu.tdp_milliwatts});
}

}  // namespace

std::string tell_clock(const Scenario& scenario) {
  const HeldClock clock = held_clock(scenario);
  if (clock.limit.draw.count == 0)
    return "boost; nobody knows what the units that multiply draw";
  if (clock.limit.board.count == 0)
    return "boost; the GPU states no tdp";
  const std::string held = clock.share == 1 ? "boost" : fmt::format("{:.0f} % of boost", 100 * clock.share);
  return fmt::format("{} in large products, which draw {:.0f} W at boost, of {:.0f} W", held,
                     clock.drawn_watts, board_watts(scenario));
}

nlohmann::ordered_json clock_json(const Scenario& scenario) {
  const HeldClock clock = held_clock(scenario);
  if (clock.limit.draw.count == 0 || clock.limit.board.count == 0)
    return nullptr;
  return {{"share", clock.share}, {"board_w", board_watts(scenario)}, {"drawn_w", clock.drawn_watts}};
}

}  // namespace lockstep
