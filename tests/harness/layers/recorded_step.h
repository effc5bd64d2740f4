#pragma once

// What a step did, as an observer hears it: "begin NAME forward", "end NAME backward", "ready 3".

#include <fmt/format.h>

#include <string>
#include <vector>

#include "validate/harness/layers/module.h"

namespace lockstep::harness {

class RecordedStep : public StepObserver {
 public:
  void layer_begins(std::uint32_t layer, Pass pass) override { record("begin", layer, pass); }
  void layer_ends(std::uint32_t layer, Pass pass) override { record("end", layer, pass); }
  void gradient_ready(std::uint32_t parameter) override {
    events.push_back(fmt::format("ready {}", parameter));
    ready.push_back(parameter);
  }

  std::vector<std::string> events;
  std::vector<std::uint32_t> ready;

 private:
  void record(const char* what, std::uint32_t layer, Pass pass) {
    events.push_back(fmt::format("{} {} {}", what, layer, pass == Pass::forward ? "forward" : "backward"));
  }
};

}  // namespace lockstep::harness
