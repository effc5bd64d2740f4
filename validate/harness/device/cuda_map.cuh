#pragma once

// Formulas of elements on a GPU, 16 bytes a thread and load.
//
// Problem:   a thread that moves one number of 2 bytes at a time has too few bytes under way for memory's
//            speed: an H100 (3.35 TB/s, some 0.7 us, 132 multiprocessors) needs 18 kB each, and 2,048 threads
//            with 2 bytes each are 4.
// Idea:      a thread takes chunks of neighbours, as many as fill 16 bytes of the narrowest operand, and
//            loads several of them before it computes with any. What belongs to a column comes out of the
//            cache and is loaded when it is needed. Elements after the last chunk are taken one by one; where
//            an operand does not begin at 16 bytes, or a column's would not, all are: chunks of one.
// Invariant: a chunk may cross the end of a row; it lies within one where an operand is of columns.
// Cost:      one division a chunk; registers for the chunks under way.
// Reference: NVIDIA, "CUDA C++ Best Practices Guide", 10.2 (memory throughput); Little's law.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>

#include "validate/harness/device/grid_plan.h"
#include "validate/harness/device/operands.h"

namespace lockstep::harness::grid {

struct alignas(16) Vector {
  unsigned words[4];
};

#ifdef __CUDACC__
// Tests have these count what is moved.
template <class T>
__device__ T load_number(const T* from) {
  return *from;
}

template <class T>
__device__ void store_number(T* to, const T& value) {
  *to = value;
}

// By an intrinsic: nvcc takes an assignment of packed halves apart again.
__device__ inline void store_number(Vector* to, const Vector& value) {
  const unsigned(&words)[4] = value.words;
  __stwb(reinterpret_cast<uint4*>(to), make_uint4(words[0], words[1], words[2], words[3]));
}
#endif

// Neighbours: `width` numbers of memory, in registers.
template <class T, int width>
struct Chunk {
  static constexpr int vectors = width * static_cast<int>(sizeof(T)) / static_cast<int>(sizeof(Vector));
  static_assert(width == 1 || vectors * sizeof(Vector) == width * sizeof(T));

  T numbers[width];
};

template <int width, class T>
__device__ Chunk<T, width> load_chunk(const T* from) {
  Chunk<T, width> chunk;
  if constexpr (width == 1) {
    chunk.numbers[0] = load_number(from);
  } else {
    Vector vectors[Chunk<T, width>::vectors];
#pragma unroll
    for (int i = 0; i < Chunk<T, width>::vectors; ++i)
      vectors[i] = load_number(reinterpret_cast<const Vector*>(from) + i);
    memcpy(chunk.numbers, vectors, sizeof(vectors));
  }
  return chunk;
}

template <int width, class T>
__device__ void store_chunk(T* to, const Chunk<T, width>& chunk) {
  if constexpr (width == 1) {
    store_number(to, chunk.numbers[0]);
  } else {
    Vector vectors[Chunk<T, width>::vectors];
    memcpy(vectors, chunk.numbers, sizeof(vectors));
#pragma unroll
    for (int i = 0; i < Chunk<T, width>::vectors; ++i)
      store_number(reinterpret_cast<Vector*>(to) + i, vectors[i]);
  }
}

// Of one operand: a chunk, loaded if the operand is read.
template <int width, class AnyOperand>
__device__ Chunk<typename AnyOperand::Element, width> held(const AnyOperand& operand, std::int64_t first) {
  if constexpr (AnyOperand::is_read)
    return load_chunk<width>(operand.values + first);
  else
    return {};
}

template <int width, class AnyOperand>
__device__ void put_back(const AnyOperand& operand, std::int64_t first,
                         const Chunk<typename AnyOperand::Element, width>& chunk) {
  if constexpr (AnyOperand::is_written)
    store_chunk<width>(operand.values + first, chunk);
}

// What is of a column is not held: it is loaded where its chunk is computed.
template <int width, class AnyOperand>
__device__ Chunk<typename AnyOperand::Element, width> at_column(
    const AnyOperand& operand, const Chunk<typename AnyOperand::Element, width>& chunk, std::int64_t column) {
  if constexpr (AnyOperand::is_of_column)
    return load_chunk<width>(operand.values + column);
  else
    return chunk;
}

// Divides in 32 bits where it can: a division in 64 costs a hundred instructions.
__device__ inline Place place_of(std::int64_t index, std::int64_t columns) {
  if (((index | columns) >> 32) == 0) {
    const auto low = static_cast<unsigned>(index);
    const unsigned row = low / static_cast<unsigned>(columns);
    return {index, row, low - row * static_cast<unsigned>(columns)};
  }
  const std::int64_t row = index / columns;
  return {index, row, index - row * columns};
}

// formula(row, column, values...) on each element of chunks that are loaded already.
template <int width, class Formula, class... Operands>
__device__ void compute_chunk(std::int64_t first, std::int64_t columns, const Formula& formula,
                              const Operands&... operands,
                              Chunk<typename Operands::Element, width>... chunks) {
  Place place = place_of(first, columns);
  ((chunks = at_column<width>(operands, chunks, place.column)), ...);
#pragma unroll
  for (int i = 0; i < width; ++i) {
    const auto apply = [&](auto... values) {
      formula(place.row, place.column, values...);
      ((chunks.numbers[i] = stored<typename Operands::Element>(values)), ...);
    };
    apply(load(chunks.numbers[i])...);
    if (++place.column == columns) {
      place.column = 0;
      ++place.row;
    }
  }
  (put_back<width>(operands, first, chunks), ...);
}

// Two chunks: both are under way before the first is computed.
template <int width, class Formula, class... Operands>
__device__ void map_chunks(std::int64_t chunk, std::int64_t step, std::int64_t chunks, std::int64_t columns,
                           const Formula& formula, const Operands&... operands) {
  const bool has_second = chunk + step < chunks;
  const std::int64_t first = chunk * width;
  const std::int64_t second = first + step * width;
  const auto with_first = [&](const auto&... firsts) {
    const auto with_second = [&](const auto&... seconds) {
      compute_chunk<width, Formula, Operands...>(first, columns, formula, operands..., firsts...);
      if (has_second)
        compute_chunk<width, Formula, Operands...>(second, columns, formula, operands..., seconds...);
    };
    with_second((has_second ? held<width>(operands, second) : decltype(held<width>(operands, second)){})...);
  };
  with_first(held<width>(operands, first)...);
}

template <int width, class Formula, class... Operands>
__global__ void __launch_bounds__(threads_per_block)
    map_kernel(std::int64_t count, std::int64_t columns, Formula formula, Operands... operands) {
  const std::int64_t chunks = count / width;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads_per_block;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * threads_per_block + threadIdx.x;
  for (std::int64_t chunk = thread; chunk < chunks; chunk += chunks_at_once * step)
    map_chunks<width>(chunk, step, chunks, columns, formula, operands...);
  for (std::int64_t i = chunks * width + thread; i < count; i += step)
    map_chunks<1>(i, step, 0, columns, formula, operands...);
}

// How many neighbours a chunk has: 16 bytes of the narrowest operand.
template <class... Operands>
inline constexpr int numbers_per_vector = (... || (sizeof(typename Operands::Element) == 2)) ? 8 : 4;

template <class AnyOperand>
bool begins_at_vector(const AnyOperand& operand) {
  return reinterpret_cast<std::uintptr_t>(operand.values) % sizeof(Vector) == 0;
}

// Whether chunks of `width` begin where a vector may be loaded.
template <class... Operands>
bool may_move_vectors(std::int64_t columns, const Operands&... operands) {
  const bool has_columns = (... || Operands::is_of_column);
  return (... && begins_at_vector(operands)) &&
         (!has_columns || columns % numbers_per_vector<Operands...> == 0);
}

}  // namespace lockstep::harness::grid
