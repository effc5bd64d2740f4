#include "validate/harness/device/gpu_monitor.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <utility>

namespace lockstep::harness {

using NvmlDevice = struct nvmlDevice_st*;
struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

namespace {

// Of nvml.h, which is not always installed with CUDA.
struct NvmlMemory {
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};
constexpr int nvml_success = 0;
constexpr int clock_sm = 1;
constexpr int clock_memory = 2;
constexpr int sensor_gpu = 0;
constexpr int p2p_over_nvlink = 2;
constexpr unsigned most_nvlinks = 18;

constexpr std::pair<int, const char*> common_ancestors[] = {{0, "same_board"},     {10, "pcie_switch"},
                                                            {20, "pcie_switches"}, {30, "host_bridge"},
                                                            {40, "numa_node"},     {50, "system"}};

constexpr const char* clock_limits[] = {"idle",        "applications_clocks", "sw_power_cap",
                                        "hw_slowdown", "sync_boost",          "sw_thermal",
                                        "hw_thermal",  "hw_power_brake",      "display_clocks"};

// FNV-1a: enough to tell one GPU from another.
std::string hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

}  // namespace

std::vector<std::string> names_of_clock_limits(std::uint64_t bits) {
  std::vector<std::string> names;
  for (std::size_t bit = 0; bit < 64; ++bit)
    if ((bits >> bit & 1U) != 0)
      names.push_back(bit < std::size(clock_limits) ? clock_limits[bit] : fmt::format("bit {}", bit));
  return names;
}

// The library, and this GPU in it. A function that is not there answers nothing.
struct GpuMonitor::Nvml {
  Library library;
  NvmlDevice device = nullptr;

  ~Nvml() {
    if (device != nullptr)
      call("nvmlShutdown");
  }

  template <class... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    auto* const function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library.get(), name));
    return function != nullptr && function(arguments...) == nvml_success;
  }

  bool start(const std::string& pci_bus_id) {
    if (!call("nvmlInit_v2"))
      return false;
    if (call("nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.c_str(), &device) && device != nullptr)
      return true;
    call("nvmlShutdown");
    device = nullptr;
    return false;
  }

  template <class Result, class... Arguments>
  std::optional<Result> number(double factor, const char* name, Arguments... arguments) const {
    unsigned value = 0;
    if (!call(name, device, arguments..., &value))
      return std::nullopt;
    return static_cast<Result>(static_cast<double>(value) * factor);
  }

  std::string uuid() const {
    std::array<char, 96> text{};
    return call("nvmlDeviceGetUUID", device, text.data(), static_cast<unsigned>(text.size() - 1))
               ? text.data()
               : "";
  }

  std::string driver() const {
    std::array<char, 96> text{};
    return call("nvmlSystemGetDriverVersion", text.data(), static_cast<unsigned>(text.size() - 1))
               ? text.data()
               : "";
  }

  std::optional<std::int64_t> memory_bytes() const {
    NvmlMemory memory;
    if (!call("nvmlDeviceGetMemoryInfo", device, &memory))
      return std::nullopt;
    return static_cast<std::int64_t>(memory.total);
  }

  std::int64_t nvlinks() const {
    std::int64_t count = 0;
    for (unsigned link = 0; link < most_nvlinks; ++link) {
      int state = 0;
      count += call("nvmlDeviceGetNvLinkState", device, link, &state) && state == 1 ? 1 : 0;
    }
    return count;
  }

  std::string path_to(NvmlDevice other) const {
    if (other == device)
      return "self";
    int status = -1;
    if (call("nvmlDeviceGetP2PStatus", device, other, p2p_over_nvlink, &status) && status == 0)
      return "nvlink";
    int ancestor = -1;
    call("nvmlDeviceGetTopologyCommonAncestor", device, other, &ancestor);
    for (const auto& [level, name] : common_ancestors)
      if (level == ancestor)
        return name;
    return "unknown";
  }

  std::vector<std::string> paths() const {
    std::vector<std::string> paths;
    unsigned count = 0;
    call("nvmlDeviceGetCount_v2", &count);
    for (unsigned index = 0; index < count; ++index) {
      NvmlDevice other = nullptr;
      const bool is_found = call("nvmlDeviceGetHandleByIndex_v2", index, &other);
      paths.push_back(is_found ? path_to(other) : "unknown");
    }
    return paths;
  }
};

GpuMonitor::GpuMonitor(std::unique_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {}

GpuMonitor::~GpuMonitor() = default;

std::unique_ptr<GpuMonitor> GpuMonitor::open(const std::string& pci_bus_id, const std::string& library) {
  auto nvml = std::make_unique<Nvml>();
  if (!pci_bus_id.empty())
    nvml->library.reset(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (nvml->library == nullptr || !nvml->start(pci_bus_id))
    return nullptr;
  return std::unique_ptr<GpuMonitor>(new GpuMonitor(std::move(nvml)));
}

GpuState GpuMonitor::state() const {
  GpuState state{.sm_clock_mhz = nvml_->number<double>(1, "nvmlDeviceGetClockInfo", clock_sm),
                 .memory_clock_mhz = nvml_->number<double>(1, "nvmlDeviceGetClockInfo", clock_memory),
                 .power_w = nvml_->number<double>(1e-3, "nvmlDeviceGetPowerUsage"),
                 .temperature_c = nvml_->number<double>(1, "nvmlDeviceGetTemperature", sensor_gpu)};
  unsigned long long limits = 0;
  if (nvml_->call("nvmlDeviceGetCurrentClocksThrottleReasons", nvml_->device, &limits))
    state.clock_limits = limits;
  return state;
}

GpuDescription GpuMonitor::description() const {
  const std::string uuid = nvml_->uuid();
  return {.index = nvml_->number<std::int64_t>(1, "nvmlDeviceGetIndex"),
          .id = uuid.empty() ? "" : hash_of(uuid),
          .driver = nvml_->driver(),
          .memory_bytes = nvml_->memory_bytes(),
          .power_limit_w = nvml_->number<double>(1e-3, "nvmlDeviceGetEnforcedPowerLimit"),
          .pcie_generation = nvml_->number<std::int64_t>(1, "nvmlDeviceGetMaxPcieLinkGeneration"),
          .pcie_lanes = nvml_->number<std::int64_t>(1, "nvmlDeviceGetMaxPcieLinkWidth"),
          .nvlinks = nvml_->nvlinks(),
          .paths = nvml_->paths()};
}

}  // namespace lockstep::harness
