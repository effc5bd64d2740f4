#pragma once

// Ranks as points of a mesh.
//
// Problem:   ranks that talk to each other differ in one respect and agree in all others: they hold parts of
//            one copy of the model, or the same part of every copy.
// Idea:      a rank has a coordinate on each axis, and neighbours on an axis are its stride apart. A group is
//            a line: the ranks that agree on all axes but one, or on all but those that it runs along.
// Invariant: ranks and coordinates are inverse to each other, for a stride is the product of the sizes of the
//            axes inside. The lines along an axis hold every rank exactly once and are equally long.
// Cost:      an axis is three numbers; lines are listed when they are asked for.
// Reference: torch.distributed.device_mesh (init_device_mesh), whose last dimension is the innermost.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/plan.h"

namespace lockstep {

struct AxisSize {
  std::string name;
  std::uint32_t size = 1;
};

struct MeshAxis {
  std::string name;
  std::uint32_t size = 1;
  std::uint32_t stride = 1;  // from a rank to its neighbour on this axis

  bool operator==(const MeshAxis&) const = default;
};

class Mesh {
 public:
  // From the inside out: neighbours on the first axis are consecutive ranks. No two have one name.
  explicit Mesh(const std::vector<AxisSize>& from_inside);

  std::uint32_t ranks() const { return ranks_; }
  const std::vector<MeshAxis>& axes() const { return axes_; }
  const MeshAxis& axis(std::string_view name) const;

  std::uint32_t coordinate(Rank rank, const MeshAxis& axis) const {
    return rank.index / axis.stride % axis.size;
  }
  // In the order of `axes()`.
  std::vector<std::uint32_t> coordinates(Rank rank) const;
  Rank rank_at(std::span<const std::uint32_t> coordinates) const;

  // All lines along these axes, by their first rank; a line's ranks ascend.
  std::vector<std::vector<Rank>> lines(std::span<const std::string> along) const;

  bool operator==(const Mesh&) const = default;

 private:
  std::vector<MeshAxis> axes_;
  std::uint32_t ranks_ = 1;
};

}  // namespace lockstep
