#pragma once

// What a formula of elements reads and writes.
//
// Problem:   a GPU reaches memory's speed when each thread moves 16 bytes at a time, several times at once;
//            how many elements that is depends on their types, and a formula shall know of neither.
// Idea:      a kernel names its operands and a formula of floats, one for each operand, in that order; the
//            executor loads, calls and stores: one element at a time (SerialExecutor) or a vector
//            (cuda_map.cuh).
// Invariant: operands lie beside or exactly upon each other: what the formula of one element writes no other
//            reads. What it is given of a `Writes` is nothing.

#include <cstdint>

#include "validate/harness/device/device_function.h"
#include "validate/harness/device/half.h"
#include "validate/harness/device/tensor.h"

namespace lockstep::harness {

// Of an element in [rows, columns]; index = row * columns + column.
struct Place {
  std::int64_t index = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
};

enum class Use : std::uint8_t { reads, writes, updates, of_column };

template <class T, Use the_use>
struct Operand {
  using Element = T;
  static constexpr Use use = the_use;
  static constexpr bool is_read = use == Use::reads || use == Use::updates;
  static constexpr bool is_written = use == Use::writes || use == Use::updates;
  static constexpr bool is_of_column = use == Use::of_column;

  T* values = nullptr;
};

template <class T>
Operand<T, Use::reads> reads(const Tensor& tensor) {
  return {tensor.as<T>()};
}
template <class T>
Operand<T, Use::writes> writes(const Tensor& tensor) {
  return {tensor.as<T>()};
}
template <class T>
Operand<T, Use::updates> updates(const Tensor& tensor) {
  return {tensor.as<T>()};
}
// One number (fp32) for all rows of a column; read.
inline Operand<float, Use::of_column> of_column(float* values) {
  return {values};
}
inline Operand<float, Use::of_column> of_column(const Tensor& tensor) {
  return of_column(tensor.as<float>());
}

// A formula that asks for no place among those that are told theirs.
template <class Formula>
struct Placeless {
  Formula formula;

  template <class... Values>
  LOCKSTEP_DEVICE_FUNCTION void operator()(std::int64_t /*row*/, std::int64_t /*column*/,
                                           Values&... values) const {
    formula(values...);
  }
};

template <class AnyOperand>
LOCKSTEP_DEVICE_FUNCTION float loaded(const AnyOperand& operand, const Place& place) {
  if constexpr (AnyOperand::is_of_column)
    return operand.values[place.column];
  else if constexpr (AnyOperand::is_read)
    return load(operand.values[place.index]);
  else
    return 0;
}

template <class AnyOperand>
LOCKSTEP_DEVICE_FUNCTION void store(const AnyOperand& operand, const Place& place, float value) {
  if constexpr (AnyOperand::is_written)
    operand.values[place.index] = stored<typename AnyOperand::Element>(value);
}

}  // namespace lockstep::harness
