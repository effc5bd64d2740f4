#include "validate/harness/device/cpu_device.h"

#include <cblas.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "validate/harness/device/executor.h"
#include "validate/harness/device/kernel_device.h"

namespace lockstep::harness {
namespace {

constexpr std::int64_t alignment = 64;  // a cache line, and the widest vector

std::int64_t physical_memory() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
}

// A matrix as it is stored: `rows` lines of `columns` numbers that lie `stride` apart.
struct StoredMatrix {
  Tensor tensor;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
};

StoredMatrix stored_matrix(const Factor& factor, std::int64_t rows, std::int64_t columns,
                           std::int64_t product) {
  if (factor.is_transposed)
    std::swap(rows, columns);
  const std::int64_t stride = factor.stride == 0 ? columns : factor.stride;
  const std::int64_t first = product * factor.batch_stride;
  const std::int64_t extent = (rows - 1) * stride + columns;
  LOCKSTEP_CHECK(stride >= columns && first + extent <= factor.tensor.elements,
                 "a factor of a product lies within its tensor");
  return {factor.tensor.part(first, extent), rows, columns, stride};
}

// Rows of another type, packed as fp32, and back.
class PackedMatrix {
 public:
  void reserve(std::int64_t elements) {
    if (numbers_.size() < static_cast<std::size_t>(elements))
      numbers_.resize(static_cast<std::size_t>(elements));
  }
  Tensor row(const StoredMatrix& matrix, std::int64_t index) {
    return {numbers_.data() + index * matrix.columns, matrix.columns, Type::fp32};
  }
  StoredMatrix whole(const StoredMatrix& matrix) {
    reserve(matrix.rows * matrix.columns);
    return {{numbers_.data(), matrix.rows * matrix.columns, Type::fp32},
            matrix.rows,
            matrix.columns,
            matrix.columns};
  }

 private:
  std::vector<float> numbers_;
};

class CpuDevice : public KernelDevice<SerialExecutor> {
 public:
  CpuDevice() { openblas_set_num_threads(1); }
  CpuDevice(const CpuDevice&) = delete;
  CpuDevice& operator=(const CpuDevice&) = delete;
  ~CpuDevice() override { release_scratch(); }

  std::string name() const override { return "cpu"; }
  std::string libraries() const override {
    std::istringstream configuration(openblas_get_config());
    std::string library;
    std::string version;
    configuration >> library >> version;
    return fmt::format("{} {} ({} kernels, 1 thread)", library, version, openblas_get_corename());
  }

  // Refuses what the machine does not have: a kernel that promises more kills processes later.
  void* allocate(std::int64_t bytes) override {
    LOCKSTEP_CHECK(bytes >= 0, "memory has a size");
    const std::int64_t whole = std::max<std::int64_t>(1, (bytes + alignment - 1) / alignment) * alignment;
    const bool is_there = whole <= physical_memory() - allocated_;
    void* const memory = is_there ? std::aligned_alloc(alignment, static_cast<std::size_t>(whole)) : nullptr;
    if (memory == nullptr)
      throw EnvironmentError(
          fmt::format("out of memory: asked for {} bytes beside {} bytes in use; the machine has {}", bytes,
                      allocated_, physical_memory()));
    allocated_ += whole;
    sizes_[memory] = whole;
    return memory;
  }
  void release(void* memory) noexcept override {
    const auto size = sizes_.find(memory);
    if (size == sizes_.end())
      return;
    allocated_ -= size->second;
    sizes_.erase(size);
    std::free(memory);
  }
  void upload(Tensor to, const void* host) override {
    if (to.elements > 0)
      std::memcpy(to.data, host, static_cast<std::size_t>(to.bytes()));
  }
  void download(void* host, Tensor from) override {
    if (from.elements > 0)
      std::memcpy(host, from.data, static_cast<std::size_t>(from.bytes()));
  }
  void fill_zero(Tensor to) override {
    if (to.elements > 0)
      std::memset(to.data, 0, static_cast<std::size_t>(to.bytes()));
  }
  void copy(Tensor to, Tensor from) override {
    LOCKSTEP_CHECK(to.type == from.type && to.elements == from.elements, "a copy is like its original");
    if (to.elements > 0)
      std::memmove(to.data, from.data, static_cast<std::size_t>(to.bytes()));
  }

  Mark mark() override {
    marks_.push_back(std::chrono::steady_clock::now());
    return {static_cast<std::uint32_t>(marks_.size() - 1)};
  }
  double seconds_between(Mark from, Mark to) override {
    return std::chrono::duration<double>(marks_.at(to.index) - marks_.at(from.index)).count();
  }
  void reserve_marks(std::int64_t count) override { marks_.reserve(static_cast<std::size_t>(count)); }
  void forget_marks() override { marks_.clear(); }
  void synchronize() override {}

  void matmul(const Matmul& matmul) override {
    if (matmul.rows == 0 || matmul.columns == 0)
      return;
    for (std::int64_t product = 0; product < matmul.batches; ++product) multiply(matmul, product);
  }

 private:
  void multiply(const Matmul& matmul, std::int64_t product) {
    const StoredMatrix a = unpacked(stored_matrix(matmul.a, matmul.rows, matmul.inner, product), packed_a_);
    const StoredMatrix b =
        unpacked(stored_matrix(matmul.b, matmul.inner, matmul.columns, product), packed_b_);
    const StoredMatrix target = stored_matrix(matmul.output, matmul.rows, matmul.columns, product);
    const bool is_fp32 = target.tensor.type == Type::fp32;
    const StoredMatrix output =
        is_fp32 ? target
                : (matmul.accumulates ? unpacked(target, packed_output_) : packed_output_.whole(target));
    cblas_sgemm(CblasRowMajor, matmul.a.is_transposed ? CblasTrans : CblasNoTrans,
                matmul.b.is_transposed ? CblasTrans : CblasNoTrans, static_cast<blasint>(matmul.rows),
                static_cast<blasint>(matmul.columns), static_cast<blasint>(matmul.inner), matmul.scale,
                a.tensor.as<const float>(), static_cast<blasint>(a.stride), b.tensor.as<const float>(),
                static_cast<blasint>(b.stride), matmul.accumulates ? 1.0F : 0.0F, output.tensor.as<float>(),
                static_cast<blasint>(output.stride));
    if (!is_fp32) {
      for (std::int64_t row = 0; row < target.rows; ++row)
        cast(target.tensor.part(row * target.stride, target.columns), packed_output_.row(target, row));
    }
  }

  // The matrix itself where it is fp32, else its numbers as fp32.
  StoredMatrix unpacked(const StoredMatrix& matrix, PackedMatrix& packed) {
    if (matrix.tensor.type == Type::fp32)
      return matrix;
    const StoredMatrix whole = packed.whole(matrix);
    for (std::int64_t row = 0; row < matrix.rows; ++row)
      cast(packed.row(matrix, row), matrix.tensor.part(row * matrix.stride, matrix.columns));
    return whole;
  }

  std::unordered_map<void*, std::int64_t> sizes_;
  std::int64_t allocated_ = 0;
  std::vector<std::chrono::steady_clock::time_point> marks_;
  PackedMatrix packed_a_;
  PackedMatrix packed_b_;
  PackedMatrix packed_output_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() {
  return std::make_unique<CpuDevice>();
}

}  // namespace lockstep::harness
