#include "sim/load/read_faults.h"

#include <fmt/format.h>

#include "sim/load/reading/fields.h"

namespace lockstep {
namespace {

constexpr std::int64_t seconds_of_a_year = 31'557'600;
constexpr Horizon longest_horizon{1'000 * seconds_of_a_year};
constexpr std::int64_t most_failures = 1'000'000;

// A stretch of days or years.
Horizon read_stretch(const JsonReader& json) {
  const Horizon horizon = json.horizon();
  if (is_readable(json, parse_horizon) && (horizon == Horizon{0} || horizon > longest_horizon)) {
    json.expected("from 1 s to 1000 years");
    return Horizon{1};
  }
  return horizon;
}

std::optional<Duration> read_interval(const JsonReader& json) {
  if (json.is_string() && json.value() == "optimal") {
    return std::nullopt;
  }
  const Duration interval = json.duration();
  if (is_readable(json, parse_duration) && interval == Duration::zero()) {
    json.expected("a time above zero, or \"optimal\"");
  }
  return interval;
}

void check_failures(const JsonReader& json, const FaultSpec& faults, std::int64_t nodes) {
  const auto expected = static_cast<Unsigned128>(faults.horizon.count()) * static_cast<Unsigned128>(nodes);
  const auto most =
      static_cast<Unsigned128>(faults.mtbf_per_node.count()) * static_cast<Unsigned128>(most_failures);
  if (faults.mtbf_per_node > Horizon{0} && expected > most) {
    json.required("mtbf_per_node")
        .problem(
            fmt::format("{} nodes that each fail every {} s fail more than {} times in the horizon of {} s; "
                        "expected fewer nodes, a longer mtbf_per_node or a shorter horizon",
                        nodes, faults.mtbf_per_node.count(), most_failures, faults.horizon.count()));
  }
}

}  // namespace

FaultSpec read_faults(const JsonReader& json, const Place& place, std::int64_t nodes) {
  FaultSpec faults;
  if (const JsonReader mtbf = json.required("mtbf_per_node"); !mtbf.is_missing()) {
    faults.mtbf_per_node = read_stretch(mtbf);
  }
  faults.restart = json.required("restart").duration();
  if (const auto interval = json.optional("checkpoint_interval")) {
    faults.checkpoint_interval = read_interval(*interval);
  } else {
    (place / "checkpoint_interval").note("default (Daly's optimum, of useful work between checkpoints)");
  }
  faults.checkpoint_bandwidth = json.required("checkpoint_bandwidth").bandwidth();
  if (const auto horizon = json.optional("horizon")) {
    faults.horizon = read_stretch(*horizon);
  } else {
    (place / "horizon").note("default (a month of training)");
  }
  if (json.is_object()) {
    check_failures(json, faults, nodes);
  }
  json.finish();
  return faults;
}

}  // namespace lockstep
