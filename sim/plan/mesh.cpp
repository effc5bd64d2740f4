#include "sim/plan/mesh.h"

#include <algorithm>

#include "sim/base/check.h"

namespace lockstep {
namespace {

bool is_named(const MeshAxis& axis, std::string_view name) {
  return axis.name == name;
}

}  // namespace

Mesh::Mesh(const std::vector<AxisSize>& from_inside) {
  for (const AxisSize& axis : from_inside) {
    LOCKSTEP_CHECK(axis.size > 0, "an axis of a mesh has a place for a rank");
    LOCKSTEP_CHECK(std::none_of(axes_.begin(), axes_.end(),
                                [&](const MeshAxis& other) { return is_named(other, axis.name); }),
                   "the axes of a mesh have names of their own");
    axes_.push_back({.name = axis.name, .size = axis.size, .stride = ranks_});
    ranks_ *= axis.size;
  }
}

const MeshAxis& Mesh::axis(std::string_view name) const {
  const auto found =
      std::find_if(axes_.begin(), axes_.end(), [&](const MeshAxis& axis) { return is_named(axis, name); });
  LOCKSTEP_CHECK(found != axes_.end(), "who asks for an axis of a mesh has made it");
  return *found;
}

std::vector<std::uint32_t> Mesh::coordinates(Rank rank) const {
  std::vector<std::uint32_t> coordinates;
  for (const MeshAxis& axis : axes_) coordinates.push_back(coordinate(rank, axis));
  return coordinates;
}

Rank Mesh::rank_at(std::span<const std::uint32_t> coordinates) const {
  Rank rank{0};
  for (std::size_t i = 0; i < axes_.size(); ++i) rank.index += coordinates[i] * axes_[i].stride;
  return rank;
}

// The first rank of a line is the one at the beginning of each axis that it runs along.
std::vector<std::vector<Rank>> Mesh::lines(std::span<const std::string> along) const {
  std::vector<std::vector<Rank>> lines;
  std::vector<std::size_t> line_from(ranks_);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    std::uint32_t first = rank;
    for (const std::string& name : along) first -= coordinate(Rank{rank}, axis(name)) * axis(name).stride;
    if (first == rank) {
      line_from[rank] = lines.size();
      lines.emplace_back();
    }
    lines[line_from[first]].push_back(Rank{rank});
  }
  return lines;
}

}  // namespace lockstep
