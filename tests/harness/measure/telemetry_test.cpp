#include "validate/harness/measure/telemetry.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <thread>

#include "validate/harness/measure/gpu_record.h"

namespace lockstep::harness::telemetry_test {

// What drives the fake library of fake_nvml.cpp.
struct FakeNvml {
  void* library = dlopen(LOCKSTEP_FAKE_NVML, RTLD_NOW);
  void (*set_busy)(bool) = reinterpret_cast<void (*)(bool)>(dlsym(library, "fake_nvml_set_busy"));
  int (*clock_reads)() = reinterpret_cast<int (*)()>(dlsym(library, "fake_nvml_clock_reads"));

  FakeNvml() = default;
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;
  ~FakeNvml() { dlclose(library); }

  // Busy until it has been looked at some times.
  void work() const {
    set_busy(true);
    for (const int enough = clock_reads() + 4; clock_reads() < enough;) std::this_thread::yield();
  }
};

GpuState state(double clock, std::uint64_t limits) {
  return {.sm_clock_mhz = clock, .clock_limits = limits};
}

TEST_CASE("states are kept as least, median and most, and as every reason that was given") {
  const Telemetry telemetry =
      summarise_states("matmuls", 2, {state(1980, 0), state(1200, 4), state(1500, 0), state(1700, 0x40)});
  CHECK(telemetry.samples == 4);
  CHECK(telemetry.sm_clock_mhz->least == 1200);
  CHECK(telemetry.sm_clock_mhz->median == (1500 + 1700) / 2.0);
  CHECK(telemetry.sm_clock_mhz->most == 1980);
  CHECK(telemetry.clock_limits == std::vector<std::string>{"sw_power_cap", "hw_thermal"});
  CHECK_FALSE(telemetry.power_w.has_value());
  CHECK_FALSE(summarise_states("matmuls", 2, {GpuState{}}).clock_limits.has_value());
}

TEST_CASE("a GPU is read while it works, and neither before nor after") {
  const FakeNvml nvml;
  const auto monitor = GpuMonitor::open("0000:02:00.0", LOCKSTEP_FAKE_NVML);
  nvml.set_busy(true);
  const Telemetry telemetry = watch(
      monitor.get(), "matmuls", [&] { nvml.work(); }, std::chrono::milliseconds{0});
  nvml.set_busy(false);
  CHECK(telemetry.samples >= 1);
  CHECK(telemetry.sm_clock_mhz->least == 1980);  // idle, it is 345
  CHECK(telemetry.power_w->median == doctest::Approx(690.5));
  CHECK(telemetry.clock_limits == std::vector<std::string>{"sw_power_cap"});
}

TEST_CASE("without a monitor the work is done and nothing is known of the GPU") {
  bool is_done = false;
  const Telemetry telemetry = watch(nullptr, "matmuls", [&] { is_done = true; });
  CHECK(is_done);
  CHECK(telemetry.samples == 0);
  CHECK(gpu_record(3, nullptr, {telemetry})["driver"].is_null());
}

TEST_CASE("the file has a GPU's limits and its state during each measurement") {
  const auto monitor = GpuMonitor::open("0000:02:00.0", LOCKSTEP_FAKE_NVML);
  const auto json = gpu_record(1, monitor.get(), {summarise_states("matmuls", 2, {state(1980, 4)})});
  CHECK(json["rank"] == 1);
  CHECK(json["power_limit_w"] == 700);
  CHECK(json["paths"][2] == "host_bridge");
  CHECK(json["telemetry"][0]["during"] == "matmuls");
  CHECK(json["telemetry"][0]["sm_clock_mhz"]["median"] == 1980);
  CHECK(json["telemetry"][0]["power_w"].is_null());
  CHECK(json["telemetry"][0]["clock_limits"][0] == "sw_power_cap");
}

}  // namespace lockstep::harness::telemetry_test
