#pragma once

// Memory of a device, seen as numbers.
//
// Problem:   a training step hands the same memory from layer to layer; who owns it and who looks at it
//            differ.
// Idea:      a Tensor is a view: contiguous, row-major, without a shape of its own (layers know theirs). A
//            Buffer owns what it views and gives it back to its device. All buffers of a model are allocated
//            before the first step, none during one.
// Invariant: a view never outlives its buffer; parameters and their gradients are fp32 whatever the
//            precision.

#include <cstdint>

namespace lockstep::harness {

enum class Type : std::uint8_t { fp32, fp16, bf16, int32 };

constexpr std::int64_t bytes_of(Type type) {
  return type == Type::fp32 || type == Type::int32 ? 4 : 2;
}

struct Tensor {
  void* data = nullptr;
  std::int64_t elements = 0;
  Type type = Type::fp32;

  bool is_empty() const { return data == nullptr; }
  std::int64_t bytes() const { return elements * bytes_of(type); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  // `count` elements from `first` on.
  Tensor part(std::int64_t first, std::int64_t count) const {
    return {static_cast<char*>(data) + first * bytes_of(type), count, type};
  }
};

}  // namespace lockstep::harness
