#include "sim/study/bench/kernel_residuals.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "sim/base/error.h"
#include "sim/compute/kernel_time.h"
#include "sim/study/bench/host_floor.h"
#include "sim/study/bench/kernel_prediction.h"
#include "sim/study/bench/kernel_table.h"
#include "sim/study/gpu_name.h"

namespace lockstep {
namespace {

// A GPU as tables name it: what is known of it.
struct NamedGpu {
  GpuProfile profile = {};
  std::optional<GpuSpec> figures = {};  // empty: not asked
};

std::string group_of(const KernelCase& kernel, const std::string& gpu) {
  return fmt::format("{}, {}, {}, {}", kernel.table, gpu, kernel.precision, name_of(kernel.direction));
}

// Of products; nothing else has a place under a roof.
std::optional<KernelFigures> figures_of(const GpuSpec& gpu, const KernelCase& kernel) {
  if (!product_of(kernel))
    return std::nullopt;
  const KernelWork work = *work_of(kernel);
  const auto* attention = std::get_if<AttentionShape>(&kernel.shape);
  const auto flops = static_cast<double>(work.flops);
  return KernelFigures{.flops = attention != nullptr && attention->is_causal ? flops / 2 : flops,
                       .bytes = static_cast<double>(work.bytes),
                       .peak_flops_per_s = static_cast<double>(matmul_peak(gpu, kernel.multiplied).count()),
                       .peak_bytes_per_s = static_cast<double>(gpu.memory_bandwidth.count())};
}

struct LeftOutPlace {
  std::string table, gpu, reason;

  auto operator<=>(const LeftOutPlace&) const = default;
};

struct LeftOut {
  std::size_t count = 0;
  std::set<std::string> names;
};

class KernelCases {
 public:
  KernelCases(std::span<const KernelCase> kernels, const ProfileStore& store, Validation& validation)
      : floors_(kernels), store_(store), validation_(validation) {}

  void append(const KernelCase& kernel) {
    const NamedGpu& gpu = gpu_named(kernel.gpu);
    if (!gpu.figures)
      leave_out(kernel, "no shipped GPU has this name");
    else
      append_on(gpu, kernel, "heldout");
  }

  void append_on(const NamedGpu& gpu, const KernelCase& kernel, const std::string& split) {
    if (const auto predicted = predict(gpu, kernel))
      append_case(kernel, gpu, floors_.measured(kernel, *predicted), split);
  }

  void leave_out(const KernelCase& kernel, const std::string& reason, const std::string& name = "") {
    LeftOut& rows = left_out_[{kernel.table, kernel.gpu, reason}];
    ++rows.count;
    if (!name.empty())
      rows.names.insert(name);
  }

  void tell_left_out() {
    for (const auto& [place, rows] : left_out_)
      validation_.not_asked.push_back({.table = place.table,
                                       .gpu = place.gpu,
                                       .reason = place.reason,
                                       .names = {rows.names.begin(), rows.names.end()},
                                       .rows = rows.count});
  }

 private:
  const NamedGpu& gpu_named(const std::string& printed) {
    const auto [known, is_new] = gpus_.try_emplace(printed);
    if (is_new) {
      const std::string name = find_gpu_named(printed, store_);
      known->second.profile = {.name = name, .value = name};
      if (!name.empty())
        known->second.figures = load_gpu(name, store_);
    }
    return known->second;
  }

  std::optional<Duration> predict(const NamedGpu& gpu, const KernelCase& kernel) {
    if (const auto* step = std::get_if<StepShape>(&kernel.shape))
      return predict_whole(gpu, kernel, *step);
    const auto predicted = predict_kernel(*gpu.figures, kernel);
    if (!predicted)
      leave_out(kernel, "the work of an operator is not known", std::get<MemoryBoundShape>(kernel.shape).op);
    return predicted;
  }

  // What no scenario can say, a precision that the GPU does not multiply in, is said as the scenario's reader
  // puts it.
  std::optional<Duration> predict_whole(const NamedGpu& gpu, const KernelCase& kernel,
                                        const StepShape& step) {
    try {
      const auto predicted = predict_step(gpu.profile.value, kernel, store_);
      if (!predicted)
        leave_out(kernel, "no shipped model has this name", step.model);
      return predicted;
    } catch (const ConfigError& error) {
      leave_out(kernel, error.problems.front());
      return std::nullopt;
    }
  }

  void append_case(const KernelCase& kernel, const NamedGpu& gpu, Duration predicted,
                   const std::string& split) {
    ValidationCase entry;
    entry.name = describe(kernel);
    entry.group = group_of(kernel, gpu.profile.name);
    entry.split = split;
    entry.measured_s = kernel.time.in_seconds();
    entry.predicted_s = predicted.in_seconds();
    entry.is_kernel = true;
    entry.figures = figures_of(*gpu.figures, kernel);
    validation_.cases.push_back(std::move(entry));
  }

  HostFloors floors_;
  const ProfileStore& store_;
  Validation& validation_;
  std::map<std::string, NamedGpu> gpus_;
  std::map<LeftOutPlace, LeftOut> left_out_;
};

}  // namespace

std::vector<KernelCase> read_kernel_tables(std::span<const std::string> files) {
  std::vector<KernelCase> cases;
  std::vector<std::string> problems;
  for (const std::string& file : files) try {
      std::vector<KernelCase> found = read_kernel_table(file);
      cases.insert(cases.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems.begin(), error.problems.end());
    }
  if (!problems.empty())
    throw ConfigError(problems);
  return cases;
}

void append_kernel_tables(std::span<const std::string> files, const ProfileStore& store,
                          Validation& validation) {
  const std::vector<KernelCase> kernels = read_kernel_tables(files);
  KernelCases cases(kernels, store, validation);
  for (const KernelCase& kernel : kernels) cases.append(kernel);
  cases.tell_left_out();
}

void append_kernels(std::span<const KernelCase> kernels, const std::vector<bool>& is_fitted,
                    const GpuProfile& gpu, const ProfileStore& store, Validation& validation) {
  const NamedGpu known{.profile = gpu, .figures = load_gpu(gpu.value, store)};
  KernelCases cases(kernels, store, validation);
  for (std::size_t index = 0; index < kernels.size(); ++index)
    cases.append_on(known, kernels[index], is_fitted[index] ? "fit" : "heldout");
  cases.tell_left_out();
}

}  // namespace lockstep
