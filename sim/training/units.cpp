#include "sim/training/units.h"

namespace lockstep {
namespace {

std::int64_t elements_of(const Job& job, const LayerWork& layer) {
  std::int64_t elements = 0;
  for (const std::uint32_t gradient : layer.gradients) elements += element_count(job.gradients[gradient]);
  return elements;
}

// Whether the block of `layer` goes on in the unit that was opened last.
class UnitOpener {
 public:
  explicit UnitOpener(const AutoWrap& wrap) : wrap_(wrap) {}

  bool opens(const LayerWork& layer, const Units& found) {
    if (layer.block == block_)
      return false;
    block_ = layer.block;
    return found.units.size() == 1 || wrap_.kind == WrapKind::block ||
           found.units.back().elements >= wrap_.elements;
  }

 private:
  const AutoWrap& wrap_;
  std::int64_t block_ = -1;
};

}  // namespace

Units find_units(const Job& job, const AutoWrap& wrap) {
  Units found{.units = {{.name = "root"}}, .unit_of_layer = {}};
  UnitOpener opener(wrap);
  for (const LayerWork& layer : job.layers) {
    const bool is_in_root = layer.block < 0 || wrap.kind == WrapKind::none;
    if (!is_in_root && opener.opens(layer, found))
      found.units.push_back({.name = "unit " + std::to_string(found.units.size())});
    const std::size_t unit = is_in_root ? 0 : found.units.size() - 1;
    found.unit_of_layer.push_back(static_cast<std::uint32_t>(unit));
    found.units[unit].elements += elements_of(job, layer);
    found.units[unit].tensors += static_cast<std::uint32_t>(layer.gradients.size());
  }
  return found;
}

}  // namespace lockstep
