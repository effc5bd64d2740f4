#include "sim/training/layout.h"

#include <algorithm>

#include "sim/base/check.h"

namespace lockstep {
namespace {

constexpr std::size_t axes = 5;
constexpr std::size_t letters = 2;  // of an axis

std::string_view short_name(LayoutAxis axis) {
  return usual_placement.substr(static_cast<std::size_t>(axis) * (letters + 1), letters);
}

}  // namespace

std::optional<ExpertSpread> expert_spread(const Layout& layout) {
  const ParallelDegrees& degrees = layout.degrees;
  const std::int64_t sharers = sharers_of_expert(degrees);
  if (degrees.tensor % sharers != 0)
    return std::nullopt;
  std::int64_t left = degrees.expert;
  bool is_even = true;
  const auto dealt_among = [&](std::int64_t ranks) {
    const std::int64_t dealt = std::min(ranks, left);
    is_even = is_even && ranks % dealt == 0 && left % dealt == 0;
    left /= dealt;
    return dealt;
  };
  ExpertSpread spread;
  spread.tensor = dealt_among(degrees.tensor / sharers);
  spread.context = dealt_among(degrees.context);
  spread.data = dealt_among(layout.data);
  return is_even && left == 1 ? std::optional(spread) : std::nullopt;
}

ExpertSpread spread_of_experts(const Layout& layout) {
  const std::optional<ExpertSpread> spread = expert_spread(layout);
  LOCKSTEP_CHECK(spread.has_value(), "a layout that was read deals its experts evenly");
  return *spread;
}

std::int64_t copies_of_expert(const Layout& layout) {
  const ParallelDegrees& degrees = layout.degrees;
  return degrees.tensor * degrees.context * layout.data / (sharers_of_expert(degrees) * degrees.expert);
}

bool deals_experts(const Layout& layout) {
  return layout.degrees.expert > 1 || sharers_of_expert(layout.degrees) < layout.degrees.tensor;
}

std::string text_of(const std::vector<LayoutAxis>& placement) {
  std::string text;
  for (const LayoutAxis axis : placement) {
    text += text.empty() ? "" : "-";
    text += short_name(axis);
  }
  return text;
}

std::optional<std::vector<LayoutAxis>> parse_placement(std::string_view text) {
  std::vector<LayoutAxis> placement;
  for (std::size_t at = 0; at < text.size(); at += letters + 1)
    for (std::size_t number = 0; number < axes; ++number)
      if (text.substr(at, letters) == short_name(LayoutAxis{static_cast<std::uint8_t>(number)}))
        placement.push_back(LayoutAxis{static_cast<std::uint8_t>(number)});
  std::vector<LayoutAxis> sorted = placement;
  std::sort(sorted.begin(), sorted.end());
  const bool has_each_once =
      sorted.size() == axes && std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  return has_each_once && text == text_of(placement) ? std::optional(placement) : std::nullopt;
}

std::string_view name_of(ParallelAxis axis) {
  switch (axis) {
    case ParallelAxis::tensor:
      return "tensor";
    case ParallelAxis::context:
      return "context";
    case ParallelAxis::expert:
      return "expert";
    case ParallelAxis::expert_tensor:
      break;
  }
  return "expert tensor";
}

std::string_view name_of(LayoutAxis axis) {
  switch (axis) {
    case LayoutAxis::tensor:
      return name_of(ParallelAxis::tensor);
    case LayoutAxis::context:
      return name_of(ParallelAxis::context);
    case LayoutAxis::expert:
      return name_of(ParallelAxis::expert);
    case LayoutAxis::data:
      return data_group;
    case LayoutAxis::pipeline:
      break;
  }
  return pipeline_group;
}

std::int64_t size_of(const Layout& layout, LayoutAxis axis) {
  switch (axis) {
    case LayoutAxis::tensor:
      return layout.degrees.tensor;
    case LayoutAxis::context:
      return layout.degrees.context;
    case LayoutAxis::expert:
      return spread_of_experts(layout).data;
    case LayoutAxis::data:
      return layout.data / size_of(layout, LayoutAxis::expert);
    case LayoutAxis::pipeline:
      break;
  }
  return layout.pipeline;
}

}  // namespace lockstep
