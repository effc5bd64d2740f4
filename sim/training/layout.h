#pragma once

// How a model is cut over ranks, and who trains which part of it.
//
// Problem:   a model that no GPU holds is cut: inside its layers (tensor), along its sequences (context), by its
//            experts, into stages one after another (pipeline), and then copied (data). Every product of these
//            is a layout.
// Idea:      degrees that multiply to the number of ranks, and an order of dimensions: neighbours on the first
//            are neighbours in a node. Experts are dealt among the ranks of a stage, so that their degree multiplies
//            nothing: outward from those that share each, over the rest of the tensor group, the context group
//            and the copies.
// Invariant: tensor x context x data x pipeline is the number of ranks. All degrees 1 but data: plain data
//            parallelism, and nothing here changes it.
// Reference: NVIDIA/Megatron-LM megatron/core/parallel_state.py (RankGenerator, its default order; experts have one of
//            their own); Liu et al. 2504.14960 (experts folded over the other dimensions).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/training/parallel_model.h"

namespace lockstep {

// In the order of their usual placement.
enum class LayoutAxis : std::uint8_t { tensor, context, expert, data, pipeline };
inline constexpr std::string_view usual_placement = "tp-cp-ep-dp-pp";

struct Layout {
  ParallelDegrees degrees = {};  // inside a stage: tensor, context, expert
  std::int64_t data = 1;
  std::int64_t pipeline = 1;
  // The first: neighbours.
  std::vector<LayoutAxis> placement = {LayoutAxis::tensor, LayoutAxis::context, LayoutAxis::expert,
                                       LayoutAxis::data, LayoutAxis::pipeline};
  std::string schedule = "1f1b";                // an entry of Registry<PipelineSchedule>
  std::int64_t chunks = 1;                      // parts of the model that a rank of the pipeline holds
  std::vector<std::int64_t> stage_blocks = {};  // by part, as stated; empty: evenly

  bool is_cut() const {
    return degrees.tensor > 1 || degrees.context > 1 || degrees.expert > 1 || pipeline > 1;
  }
  // Ranks that together hold one copy of the model.
  std::int64_t ranks_of_a_copy() const { return degrees.tensor * degrees.context * pipeline; }
};

// Of an expert group, the ranks along each dimension: their product is its size.
struct ExpertSpread {
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t data = 1;
};
// Nothing where the group's ranks are no whole part of a dimension and all of those inside it, or those that share an
// expert no whole part of a tensor group.
std::optional<ExpertSpread> expert_spread(const Layout& layout);
// Of a layout that was read, as all that follows.
ExpertSpread spread_of_experts(const Layout& layout);
// Ranks of a stage that hold the same experts.
std::int64_t copies_of_expert(const Layout& layout);
// Whether experts are held by other ranks than dense parameters are.
bool deals_experts(const Layout& layout);

// Groups of ranks that hold the same parameters, and the same experts; and of those with one copy of the model.
inline constexpr std::string_view data_group = "data";
inline constexpr std::string_view expert_data_group = "expert data";
inline constexpr std::string_view pipeline_group = "pipeline";

// Of the dimension, and of the group that its ranks form.
std::string_view name_of(ParallelAxis axis);
std::string_view name_of(LayoutAxis axis);
// Ranks along a dimension of the mesh: `expert` is the part of the copies that experts are dealt among, and `data` what
// is left of them.
std::int64_t size_of(const Layout& layout, LayoutAxis axis);
// "tp-cp-ep-dp-pp", and back; nothing where an axis is missing, or there twice.
std::string text_of(const std::vector<LayoutAxis>& placement);
std::optional<std::vector<LayoutAxis>> parse_placement(std::string_view text);

}  // namespace lockstep
