#include "sim/report/band.h"

#include <algorithm>
#include <optional>

#include "sim/report/extrapolation.h"
#include "sim/report/prediction.h"

namespace lockstep {
namespace {

// Every communication figure at one end of its residual band: slower links and dearer steps, or the reverse.
Scenario shifted(Scenario moved, std::int64_t communication_ppm, std::int64_t compute_ppm) {
  Calibration& calibration = moved.cluster.calibration;
  for (const LinkClass link_class :
       {LinkClass::nvlink, LinkClass::pcie, LinkClass::socket, LinkClass::network}) {
    std::int64_t& efficiency = calibration.efficiency_ppm.try_emplace(link_class, million).first->second;
    efficiency = efficiency * million / (million + communication_ppm);
    if (link_class == LinkClass::network)
      efficiency = std::min(efficiency, million);  // nothing between nodes exceeds the wire
  }
  for (ProtocolCost& protocol : calibration.protocols) {
    protocol.launch = scaled(protocol.launch, million + communication_ppm, million);
    for (auto& [link_class, step] : protocol.step) step = scaled(step, million + communication_ppm, million);
  }
  calibration.collective_launch = scaled(calibration.collective_launch, million + communication_ppm, million);
  moved.compute.scale_ppm = moved.compute.scale_ppm * (million + compute_ppm) / million;
  return moved;
}

// A measured step has no band of its own, nor has one that follows from a measured iteration.
bool has_measured_compute(const Scenario& scenario) {
  const bool is_stated = std::any_of(scenario.model.stated.begin(), scenario.model.stated.end(),
                                     [](const auto& times) { return times.has_value(); });
  return scenario.compute.single_gpu_iteration || scenario.compute.is_anchored || scenario.model.measured ||
         is_stated;
}

// How far the model of computing misses what it carries over from a measured step, for each doubling between them:
// ResNet-50 of MLPerf on H100 from batch 400 misses 11 % at batch 200, 23 % at 50 and 36 % at 16.
ResidualBand transfer_residual(std::int64_t distance_ppm) {
  constexpr std::int64_t of_a_doubling_ppm = 80'000;
  const std::int64_t wide = std::min(distance_ppm * of_a_doubling_ppm / million, 10 * million);
  return {.low_ppm = -wide * million / (million + wide), .high_ppm = wide};
}

// What published single-GPU steps took over what their kernels add up to: ResNet-50, ResNet-152, Inception, VGG
// and BERT of ten frameworks on V100, P100, A100 and RTX 3090 (training tables of DeepLearningExamples, DLPerf,
// Lambda and TensorFlow), a vote for each model, GPU, precision and framework. Read off those steps by eye and
// not yet tried on others: a debt until it comes from residuals that were held out. Frameworks add copies and transposes that no layer asks for: the error is nearly always on one side.
constexpr ResidualBand unanchored_residual{.low_ppm = -60'000, .high_ppm = 450'000};

// Of computing; a measured step has none.
ResidualBand residual_of_computing(const Scenario& scenario) {
  if (scenario.compute.single_gpu_iteration)
    return transfer_residual(scenario.compute.transfer_ppm);
  if (has_measured_compute(scenario))
    return {};
  const ResidualBand of_kernels = scenario.cluster.gpu.kernels ? unanchored_residual : ResidualBand{};
  return scenario.cluster.calibration.compute_residual.value_or(of_kernels);
}

// What most of the gradients travel in: the band is that of messages of this size.
Bytes bucket_bytes(const Scenario& scenario) {
  return Bytes{static_cast<std::int64_t>(scenario.training.ddp.bucket_cap_mb * 1024 * 1024)};
}

// A long run's band is as wide, in proportion, as that of its first iterations.
Scenario band_probe(const Scenario& scenario) {
  constexpr std::int64_t enough_iterations = 8;
  Scenario probe = scenario;
  if (is_long_run(scenario))
    probe.simulation.iterations = std::min(probe.simulation.iterations, enough_iterations);
  probe.communication.timeout.reset();
  return probe;
}

void carry_over_band(Report& report, Duration of_probe) {
  for (auto* end : {&report.times.low, &report.times.high})
    *end = scaled(report.iteration, (*end)->picoseconds(), std::max<std::int64_t>(of_probe.picoseconds(), 1));
}

// Whether a band can be told at all, and of what; the report is warned of what it leaves out.
bool knows_residuals(Report& report, const Scenario& scenario) {
  const Calibration& calibration = scenario.cluster.calibration;
  const bool knows_compute =
      has_measured_compute(scenario) || calibration.compute_residual || scenario.cluster.gpu.kernels;
  const bool communicates = scenario.cluster.ranks() > 1;
  if (communicates ? calibration.communication_residuals.empty() : !knows_compute) {
    report.warnings.push_back("no calibration residuals are known for " + calibration.name +
                              ": iteration_time_low_s and iteration_time_high_s are null");
    return false;
  }
  if (!knows_compute)
    report.warnings.push_back(
        "computing is estimated by the roofline, whose error is not known: the band covers communication "
        "only; "
        "compute.single_gpu_iteration anchors it");
  return true;
}

}  // namespace

void add_band(Report& report, const Scenario& scenario, ClusterStore* clusters) {
  const Calibration& calibration = scenario.cluster.calibration;
  warn_beyond_fitted_scale(scenario.cluster, report.warnings);
  if (!knows_residuals(report, scenario))
    return;
  const ResidualBand communication =
      calibration.communication_residual(bucket_bytes(scenario)).value_or(ResidualBand{});
  const ResidualBand compute = residual_of_computing(scenario);
  const Scenario probe = band_probe(scenario);
  const auto iteration_at = [&](std::int64_t communication_ppm, std::int64_t compute_ppm) {
    return predict_iteration(shifted(probe, communication_ppm, compute_ppm), clusters);
  };
  report.times.low = iteration_at(communication.low_ppm, compute.low_ppm);
  report.times.high = iteration_at(communication.high_ppm, compute.high_ppm);
  if (is_long_run(scenario))
    carry_over_band(report, predict_iteration(probe, clusters));
}

}  // namespace lockstep
