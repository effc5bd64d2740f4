#include "sim/run/model_stages.h"

#include <algorithm>
#include <map>
#include <variant>

#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {
namespace {

std::vector<std::int64_t> block_of_layers(const Model& model) {
  std::vector<std::int64_t> blocks;
  for (const Layer& layer : model.layers) blocks.push_back(layer.block);
  return blocks;
}

std::int64_t blocks_of_part(std::int64_t blocks, const Layout& layout, std::int64_t part) {
  if (!layout.stage_blocks.empty())
    return layout.stage_blocks[static_cast<std::size_t>(part)];
  const std::int64_t parts = parts_of_model(layout);
  return blocks / parts + (part < blocks % parts ? 1 : 0);
}

// Of one sample, as far as a layer tells: what its product makes, or what it writes of as much as it reads.
std::int64_t output_elements(const Layer& layer) {
  if (!layer.product)
    return layer.pointwise_elements > 0 ? layer.pointwise_elements : layer.forward_elements / 2;
  if (const auto* gemm = std::get_if<GemmShape>(&*layer.product))
    return gemm->batch * gemm->m * gemm->n;
  if (const auto* convolution = std::get_if<ConvolutionShape>(&*layer.product))
    return convolution->out_channels * convolution->out_height() * convolution->out_width();
  const auto& attention = std::get<AttentionShape>(*layer.product);
  return attention.sequence * attention.heads * attention.value_width;
}

// Layers that multiply by weights they do not have, outside of all blocks.
std::vector<const Layer*> users_of_others(const Model& model) {
  std::vector<const Layer*> users;
  for (const Layer& layer : model.layers)
    if (layer.product && layer.parameters.empty() && layer.weight_elements > 0 && layer.block < 0)
      users.push_back(&layer);
  return users;
}

// The first whose weights are another layer's as well, if there is one.
std::optional<std::uint32_t> tied_parameter(const Model& model) {
  const std::vector<const Layer*> users = users_of_others(model);
  for (const Layer& layer : model.layers)
    for (const std::uint32_t parameter : layer.parameters)
      for (const Layer* user : users)
        if (user->weight_elements == model.parameters[parameter].elements)
          return parameter;
  return std::nullopt;
}

// Layers and parameters of some parts, parameters numbered anew.
class Slicer {
 public:
  explicit Slicer(const ParallelModel& whole) : whole_(whole) {
    slice_.model.name = whole.model.name;
    slice_.model.family = whole.model.family;
    slice_.model.source = whole.model.source;
    slice_.model.tokens_per_sample = whole.model.tokens_per_sample;
    slice_.model.transformer = whole.model.transformer;
  }

  LayerRange add(const LayerRange& part) {
    const std::size_t first = slice_.model.layers.size();
    for (std::size_t index = part.first; index < part.last; ++index) {
      Layer layer = whole_.model.layers[index];
      for (std::uint32_t& parameter : layer.parameters) parameter = own(parameter);
      slice_.model.layers.push_back(std::move(layer));
      if (index < whole_.exchanges.size())
        slice_.exchanges.push_back(whole_.exchanges[index]);
    }
    return {first, slice_.model.layers.size()};
  }

  // The number here of one of the whole's parameters.
  std::uint32_t own(std::uint32_t parameter) {
    const auto [known, is_new] =
        numbers_.try_emplace(parameter, static_cast<std::uint32_t>(slice_.model.parameters.size()));
    if (is_new) {
      slice_.model.parameters.push_back(whole_.model.parameters[parameter]);
      if (parameter < whole_.parameters.size())
        slice_.parameters.push_back(whole_.parameters[parameter]);
    }
    return known->second;
  }
  bool has(std::uint32_t parameter) const { return numbers_.contains(parameter); }

  Model& model() { return slice_.model; }
  ParallelModel take() { return std::move(slice_); }

 private:
  const ParallelModel& whole_;
  ParallelModel slice_;
  std::map<std::uint32_t, std::uint32_t> numbers_;
};

// The layer that uses weights without having them.
Layer* user_of_tied(Model& model, std::int64_t elements) {
  const auto uses = [&](const Layer& layer) {
    return layer.product && layer.parameters.empty() && layer.weight_elements == elements && layer.block < 0;
  };
  const auto found = std::find_if(model.layers.rbegin(), model.layers.rend(), uses);
  return found == model.layers.rend() ? nullptr : &*found;
}

class StageCutter {
 public:
  StageCutter(const ParallelModel& model, const Layout& layout, std::int64_t micro_batches)
      : model_(model),
        layout_(layout),
        schedule_(pipeline_schedule_named(layout.schedule)),
        shape_{.stages = layout.pipeline, .chunks = layout.chunks, .micro_batches = micro_batches},
        parts_(parts_of(model.model, layout)),
        tied_(tied_parameter(model.model)) {}

  ModelStage cut(std::int64_t number) const {
    Slicer slicer(model_);
    ModelStage stage;
    stage.work.chunks.resize(static_cast<std::size_t>(layout_.chunks));
    stage.work.handed_on.resize(stage.work.chunks.size());
    const std::vector<std::int64_t> first_done =
        chunks_by_completion(schedule_.passes(shape_, number), layout_.chunks);
    for (auto chunk = first_done.rbegin(); chunk != first_done.rend(); ++chunk)
      add_chunk(number, *chunk, slicer, stage);
    if (tied_)
      share_tied(slicer, stage);
    stage.slice = slicer.take();
    return stage;
  }

 private:
  void add_chunk(std::int64_t number, std::int64_t chunk, Slicer& slicer, ModelStage& stage) const {
    const std::int64_t number_of_part = schedule_.part(shape_, number, chunk);
    const LayerRange& part = parts_[static_cast<std::size_t>(number_of_part) % parts_.size()];
    const auto index = static_cast<std::size_t>(chunk);
    stage.work.chunks[index] = slicer.add(part);
    for (std::size_t layer = part.first; layer < part.last; ++layer) stage.origin.push_back(layer);
    stage.work.handed_on[index] = Bytes{elements_handed_on(model_, part, layout_.degrees)};
    if (schedule_.begins_model(shape_, number_of_part))
      slicer.model().input_bytes = model_.model.input_bytes;
    if (schedule_.ends_model(shape_, number_of_part))
      slicer.model().output_elements = model_.model.output_elements;
  }

  void share_tied(Slicer& slicer, ModelStage& stage) const {
    Layer* user = user_of_tied(slicer.model(), model_.model.parameters[*tied_].elements);
    const bool has = slicer.has(*tied_);
    if (user != nullptr && !has)
      user->parameters.push_back(slicer.own(*tied_));
    if (user != nullptr || has)
      stage.work.tied = slicer.own(*tied_);
  }

  const ParallelModel& model_;
  const Layout& layout_;
  const PipelineSchedule& schedule_;
  PipelineShape shape_;
  std::vector<LayerRange> parts_;
  std::optional<std::uint32_t> tied_;
};

}  // namespace

std::int64_t parts_of_model(const Layout& layout) {
  return pipeline_schedule_named(layout.schedule)
      .parts_of_model({.stages = layout.pipeline, .chunks = layout.chunks});
}

std::vector<LayerRange> parts_of(const Model& model, const Layout& layout) {
  const std::vector<LayerRange> blocks = layers_of_blocks(block_of_layers(model));
  std::vector<LayerRange> parts;
  std::size_t next = 0;
  const std::int64_t count = parts_of_model(layout);
  for (std::int64_t part = 0; part < count; ++part) {
    const std::size_t first = next;
    next += static_cast<std::size_t>(blocks_of_part(std::ssize(blocks), layout, part));
    parts.push_back({blocks[first].first, blocks[next - 1].last});
  }
  return parts;
}

std::int64_t elements_handed_on(const ParallelModel& model, const LayerRange& part,
                                const ParallelDegrees& degrees) {
  if (!model.model.transformer)
    return output_elements(model.model.layers[part.last - 1]);
  const std::int64_t whole = model.model.tokens_per_sample * model.model.transformer->hidden;
  return degrees.sequence_parallel ? divided_up(whole, degrees.tensor) : whole;
}

std::vector<ModelStage> stages_of(const ParallelModel& model, const Layout& layout,
                                  std::int64_t micro_batches) {
  const StageCutter cutter(model, layout, micro_batches);
  std::vector<ModelStage> stages;
  for (std::int64_t stage = 0; stage < layout.pipeline; ++stage) stages.push_back(cutter.cut(stage));
  return stages;
}

std::vector<LayerRange> layers_of_blocks(std::span<const std::int64_t> block_of_layer) {
  const bool has_blocks = std::any_of(block_of_layer.begin(), block_of_layer.end(),
                                      [](std::int64_t block) { return block >= 0; });
  std::vector<LayerRange> ranges;
  for (std::size_t layer = 0; layer < block_of_layer.size(); ++layer) {
    const std::int64_t block = block_of_layer[layer];
    const bool begins = !has_blocks || (block >= 0 && (layer == 0 || block_of_layer[layer - 1] != block));
    if (begins)
      ranges.push_back({ranges.empty() ? 0 : layer, layer});
    if (!ranges.empty())
      ranges.back().last = layer + 1;
  }
  return ranges;
}

std::int64_t most_parts(const Model& model) {
  return std::ssize(layers_of_blocks(block_of_layers(model)));
}

}  // namespace lockstep
