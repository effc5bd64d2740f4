#include "validate/harness/device/cuda_clock.h"

#include <dlfcn.h>

#include <memory>

namespace lockstep::harness {
namespace {

// Of nvml.h, which is not always installed with CUDA.
using NvmlDevice = struct nvmlDevice_st*;
constexpr int nvml_success = 0;
constexpr int nvml_clock_sm = 1;

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

template <class Function>
Function* symbol_of(const Library& library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library.get(), name));
}

}  // namespace

std::optional<double> multiprocessor_clock_mhz(const char* pci_bus_id) {
  const Library library(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
  if (library == nullptr)
    return std::nullopt;
  auto* const start = symbol_of<int()>(library, "nvmlInit_v2");
  auto* const stop = symbol_of<int()>(library, "nvmlShutdown");
  auto* const find = symbol_of<int(const char*, NvmlDevice*)>(library, "nvmlDeviceGetHandleByPciBusId_v2");
  auto* const read = symbol_of<int(NvmlDevice, int, unsigned*)>(library, "nvmlDeviceGetClockInfo");
  const bool is_complete = start != nullptr && stop != nullptr && find != nullptr && read != nullptr;
  if (!is_complete || start() != nvml_success)
    return std::nullopt;
  NvmlDevice device = nullptr;
  unsigned megahertz = 0;
  const bool is_known =
      find(pci_bus_id, &device) == nvml_success && read(device, nvml_clock_sm, &megahertz) == nvml_success;
  stop();
  return is_known ? std::optional<double>(megahertz) : std::nullopt;
}

}  // namespace lockstep::harness
