#include "sim/load/read_disturbance.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"

namespace lockstep {
namespace {

Straggler read_straggler(const JsonReader& json, std::int64_t ranks) {
  Straggler straggler;
  const auto rank = json.optional("rank");
  const auto fraction = json.optional("fraction");
  const auto probability = json.optional("probability");
  if (json.is_object() && rank.has_value() + fraction.has_value() + probability.has_value() != 1) {
    json.problem("expected either rank or fraction or probability");
  }
  if (rank) {
    straggler.rank = rank->integer(0, ranks - 1);
  }
  if (fraction) {
    straggler.fraction = ratio(*fraction, {0, 1}, "of all ranks");
  }
  if (probability) {
    straggler.probability = ratio(*probability, {0, 1}, "of a rank in an iteration");
  }
  straggler.slowdown = ratio(json.required("slowdown"), {1, 1000}, "a ratio");
  json.finish();
  return straggler;
}

SlowLink read_slow_link(const JsonReader& json, const ClusterSpec& cluster) {
  SlowLink slow;
  slow.node = json.required("node").integer(0, cluster.nodes - 1);
  if (const auto nic = json.optional("nic")) {
    const auto nics = static_cast<std::int64_t>(cluster.machine.nics.size());
    slow.nic = nic->integer(0, std::max<std::int64_t>(nics, 1) - 1);
  }
  slow.slowdown = ratio(json.required("slowdown"), {1, 1000}, "a ratio");
  json.finish();
  return slow;
}

// A machine that is not known has no NICs, and one mistake is one line.
void read_slow_links(const JsonReader& json, ClusterSpec& cluster) {
  if (!cluster.machine.name.empty() && cluster.machine.nics.empty()) {
    json.problem(fmt::format("found slow links, but machine {} has no NICs", cluster.machine.name));
  }
  for (const JsonReader& element : json.elements()) {
    cluster.slow_links.push_back(read_slow_link(element, cluster));
  }
}

JitterSpec read_jitter(const JsonReader& json) {
  JitterSpec jitter;
  const JsonReader distribution = json.required("distribution");
  jitter.distribution = read_spelled(distribution, jitter_spellings);
  // A name that is not valid reads as none as well, and one mistake is one line.
  const bool is_none = distribution.value() == "none";
  if (!is_none) {
    jitter.coefficient_of_variation =
        ratio(json.required("coefficient_of_variation"), {0, 1}, "standard deviation over mean");
  } else if (const auto deviation = json.optional("coefficient_of_variation")) {
    deviation->problem("found with distribution \"none\"; expected lognormal or gamma");
  }
  json.finish();
  return jitter;
}

}  // namespace

void read_disturbances(const JsonReader& json, ClusterSpec& cluster) {
  if (const auto stragglers = json.optional("stragglers")) {
    for (const JsonReader& element : stragglers->elements()) {
      cluster.stragglers.push_back(read_straggler(element, cluster.ranks()));
    }
  }
  if (const auto slow_links = json.optional("slow_links")) {
    read_slow_links(*slow_links, cluster);
  }
  if (const auto jitter = json.optional("jitter")) {
    cluster.jitter = read_jitter(*jitter);
  }
}

}  // namespace lockstep
