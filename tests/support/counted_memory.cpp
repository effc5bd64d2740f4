#include "tests/support/counted_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> in_use = 0;
std::atomic<std::size_t> highest = 0;

// Before each block stands how long it is.
constexpr std::size_t header = alignof(std::max_align_t);

// Null where there is none.
void* allocate(std::size_t bytes) noexcept {
  auto* const block = static_cast<char*>(std::malloc(bytes + header));
  if (block == nullptr)
    return nullptr;
  *reinterpret_cast<std::size_t*>(block) = bytes;
  const std::size_t now = in_use += bytes;
  std::size_t before = highest;
  while (before < now && !highest.compare_exchange_weak(before, now)) continue;
  return block + header;
}

void* allocate_or_throw(std::size_t bytes) {
  void* const memory = allocate(bytes);
  if (memory == nullptr)
    throw std::bad_alloc();
  return memory;
}

void release(void* memory) noexcept {
  if (memory == nullptr)
    return;
  char* const block = static_cast<char*>(memory) - header;
  in_use -= *reinterpret_cast<std::size_t*>(block);
  std::free(block);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate_or_throw(bytes);
}
void* operator new[](std::size_t bytes) {
  return allocate_or_throw(bytes);
}
// A sanitizer has its own of these, whose blocks have nothing before them.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes);
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete[](void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  release(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  release(memory);
}

namespace lockstep::testing {

std::size_t heap_in_use() {
  return in_use;
}

std::size_t highest_heap() {
  return highest;
}

void forget_highest_heap() {
  highest = in_use.load();
}

}  // namespace lockstep::testing
