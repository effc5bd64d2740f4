#include "sim/training/layout.h"

namespace lockstep {

std::string_view name_of(ParallelAxis axis) {
  switch (axis) {
    case ParallelAxis::tensor:
      return "tensor";
    case ParallelAxis::context:
      return "context";
    case ParallelAxis::expert:
      break;
  }
  return "expert";
}

}  // namespace lockstep
