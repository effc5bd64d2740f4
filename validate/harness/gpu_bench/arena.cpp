#include "validate/harness/gpu_bench/arena.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "validate/harness/device/half.h"

namespace lockstep::harness {
namespace {

constexpr std::int64_t alignment = 256;
constexpr std::int64_t most_pattern_bytes = 16 << 20;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

float drawn(std::size_t index) {
  return static_cast<float>(static_cast<double>(keyed_random(1, index, 0) >> 40U) * 0x1p-23 - 1);
}

std::vector<std::uint16_t> drawn_halves(Type type, std::size_t count) {
  std::vector<std::uint16_t> bits(count);
  for (std::size_t i = 0; i < count; ++i)
    bits[i] = type == Type::fp16 ? half_of(drawn(i)).bits : bfloat16_of(drawn(i)).bits;
  return bits;
}

std::vector<float> drawn_floats(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = drawn(i);
  return values;
}

}  // namespace

SlotPlan plan_slots(const std::vector<ArenaOperand>& operands, const ArenaSize& size, bool is_cold) {
  SlotPlan plan;
  for (const ArenaOperand& operand : operands) {
    plan.offsets.push_back(plan.slot_bytes);
    plan.slot_bytes += aligned(operand.elements * bytes_of(operand.type));
  }
  LOCKSTEP_CHECK(plan.slot_bytes > 0, "what is timed reads or writes something");
  const std::int64_t wanted = is_cold ? 2 * size.cache_bytes / plan.slot_bytes + 1 : 1;
  plan.slots = wanted <= size.bytes / plan.slot_bytes ? wanted : 0;
  return plan;
}

Arena::Arena(Device& device, const ArenaSize& size)
    : size_(size),
      memory_(device, size.bytes / 4, Type::fp32),
      pattern_(device, std::min(size.bytes, most_pattern_bytes) / 4, Type::fp32) {}

bool Arena::prepare(Device& device, const std::vector<ArenaOperand>& operands, Type type, bool is_cold) {
  const SlotPlan plan = plan_slots(operands, size_, is_cold);
  if (plan.slots == 0)
    return false;
  operands_ = operands;
  plan_ = plan;
  fill(device, plan.slots * plan.slot_bytes, type);
  return true;
}

Tensor Arena::operand(std::int64_t number, std::size_t index) const {
  const std::int64_t offset = number % plan_.slots * plan_.slot_bytes + plan_.offsets[index];
  return {memory_.tensor().as<char>() + offset, operands_[index].elements, operands_[index].type};
}

void Arena::fill(Device& device, std::int64_t bytes, Type type) {
  const Tensor pattern = pattern_.tensor();
  if (pattern_type_ != type) {
    const auto count = static_cast<std::size_t>(pattern.bytes() / bytes_of(type));
    if (type == Type::fp32)
      device.upload(pattern, drawn_floats(count).data());
    else
      device.upload(pattern, drawn_halves(type, count).data());
    device.synchronize();
    pattern_type_ = type;
  }
  const Tensor all = memory_.tensor();
  const std::int64_t end = std::min(all.elements, (bytes + 3) / 4);
  for (std::int64_t first = 0; first < end; first += pattern.elements) {
    const std::int64_t count = std::min(pattern.elements, end - first);
    device.copy(all.part(first, count), pattern.part(0, count));
  }
}

}  // namespace lockstep::harness
