#include "sim/study/kernel_validation.h"

#include <fmt/format.h>

#include <compare>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "sim/base/error.h"
#include "sim/study/gpu_name.h"
#include "sim/study/kernel_prediction.h"
#include "sim/study/kernel_table.h"

namespace lockstep {
namespace {

// A GPU as tables name it: what it is shipped as, and its figures.
struct NamedGpu {
  std::string profile;  // empty: not shipped
  std::optional<GpuSpec> figures;
};

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
  KernelCases(const ProfileStore& store, Validation& validation) : store_(store), validation_(validation) {}

  void append(const KernelCase& kernel) {
    const NamedGpu& gpu = gpu_named(kernel.gpu);
    if (!gpu.figures) {
      leave_out(kernel, "no shipped GPU has this name");
    } else if (const auto predicted = predict(gpu, kernel)) {
      append_case(kernel, gpu.profile, *predicted);
    }
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
      known->second.profile = find_gpu_named(printed, store_);
      if (!known->second.profile.empty())
        known->second.figures = load_gpu(known->second.profile, store_);
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
      const auto predicted = predict_step(gpu.profile, kernel, store_);
      if (!predicted)
        leave_out(kernel, "no shipped model has this name", step.model);
      return predicted;
    } catch (const ConfigError& error) {
      leave_out(kernel, error.problems.front());
      return std::nullopt;
    }
  }

  void append_case(const KernelCase& kernel, const std::string& gpu, Duration predicted) {
    ValidationCase entry;
    entry.name = describe(kernel);
    entry.group = group_of(kernel, gpu);
    entry.split = "heldout";
    entry.measured_s = kernel.time.in_seconds();
    entry.predicted_s = predicted.in_seconds();
    entry.is_kernel = true;
    validation_.cases.push_back(std::move(entry));
  }

  void leave_out(const KernelCase& kernel, const std::string& reason, const std::string& name = "") {
    LeftOut& rows = left_out_[{kernel.table, kernel.gpu, reason}];
    ++rows.count;
    if (!name.empty())
      rows.names.insert(name);
  }

  const ProfileStore& store_;
  Validation& validation_;
  std::map<std::string, NamedGpu> gpus_;
  std::map<LeftOutPlace, LeftOut> left_out_;
};

}  // namespace

std::string group_of(const KernelCase& kernel, const std::string& gpu) {
  return fmt::format("{}, {}, {}, {}", kernel.table, gpu, kernel.precision, name_of(kernel.direction));
}

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
  KernelCases cases(store, validation);
  for (const KernelCase& kernel : read_kernel_tables(files)) cases.append(kernel);
  cases.tell_left_out();
}

}  // namespace lockstep
