#pragma once

// A harness run made from known constants, so that what is fitted to it and predicted of it can be derived.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::testing {

// Two ranks; a ring all-reduce of S bytes sends 2 (2 - 1) / 2 S = S in 2 steps.
struct KnownRun {
  std::string name = "known";
  double goodput = 100e6;       // bytes a second
  double step_s = 150e-6;       // of each of the two
  double unhidden_s = 200e-12;  // a byte, beyond 1 / goodput
  double copy_per_tensor_s = 4e-6;
  double copy_per_byte_s = 0.1e-9;
  double core_per_byte_s = 3e-9;
  double core_share = 0.5;

  double per_byte_s() const { return 1 / goodput + unhidden_s; }
  double all_reduce_s(double bytes) const { return 2 * step_s + bytes * per_byte_s(); }
};

inline nlohmann::json statistics(double seconds) {
  return {{"median", seconds},     {"mean", seconds},  {"p10", 0.99 * seconds},
          {"p90", 1.02 * seconds}, {"least", seconds}, {"count", 20}};
}

inline nlohmann::json curve_of(const KnownRun& known) {
  nlohmann::json curve = nlohmann::json::array();
  for (std::int64_t bytes = 1024; bytes <= 16 << 20; bytes *= 4)
    curve.push_back(
        {{"bytes", bytes}, {"time_s", statistics(known.all_reduce_s(static_cast<double>(bytes)))}});
  return curve;
}

inline nlohmann::json copies_of(const KnownRun& known) {
  nlohmann::json copies = nlohmann::json::array();
  for (const auto& [tensors, bytes] :
       std::vector<std::pair<int, int>>{{1, 1 << 20}, {40, 1 << 20}, {8, 25 << 20}})
    copies.push_back(
        {{"tensors", tensors},
         {"bytes", bytes},
         {"time_s", statistics(tensors * known.copy_per_tensor_s + bytes * known.copy_per_byte_s)}});
  return copies;
}

// Without an all-reduce beside it computing takes 0.1 s. An all-reduce alone, two in flight, takes the bytes'
// own time; of the core it wants core_per_byte / per_byte and gets at most core_share.
inline nlohmann::json interference_of(const KnownRun& known, std::int64_t bytes) {
  const double alone_s = static_cast<double>(bytes) * known.per_byte_s();
  const double wanted = known.core_per_byte_s / known.per_byte_s();
  const double taken = std::min(wanted, known.core_share);
  const double beside_s = 0.1 / (1 - taken);
  const double collective_s = alone_s * wanted / taken;
  return {{"bytes", bytes},
          {"compute_alone_s", 0.1},
          {"compute_beside_s", beside_s},
          {"collectives", beside_s / collective_s},
          {"collective_alone_s", alone_s},
          {"collective_beside_s", collective_s}};
}

inline nlohmann::json iteration_of(double bucket_cap_mb, double seconds) {
  return {{"bucket_cap_mb", bucket_cap_mb},    {"overlap", true},
          {"gradient_accumulation", 1},        {"compression", "none"},
          {"first_iteration_s", seconds},      {"iteration_s", statistics(seconds)},
          {"forward_s", statistics(0.01)},     {"backward_s", statistics(seconds - 0.011)},
          {"optimizer_s", statistics(0.001)},  {"overlap_share", 0.5},
          {"buckets", nlohmann::json::array()}};
}

// Every step alike, or `spread` seconds from the 10th percentile to the 90th.
inline nlohmann::json steps_of(double seconds, double spread = 0) {
  nlohmann::json steps = statistics(seconds);
  steps["p10"] = seconds - spread / 2;
  steps["p90"] = seconds + spread / 2;
  return steps;
}

// One layer of a million fp32 numbers: forward 10 ms, backward 20 ms, its gradient ready at the end, optimizer
// 1 ms.
inline nlohmann::json step_of_one_layer() {
  return {{"iteration_s", steps_of(0.031)},
          {"forward_s", statistics(0.010)},
          {"backward_s", statistics(0.020)},
          {"optimizer_s", statistics(0.001)},
          {"layers", {{{"name", "only"}, {"parameters", {0}}, {"forward_s", 0.010}, {"backward_s", 0.020}}}}};
}

inline nlohmann::json harness_run(const KnownRun& known = {}) {
  nlohmann::json run{
      {"schema", "lockstep.run/1"}, {"name", known.name}, {"date", "2026-11-21"}, {"ranks", 2}, {"nodes", 2}};
  run["harness"] = {{"version", "0.1.0"},      {"backend", "cpu"},        {"device", "a CPU"},
                    {"libraries", "OpenBLAS"}, {"communication", "Gloo"}, {"compiler", "g++"}};
  run["machine"] = {{"class", "2-core"}, {"cores", 2}, {"gpu", nullptr}};
  run["network"] = {{"kind", "shaped"},
                    {"link_rate_bit_s", 8e8},
                    {"mtu_bytes", 9000},
                    {"goodput_byte_s", known.goodput},
                    {"note", ""}};
  run["model"] = {{"name", "mlp"},        {"sizes", nlohmann::json::object()},
                  {"batch_per_rank", 8},  {"precision", "fp32"},
                  {"optimizer", "sgd"},   {"simulated_as", nullptr},
                  {"forward_flops", 1e9}, {"buffer_bytes", 0}};
  run["model"]["parameters"] = {{{"name", "weight"}, {"elements", 1'000'000}, {"gradient_ready_s", 0.020}}};
  run["without_communication"] = step_of_one_layer();
  run["collective_curve"] = curve_of(known);
  run["bucket_copies"] = copies_of(known);
  run["interference"] = {interference_of(known, 4 << 20)};
  run["matmuls"] = nlohmann::json::array();
  run["memory_copies"] = nlohmann::json::array();
  run["iterations"] = {iteration_of(25, 0.080)};
  return run;
}

}  // namespace lockstep::testing
