#include "validate/harness/stand_in/numbers.h"

#include <algorithm>
#include <cstring>

#include "validate/harness/device/half.h"

namespace lockstep::harness::stand_in {

float rounded_to_tf32(float value) {
  constexpr std::uint32_t dropped = 13;
  return is_finite(value) ? float_of(rounded_shift(bits_of(value), dropped) << dropped) : value;
}

float number_at(const void* memory, std::int64_t place, Type type) {
  if (type == Type::fp32)
    return static_cast<const float*>(memory)[place];
  return type == Type::fp16 ? load(static_cast<const Half*>(memory)[place])
                            : load(static_cast<const Bfloat16*>(memory)[place]);
}

void store_at(void* memory, std::int64_t place, Type type, float value) {
  if (type == Type::fp32)
    static_cast<float*>(memory)[place] = value;
  else if (type == Type::fp16)
    static_cast<Half*>(memory)[place] = half_of(value);
  else
    static_cast<Bfloat16*>(memory)[place] = bfloat16_of(value);
}

float rounded_to(Type type, float value) {
  if (type == Type::fp32)
    return value;
  return type == Type::fp16 ? load(half_of(value)) : load(bfloat16_of(value));
}

std::vector<float> numbers_of(const void* memory, std::int64_t count, Type type, bool rounds_to_tf32) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const float number = number_at(memory, i, type);
    numbers[static_cast<std::size_t>(i)] = rounds_to_tf32 ? rounded_to_tf32(number) : number;
  }
  return numbers;
}

void store_scaled(void* memory, Type type, const std::vector<float>& results, float alpha, float beta) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    const float before = beta == 0 ? 0.0F : beta * number_at(memory, place, type);
    store_at(memory, place, type, alpha * results[i] + before);
  }
}

void spoil(void* workspace, std::int64_t bytes) {
  constexpr std::int64_t enough = 256;
  if (workspace != nullptr)
    std::memset(workspace, 0xff, static_cast<std::size_t>(std::min(bytes, enough)));
}

}  // namespace lockstep::harness::stand_in
