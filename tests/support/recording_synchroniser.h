// Passes on to a synchroniser what its schedule tells it, and keeps it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/training/synchroniser.h"

namespace lockstep {

enum class Told : std::uint8_t {
  begin,
  pre_forward,
  post_forward,
  pre_backward,
  post_backward,
  gradient_ready,
  finish,
  clip,
  update
};

struct ScheduleCall {
  Told told = Told::begin;
  MicroBatch micro = {};            // of a layer's pass
  std::size_t index = 0;            // of the layer, or of the gradient
  std::vector<OpId> done = {};      // what it was told has been written
  std::int64_t gradients_sent = 0;  // messages with gradients, before it was passed on
};

// "f1(" before layer 1's forward, "f1)" after it; "b" alike for backward; "g2": gradient 2 is ready.
inline std::string text_of(const ScheduleCall& call) {
  const std::string index = std::to_string(call.index);
  switch (call.told) {
    case Told::begin:
      return "begin";
    case Told::pre_forward:
      return "f" + index + "(";
    case Told::post_forward:
      return "f" + index + ")";
    case Told::pre_backward:
      return "b" + index + "(";
    case Told::post_backward:
      return "b" + index + ")";
    case Told::gradient_ready:
      return "g" + index;
    case Told::finish:
      return "finish";
    case Told::clip:
      return "clip";
    case Told::update:
      break;
  }
  return "update";
}

class RecordingSynchroniser : public Synchroniser {
 public:
  RecordingSynchroniser(const StrategyContext& context, Synchroniser& told)
      : Synchroniser(context), told_(told) {}

  const std::vector<ScheduleCall>& calls() const { return calls_; }

  bool reduces_every_micro_batch() const override { return told_.reduces_every_micro_batch(); }
  void begin() override {
    keep({.told = Told::begin});
    told_.begin();
  }
  void pre_forward(const MicroBatch& micro, std::size_t layer) override {
    keep({.told = Told::pre_forward, .micro = micro, .index = layer});
    told_.pre_forward(micro, layer);
  }
  void post_forward(const MicroBatch& micro, std::size_t layer, const std::vector<OpId>& done) override {
    keep({.told = Told::post_forward, .micro = micro, .index = layer, .done = done});
    told_.post_forward(micro, layer, done);
  }
  void pre_backward(const MicroBatch& micro, std::size_t layer) override {
    keep({.told = Told::pre_backward, .micro = micro, .index = layer});
    told_.pre_backward(micro, layer);
  }
  void post_backward(const MicroBatch& micro, std::size_t layer, const std::vector<OpId>& done) override {
    keep({.told = Told::post_backward, .micro = micro, .index = layer, .done = done});
    told_.post_backward(micro, layer, done);
  }
  void gradient_ready(std::uint32_t gradient, const std::vector<OpId>& done) override {
    keep({.told = Told::gradient_ready, .index = gradient, .done = done});
    told_.gradient_ready(gradient, done);
  }
  void finish() override {
    keep({.told = Told::finish});
    told_.finish();
  }
  void clip() override {
    keep({.told = Told::clip});
    told_.clip();
  }
  void update() override {
    keep({.told = Told::update});
    told_.update();
  }

 private:
  void keep(ScheduleCall call) {
    const Communications& sent = context_.communications;
    call.gradients_sent = std::count_if(sent.begin(), sent.end(), [](const Communication& communication) {
      return communication.payload == Payload::gradients;
    });
    calls_.push_back(std::move(call));
  }

  Synchroniser& told_;
  std::vector<ScheduleCall> calls_;
};

}  // namespace lockstep
