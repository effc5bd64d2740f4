// The grid of cuda_executor.cuh as a device: with it, every test of a kernel is one of the GPU's code.

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "tests/harness/device/tested_device.h"
#include "tests/harness/stand_in/host_grid.h"
#include "validate/harness/device/kernel_device.h"

namespace lockstep::harness {
namespace {

float number_at(Tensor tensor, std::int64_t place) {
  if (tensor.type == Type::fp32)
    return tensor.as<const float>()[place];
  return tensor.type == Type::fp16 ? load(tensor.as<const Half>()[place])
                                   : load(tensor.as<const Bfloat16>()[place]);
}

void store_at(Tensor tensor, std::int64_t place, float value) {
  if (tensor.type == Type::fp32)
    tensor.as<float>()[place] = value;
  else if (tensor.type == Type::fp16)
    tensor.as<Half>()[place] = half_of(value);
  else
    tensor.as<Bfloat16>()[place] = bfloat16_of(value);
}

class GridDevice final : private HostGrid, public KernelDevice<GridExecutor> {
 public:
  GridDevice() : KernelDevice<GridExecutor>(HostGrid::executor) {}
  ~GridDevice() override { release_scratch(); }

  std::string name() const override { return "grid"; }
  std::string libraries() const override { return "none"; }
  void* allocate(std::int64_t bytes) override { return std::malloc(static_cast<std::size_t>(bytes) + 1); }
  void release(void* memory) noexcept override { std::free(memory); }
  void upload(Tensor to, const void* host) override { std::memcpy(to.data, host, size_of(to)); }
  void download(void* host, Tensor from) override { std::memcpy(host, from.data, size_of(from)); }
  void fill_zero(Tensor to) override { std::memset(to.data, 0, size_of(to)); }
  void copy(Tensor to, Tensor from) override { std::memcpy(to.data, from.data, size_of(from)); }
  Mark mark() override { return {}; }
  double seconds_between(Mark, Mark) override { return 0; }
  void forget_marks() override {}
  void synchronize() override {}

  void matmul(const Matmul& product) override {
    for (std::int64_t batch = 0; batch < product.batches; ++batch) {
      for (std::int64_t row = 0; row < product.rows; ++row) {
        for (std::int64_t column = 0; column < product.columns; ++column)
          multiply(product, batch, row, column);
      }
    }
  }

 private:
  static std::size_t size_of(Tensor tensor) { return static_cast<std::size_t>(tensor.bytes()); }

  // `width` is that of the factor as it stands in the product, `height` likewise.
  static std::int64_t place_of(const Factor& factor, std::int64_t batch, std::int64_t row,
                               std::int64_t column, std::int64_t height, std::int64_t width) {
    const std::int64_t packed = factor.is_transposed ? height : width;
    const std::int64_t stride = factor.stride == 0 ? packed : factor.stride;
    return batch * factor.batch_stride +
           (factor.is_transposed ? column * stride + row : row * stride + column);
  }

  static void multiply(const Matmul& p, std::int64_t batch, std::int64_t row, std::int64_t column) {
    double sum = 0;
    for (std::int64_t k = 0; k < p.inner; ++k)
      sum += static_cast<double>(number_at(p.a.tensor, place_of(p.a, batch, row, k, p.rows, p.inner))) *
             static_cast<double>(number_at(p.b.tensor, place_of(p.b, batch, k, column, p.inner, p.columns)));
    const std::int64_t place = place_of(p.output, batch, row, column, p.rows, p.columns);
    const float before = p.accumulates ? number_at(p.output.tensor, place) : 0.0F;
    store_at(p.output.tensor, place, static_cast<float>(sum) * p.scale + before);
  }
};

}  // namespace

std::unique_ptr<Device> make_tested_device() {
  return std::make_unique<GridDevice>();
}

}  // namespace lockstep::harness
