#pragma once

// Element types by the names users and files have for them.
//
// The same words as PyTorch's dtypes in short: fp32, fp16, bf16, and int32 for what is no number to train.

#include <string>

#include "validate/harness/device/tensor.h"

namespace lockstep::harness {

inline std::string name_of(Type type) {
  switch (type) {
    case Type::fp32:
      return "fp32";
    case Type::fp16:
      return "fp16";
    case Type::bf16:
      return "bf16";
    case Type::int32:
      return "int32";
  }
  return "";
}

}  // namespace lockstep::harness
