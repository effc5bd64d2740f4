#pragma once

// Modules made of modules: one after the other, and a path with a way around it.
//
// Idea:      backward runs in the order of autograd's engine, which takes the node that was made last first.
//            A shortcut is made after the path it goes around, so its backward comes first.
// Invariant: the order in which gradients become ready is the simulator's for the same network.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "validate/harness/layers/leaf.h"

namespace lockstep::harness {

class Sequential : public Module {
 public:
  Sequential& append(std::unique_ptr<Module> child);
  // Makes a child in place and returns it.
  template <class Child, class... Arguments>
  Child& make(Arguments&&... arguments) {
    auto child = std::make_unique<Child>(std::forward<Arguments>(arguments)...);
    Child& made = *child;
    append(std::move(child));
    return made;
  }

  Tensor forward(Step& step, Tensor input) override;
  Tensor backward(Step& step, Tensor output_gradient) override;

 private:
  std::vector<std::unique_ptr<Module>> children_;
};

// output = path(input) + shortcut(input), or + input where there is no shortcut. The sum is a layer of its
// own: forward adds outputs, backward adds the two gradients of the input.
class Residual : public Module {
 public:
  struct Options {
    std::string name;  // of the sum
    std::unique_ptr<Module> path = nullptr;
    std::unique_ptr<Module> shortcut = nullptr;
    std::int64_t inputs = 0;
    std::int64_t outputs = 0;
  };
  Residual(ModuleFactory& factory, Options options);

  Tensor forward(Step& step, Tensor input) override;
  Tensor backward(Step& step, Tensor output_gradient) override;

 private:
  std::unique_ptr<Module> path_;
  std::unique_ptr<Module> shortcut_;
  std::uint32_t layer_;
  Buffer output_;
  Buffer input_gradient_;
};

}  // namespace lockstep::harness
