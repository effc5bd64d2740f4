#pragma once

// Numbers to and from a device, and what their difference may be.
//
// Problem:   a kernel is checked against a formula in double precision, and a backward against its own
//            forward.
// Idea:      inputs are drawn by a key and rounded to the type at hand before the formula sees them, so what
//            is left is the kernel's own rounding. A gradient is compared with central differences of the
//            forward, f(x + h) - f(x - h) over 2h, summed over all outputs with fixed weights.
// Invariant: with h = 2^-7, an output whose third derivative is below 6 adds at most h^2 to the error of a
//            difference, and one of size s that is right to r roundings of fp32 adds r s 2^-24 / h.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "sim/base/random.h"
#include "validate/harness/device/cpu_device.h"
#include "validate/harness/device/device.h"
#include "validate/harness/device/half.h"

namespace lockstep::harness {

using Numbers = std::vector<double>;

inline constexpr Type all_types[] = {Type::fp32, Type::fp16, Type::bf16};

// The largest relative error of rounding a number to the type: half of its last place.
inline double rounding(Type type) {
  return type == Type::fp32 ? 0x1p-24 : type == Type::fp16 ? 0x1p-11 : 0x1p-8;
}

inline double rounded(double value, Type type) {
  const auto single = static_cast<float>(value);
  if (type == Type::fp32)
    return static_cast<double>(single);
  return static_cast<double>(type == Type::fp16 ? load(half_of(single)) : load(bfloat16_of(single)));
}

// Uniform in [-1, 1).
inline Numbers draws(std::int64_t count, std::uint64_t seed) {
  Numbers numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<double>(keyed_random(seed, i, 0) >> 40U) * 0x1p-23 - 1;
  return numbers;
}

// Of either sign, and further than 0.1 from 0, where a function has a kink.
inline Numbers draws_beside_zero(std::int64_t count, std::uint64_t seed) {
  Numbers numbers = draws(count, seed);
  for (double& number : numbers) number += number < 0 ? -0.1 : 0.1;
  return numbers;
}

inline Buffer on_device(Device& device, const Numbers& numbers, Type type = Type::fp32) {
  Buffer buffer(device, static_cast<std::int64_t>(numbers.size()), type);
  if (type == Type::int32) {
    const std::vector<std::int32_t> values(numbers.begin(), numbers.end());
    device.upload(buffer.tensor(), values.data());
    return buffer;
  }
  const std::vector<float> values(numbers.begin(), numbers.end());
  std::vector<std::uint16_t> bits;
  for (const float value : values)
    bits.push_back(type == Type::fp16 ? half_of(value).bits : bfloat16_of(value).bits);
  device.upload(buffer.tensor(), type == Type::fp32 ? static_cast<const void*>(values.data()) : bits.data());
  return buffer;
}

inline Buffer nothing_yet(Device& device, std::int64_t count, Type type = Type::fp32) {
  return on_device(device, Numbers(static_cast<std::size_t>(count), 77), type);
}

inline Numbers numbers_of(Device& device, Tensor tensor) {
  const auto count = static_cast<std::size_t>(tensor.elements);
  if (tensor.type == Type::int32) {
    std::vector<std::int32_t> values(count);
    device.download(values.data(), tensor);
    return {values.begin(), values.end()};
  }
  if (tensor.type == Type::fp32) {
    std::vector<float> values(count);
    device.download(values.data(), tensor);
    return {values.begin(), values.end()};
  }
  std::vector<std::uint16_t> bits(count);
  device.download(bits.data(), tensor);
  Numbers numbers;
  for (const std::uint16_t value : bits)
    numbers.push_back(
        static_cast<double>(tensor.type == Type::fp16 ? load(Half{value}) : load(Bfloat16{value})));
  return numbers;
}

inline Numbers numbers_of(Device& device, const Buffer& buffer) {
  return numbers_of(device, buffer.tensor());
}

inline double largest_difference(const Numbers& a, const Numbers& b) {
  if (a.size() != b.size())
    return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest))
      largest = difference;
  }
  return largest;
}

inline double largest_of(const Numbers& numbers) {
  return largest_difference(numbers, Numbers(numbers.size(), 0));
}

// Of results stored as `type` after `roundings` roundings of numbers of their own size.
inline double tolerance(const Numbers& expected, Type type, double roundings) {
  return largest_of(expected) * (rounding(type) + roundings * rounding(Type::fp32));
}

inline constexpr double difference_step = 0x1p-7;

// Every input changes at most `outputs` outputs, of at most `largest`; weights are at most 1.
inline double difference_tolerance(double outputs, double largest, double roundings = 4) {
  const double step = difference_step;
  return outputs * (step * step + roundings * largest * rounding(Type::fp32) / step);
}

// d(sum of weights[j] forward(inputs)[j]) / d inputs[i].
inline Numbers differences(const std::function<Numbers(const Numbers&)>& forward, const Numbers& inputs,
                           const Numbers& weights) {
  const auto weighted = [&](std::size_t changed, double by) {
    Numbers moved = inputs;
    moved[changed] += by;
    const Numbers outputs = forward(moved);
    double sum = 0;
    for (std::size_t j = 0; j < outputs.size(); ++j) sum += weights[j] * outputs[j];
    return sum;
  };
  Numbers gradient(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    gradient[i] = (weighted(i, difference_step) - weighted(i, -difference_step)) / (2 * difference_step);
  return gradient;
}

// Multiples of 2^-12: moved by a step of a difference they are still exact in fp32.
inline Numbers on_grid(Numbers numbers) {
  for (double& number : numbers) number = std::round(number * 0x1p12) * 0x1p-12;
  return numbers;
}

inline Numbers rounded(Numbers numbers, Type type) {
  for (double& number : numbers) number = rounded(number, type);
  return numbers;
}

}  // namespace lockstep::harness
