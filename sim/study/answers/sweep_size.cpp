#include "sim/study/answers/sweep_size.h"

#include <fmt/format.h>

#include <chrono>

#include "sim/base/error.h"
#include "sim/run/run_size.h"

namespace lockstep {
namespace {

constexpr std::size_t most_samples = 8;
constexpr double longest_sampling = 5;  // seconds
constexpr double simulations_a_cell = 3;
constexpr auto few_cells = static_cast<std::size_t>(most_sweep_seconds / (simulations_a_cell * most_seconds));

double seconds_of(std::size_t place, const std::function<void(std::size_t)>& run) {
  const auto start = std::chrono::steady_clock::now();
  run(place);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// On one thread, on average.
double seconds_a_cell(std::size_t cells, const std::function<void(std::size_t)>& run) {
  double spent = 0;
  double measured = 0;
  std::size_t samples = 0;
  while (samples < most_samples && spent < longest_sampling) {
    const std::size_t place = cells / most_samples * samples + cells / most_samples / 2;
    spent += seconds_of(place, run);
    const double seconds = seconds_of(place, run);
    measured += seconds;
    spent += seconds;
    ++samples;
  }
  return measured / static_cast<double>(samples);
}

std::string long_time(double seconds) {
  constexpr double day = 86400;
  return seconds < 2 * day ? rough_seconds(seconds) : fmt::format("{:.0f} days", seconds / day);
}

}  // namespace

void refuse_large_sweep(const SweepSize& size, const std::function<void(std::size_t place)>& run) {
  if (size.cells > most_cells_at_all && size.is_accepted) {
    throw ConfigError(
        fmt::format("--vary: found {} cells, expected at most {} in one run: take parts of them with "
                    "--shard",
                    size.cells, most_cells_at_all));
  }
  if (size.cells <= few_cells || size.is_accepted) {
    return;
  }
  const double seconds = seconds_a_cell(size.cells, run) * static_cast<double>(size.cells) / size.threads;
  if (size.cells <= most_cells && seconds <= most_sweep_seconds) {
    return;
  }
  throw ConfigError(fmt::format(
      "--vary: found {} cells, which take about {} on {} {}; expected at most {} cells and an hour: vary "
      "fewer values, take a part of them with --shard, or add --yes",
      size.cells, long_time(seconds), size.threads, size.threads == 1 ? "thread" : "threads", most_cells));
}

}  // namespace lockstep
