#pragma once

// Small kernels on a GPU: the executor of kernels.h whose loop is a grid.
//
// Problem:   formulas of kernels.h must reach memory speed on a GPU without being written a second time.
// Idea:      grid_plan.h says which thread takes which index; here are the loops and how threads combine what
//            they have: within a warp by shuffles, within a block through shared memory, between blocks by a
//            second launch over what the first left in scratch memory. A monoid's value is any plain struct:
//            it is shuffled word by word.
// Invariant: the order of combining depends on the shape alone: equal inputs give equal bits, run after run
//            (but where `add` is used, whose order is the hardware's). No index, no launch. Everything runs
//            on one stream. Nothing here but `launch` is beyond C++ with CUDA's words in it, so that the
//            tests run this very code on a CPU that plays the block (stand_in/simt.h).
// Errors:    EnvironmentError where a launch is refused.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "validate/harness/device/cuda_check.h"
#include "validate/harness/device/cuda_map.cuh"
#include "validate/harness/device/cuda_scratch.h"
#include "validate/harness/device/grid_plan.h"

namespace lockstep::harness {
namespace grid {

#ifdef __CUDACC__
template <class... Parameters>
void launch(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, cudaStream_t stream,
            std::type_identity_t<Parameters>... arguments) {
  kernel<<<blocks, threads, 0, stream>>>(arguments...);
}
#endif

// The value that the lane `distance` away in the warp holds.
template <class Value>
__device__ Value from_lane(const Value& value, int distance) {
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) % sizeof(unsigned) == 0);
  constexpr int words = sizeof(Value) / sizeof(unsigned);
  unsigned mine[words];
  unsigned theirs[words];
  memcpy(mine, &value, sizeof(Value));
  for (int word = 0; word < words; ++word) theirs[word] = __shfl_xor_sync(0xffffffffU, mine[word], distance);
  Value result;
  memcpy(&result, theirs, sizeof(Value));
  return result;
}

template <class Monoid, class Value>
__device__ Value combine_warp(const Monoid& monoid, Value value) {
  for (int distance = threads_per_warp / 2; distance > 0; distance /= 2) {
    const Value other = from_lane(value, distance);
    // The lower lane's value stands first for both, so that both lanes hold the same bits.
    const bool is_lower = (threadIdx.x & static_cast<unsigned>(distance)) == 0;
    value = is_lower ? monoid.combine(value, other) : monoid.combine(other, value);
  }
  return value;
}

// Shared memory for values of a type that may have a constructor, which __shared__ does not allow.
template <class Value, int count>
struct RawValues {
  alignas(Value) unsigned char bytes[count * sizeof(Value)];
  __device__ Value* values() { return reinterpret_cast<Value*>(bytes); }
};

// Of all warps of the block; every thread of the block must call it. The result is that of thread 0.
template <class Monoid, class Value>
__device__ Value combine_block(const Monoid& monoid, Value value) {
  constexpr int warps = threads_per_block / threads_per_warp;
  __shared__ RawValues<Value, warps> memory;
  value = combine_warp(monoid, value);
  __syncthreads();  // what an earlier piece left has been read
  if (threadIdx.x % threads_per_warp == 0)
    memory.values()[threadIdx.x / threads_per_warp] = value;
  __syncthreads();
  for (int warp = 1; warp < warps; ++warp) value = monoid.combine(value, memory.values()[warp]);
  return value;
}

template <class Function>
__global__ void __launch_bounds__(threads_per_block) plane_kernel(PlanePlan plan, Function function) {
  const std::int64_t column = column_of(blockIdx.x, static_cast<int>(threadIdx.x));
  if (column >= plan.columns)
    return;
  const Share rows = rows_of(plan, blockIdx.y, static_cast<int>(threadIdx.y));
  for (std::int64_t row = rows.first; row < rows.end; row += rows.step) function(row, column);
}

// `partial` null: a row is one piece, and finished here.
template <class Monoid, class Value, class Map, class Finish>
__global__ void __launch_bounds__(threads_per_block)
    rows_kernel(RowPlan plan, Monoid monoid, Map map, Finish finish, Value* partial) {
  const int thread = static_cast<int>(threadIdx.x);
  const Share pieces = pieces_of(plan, blockIdx.x, thread);
  for (std::int64_t piece = pieces.first; piece < pieces.end; piece += pieces.step) {
    const std::int64_t row = piece / plan.slices;
    const Share columns = columns_of(plan, piece, thread);
    Value value = monoid.nothing();
#pragma unroll 4
    for (std::int64_t column = columns.first; column < columns.end; column += columns.step)
      value = monoid.combine(value, map(row, column));
    // All threads of a warp, and of a block where a team is one, are in the same piece.
    value =
        plan.threads_per_row == threads_per_warp ? combine_warp(monoid, value) : combine_block(monoid, value);
    if (thread % plan.threads_per_row != 0)
      continue;
    if (partial != nullptr)
      partial[piece] = value;
    else
      finish(row, value);
  }
}

// A block of 32 by `plan.height` threads on each tile of each slice.
template <int height, class Monoid, class Value, class Map, class Finish>
__global__ void __launch_bounds__(threads_per_warp* height)
    columns_kernel(ColumnPlan plan, Monoid monoid, Map map, Finish finish, Value* partial) {
  __shared__ RawValues<Value, threads_per_warp * height> memory;
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  const std::int64_t column = column_of(blockIdx.x, lane);
  const bool is_inside = column < plan.columns;
  const Share rows = rows_of(plan, blockIdx.y, warp);
  Value value = monoid.nothing();
  if (is_inside) {
#pragma unroll 4
    for (std::int64_t row = rows.first; row < rows.end; row += rows.step)
      value = monoid.combine(value, map(row, column));
  }
  memory.values()[warp * threads_per_warp + lane] = value;
  __syncthreads();
  if (warp != 0 || !is_inside)
    return;
  for (int other = 1; other < height; ++other)
    value = monoid.combine(value, memory.values()[other * threads_per_warp + lane]);
  if (partial != nullptr)
    partial[blockIdx.y * plan.columns + column] = value;
  else
    finish(column, value);
}

// What the first launch left, seen as a map of its own.
template <class Value>
struct PartialRows {
  const Value* values;
  std::int64_t slices;
  __device__ Value operator()(std::int64_t row, std::int64_t slice) const {
    return values[row * slices + slice];
  }
};

template <class Value>
struct PartialColumns {
  const Value* values;
  std::int64_t columns;
  __device__ Value operator()(std::int64_t slice, std::int64_t column) const {
    return values[slice * columns + column];
  }
};

}  // namespace grid

class GridExecutor {
 public:
  GridExecutor(cudaStream_t stream, CudaScratch& scratch) : stream_(stream), scratch_(&scratch) {}

  template <class Formula, class... Operands>
  void map(std::int64_t count, Formula formula, Operands... operands) const {
    map_in_rows(1, count, Placeless<Formula>{formula}, operands...);
  }

  template <class Formula, class... Operands>
  void map_in_rows(std::int64_t rows, std::int64_t columns, Formula formula, Operands... operands) const {
    constexpr int width = grid::numbers_per_vector<Operands...>;
    if (rows <= 0 || columns <= 0)
      return;
    if (grid::may_move_vectors(columns, operands...))
      launch_map<width>(rows * columns, columns, formula, operands...);
    else
      launch_map<1>(rows * columns, columns, formula, operands...);
  }

  template <class Function>
  void for_each_in_rows(std::int64_t rows, std::int64_t columns, Function function) const {
    if (rows <= 0 || columns <= 0)
      return;
    const PlanePlan plan = plan_plane(rows, columns);
    launch(grid::plane_kernel<Function>, {blocks(plan.tiles), blocks(plan.layers)},
           {threads_per_warp, rows_at_once}, plan, function);
  }

  template <class Monoid, class Map, class Finish>
  void reduce_rows(std::int64_t rows, std::int64_t columns, Monoid monoid, Map map, Finish finish) const {
    using Value = decltype(monoid.nothing());
    const RowPlan plan = plan_rows(rows, columns);
    Value* partial = plan.slices > 1 ? scratch<Value>(rows * plan.slices) : nullptr;
    launch_rows(plan, monoid, map, finish, partial);
    if (partial == nullptr)
      return;
    const grid::PartialRows<Value> slices{partial, plan.slices};
    // At most blocks_enough slices: never cut a second time.
    launch_rows(plan_rows(rows, plan.slices), monoid, slices, finish, static_cast<Value*>(nullptr));
  }

  template <class Monoid, class Map, class Finish>
  void reduce_columns(std::int64_t rows, std::int64_t columns, Monoid monoid, Map map, Finish finish) const {
    using Value = decltype(monoid.nothing());
    const ColumnPlan plan = plan_columns(rows, columns);
    Value* partial = plan.slices > 1 ? scratch<Value>(plan.slices * columns) : nullptr;
    launch_columns<rows_at_once>(plan, monoid, map, finish, partial);
    if (partial == nullptr)
      return;
    const grid::PartialColumns<Value> slices{partial, columns};
    launch_columns<slices_at_once>(plan_slices(plan), monoid, slices, finish, static_cast<Value*>(nullptr));
  }

  LOCKSTEP_DEVICE_FUNCTION static void add([[maybe_unused]] float* to, [[maybe_unused]] float value) {
#if defined(__CUDA_ARCH__) || !defined(__CUDACC__)
    atomicAdd(to, value);
#endif
  }

 private:
  template <class... Parameters>
  void launch(void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
              std::type_identity_t<Parameters>... arguments) const {
    grid::launch(kernel, blocks, threads, stream_, arguments...);
    check_launch();
  }

  static unsigned blocks(std::int64_t count) {
    return static_cast<unsigned>(count);
  }

  template <class Value>
  Value* scratch(std::int64_t count) const {
    return static_cast<Value*>(scratch_->at_least(count * static_cast<std::int64_t>(sizeof(Value))));
  }

  template <int width, class Formula, class... Operands>
  void launch_map(std::int64_t count, std::int64_t columns, Formula formula, Operands... operands) const {
    launch(grid::map_kernel<width, Formula, Operands...>, {blocks(blocks_for_map(count, width))},
           {threads_per_block}, count, columns, formula, operands...);
  }

  template <class Monoid, class Map, class Finish, class Value>
  void launch_rows(const RowPlan& plan, Monoid monoid, Map map, Finish finish, Value* partial) const {
    if (plan.blocks == 0)
      return;
    launch(grid::rows_kernel<Monoid, Value, Map, Finish>, {blocks(plan.blocks)}, {threads_per_block}, plan,
           monoid, map, finish, partial);
  }

  template <int height, class Monoid, class Map, class Finish, class Value>
  void launch_columns(const ColumnPlan& plan, Monoid monoid, Map map, Finish finish, Value* partial) const {
    if (plan.columns == 0)
      return;
    launch(grid::columns_kernel<height, Monoid, Value, Map, Finish>,
           {blocks(plan.tiles), blocks(plan.slices)}, {threads_per_warp, height}, plan, monoid, map, finish,
           partial);
  }

  cudaStream_t stream_;
  CudaScratch* scratch_;
};

}  // namespace lockstep::harness
