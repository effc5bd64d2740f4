#include "validate/harness/measure/run_file.h"

#include <fmt/format.h>

#include <cmath>

#include "validate/harness/measure/or_null.h"

namespace lockstep::harness {
namespace {

using Json = nlohmann::ordered_json;

// Nanoseconds are finer than any clock here, and short to read.
double to_the_nanosecond(double seconds) {
  return std::round(seconds * 1e9) / 1e9;
}

template <class T, class Convert>
Json list_of(const std::vector<T>& values, Convert convert) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(convert(value));
  return list;
}

Json to_json(const Statistics& statistics) {
  return {{"median", to_the_nanosecond(statistics.median)}, {"mean", to_the_nanosecond(statistics.mean)},
          {"p10", to_the_nanosecond(statistics.p10)},       {"p90", to_the_nanosecond(statistics.p90)},
          {"least", to_the_nanosecond(statistics.least)},   {"count", statistics.count}};
}

// What a call costs among others comes first, under the name that every run file has; then how it was timed.
void add_times(Json& object, const CallTimes& times) {
  object["time_s"] = to_json(times.time());
  object["from_idle_s"] = to_json(times.from_idle);
  object["back_to_back_s"] = times.back_to_back ? to_json(*times.back_to_back) : Json(nullptr);
}

void add_medians(Json& object, const CallTimes& times) {
  object["time_s"] = to_the_nanosecond(times.time().median);
  object["from_idle_s"] = to_the_nanosecond(times.from_idle.median);
  object["back_to_back_s"] = times.back_to_back ? Json(to_the_nanosecond(times.back_to_back->median)) : Json(nullptr);
}

Json to_json(const Programs& programs) {
  return {{"version", programs.version},
          {"backend", programs.backend},
          {"device", programs.device},
          {"libraries", programs.libraries},
          {"communication", programs.communication},
          {"compiler", programs.compiler}};
}

Json to_json(const Machine& machine, const Programs& programs) {
  const Json gpu = programs.backend == "cpu" ? Json(nullptr) : Json(programs.device);
  return {
      {"class", machine.name},
      {"processor", or_null(machine.processor)},
      {"cores", machine.cores},
      {"cores_per_rank", machine.cores_per_rank},
      {"gpu", gpu},
      {"clock_mhz",
       {{"before", or_null(machine.before.clock_mhz)}, {"after", or_null(machine.after.clock_mhz)}}},
      {"load_average",
       {{"before", or_null(machine.before.load_average)}, {"after", or_null(machine.after.load_average)}}},
      {"gpus", machine.gpus},
      {"environment", machine.environment}};
}

Json to_json(const RunNetwork& network) {
  return {{"kind", network.kind},
          {"link_rate_bit_s", or_null(network.link_bits_per_second)},
          {"mtu_bytes", or_null(network.mtu_bytes)},
          {"goodput_byte_s", or_null(goodput(network))},
          {"note", network.note}};
}

Json parameters_of(const RunFile& run) {
  Json list = Json::array();
  for (std::size_t index = 0; index < run.parameters.size(); ++index) {
    const Json ready = run.step ? Json(to_the_nanosecond(run.step->gradient_ready[index])) : Json(nullptr);
    list.push_back({{"name", run.parameters[index].name},
                    {"elements", run.parameters[index].elements},
                    {"gradient_ready_s", ready}});
  }
  return list;
}

Json model_of(const RunFile& run) {
  return {{"name", run.model.name},
          {"sizes", run.model.sizes},
          {"batch_per_rank", run.model.batch},
          {"precision", run.precision},
          {"optimizer", run.optimizer},
          {"simulated_as", run.simulated_as},
          {"forward_flops", run.forward_flops},
          {"buffer_bytes", run.buffer_bytes},
          {"parameters", parameters_of(run)}};
}

void add_parts(Json& object, const StepStatistics& step) {
  object["iteration_s"] = to_json(step.iteration);
  object["forward_s"] = to_json(step.forward);
  object["backward_s"] = to_json(step.backward);
  object["optimizer_s"] = to_json(step.optimizer);
}

Json to_json(const LayerTiming& layer) {
  return {{"name", layer.name},
          {"parameters", layer.parameters},
          {"forward_s", to_the_nanosecond(layer.forward)},
          {"backward_s", to_the_nanosecond(layer.backward)}};
}

Json to_json(const StepTiming& timing) {
  Json object;
  add_parts(object, timing.step);
  object["marked_backward_s"] = to_json(timing.marked_backward);
  object["layers"] = list_of(timing.layers, [](const LayerTiming& layer) { return to_json(layer); });
  return object;
}

Json to_json(const Interference& entry) {
  return {{"bytes", entry.bytes},
          {"compute_alone_s", to_the_nanosecond(entry.compute_alone)},
          {"compute_beside_s", to_the_nanosecond(entry.compute_beside)},
          {"collectives", to_the_nanosecond(entry.collectives)},
          {"collective_alone_s", to_the_nanosecond(entry.collective_alone)},
          {"collective_beside_s", to_the_nanosecond(entry.collective_beside)},
          {"covered", to_the_nanosecond(entry.covered)}};
}

Json to_json(const CopyInterference& entry) {
  return {{"bytes", entry.bytes},
          {"copy_alone_s", to_the_nanosecond(entry.copy_alone)},
          {"copy_beside_s", to_the_nanosecond(entry.copy_beside)},
          {"compute_alone_s", to_the_nanosecond(entry.compute_alone)},
          {"compute_beside_s", to_the_nanosecond(entry.compute_beside)},
          {"covered", to_the_nanosecond(entry.covered)}};
}

Json to_json(const FailedMeasurement& failure) {
  return {{"measurement", failure.measurement}, {"bytes", failure.bytes}, {"reason", failure.reason}};
}

Json to_json(const CollectivePoint& point) {
  Json object = {{"bytes", point.bytes}};
  add_times(object, point.time);
  return object;
}

Json to_json(const TensorTiming& point) {
  Json object = {{"tensors", point.tensors}, {"bytes", point.bytes}};
  add_times(object, point.time);
  return object;
}

Json to_json(const MatmulPoint& point) {
  Json object = {
      {"rows", point.size}, {"columns", point.size}, {"inner", point.size}, {"precision", point.precision}};
  add_medians(object, point.time);
  return object;
}

Json to_json(const CopyPoint& point) {
  Json object = {{"bytes", point.bytes}};
  add_medians(object, point.time);
  return object;
}

Json to_json(const BucketTiming& bucket) {
  return {{"bytes", bucket.bytes},
          {"parameters", bucket.parameters},
          {"ready_s", to_the_nanosecond(bucket.ready)},
          {"start_s", to_the_nanosecond(bucket.start)},
          {"end_s", to_the_nanosecond(bucket.end)}};
}

Json to_json(const LossCurve& curve) {
  Json object = {{"bucket_cap_mb", curve.bucket_cap_mb},
                 {"samples_of_iteration", curve.samples_of_iteration},
                 {"loss", Json::array()},
                 {"end_s", list_of(curve.end, to_the_nanosecond)}};
  // JSON has no infinity: a training that has gone wrong shows a null.
  for (const double loss : curve.loss) object["loss"].push_back(std::isfinite(loss) ? Json(loss) : Json());
  return object;
}

Json iteration_of(const RunFile& run, const IterationTiming& timing) {
  Json object = {{"bucket_cap_mb", timing.bucket_cap_mb},
                 {"overlap", timing.overlaps},
                 {"gradient_accumulation", run.gradient_accumulation},
                 {"compression", run.compresses ? "bf16" : "none"},
                 {"first_iteration_s", to_the_nanosecond(timing.first_iteration)}};
  add_parts(object, timing.step);
  object["overlap_share"] = to_the_nanosecond(timing.overlap_share);
  object["buckets"] = list_of(timing.buckets, [](const BucketTiming& bucket) { return to_json(bucket); });
  return object;
}

void add_curves(Json& object, const RunFile& run) {
  const auto convert = [](const auto& entry) { return to_json(entry); };
  object["collective_curve"] = list_of(run.curve, convert);
  object["bucket_copies"] = list_of(run.copies, convert);
  object["interference"] = list_of(run.interference, convert);
  object["copy_interference"] = run.copy_interference ? to_json(*run.copy_interference) : Json();
  object["matmuls"] = list_of(run.matmuls, convert);
  object["memory_copies"] = list_of(run.memory_copies, convert);
}

std::string line_of(const std::string& what, const Statistics& seconds) {
  return fmt::format("{:<28} {:>10.4g} ms   (p10 {:.4g}, p90 {:.4g}, {} times)\n", what, seconds.median * 1e3,
                     seconds.p10 * 1e3, seconds.p90 * 1e3, seconds.count);
}

std::string step_table(const StepStatistics& step) {
  return line_of("step, no communication", step.iteration) + line_of("  forward", step.forward) +
         line_of("  backward", step.backward) + line_of("  optimizer", step.optimizer);
}

}  // namespace

// 20 bytes of IP, 20 of TCP and 12 of its timestamps are in the MTU; 14 of Ethernet come on top.
std::optional<std::int64_t> goodput(const RunNetwork& network) {
  if (!network.link_bits_per_second || !network.mtu_bytes)
    return std::nullopt;
  const double payload =
      static_cast<double>(*network.mtu_bytes - 52) / static_cast<double>(*network.mtu_bytes + 14);
  return static_cast<std::int64_t>(static_cast<double>(*network.link_bits_per_second) / 8 * payload);
}

Json to_json(const RunFile& run) {
  Json object = {{"schema", "lockstep.run/1"},
                 {"name", run.name},
                 {"date", run.date},
                 {"harness", to_json(run.programs)},
                 {"machine", to_json(run.machine, run.programs)},
                 {"ranks", run.ranks},
                 {"nodes", run.nodes},
                 {"network", to_json(run.network)},
                 {"model", model_of(run)},
                 {"without_communication", run.step ? to_json(*run.step) : Json(nullptr)}};
  object["machine"]["gpus_shared"] = run.gpus_shared;
  if (!run.kernel_choices.empty())
    object["kernel_choices"] = Json::parse(run.kernel_choices);
  add_curves(object, run);
  object["iterations"] =
      list_of(run.iterations, [&](const IterationTiming& timing) { return iteration_of(run, timing); });
  if (run.losses)
    object["losses"] = to_json(*run.losses);
  object["failed"] = list_of(run.failures, [](const FailedMeasurement& failure) { return to_json(failure); });
  return object;
}

std::string to_table(const RunFile& run) {
  std::string text = fmt::format("{}\n{}, {}\n", run.name, run.programs.device, run.programs.communication);
  if (run.step)
    text += step_table(run.step->step);
  for (const CollectivePoint& point : run.curve)
    text += line_of(fmt::format("all-reduce, {} B", point.bytes), point.time.time());
  for (const Interference& entry : run.interference)
    text += fmt::format("beside all-reduces of {} B: computing {:.2f} x, communication {:.2f} x\n",
                        entry.bytes, entry.compute_beside / entry.compute_alone,
                        entry.collective_beside / entry.collective_alone);
  for (const FailedMeasurement& failure : run.failures)
    text += fmt::format("{}, {} B: {}\n", failure.measurement, failure.bytes, failure.reason);
  for (const IterationTiming& timing : run.iterations)
    text += line_of(
        fmt::format("iteration, cap {} MB{}", timing.bucket_cap_mb, timing.overlaps ? "" : ", no overlap"),
        timing.step.iteration);
  return text;
}

}  // namespace lockstep::harness
