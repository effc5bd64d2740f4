#include "validate/harness/gpu_bench/interference_cases.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace lockstep::harness {

std::vector<InterferenceCase> interference_cases() {
  const std::vector<MemoryRate> rates = {{.name = "0"},
                                         {.name = "full"},
                                         {.name = "20", .gigabytes_per_second = 20},
                                         {.name = "40", .gigabytes_per_second = 40},
                                         {.name = "10", .gigabytes_per_second = 10}};
  std::vector<InterferenceCase> cases;
  for (const int multiprocessors : {16, 32, 8, 4, 1, 2, 24})
    for (const MemoryRate& rate : rates)
      for (const char* victim : {"gemm_4096", "gemm_gpt2_up", "copy_256_mib", "layer_norm_64_mib", "gpt_step",
                                 "resnet50_step", "gemm_llama_70b_up"})
        cases.push_back({.victim = victim, .multiprocessors = multiprocessors, .rate = rate});
  return cases;
}

Cells key_cells(const InterferenceCase& interference) {
  return {interference.victim, fmt::to_string(interference.multiprocessors), interference.rate.name};
}

std::string failure_of(const std::vector<OccupantWord>& words) {
  std::set<std::uint32_t> held;
  for (const OccupantWord& word : words) {
    if (!word.was_stopped)
      return "failed: a block ended before it was told to";
    held.insert(word.multiprocessor);
  }
  if (held.size() != words.size())
    return fmt::format("failed: {} blocks held {} multiprocessors", words.size(), held.size());
  return "";
}

double gigabytes_per_second(const std::vector<OccupantWord>& words) {
  double sum = 0;
  for (const OccupantWord& word : words)
    if (word.seconds > 0)
      sum += word.bytes / 1e9 / word.seconds;
  return sum;
}

std::int64_t chunk_cycles(const MemoryRate& rate, std::int64_t chunk_bytes, double clock_mhz) {
  if (rate.is_none())
    return -1;
  if (rate.gigabytes_per_second == 0)
    return 0;
  const double seconds = static_cast<double>(chunk_bytes) / 1e9 / rate.gigabytes_per_second;
  return std::llround(seconds * clock_mhz * 1e6);
}

}  // namespace lockstep::harness
