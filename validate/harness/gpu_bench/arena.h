#pragma once

// One piece of device memory that all measurements of a program take turns in.
//
// Problem:   a kernel that is called again on the same memory finds it in the cache; a thousand shapes that
//            each allocate their own cost a second of cudaMalloc; zeros are multiplied at less power, and so
//            at higher clocks, than numbers.
// Idea:      a shape's operands are a slot; calls walk over as many slots as make a slot's second use come
//            after twice the cache's size of other memory. Memory is filled with drawn numbers anew before
//            each shape.
// Invariant: a slot's operands begin at multiples of 256 bytes, as cudaMalloc's do.

#include <cstdint>
#include <vector>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

struct ArenaOperand {
  std::int64_t elements = 0;
  Type type = Type::fp32;
};

struct SlotPlan {
  std::vector<std::int64_t> offsets;  // of the operands within a slot
  std::int64_t slot_bytes = 0;
  std::int64_t slots = 0;  // 0: they do not fit
};

struct ArenaSize {
  std::int64_t bytes = 0;
  std::int64_t cache_bytes = 0;  // of the device's last cache
};

SlotPlan plan_slots(const std::vector<ArenaOperand>& operands, const ArenaSize& size, bool is_cold);

class Arena {
 public:
  Arena(Device& device, const ArenaSize& size);

  // False where the slots it needs are larger than the arena. Numbers are uniform in [-1, 1) of `type`.
  bool prepare(Device& device, const std::vector<ArenaOperand>& operands, Type type, bool is_cold = true);
  // Of the slot that call `number` takes; valid until the next `prepare`.
  Tensor operand(std::int64_t number, std::size_t index) const;

 private:
  void fill(Device& device, std::int64_t bytes, Type type);

  ArenaSize size_;
  Buffer memory_;
  Buffer pattern_;
  Type pattern_type_ = Type::int32;  // of which there is none yet
  std::vector<ArenaOperand> operands_;
  SlotPlan plan_;
};

}  // namespace lockstep::harness
