#include "sim/study/fit/kernel_calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/median.h"
#include "sim/base/quantity_text.h"
#include "sim/compute/kernel_time.h"
#include "sim/load/hardware/kernel_constants_json.h"
#include "sim/load/reading/exact_text.h"
#include "sim/load/reading/spelling.h"
#include "sim/report/text_table.h"
#include "sim/study/bench/kernel_prediction.h"
#include "sim/study/bench/kernel_residuals.h"
#include "sim/study/fit/architecture_fit.h"
#include "sim/study/validation_table.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t one_held_out_in = 5;
constexpr std::size_t fewest_kernels = 3;
// Less work than this leaves nothing but the launch.
constexpr double next_to_no_work_s = 0.5e-6;
// No GPU keeps its stream so long for nothing (CUDA launch guides: 2 to 6 us): that is a host's launch.
constexpr double longest_launch_s = 10e-6;
// One of two roofs decides a kernel that is so much longer under it.
constexpr double clearly = 2;
constexpr std::int64_t caches = 4;  // of L2's size and more stays in no cache
constexpr Bytes usual_l2{16 << 20};
constexpr double least_ratio = 0.001;
constexpr std::size_t most_listed = 60;
const std::string measured = "_measured";

// A row with what it takes at the data sheet's speeds, in seconds.
struct Row {
  const KernelCase& kernel;
  KernelWork work;
  double computing = 0;
  double moving = 0;

  double time() const { return kernel.time.in_seconds(); }
};

double rounded_ratio(double ratio) {
  return std::round(std::clamp(ratio, least_ratio, 1.0) * 1e4) / 1e4;
}

Bytes l2_of(const Json& profile) {
  const auto found = profile.find("l2");
  if (found == profile.end() || !found->is_string())
    return usual_l2;
  const auto parsed = parse_bytes(found->get<std::string>());
  return std::holds_alternative<Bytes>(parsed) ? std::get<Bytes>(parsed) : usual_l2;
}

// A profile that was measured once keeps its name.
std::string bare_name(const std::string& name) {
  return name.ends_with(measured) ? name.substr(0, name.size() - measured.size()) : name;
}

// Of a curve: attention, convolutions and steps are predicted by efficiencies of products and of memory; they fit
// nothing.
bool may_fit_curve(const KernelCase& kernel, const KernelWork& work) {
  const bool is_product = std::holds_alternative<GemmShape>(kernel.shape);
  const bool is_operator = std::holds_alternative<MemoryBoundShape>(kernel.shape);
  return work.launches == 1 && (is_product || is_operator);
}

class KernelFitter {
 public:
  KernelFitter(const KernelCalibrationInputs& inputs, const ProfileStore& store)
      : inputs_(inputs), store_(store), sheet_(load_gpu(inputs.gpu, store)) {
    report_.gpu = bare_name(inputs.gpu.at("name").get<std::string>());
    report_.profile = inputs.gpu;
    choose_rows();
  }

  KernelCalibration fit() && {
    name_it();
    const double launch = fit_launch();
    if (sheet_.kernels) {
      fit_constants();
    } else {
      fit_memory(launch);
      fit_products(launch);
    }
    append_kernels(inputs_.kernels, is_fitted_, {.name = report_.gpu, .value = report_.profile}, store_,
                   report_.residuals);
    report_.residuals.groups = summarise_groups(report_.residuals.cases);
    return std::move(report_);
  }

 private:
  using Kind = std::tuple<std::string, std::string, KernelDirection>;

  // With a curve every fifth of a kind is kept aside, in the table's order.
  void choose_rows() {
    std::map<Kind, std::size_t> count;
    const auto fits_curve = [&](const KernelCase& kernel, const KernelWork& work) {
      return may_fit_curve(kernel, work) &&
             ++count[{kernel.table, kernel.precision, kernel.direction}] % one_held_out_in != 0;
    };
    for (const KernelCase& kernel : inputs_.kernels) {
      const auto work = work_of(kernel);
      const bool fits = work && (sheet_.kernels ? !is_kept_aside(kernel) : fits_curve(kernel, *work));
      is_fitted_.push_back(fits);
      if (fits)
        rows_.push_back(row_of(kernel, *work));
    }
  }

  Row row_of(const KernelCase& kernel, const KernelWork& work) const {
    const double peak = static_cast<double>(matmul_peak(sheet_, kernel.multiplied).count());
    const double memory = static_cast<double>(sheet_.memory_bandwidth.count());
    return {.kernel = kernel,
            .work = work,
            .computing = static_cast<double>(work.flops) / peak,
            .moving = static_cast<double>(work.bytes) / memory};
  }

  void name_it() {
    std::set<std::string> sources;
    for (const Row& row : rows_)
      if (!row.kernel.source.empty())
        sources.insert(row.kernel.source);
    report_.profile["name"] = report_.gpu + measured;
    source_ = fmt::format("{} timed kernels{}{}", rows_.size(), sources.empty() ? "" : " of ",
                          fmt::join(sources, ", "));
    report_.profile["source"] = inputs_.gpu.value("source", "") + "; " + source_;
  }

  void say_source(const char* key, std::size_t rows) {
    report_.profile["sources"][key] = fmt::format("median of {} of {}", rows, source_);
  }

  // A host that times kernels one by one adds its own launch: of several sources the quickest tells most.
  std::optional<double> shortest_kernel() const {
    if (inputs_.launches && inputs_.launches->kernel)
      return inputs_.launches->kernel->in_seconds();
    std::map<std::string, std::vector<double>> by_source;
    for (const Row& row : rows_)
      if (row.work.launches == 1 && row.computing + row.moving < next_to_no_work_s)
        by_source[row.kernel.source].push_back(row.time());
    std::optional<double> least;
    for (auto& [source, times] : by_source)
      if (times.size() >= fewest_kernels)
        least = std::min(least.value_or(1e9), median(times));
    return least;
  }

  double fit_launch() {
    if (inputs_.launches)
      put("host_launch", inputs_.launches->host, "a kernel that does nothing, on the host");
    const std::optional<double> found = shortest_kernel();
    if (found && *found <= longest_launch_s) {
      put("kernel_launch", Duration::picoseconds(std::llround(*found * 1e12)),
          inputs_.launches ? "a kernel that does nothing, among others of its kind"
                           : "the smallest of " + source_);
      return *found;
    }
    warn(found ? fmt::format("the smallest kernels take {:.3g} us: that is how long their host took to start "
                             "them, so kernel_launch stays {}",
                             *found * 1e6, exact_text(sheet_.kernel_launch))
               : std::string("no rows of small kernels: kernel_launch stays as it is"));
    return found.value_or(sheet_.kernel_launch.in_seconds());
  }

  void put(const char* key, Duration time, const std::string& source) {
    const Duration rounded = Duration::picoseconds(to_four_digits(time.picoseconds()));
    report_.profile[key] = exact_text(rounded);
    report_.profile["sources"][key] = "median time of " + source;
    report_.constants.push_back({key, rounded.in_seconds() * 1e6, "us"});
  }

  void fit_constants() {
    TellingRows telling(inputs_.kernels);
    std::vector<bool> tells;
    for (const KernelCase& kernel : inputs_.kernels) tells.push_back(telling.add(kernel, sheet_));
    for (const std::string& line : telling.warnings()) warn(line);
    ArchitectureFit fit = fit_architecture(*sheet_.kernels, telling.rows());
    std::set<std::string> fitted;
    for (const SectionResidual& residual : fit.residuals) fitted.insert(residual.section);
    for (std::size_t index = 0; index < is_fitted_.size(); ++index)
      is_fitted_[index] =
          is_fitted_[index] && tells[index] && fitted.contains(section_of(inputs_.kernels[index], sheet_));
    put_constants(to_four_digits(std::move(fit.constants)), fitted);
  }

  void put_constants(KernelConstants constants, const std::set<std::string>& fitted) {
    std::set<std::string> unfitted;
    for (const KernelConstantField& field : kernel_constant_fields()) {
      if (fitted.contains(std::string(field.section)))
        report_.constants.push_back(constant_of(field, constants));
      else
        unfitted.insert(std::string(field.section));
    }
    if (!unfitted.empty())
      warn(fmt::format("too few rows for {}: the constants of {} stay as they are", fmt::join(unfitted, ", "),
                       constants.name));
    if (fitted.empty())
      return;
    if (fitted.contains("memory"))
      report_.profile.erase("memory_efficiency");  // it would stand before the constants
    constants.source =
        fmt::format("{} fitted to {}; else {}", fmt::join(fitted, ", "), source_, constants.source);
    constants.name = report_.gpu;
    report_.profile["compute"] = write_kernel_constants(constants);
  }

  static CalibrationConstant constant_of(const KernelConstantField& field, const KernelConstants& constants) {
    const auto value = static_cast<double>(field.get(constants));
    const std::string name = fmt::format("{}.{}", field.section, field.key);
    switch (field.unit) {
      case ConstantUnit::time:
        return {name, value / 1e6, "us"};
      case ConstantUnit::bandwidth:
        return {name, value / 1e9, "GB/s"};
      case ConstantUnit::power:
        return {name, value / 1e3, "W"};
      case ConstantUnit::ratio:
        break;
    }
    return {name, value / 1e6, ""};
  }

  void fit_memory(double launch) {
    const Bytes from = l2_of(inputs_.gpu) * caches;
    std::vector<double> shares;
    for (const Row& row : rows_)
      if (row.work.bytes >= from.count() && row.moving > clearly * row.computing &&
          row.time() > clearly * launch)
        shares.push_back(row.moving / row.time());
    if (shares.size() < fewest_kernels)
      return warn(fmt::format("{} rows move {} and more: memory_efficiency stays as it is", shares.size(),
                              format_bytes(from)));
    const double share = rounded_ratio(median(shares));
    report_.profile["memory_efficiency"] = share;
    report_.constants.push_back({"memory_efficiency", share, ""});
    say_source("memory_efficiency", shares.size());
  }

  // Products of one precision by FLOPs, in steps of four.
  using Bins = std::map<int, std::vector<const Row*>>;

  void fit_products(double launch) {
    std::map<Precision, Bins> bins;
    for (const Row& row : rows_)
      if (sheet_.peak.contains(multiplied_as(row.kernel.multiplied)) && row.computing > row.moving &&
          row.time() > clearly * launch)
        bins[multiplied_as(row.kernel.multiplied)][std::ilogb(static_cast<double>(row.work.flops)) / 2]
            .push_back(&row);
    std::size_t rows = 0;
    for (const auto& [precision, of_precision] : bins)
      rows += put_curve(name_of(precision, multiplication_spellings), of_precision);
    if (rows == 0)
      return warn("no products that compute longer than they move: matmul_efficiency stays as it is");
    say_source("matmul_efficiency", rows);
  }

  std::size_t put_curve(const std::string& precision, const Bins& bins) {
    Json curve = Json::array();
    std::size_t rows = 0;
    Flops last;
    for (const auto& [size, members] : bins) {
      if (members.size() < fewest_kernels)
        continue;
      const auto [flops, efficiency] = point_of(members);
      if (flops <= last)
        continue;  // rounded to the point before
      last = flops;
      curve.push_back({{"flops", exact_text(flops)}, {"efficiency", efficiency}});
      report_.constants.push_back({fmt::format("matmul_efficiency.{} at {:.4g} GFLOP", precision,
                                               static_cast<double>(flops.count()) / 1e9),
                                   efficiency, ""});
      rows += members.size();
    }
    if (!curve.empty())
      report_.profile["matmul_efficiency"][precision] = std::move(curve);
    return rows;
  }

  static std::pair<Flops, double> point_of(const std::vector<const Row*>& rows) {
    std::vector<double> flops;
    std::vector<double> reached;
    for (const Row* row : rows) {
      flops.push_back(static_cast<double>(row->work.flops));
      reached.push_back(row->computing / row->time());
    }
    return {Flops{to_four_digits(std::llround(median(flops)))}, rounded_ratio(median(reached))};
  }

  void warn(const std::string& sentence) { report_.warnings.push_back(report_.gpu + ": " + sentence); }

  const KernelCalibrationInputs& inputs_;
  const ProfileStore& store_;
  GpuSpec sheet_;
  std::vector<Row> rows_;
  std::vector<bool> is_fitted_;
  std::string source_;
  KernelCalibration report_;
};

std::string points_text(const std::vector<ValidationCase>& cases) {
  TextTable table({Align::left, Align::left, Align::right, Align::right, Align::right});
  table.add_row({"kernel", "split", "measured us", "predicted us", "error %"});
  for (const ValidationCase& entry : cases)
    table.add_row({entry.name, entry.split, fmt::format("{:.5g}", entry.measured_s * 1e6),
                   fmt::format("{:.5g}", entry.predicted_s * 1e6),
                   fmt::format("{:+.1f}", entry.error_percent())});
  return "Residuals\n" + table.text(2) + "\n";
}

std::string groups_text(const std::vector<GroupSummary>& groups) {
  TextTable table(
      {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right});
  table.add_row({"group", "split", "kernels", "MAPE %", "median", "p90", "bias"});
  for (const GroupSummary& group : groups)
    table.add_row({group.group, group.split == "fit" ? "fitted" : "held out",
                   fmt::format("{}", group.ours.cases), fmt::format("{:.2f}", group.ours.mean_absolute),
                   fmt::format("{:.2f}", group.ours.median_absolute),
                   fmt::format("{:.2f}", group.ours.p90_absolute), fmt::format("{:+.2f}", group.ours.bias)});
  return "Errors; held out: a row in five, and all that fits nothing\n" + table.text(2);
}

}  // namespace

KernelCalibration calibrate_gpu(const KernelCalibrationInputs& inputs, const ProfileStore& store) {
  return KernelFitter(inputs, store).fit();
}

std::string to_text(const KernelCalibration& report) {
  TextTable constants({Align::left, Align::right, Align::left});
  for (const CalibrationConstant& constant : report.constants)
    constants.add_row({constant.name, fmt::format("{:.4g}", constant.value), constant.unit});
  const std::vector<ValidationCase>& cases = report.residuals.cases;
  return fmt::format("{}: {}\n\nConstants\n{}\n{}{}", report.gpu,
                     report.profile.at("source").get<std::string>(), constants.text(2),
                     cases.size() <= most_listed ? points_text(cases) : "",
                     groups_text(report.residuals.groups));
}

Json to_json(const KernelCalibration& report) {
  Json json{{"schema", "lockstep.calibration_report/1"},
            {"gpu", report.gpu},
            {"fit", report.profile.at("source")},
            {"constants", Json::array()}};
  for (const CalibrationConstant& constant : report.constants)
    json["constants"].push_back(
        {{"name", constant.name}, {"value", constant.value}, {"unit", constant.unit}});
  const Json residuals = to_json(report.residuals);
  json["points"] = residuals.at("cases");
  json["groups"] = residuals.at("groups");
  json["warnings"] = report.warnings;
  json["profile"] = report.profile;
  return json;
}

}  // namespace lockstep
