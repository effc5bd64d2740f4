// Two ranks over 100 MB/s that cost nothing else, and a model of three layers with round numbers, so that every moment
// of a step can be derived by hand.
//
// A layer computes 10 ms forward and 20 ms backward and has one gradient of 4 MB. An all-reduce of B bytes sends B
// over each wire (2 (n - 1) / n of it, and n is 2), 40 ms for one gradient. Backward begins at 30 ms, so gradients
// are there at 50, 70 and 90 ms. Copying one takes a picosecond, which in_milliseconds leaves out.
#pragma once

#include <nlohmann/json.hpp>

#include "sim/report/report.h"
#include "tests/support/scenarios.h"

namespace lockstep {

inline nlohmann::ordered_json two_hosts(const nlohmann::ordered_json& training) {
  nlohmann::ordered_json given = nlohmann::ordered_json::parse(R"({
    "cluster": {"nodes": 2, "machine": {
      "name": "pair", "source": "ours", "gpu": "cpu", "gpus": 1, "gpu_links": {"kind": "none"}, "library": "gloo",
      "nics": {"count": 1, "link": {"bandwidth": "100 MB/s", "latency": "0 us"}},
      "calibration": {"name": "none", "source": "ours", "link_efficiency": {"network": 1},
                      "gradient_copy": {"per_tensor": "0 us", "bandwidth": "4000000000 GB/s"},
                      "protocols": [{"name": "tcp", "step": {"network": "0 us"}}]}}},
    "model": {"layers": [
      {"name": "a", "parameters": [1000000], "forward_time": "10 ms", "backward_time": "20 ms"},
      {"name": "b", "parameters": [1000000], "forward_time": "10 ms", "backward_time": "20 ms"},
      {"name": "c", "parameters": [1000000], "forward_time": "10 ms", "backward_time": "20 ms"}]},
    "communication": {"collectives_in_flight": 1}})");
  given["training"] = {{"strategy", "ddp"}, {"optimizer", "none"}};
  if (!training.contains("strategy"))
    given["training"].update(
        {{"bucket_cap_mb", 3}, {"first_bucket_mb", 3}, {"gradient_as_bucket_view", true}});
  given["training"].update(training);
  return given;
}

// The nearest.
inline std::int64_t in_milliseconds(Duration duration) {
  return (duration + Duration::microseconds(500)).picoseconds() / Duration::milliseconds(1).picoseconds();
}

}  // namespace lockstep
