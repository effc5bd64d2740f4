#pragma once

// Small kernels as operations on a stream of the stand-in.
//
// Problem:   what a kernel touches is in its formula, where nobody but the kernel sees it.
// Idea:      each loop becomes an operation that runs it later in host memory (SerialExecutor). Which memory
//            it reads and writes is said by whoever asked for it (stand_in_device.h) before the loops come.
// Invariant: no loop without its memory said.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "validate/harness/device/cuda_check.h"
#include "validate/harness/device/cuda_scratch.h"
#include "validate/harness/device/executor.h"
#include "validate/harness/device/tensor.h"
#include "validate/harness/stand_in/operation.h"

namespace lockstep::harness::stand_in {

// Of all operations of one call of a device.
struct Touched {
  const char* name = nullptr;  // null: outside any call
  std::vector<Tensor> reads = {};
  std::vector<Tensor> writes = {};
};

class QueuedExecutor {
 public:
  QueuedExecutor(cudaStream_t stream, CudaScratch& /*scratch*/) : stream_(stream) {}

  // Until the next call of it; what was said before is returned. Calls may be nested.
  Touched say(Touched touched) { return std::exchange(touched_, std::move(touched)); }
  const Touched& said() const { return touched_; }

  template <class Formula, class... Operands>
  void map(std::int64_t count, Formula formula, Operands... operands) const {
    launch([=](const SerialExecutor& serial) { serial.map(count, formula, operands...); });
  }

  template <class Formula, class... Operands>
  void map_in_rows(std::int64_t rows, std::int64_t columns, Formula formula, Operands... operands) const {
    launch([=](const SerialExecutor& serial) { serial.map_in_rows(rows, columns, formula, operands...); });
  }

  template <class Function>
  void for_each_in_rows(std::int64_t rows, std::int64_t columns, Function function) const {
    launch([=](const SerialExecutor& serial) { serial.for_each_in_rows(rows, columns, function); });
  }

  template <class Monoid, class Map, class Finish>
  void reduce_rows(std::int64_t rows, std::int64_t columns, Monoid monoid, Map map, Finish finish) const {
    launch([=](const SerialExecutor& serial) { serial.reduce_rows(rows, columns, monoid, map, finish); });
  }

  template <class Monoid, class Map, class Finish>
  void reduce_columns(std::int64_t rows, std::int64_t columns, Monoid monoid, Map map, Finish finish) const {
    launch([=](const SerialExecutor& serial) { serial.reduce_columns(rows, columns, monoid, map, finish); });
  }

  static void add(float* to, float value) { SerialExecutor::add(to, value); }

 private:
  template <class Loop>
  void launch(Loop loop) const {
    LOCKSTEP_CHECK(touched_.name != nullptr, "a kernel's memory is said before it is launched");
    Operation operation{.name = touched_.name, .run = [loop] { loop(SerialExecutor{}); }};
    for (const Tensor& tensor : touched_.reads) {
      operation.reads.push_back({.begin = tensor.data, .bytes = tensor.bytes()});
      operation.work.bytes += tensor.bytes();
    }
    for (const Tensor& tensor : touched_.writes) {
      operation.writes.push_back({.begin = tensor.data, .bytes = tensor.bytes()});
      operation.work.bytes += tensor.bytes();
    }
    if (!must_fail("a kernel launch"))
      enqueue(stream_, std::move(operation));
    else
      fail_launch();
    check_launch();
  }

  cudaStream_t stream_;
  Touched touched_;
};

}  // namespace lockstep::harness::stand_in
