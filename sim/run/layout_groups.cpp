#include "sim/run/layout_groups.h"

#include <string>

#include "sim/training/strategy.h"

namespace lockstep {
namespace {

std::uint32_t narrow(std::int64_t degree) {
  return static_cast<std::uint32_t>(degree);
}

// Of the ranks that hold the same part of the model, as their strategy cuts them up; without sets: it does not.
MeshGroups of_strategy(const Scenario& scenario, std::int64_t ranks) {
  const Strategy& strategy = strategy_named(scenario.training.strategy);
  return strategy.groups == nullptr ? MeshGroups{} : strategy.groups(scenario.training, narrow(ranks));
}

class LayoutMesh {
 public:
  explicit LayoutMesh(const Scenario& scenario)
      : layout_(scenario.training.layout),
        of_strategy_(of_strategy(scenario, scenario.synchronised_ranks())) {
    for (const LayoutAxis axis : layout_.placement) add(axis);
  }

  Mesh mesh() const { return Mesh(axes_); }

  std::vector<GroupAxes> sets() const {
    std::vector<GroupAxes> sets{{std::string(data_group), along_data()}};
    sets.insert(sets.end(), of_strategy_.sets.begin(), of_strategy_.sets.end());
    const ParallelDegrees& degrees = layout_.degrees;
    const auto add = [&](std::int64_t degree, std::string_view name, std::vector<std::string> along) {
      if (degree > 1)
        sets.push_back({std::string(name), std::move(along)});
    };
    add(degrees.tensor, name_of(ParallelAxis::tensor), {"tensor"});
    add(degrees.context, name_of(ParallelAxis::context), {"context"});
    add(degrees.expert, name_of(ParallelAxis::expert), {"expert"});
    add(degrees.expert, expert_data_group, {"context", "data"});
    add(layout_.pipeline, pipeline_group, {"pipeline"});
    return sets;
  }

 private:
  // A strategy that cuts its ranks up has axes of its own in the place of `data`.
  void add(LayoutAxis axis) {
    if (axis == LayoutAxis::data && !of_strategy_.sets.empty())
      for (const MeshAxis& own : of_strategy_.mesh.axes()) axes_.push_back({own.name, own.size});
    else
      axes_.push_back({std::string(name_of(axis)), narrow(size_of(layout_, axis))});
  }

  // A sequence that is cut is one sample of several ranks: all of them have gradients of the same parameters.
  std::vector<std::string> along_data() const {
    std::vector<std::string> along{"context", "expert"};
    if (of_strategy_.sets.empty())
      along.push_back("data");
    for (const MeshAxis& own : of_strategy_.sets.empty() ? std::vector<MeshAxis>{} : of_strategy_.mesh.axes())
      along.push_back(own.name);
    return along;
  }

  const Layout& layout_;
  MeshGroups of_strategy_;
  std::vector<AxisSize> axes_;
};

}  // namespace

MeshGroups groups_wanted(const Scenario& scenario) {
  if (scenario.program)
    return {.listed = scenario.program->sets};
  if (!scenario.training.layout.is_cut())
    return of_strategy(scenario, scenario.cluster.ranks());
  const LayoutMesh mesh(scenario);
  return {.mesh = mesh.mesh(), .sets = mesh.sets()};
}

std::vector<std::uint32_t> stages_of_ranks(const Scenario& scenario) {
  const auto ranks = narrow(scenario.cluster.ranks());
  if (scenario.training.layout.pipeline == 1)
    return std::vector<std::uint32_t>(ranks, 0);
  const Mesh mesh = LayoutMesh(scenario).mesh();
  const MeshAxis& axis = mesh.axis("pipeline");
  std::vector<std::uint32_t> stages;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) stages.push_back(mesh.coordinate(Rank{rank}, axis));
  return stages;
}

}  // namespace lockstep
