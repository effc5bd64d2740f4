#pragma once

// A kernel's instance by the type of its tensors.
//
// Idea:      what a tensor holds is known when a program runs, and a kernel is compiled for each type: the function is
//            given an element of it, of which it takes the type alone.
// Invariant: activations are floating point; anything else is a bug of the caller.

#include "sim/base/check.h"
#include "validate/harness/device/half.h"
#include "validate/harness/device/tensor.h"

namespace lockstep::harness {

// function(an element of the type)
template <class Function>
void with_activation_type(Type type, Function function) {
  LOCKSTEP_CHECK(type != Type::int32, "activations are floating point");
  if (type == Type::fp32)
    function(float{});
  else if (type == Type::fp16)
    function(Half{});
  else
    function(Bfloat16{});
}

}  // namespace lockstep::harness
