#pragma once

// Two reports that must be one and the same, but for how they were simulated.

#include <string>

#include "sim/report/report.h"
#include "sim/report/report_json.h"

namespace lockstep {

// What differs first between two whole results, as `predict --json` prints them, or nothing. Only "engine" is left
// out: its events and simulated ranks are how, not what.
inline std::string first_difference(nlohmann::ordered_json a, nlohmann::ordered_json b) {
  a.erase("engine");
  b.erase("engine");
  const nlohmann::json left(a);
  const nlohmann::json right(b);
  if (left == right)
    return "";
  const nlohmann::json changes = nlohmann::json::diff(left, right);
  const nlohmann::json::json_pointer place(changes.front()["path"].get<std::string>());
  const auto shown = [&](const nlohmann::json& json) {
    return json.contains(place) ? json.at(place).dump() : std::string("nothing");
  };
  return place.to_string() + ": " + shown(left) + " and " + shown(right);
}

// Of two scenarios that differ in words and not in what happens: the figures that tell.
inline std::string first_difference(const Report& a, const Report& b) {
  const auto differs = [](const char* what, Duration left, Duration right) {
    return left == right ? std::string()
                         : std::string(what) + ": " + std::to_string(left.picoseconds()) + " ps and " +
                               std::to_string(right.picoseconds()) + " ps";
  };
  std::string found = differs("iteration", a.iteration, b.iteration);
  const auto compare = [&](const char* what, Duration left, Duration right) {
    if (found.empty())
      found = differs(what, left, right);
  };
  compare("first iteration", a.times.first, b.times.first);
  compare("p5", a.times.p5, b.times.p5);
  compare("p95", a.times.p95, b.times.p95);
  compare("forward", a.breakdown.forward, b.breakdown.forward);
  compare("backward", a.breakdown.backward, b.breakdown.backward);
  compare("gradient copy", a.breakdown.gradient_copy, b.breakdown.gradient_copy);
  compare("exposed communication", a.breakdown.exposed_communication, b.breakdown.exposed_communication);
  compare("optimizer", a.breakdown.optimizer, b.breakdown.optimizer);
  compare("communication", a.communication.total, b.communication.total);
  compare("overlapped", a.communication.overlapped, b.communication.overlapped);
  if (a.communication.buckets.size() != b.communication.buckets.size())
    return "the number of buckets";
  for (std::size_t bucket = 0; bucket < a.communication.buckets.size(); ++bucket) {
    const std::string name = "bucket " + std::to_string(bucket);
    compare((name + " ready").c_str(), a.communication.buckets[bucket].ready,
            b.communication.buckets[bucket].ready);
    compare((name + " start").c_str(), a.communication.buckets[bucket].start,
            b.communication.buckets[bucket].start);
    compare((name + " end").c_str(), a.communication.buckets[bucket].end,
            b.communication.buckets[bucket].end);
  }
  return found;
}

}  // namespace lockstep
