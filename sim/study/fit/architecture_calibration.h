#pragma once

// A GPU architecture's profile from tables of timed kernels.
//
// Idea:      of the tables' rows those of shipped GPUs of the architecture count; rows that tell of a benchmark's
//            host are left out. The profile states its constants to four digits, what they were fitted to, and
//            how far fitted and kept-aside rows lie. A section without rows keeps its constants, its residuals and
//            who says so: tables of one kind of kernels write a whole profile.
// Cost:      that of the fit.
// Reference: architecture_fit.h.

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "sim/load/reading/profile_store.h"
#include "sim/study/fit/architecture_fit.h"

namespace lockstep {

struct ArchitectureCalibration {
  nlohmann::ordered_json profile;
  std::vector<SectionResidual> residuals;
  std::vector<std::string> warnings;
};

// Throws ConfigError for an architecture that nobody knows, and where no row is of its GPUs. `without`: a GPU
// that is left out whole.
ArchitectureCalibration calibrate_architecture(const std::string& name, std::span<const KernelCase> kernels,
                                               const std::string& without, const ProfileStore& store);

std::string to_text(const ArchitectureCalibration& report);
nlohmann::ordered_json to_json(const ArchitectureCalibration& report);  // lockstep.calibration_report/1

}  // namespace lockstep
