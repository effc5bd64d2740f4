#pragma once

// Meshes of GPUs by their links, and what cycles and paths use of these.

#include <rapidcheck.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <vector>

#include "sim/network/hamilton.h"

namespace lockstep {

using Cycles = std::vector<GpuOrder>;

inline LinkMatrix no_links(std::size_t gpus) {
  return LinkMatrix(gpus, std::vector<std::int64_t>(gpus));
}

inline void join(LinkMatrix& matrix, std::size_t a, std::size_t b, std::int64_t links = 1) {
  matrix[a][b] += links;
  matrix[b][a] += links;
}

inline LinkMatrix complete_mesh(std::size_t gpus, std::int64_t links = 1) {
  LinkMatrix matrix = no_links(gpus);
  for (std::size_t a = 0; a < gpus; ++a)
    for (std::size_t b = 0; b < a; ++b) join(matrix, a, b, links);
  return matrix;
}

// GPUs in rows of `dims[0]`, and so on; each joined to the next along every dimension, ends wrapped round.
inline LinkMatrix torus(const std::vector<std::size_t>& dims) {
  const std::size_t gpus = std::accumulate(dims.begin(), dims.end(), std::size_t{1}, std::multiplies<>());
  LinkMatrix matrix = no_links(gpus);
  std::size_t stride = 1;
  for (const std::size_t length : dims) {
    for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
      const std::size_t place = gpu / stride % length;
      if (length > 2 || place == 0)
        join(matrix, gpu, gpu + ((place + 1) % length) * stride - place * stride);
    }
    stride *= length;
  }
  return matrix;
}

// How often each pair is joined by the orders, from the last GPU to the first again where they are closed.
inline LinkMatrix used_links(const std::vector<GpuOrder>& orders, std::size_t gpus, bool are_closed = true) {
  LinkMatrix used = no_links(gpus);
  for (const GpuOrder& order : orders)
    for (std::size_t place = are_closed ? 0 : 1; place < order.size(); ++place)
      join(used, order[(place + order.size() - 1) % order.size()], order[place]);
  return used;
}

inline bool is_within(const LinkMatrix& used, const LinkMatrix& matrix) {
  for (std::size_t a = 0; a < matrix.size(); ++a)
    for (std::size_t b = 0; b < matrix.size(); ++b)
      if (used[a][b] > matrix[a][b])
        return false;
  return true;
}

inline bool visits_all(const GpuOrder& order, std::size_t gpus) {
  return order.size() == gpus && std::set<std::uint32_t>(order.begin(), order.end()).size() == gpus;
}

inline bool are_disjoint_cycles(const Cycles& cycles, const LinkMatrix& matrix) {
  for (const GpuOrder& cycle : cycles)
    if (!visits_all(cycle, matrix.size()) || cycle.front() != 0)
      return false;
  return is_within(used_links(cycles, matrix.size()), matrix);
}

inline LinkMatrix any_matrix() {
  const std::size_t gpus = *rc::gen::inRange<std::size_t>(3, 24);
  const int density = *rc::gen::inRange(1, 10);
  LinkMatrix matrix = no_links(gpus);
  for (std::size_t a = 0; a < gpus; ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (*rc::gen::inRange(0, 10) < density)
        join(matrix, a, b, *rc::gen::inRange<std::int64_t>(1, 4));
  return matrix;
}

}  // namespace lockstep
