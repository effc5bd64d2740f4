#include "validate/harness/stand_in/device_memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace lockstep::harness::stand_in {
namespace {

constexpr std::size_t alignment = 256;  // as cudaMalloc promises
constexpr int no_number = 0xff;
constexpr std::int64_t most_filled = 4 << 20;  // large workspaces are costly to touch

std::size_t rounded(std::int64_t bytes) {
  return (static_cast<std::size_t>(bytes) + alignment - 1) / alignment * alignment;
}

}  // namespace

void* DeviceMemory::allocate(int gpu, std::int64_t bytes) {
  if (gpu != of_host && bytes > free_bytes(gpu))
    return nullptr;
  void* const memory = std::aligned_alloc(alignment, rounded(bytes));
  if (memory == nullptr)
    return nullptr;
  if (holds_numbers_)
    std::memset(memory, no_number, static_cast<std::size_t>(std::min(bytes, most_filled)));
  live_.emplace(static_cast<const std::byte*>(memory), static_cast<std::uint32_t>(allocations_.size()));
  allocations_.push_back({.record = {.gpu = gpu, .bytes = bytes, .history = AccessHistory(bytes)},
                          .memory = std::unique_ptr<void, Free>(memory)});
  return memory;
}

std::optional<std::uint32_t> DeviceMemory::find_whole(const void* memory) const {
  const auto found = live_.find(static_cast<const std::byte*>(memory));
  return found == live_.end() ? std::nullopt : std::optional(found->second);
}

void DeviceMemory::release(std::uint32_t allocation) {
  Entry& entry = allocations_[allocation];
  live_.erase(static_cast<const std::byte*>(entry.memory.get()));
  entry.record.is_live = false;
  entry.memory.reset();
}

std::optional<Place> DeviceMemory::find(const void* begin, std::int64_t bytes) const {
  const auto* const first = static_cast<const std::byte*>(begin);
  const auto after = live_.upper_bound(first);
  if (after == live_.begin())
    return std::nullopt;
  const auto& [memory, allocation] = *std::prev(after);
  const std::int64_t offset = first - memory;
  if (bytes > allocations_[allocation].record.bytes - offset)
    return std::nullopt;
  return Place{.allocation = allocation, .begin = offset, .end = offset + bytes};
}

std::int64_t DeviceMemory::free_bytes(int gpu) const {
  std::int64_t free = bytes_of_gpu_;
  for (const auto& [memory, allocation] : live_) {
    const Allocation& record = allocations_[allocation].record;
    if (record.gpu == gpu)
      free -= record.bytes;
  }
  return free;
}

std::int64_t DeviceMemory::count_live() const {
  return static_cast<std::int64_t>(live_.size());
}

}  // namespace lockstep::harness::stand_in
