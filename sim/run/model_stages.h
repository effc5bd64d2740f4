#pragma once

// A model cut into the stages of a pipeline.
//
// Problem:   stages are to take equally long, and a model's layers are not alike: embeddings, heads and losses
//            stand at its ends.
// Idea:      blocks (transformer layers, residual blocks) are dealt as stated (or balanced: stage_balance.h) or
//            evenly, earlier parts one more where they do not come out even; what stands before the first block
//            goes with it, what stands behind the last goes with that. A model without blocks is dealt layer by
//            layer. The chunks of a stage lie so that the one whose gradients are there first lies last: a
//            synchroniser may go by the order of the layers.
// Invariant: every layer is in one part; parts keep the order of the layers. Weights that the first and the last
//            part both use are held by both.
// Cost:      a copy of the layers.
// Reference: NVIDIA/Megatron-LM megatron/core/transformer/transformer_block.py (get_num_layers_to_build).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/training/job.h"
#include "sim/training/layout.h"
#include "sim/training/parallel_model.h"

namespace lockstep {

// What a stage holds of a model.
struct ModelStage {
  ParallelModel slice;
  std::vector<std::size_t> origin;  // by layer: which of the model's it is
  StageWork work;                   // `handed_on` in elements of one sample
};

// `layout` has as many parts as the model has blocks, or fewer.
std::vector<ModelStage> stages_of(const ParallelModel& model, const Layout& layout,
                                  std::int64_t micro_batches);

// Into how many a layout cuts the model; two copies are cut alike.
std::int64_t parts_of_model(const Layout& layout);

// The layers of each part, in forward order.
std::vector<LayerRange> parts_of(const Model& model, const Layout& layout);

// What a part hands on of one sample. A transformer hands on its hidden states, whatever its last layer is; cut along
// the sequence as they lie.
std::int64_t elements_handed_on(const ParallelModel& model, const LayerRange& part,
                                const ParallelDegrees& degrees);

// The layers of each block, by the block that each layer says it is in (-1: none); what stands before the first and
// behind the last goes with those. Without blocks every layer is one.
std::vector<LayerRange> layers_of_blocks(std::span<const std::int64_t> block_of_layer);

// How many parts a model can be cut into.
std::int64_t most_parts(const Model& model);

}  // namespace lockstep
