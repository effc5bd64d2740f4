#include "sim/run/layout_groups.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

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

// Of the ranks along a part of a dimension: they share each expert, have others, or hold the same; none where experts
// have nothing to do with it.
enum class ExpertRole : std::uint8_t { none, shared, dealt, copied };

// Of a part that is not the whole dimension.
constexpr std::array<const char*, 4> role_names{"", " (sharers)", " (experts)", " (copies)"};

// A dimension, or a part of it.
struct MeshPart {
  LayoutAxis axis;
  ExpertRole role;
  AxisSize size;
};

// A sequence that is cut is one sample of several ranks: all of them have gradients of the same parameters.
bool is_copied(const MeshPart& part) {
  return part.axis != LayoutAxis::tensor && part.axis != LayoutAxis::pipeline;
}

auto is_on(LayoutAxis axis) {
  return [axis](const MeshPart& part) { return part.axis == axis; };
}

auto has(ExpertRole role) {
  return [role](const MeshPart& part) { return part.role == role; };
}

class LayoutMesh {
 public:
  explicit LayoutMesh(const Scenario& scenario)
      : layout_(scenario.training.layout),
        spread_(spread_of_experts(layout_)),
        of_strategy_(of_strategy(scenario, scenario.synchronised_ranks())) {
    for (const LayoutAxis axis : layout_.placement) add(axis);
  }

  Mesh mesh() const {
    std::vector<AxisSize> axes;
    for (const MeshPart& part : parts_) axes.push_back(part.size);
    return Mesh(axes);
  }

  std::vector<GroupAxes> sets() const {
    std::vector<GroupAxes> sets{{std::string(data_group), along(is_copied)}};
    sets.insert(sets.end(), of_strategy_.sets.begin(), of_strategy_.sets.end());
    const ParallelDegrees& degrees = layout_.degrees;
    const auto add = [&](bool is_wanted, std::string_view name, const auto& is_along) {
      if (is_wanted)
        sets.push_back({std::string(name), along(is_along)});
    };
    add(degrees.tensor > 1, name_of(ParallelAxis::tensor), is_on(LayoutAxis::tensor));
    add(degrees.context > 1, name_of(ParallelAxis::context), is_on(LayoutAxis::context));
    add(degrees.expert > 1, name_of(ParallelAxis::expert), has(ExpertRole::dealt));
    add(has_groups_of_sharers(degrees), name_of(ParallelAxis::expert_tensor), has(ExpertRole::shared));
    add(deals_experts(layout_), expert_data_group, has(ExpertRole::copied));
    add(layout_.pipeline > 1, pipeline_group, is_on(LayoutAxis::pipeline));
    return sets;
  }

 private:
  // From the inside out.
  void add(LayoutAxis axis) {
    const ParallelDegrees& degrees = layout_.degrees;
    const std::int64_t sharers = sharers_of_expert(degrees);
    switch (axis) {
      case LayoutAxis::tensor:
        add(axis, ExpertRole::shared, sharers);
        add(axis, ExpertRole::dealt, spread_.tensor);
        return add(axis, ExpertRole::copied, degrees.tensor / sharers / spread_.tensor);
      case LayoutAxis::context:
        add(axis, ExpertRole::dealt, spread_.context);
        return add(axis, ExpertRole::copied, degrees.context / spread_.context);
      case LayoutAxis::expert:
        return add(axis, ExpertRole::dealt, spread_.data);
      case LayoutAxis::data:
        return add_data();
      case LayoutAxis::pipeline:
        break;
    }
    add(axis, ExpertRole::none, layout_.pipeline);
  }

  void add(LayoutAxis axis, ExpertRole role, std::int64_t size) {
    if (size == 1)
      return;
    std::string name(name_of(axis));
    if (size < size_of(layout_, axis))
      name += role_names[static_cast<std::size_t>(role)];
    parts_.push_back({axis, role, {std::move(name), narrow(size)}});
  }

  // A strategy that cuts its ranks up has axes of its own in the place of `data`.
  void add_data() {
    if (of_strategy_.sets.empty())
      return add(LayoutAxis::data, ExpertRole::copied, size_of(layout_, LayoutAxis::data));
    for (const MeshAxis& own : of_strategy_.mesh.axes())
      parts_.push_back({LayoutAxis::data, ExpertRole::copied, {own.name, own.size}});
  }

  template <class IsAlong>
  std::vector<std::string> along(const IsAlong& is_along) const {
    std::vector<std::string> names;
    for (const MeshPart& part : parts_)
      if (is_along(part))
        names.push_back(part.size.name);
    return names;
  }

  const Layout& layout_;
  ExpertSpread spread_;
  MeshGroups of_strategy_;
  std::vector<MeshPart> parts_;
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
