#include "validate/harness/device/gpu_monitor.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

namespace lockstep::harness::gpu_monitor_test {

TEST_CASE("a GPU is found by its place on PCIe and described") {
  const auto monitor = GpuMonitor::open("0000:02:00.0", LOCKSTEP_FAKE_NVML);
  REQUIRE(monitor != nullptr);
  const GpuDescription gpu = monitor->description();
  CHECK(gpu.index == 1);
  CHECK(gpu.driver == "580.1");
  CHECK(gpu.memory_bytes == std::int64_t{141} << 30);
  CHECK(gpu.power_limit_w == 700);
  CHECK(gpu.pcie_generation == 5);
  CHECK(gpu.pcie_lanes == 16);
  CHECK(gpu.nvlinks == 12);
  CHECK(gpu.paths == std::vector<std::string>{"nvlink", "self", "host_bridge", "system"});
}

TEST_CASE("a GPU has an id that is not its serial number") {
  const auto monitor = GpuMonitor::open("0000:02:00.0", LOCKSTEP_FAKE_NVML);
  CHECK(monitor->description().id.size() == 16);
  CHECK(monitor->description().id.find("GPU") == std::string::npos);
}

TEST_CASE("what the library does not know stays empty") {
  const GpuState state = GpuMonitor::open("0000:02:00.0", LOCKSTEP_FAKE_NVML)->state();
  CHECK(state.memory_clock_mhz == 3201);
  CHECK_FALSE(state.temperature_c.has_value());
}

TEST_CASE("without the library, or the GPU in it, there is no monitor") {
  CHECK(GpuMonitor::open("0000:02:00.0", "libno-such-library.so") == nullptr);
  CHECK(GpuMonitor::open("0000:99:00.0", LOCKSTEP_FAKE_NVML) == nullptr);
  CHECK(GpuMonitor::open("", LOCKSTEP_FAKE_NVML) == nullptr);
}

TEST_CASE("the library is left when its last user goes") {
  void* const library = dlopen(LOCKSTEP_FAKE_NVML, RTLD_NOW);
  REQUIRE(library != nullptr);
  auto* const users = reinterpret_cast<int (*)()>(dlsym(library, "fake_nvml_users"));
  {
    const auto monitor = GpuMonitor::open("0000:02:00.0", LOCKSTEP_FAKE_NVML);
    CHECK(users() == 1);
  }
  CHECK(users() == 0);
  CHECK(GpuMonitor::open("0000:99:00.0", LOCKSTEP_FAKE_NVML) == nullptr);
  CHECK(users() == 0);
  dlclose(library);
}

TEST_CASE("reasons for a lower clock have NVML's names") {
  CHECK(names_of_clock_limits(0x4 | 0x40) == std::vector<std::string>{"sw_power_cap", "hw_thermal"});
  CHECK(names_of_clock_limits(std::uint64_t{1} << 20) == std::vector<std::string>{"bit 20"});
  CHECK(names_of_clock_limits(0).empty());
}

}  // namespace lockstep::harness::gpu_monitor_test
