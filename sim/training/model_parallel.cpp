// One copy of a model on all ranks: cut layer by layer (mp), into a pipeline (pp), or inside its layers (tp).
//
// They are layouts without copies (layout.h), so that no gradient is reduced. What they exchange belongs to the
// layout.

#include "sim/training/shared_options.h"
#include "sim/training/synchroniser.h"

namespace lockstep {
namespace {

Strategy along(Dimension dimension, std::string description) {
  return {.synchroniser = make_synchroniser<Synchroniser>,
          .description = std::move(description),
          .accepts = {.gradient_clipping = true},
          .takes_all = dimension};
}

const Registration<Strategy> layer_wise{
    "mp", along(Dimension::pipeline, "layers dealt to ranks, which hand batches on one after another")};
const Registration<Strategy> pipeline{
    "pp", along(Dimension::pipeline, "a pipeline of stages that work on micro-batches side by side")};
const Registration<Strategy> tensor{
    "tp", along(Dimension::tensor, "every layer cut over all ranks (Megatron's columns and rows)")};

}  // namespace
}  // namespace lockstep
