#include "sim/study/fit/processor_calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "sim/base/error.h"
#include "sim/study/bench/kernel_residuals.h"
#include "sim/study/gpu_name.h"
#include "sim/study/harness/measured_processor.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

void read_kernels(const std::vector<std::string>& tables, const MachineSpec& machine,
                  ProcessorInputs& inputs) {
  inputs.kernels = read_kernel_tables(tables);
  const std::size_t rows = inputs.kernels.size();
  std::set<std::string> others;
  std::erase_if(inputs.kernels, [&](const KernelCase& kernel) {
    const bool is_other = others.contains(kernel.gpu) || !is_gpu_named(kernel.gpu, inputs.processor);
    if (is_other)
      others.insert(kernel.gpu);
    return is_other;
  });
  if (inputs.kernels.empty() && !tables.empty())
    throw ConfigError(fmt::format("{}: found rows of {}, and the GPU of a {} is {}", tables.front(),
                                  fmt::join(others, ", "), machine.name, machine.gpu));
  if (inputs.kernels.size() < rows)
    inputs.notes.push_back(fmt::format("passed over {} rows of other GPUs than {}: {}",
                                       rows - inputs.kernels.size(), machine.gpu, fmt::join(others, ", ")));
}

void read_launches(const std::vector<std::string>& tables, const MachineSpec& machine,
                   ProcessorInputs& inputs) {
  if (tables.empty())
    return;
  if (tables.size() > 1)
    throw ConfigError(fmt::format("{}: is a second table of launches, expected one", tables[1]));
  inputs.launches = read_launch_table(tables.front());
  if (!is_gpu_named(inputs.launches->gpu, inputs.processor))
    throw ConfigError(fmt::format("{}: found {}, and the GPU of a {} is {}", tables.front(),
                                  inputs.launches->gpu, machine.name, machine.gpu));
}

Json base_of(const ProcessorInputs& inputs, std::span<const HarnessRun> runs, const ProfileStore& store) {
  if (!inputs.processor.is_null())
    return inputs.processor;
  const Json shipped = shipped_processor(runs.front(), store);
  if (shipped.is_null())
    throw ConfigError("--machine: states its GPU itself, and " + runs.front().device +
                      " is not shipped; expected a machine whose \"gpu\" is a name or a path");
  return shipped;
}

// Where tables fit the constants of a GPU, the curve of a run's few products would stand before them.
Json without_new_curve(Json timed, const Json& base, const ProcessorInputs& inputs) {
  if (!inputs.kernels.empty() && !base.contains("matmul_efficiency")) {
    timed.erase("matmul_efficiency");
    timed["sources"].erase("matmul_efficiency");
  }
  return timed;
}

}  // namespace

ProcessorInputs read_processor_inputs(const CalibrationFiles& files, const MachineSpec& machine,
                                      const ProfileStore& store) {
  ProcessorInputs inputs;
  if (const auto profile = store.open(ProfileKind::gpu, machine.gpu))
    inputs.processor = *profile->value;
  read_kernels(files.kernel_tables, machine, inputs);
  read_launches(files.launch_tables, machine, inputs);
  return inputs;
}

ProcessorCalibration calibrate_processor(const ProcessorInputs& inputs, std::span<const HarnessRun> runs,
                                         const ProfileStore& store) {
  ProcessorCalibration result{.profile = base_of(inputs, runs, store), .kernels = {}, .warnings = {}};
  if (!runs.empty()) {
    MeasuredProcessor timed = measured_processor(runs, result.profile);
    result.warnings = timed.warnings;
    if (timed.profile.is_null() && !inputs.has_kernels())
      throw ConfigError("--gpu-output: the runs hold no matmuls and no memory_copies to write");
    if (!timed.profile.is_null())
      result.profile = without_new_curve(std::move(timed.profile), result.profile, inputs);
  }
  if (inputs.has_kernels()) {
    result.kernels =
        calibrate_gpu({.kernels = inputs.kernels, .launches = inputs.launches, .gpu = result.profile}, store);
    result.profile = result.kernels->profile;
    result.warnings.insert(result.warnings.end(), result.kernels->warnings.begin(),
                           result.kernels->warnings.end());
  }
  return result;
}

}  // namespace lockstep
