#pragma once

// What a GPU's management library tells of it.
//
// Problem:   a GPU slows down when it is hot or out of power, and how it is wired decides what a collective
//            costs; a measurement without them cannot be compared. CUDA tells only what may be, NVIDIA's
//            management library (NVML) tells what is.
// Idea:      that library comes with the driver, not with CUDA: it is opened where it is found.
// Invariant: what the library cannot tell stays empty; reading changes nothing. One GPU may be read by one
//            thread while another works.
// Cost:      some 0.1 ms a value, on the host alone.
// Errors:    none.
// Reference: NVML API Reference Guide, docs.nvidia.com/deploy/nvml-api.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::harness {

// At one moment.
struct GpuState {
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> power_w;
  std::optional<double> temperature_c;
  std::uint64_t clock_limits = 0;  // why the clock is no higher: bits of NVML's clocks event reasons
};
// "sw_power_cap", ...; bits without a name as "bit 9".
std::vector<std::string> names_of_clock_limits(std::uint64_t bits);

// What does not change while a program runs.
struct GpuDescription {
  std::optional<std::int64_t> index;  // as nvidia-smi counts
  std::string id;                     // of this GPU alone, but not its serial number: a hash
  std::string driver;
  std::optional<std::int64_t> memory_bytes;
  std::optional<double> power_limit_w;
  std::optional<std::int64_t> pcie_generation;  // the highest that GPU and machine have
  std::optional<std::int64_t> pcie_lanes;
  std::int64_t nvlinks = 0;  // that are up
  // To each GPU of the machine, by index: "self", "nvlink", or the nearest piece of PCIe that both hang on:
  // "same_board", "pcie_switch", "pcie_switches", "host_bridge", "numa_node", "system"; "unknown".
  std::vector<std::string> paths;
};

class GpuMonitor {
 public:
  // Nothing where the library or this GPU is not found.
  static std::unique_ptr<GpuMonitor> open(const std::string& pci_bus_id,
                                          const std::string& library = "libnvidia-ml.so.1");
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;
  ~GpuMonitor();

  GpuState state() const;
  GpuDescription description() const;

 private:
  struct Nvml;
  explicit GpuMonitor(std::unique_ptr<Nvml> nvml);

  std::unique_ptr<Nvml> nvml_;
};

}  // namespace lockstep::harness
