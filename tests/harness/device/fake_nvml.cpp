// NVIDIA's management library as far as gpu_monitor.h reads it: a machine of four GPUs, of which the second is
// asked about. Its clock is high while `fake_nvml_set_busy` says so. There is no temperature sensor.

#include <atomic>
#include <cstring>

namespace {

struct Memory {
  unsigned long long total, free, used;
};

std::atomic<bool> is_busy{false};
std::atomic<int> clock_reads{0};
std::atomic<int> users{0};
char gpus[4];

int index_of(const void* device) {
  return static_cast<int>(static_cast<const char*>(device) - gpus);
}

int write(char* to, unsigned size, const char* text) {
  std::strncpy(to, text, size);
  return 0;
}

}  // namespace

extern "C" {

void fake_nvml_set_busy(bool busy) {
  is_busy = busy;
}
int fake_nvml_clock_reads() {
  return clock_reads;
}
int fake_nvml_users() {
  return users;
}

int nvmlInit_v2() {
  ++users;
  return 0;
}
int nvmlShutdown() {
  --users;
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  *device = gpus + 1;
  return std::strcmp(bus_id, "0000:02:00.0") == 0 ? 0 : 6;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 4;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = gpus + index;
  return 0;
}
int nvmlDeviceGetIndex(const void* device, unsigned* index) {
  *index = static_cast<unsigned>(index_of(device));
  return 0;
}
int nvmlDeviceGetUUID(const void* device, char* to, unsigned size) {
  return write(to, size, index_of(device) == 1 ? "GPU-1" : "GPU-other");
}
int nvmlSystemGetDriverVersion(char* to, unsigned size) {
  return write(to, size, "580.1");
}
int nvmlDeviceGetMemoryInfo(const void*, Memory* memory) {
  *memory = {141ULL << 30, 0, 0};
  return 0;
}
int nvmlDeviceGetClockInfo(const void*, int kind, unsigned* megahertz) {
  if (kind == 1)
    ++clock_reads;
  *megahertz = kind == 2 ? 3201 : (is_busy ? 1980 : 345);
  return kind == 1 || kind == 2 ? 0 : 2;
}
int nvmlDeviceGetPowerUsage(const void*, unsigned* milliwatts) {
  *milliwatts = is_busy ? 690'500 : 75'000;
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(const void*, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(const void*, unsigned long long* reasons) {
  *reasons = is_busy ? 4 : 1;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(const void*, unsigned* generation) {
  *generation = 5;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(const void*, unsigned* lanes) {
  *lanes = 16;
  return 0;
}
int nvmlDeviceGetNvLinkState(const void*, unsigned link, int* state) {
  *state = link < 12 ? 1 : 0;
  return link < 18 ? 0 : 2;
}
int nvmlDeviceGetP2PStatus(const void*, const void* other, int kind, int* status) {
  *status = kind == 2 && index_of(other) == 0 ? 0 : 5;
  return 0;
}
int nvmlDeviceGetTopologyCommonAncestor(const void*, const void* other, int* level) {
  *level = index_of(other) == 2 ? 30 : 50;
  return 0;
}
}
