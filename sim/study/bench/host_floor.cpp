#include "sim/study/bench/host_floor.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/base/median.h"

namespace lockstep {
namespace {

constexpr Duration longest_of_a_gpu = Duration::microseconds(10);
constexpr std::size_t fewest_kernels = 20;
constexpr std::size_t alike_one_in = 30;  // of all: so many of the shortest must be alike

// As a framework's host sees them: one product and a batch of them are two operators.
std::string operator_of(const KernelCase& kernel) {
  if (const auto* bound = std::get_if<MemoryBoundShape>(&kernel.shape))
    return bound->op;
  const auto* product = std::get_if<GemmShape>(&kernel.shape);
  return product != nullptr && product->batch > 1 ? "batched" : "";
}

Duration floor_of(std::vector<Duration> times) {
  if (times.size() < fewest_kernels)
    return {};
  std::sort(times.begin(), times.end());
  // A few rows may have been timed on a host that was quick for once.
  const Duration least = times[times.size() / 100];
  const Duration alike = times[times.size() / alike_one_in + 2];
  const bool is_host = least > longest_of_a_gpu && alike < scaled(least, 6, 5);
  return is_host ? least : Duration::zero();
}

// More than the kernels of any transform keep a GPU for.
constexpr Duration longest_of_a_transform = Duration::microseconds(100);

struct TimedWork {
  double work;
  double time_us;
};

double median_of(std::span<const TimedWork> rows, double TimedWork::* member) {
  std::vector<double> values;
  for (const TimedWork& row : rows) values.push_back(row.*member);
  return median(values);
}

TimedWork median_row(std::span<const TimedWork> rows) {
  return {median_of(rows, &TimedWork::work), median_of(rows, &TimedWork::time_us)};
}

// Where the line through both meets no work.
double time_of_nothing(const TimedWork& small, const TimedWork& large) {
  const double rise = large.work - small.work;
  return rise > 0 ? small.time_us - small.work * (large.time_us - small.time_us) / rise : 0;
}

double work_of(const ConvolutionShape& shape) {
  const double points = static_cast<double>(shape.batch * shape.out_height()) *
                        static_cast<double>(shape.out_width() * shape.out_channels);
  return points * static_cast<double>(shape.in_channels * shape.filter_height * shape.filter_width);
}

// The line from the tenth of the least work to the next one, and to the middle of all: both say the same where it is
// the host.
Duration time_before_convolutions(std::vector<TimedWork> rows) {
  const std::size_t tenth = rows.size() / 10;
  if (tenth < fewest_kernels)
    return {};
  std::ranges::sort(rows, {}, &TimedWork::work);
  const std::span<const TimedWork> all = rows;
  const TimedWork least = median_row(all.first(tenth));
  const double near = time_of_nothing(least, median_row(all.subspan(tenth, tenth)));
  const double far = time_of_nothing(least, median_row(all.subspan(4 * tenth, 2 * tenth)));
  const auto [low, high] = std::minmax(near, far);
  const bool is_host = low > longest_of_a_transform.in_seconds() * 1e6 && high < 1.2 * low;
  return is_host ? Duration::nanoseconds(std::llround(low * 1e3)) : Duration::zero();
}

}  // namespace

HostFloors::Bench HostFloors::bench_of(const KernelCase& kernel) {
  return {kernel.table, kernel.gpu, kernel.source, operator_of(kernel)};
}

HostFloors::Host HostFloors::host_of(const std::vector<const KernelCase*>& kernels) {
  std::vector<Duration> times;
  std::vector<TimedWork> convolutions;
  for (const KernelCase* kernel : kernels) {
    times.push_back(kernel->time);
    if (const auto* shape = std::get_if<ConvolutionShape>(&kernel->shape))
      convolutions.push_back({work_of(*shape), kernel->time.in_seconds() * 1e6});
  }
  if (const Duration before = time_before_convolutions(std::move(convolutions)); before > Duration::zero())
    return {.floor = before, .before = before};
  const Duration floor = floor_of(std::move(times));
  return {.floor = floor, .before = scaled(floor, 1, 2)};
}

HostFloors::HostFloors(std::span<const KernelCase> kernels) {
  std::map<Bench, std::vector<const KernelCase*>> benches;
  for (const KernelCase& kernel : kernels) benches[bench_of(kernel)].push_back(&kernel);
  for (const auto& [bench, of_bench] : benches) hosts_[bench] = host_of(of_bench);
}

HostFloors::Host HostFloors::find(const KernelCase& kernel) const {
  const auto found = hosts_.find(bench_of(kernel));
  return found == hosts_.end() ? Host{} : found->second;
}

Duration HostFloors::before(const KernelCase& kernel) const {
  return find(kernel).before;
}

Duration HostFloors::measured(const KernelCase& kernel, Duration on_gpu) const {
  return std::max(of(kernel), on_gpu + before(kernel));
}

Duration HostFloors::of(const KernelCase& kernel) const {
  return find(kernel).floor;
}

}  // namespace lockstep
