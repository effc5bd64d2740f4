#include "validate/harness/measure/kernel_curves.h"

#include <vector>

#include "sim/base/random.h"
#include "validate/harness/device/type_name.h"

namespace lockstep::harness {
namespace {

constexpr double longest_call = 0.15;  // seconds; larger ones tell nothing new
constexpr std::int64_t most_matrix = 16384;
constexpr std::int64_t most_copy = 1 << 30;

// The ranks begin together and go on each by itself.
CallTimes time_call(Bench& bench, const std::function<void()>& work) {
  bench.ranks.barrier();
  const auto run = [&](std::int64_t calls) {
    for (std::int64_t call = 0; call < calls; ++call) work();
  };
  return time_calls(bench, {.run = run, .meet = [] {}, .repeats = {.seconds = 0.3, .least = 3, .most = 100}});
}

// Zeros multiply faster than numbers on GPUs, which then draw less power.
void fill_with_numbers(Bench& bench, Tensor to) {
  std::vector<float> numbers(static_cast<std::size_t>(to.elements));
  for (std::size_t index = 0; index < numbers.size(); ++index)
    numbers[index] = static_cast<float>(random_below(keyed_random(0, index, 0), 2048)) / 1024 - 1;
  const Buffer wide(bench.device, to.elements, Type::fp32);
  bench.device.upload(wide.tensor(), numbers.data());
  bench.device.cast(to, wide.tensor());
  bench.device.synchronize();
}

CallTimes time_matmul(Bench& bench, std::int64_t size, Type type) {
  const Buffer a(bench.device, size * size, type);
  const Buffer b(bench.device, size * size, type);
  const Buffer output(bench.device, size * size, type);
  fill_with_numbers(bench, a.tensor());
  fill_with_numbers(bench, b.tensor());
  const Matmul matmul{.a = {.tensor = a.tensor()},
                      .b = {.tensor = b.tensor()},
                      .output = {.tensor = output.tensor()},
                      .rows = size,
                      .columns = size,
                      .inner = size};
  return time_call(bench, [&] { bench.device.matmul(matmul); });
}

CallTimes time_copy(Bench& bench, std::int64_t bytes) {
  const Buffer from(bench.device, bytes / 4, Type::fp32);
  const Buffer to(bench.device, bytes / 4, Type::fp32);
  bench.device.fill_zero(from.tensor());
  return time_call(bench, [&] { bench.device.copy(to.tensor(), from.tensor()); });
}

}  // namespace

std::vector<MatmulPoint> measure_matmuls(Bench& bench, Type type) {
  std::vector<MatmulPoint> points;
  for (std::int64_t size = 64; size <= most_matrix; size *= 2) {
    points.push_back({.size = size, .precision = name_of(type), .time = time_matmul(bench, size, type)});
    if (points.back().time.time().median > longest_call / 8)  // the next one takes eight times as long
      break;
  }
  return points;
}

std::vector<CopyPoint> measure_memory_copies(Bench& bench) {
  std::vector<CopyPoint> points;
  for (std::int64_t bytes = 64 << 10; bytes <= most_copy; bytes *= 4) {
    points.push_back({.bytes = bytes, .time = time_copy(bench, bytes)});
    if (points.back().time.time().median > longest_call / 4)
      break;
  }
  return points;
}

}  // namespace lockstep::harness
