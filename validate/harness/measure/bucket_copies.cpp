#include "validate/harness/measure/bucket_copies.h"

namespace lockstep::harness {
namespace {

constexpr std::int64_t memory_bytes = 128 << 20;

struct Shape {
  std::int64_t tensors;
  std::int64_t bytes_each;
};

constexpr Shape shapes[] = {{1, 1 << 10},  {16, 1 << 10}, {1, 64 << 10}, {16, 64 << 10}, {1, 1 << 20},
                            {16, 1 << 20}, {1, 4 << 20},  {1, 16 << 20}, {4, 16 << 20}};

class CopyTiming {
 public:
  explicit CopyTiming(Bench& bench)
      : bench_(bench),
        gradients_(bench.device, memory_bytes / 4, Type::fp32),
        buckets_(bench.device, memory_bytes / 4, Type::fp32) {
    bench.device.fill_zero(gradients_.tensor());
    bench.device.fill_zero(buckets_.tensor());
  }

  TensorTiming measure(const Shape& shape) {
    bench_.ranks.barrier();
    const auto run = [&](std::int64_t calls) {
      for (std::int64_t call = 0; call < calls; ++call) copy(shape);
    };
    return {.tensors = shape.tensors,
            .bytes = shape.tensors * shape.bytes_each,
            .time = time_calls(bench_, {.run = run,
                                        .meet = [] {},  // that once is enough
                                        .repeats = {.seconds = 0.3, .least = 5, .most = 200}})};
  }

 private:
  void copy(const Shape& shape) {
    const std::int64_t elements = shape.bytes_each / 4;
    const float divided = 1.0F / static_cast<float>(bench_.communicator.size());
    for (std::int64_t tensor = 0; tensor < shape.tensors; ++tensor) {
      if (next_ + elements > memory_bytes / 4)
        next_ = 0;
      bench_.device.scale(buckets_.tensor().part(next_, elements), gradients_.tensor().part(next_, elements),
                          divided);
      next_ += elements;
    }
  }

  Bench& bench_;
  Buffer gradients_;
  Buffer buckets_;
  std::int64_t next_ = 0;
};

}  // namespace

std::vector<TensorTiming> measure_bucket_copies(Bench& bench) {
  CopyTiming timing(bench);
  std::vector<TensorTiming> timings;
  for (const Shape& shape : shapes) timings.push_back(timing.measure(shape));
  return timings;
}

}  // namespace lockstep::harness
