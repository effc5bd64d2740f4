#include "sim/study/validation/harness_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/load/load.h"
#include "sim/study/bench/collective_table.h"
#include "sim/study/fit/harness_calibration.h"
#include "sim/study/fit/harness_gpu_calibration.h"
#include "sim/study/harness/harness_scenario.h"
#include "sim/study/harness/measured_processor.h"
#include "sim/study/validation/stated_case.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Whose link latency a given calibration leaves out of its steps, unless the user names another machine.
constexpr const char* usual_cpu_machine = "cpu_gloo";

std::string variant_of(const MeasuredIteration& setting) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!setting.overlap)
    add("no overlap");
  if (setting.gradient_accumulation > 1)
    add(fmt::format("{} micro-batches", setting.gradient_accumulation));
  if (setting.compression != "none")
    add(setting.compression);
  return text;
}

std::string name_of(const HarnessRun& run, const CapSetting& setting) {
  return fmt::format("{} cap {:g}{}{}", run.name, setting.bucket_cap_mb, setting.variant.empty() ? "" : ", ",
                     setting.variant);
}

// The run's own machine; another calibration is a name, a path or an object, and null for the machine's.
RunMachine named_machine(const HarnessRun& run, const std::string& name, const Json& calibration,
                         const ProfileStore& store) {
  const auto profile = store.open(ProfileKind::machine, name);
  RunMachine machine{.machine = name, .nodes = run.nodes, .gpus_per_node = run.ranks / run.nodes};
  if (profile && !calibration.is_null()) {
    machine.machine = *profile->value;
    machine.machine["calibration"] = calibration;
  }
  return machine;
}

Duration stated_latency(const std::string& machine, const ProfileStore& store) {
  const CollectiveSetting setting{.machine = machine};
  const Scenario scenario = load_collective_setting(setting, store);
  const auto& nics = scenario.cluster.machine.nics;
  return nics.empty() ? Duration::zero() : nics.front().link.latency;
}

// The calibration's own figure: it is added to what the link is taken to carry.
double unhidden_per_byte(const HarnessRun& run, const Json& calibration, const ProfileStore& store) {
  const RunMachine machine =
      machine_of_links(run, {.bandwidth = Bandwidth{1'000'000'000}, .latency = {}}, calibration);
  const Scenario scenario = load_value(communication_scenario(run, machine), {.store = store});
  return static_cast<double>(scenario.cluster.calibration.unhidden_per_byte_ps) * 1e-12;
}

class RunCases {
 public:
  RunCases(const HarnessRun& run, const ValidationOptions& options, const ProfileStore& store,
           const CaseErrors& errors, Validation& validation)
      : run_(run), options_(options), store_(store), errors_(errors), validation_(validation) {}

  void append() {
    for (const std::string& failure : describe_failures(run_)) note(failure);
    if (run_.gpus_shared)
      return note("is not predicted: its ranks took turns on a GPU, so its times are those of neither");
    if (!run_.alone)
      throw ConfigError(
          run_.file + ": /without_communication: found null, expected the step that predictions start from");
    if (run_.ranks > 1 && run_.iterations.empty())
      throw ConfigError(run_.file +
                        ": /iterations: found no entry, expected something to hold predictions against");
    if (const auto machine = find_machine())
      for (const MeasuredIteration& setting : run_.iterations) append_setting(setting, *machine);
    append_layers();
    append_roofline();
  }

 private:
  void note(const std::string& sentence) { validation_.notes.push_back(run_.name + ": " + sentence); }

  // Nothing for a single rank, and for GPUs whose machine nobody has named.
  std::optional<RunMachine> find_machine() {
    if (run_.ranks < 2 || run_.iterations.empty())
      return std::nullopt;
    if (run_.library == RunLibrary::gloo)
      return machine_of_processes();
    if (!options_.machine.empty())
      return named_machine(run_, options_.machine, calibration_of_gpus(), store_);
    note("its iterations are not predicted: name the machine it was measured on (--machine)");
    return std::nullopt;
  }

  // What was given, else the fit of the run's own microbenchmarks, else what the machine has.
  Json calibration_of_gpus() {
    if (!options_.calibration.empty())
      return options_.calibration;
    if (run_.curve.empty()) {
      note("no all-reduce was measured: it is predicted with the calibration of " + options_.machine);
      return nullptr;
    }
    return calibrate_to_gpu_runs({&run_, 1}, {.machine = options_.machine, .holds_nothing_out = true}, store_)
        .profile;
  }

  RunMachine machine_of_processes() {
    const RunFigures figures = figures_of(run_);
    if (options_.calibration.empty()) {
      const HarnessCalibration own = calibrate_to_runs({&run_, 1}, {.name = "own"}, store_);
      for (const std::string& warning : own.warnings) validation_.notes.push_back(warning);
      const double unhidden = static_cast<double>(own.calibration.unhidden_per_byte_ps) * 1e-12;
      return machine_of_links(run_, {link_of(run_, figures, unhidden), Duration::zero()}, own.profile);
    }
    const std::string machine = options_.machine.empty() ? usual_cpu_machine : options_.machine;
    const double unhidden = unhidden_per_byte(run_, options_.calibration, store_);
    return machine_of_links(run_, {link_of(run_, figures, unhidden), stated_latency(machine, store_)},
                            options_.calibration);
  }

  void append_setting(const MeasuredIteration& setting, const RunMachine& machine) {
    StatedCase stated;
    stated.result.setting = CapSetting{.run = run_.name,
                                       .bucket_cap_mb = setting.bucket_cap_mb,
                                       .variant = variant_of(setting),
                                       .measured_p10_s = setting.iteration.p10,
                                       .measured_p90_s = setting.iteration.p90,
                                       .measured_count = setting.iteration.count};
    stated.result.name = name_of(run_, *stated.result.setting);
    stated.result.group = run_.name;
    stated.result.machine = options_.machine.empty() ? usual_cpu_machine : options_.machine;
    stated.scenario = data_parallel_scenario(run_, setting, machine);
    stated.iteration_s = setting.iteration.median;
    append_case(stated);
    check_buckets(setting, validation_.cases.back());
  }

  void check_buckets(const MeasuredIteration& setting, const ValidationCase& predicted) {
    if (setting.is_plain() && !setting.buckets.empty() && setting.buckets != predicted.buckets)
      note(fmt::format("cap {:g}: {} buckets were measured and {} predicted, or of other sizes",
                       setting.bucket_cap_mb, setting.buckets.size(), predicted.buckets.size()));
  }

  void append_layers() {
    if (!run_.layers.empty())
      append_step("step from its layers", layers_scenario(run_));
  }

  void append_roofline() {
    if (run_.model.simulated_as.is_null() || run_.matmuls.empty())
      return;
    const Json base = base_processor();
    if (base.is_null())
      return note("its step is not predicted from roofline: no shipped GPU or several are named like " +
                  run_.device + "; name its machine (--machine)");
    const MeasuredProcessor processor = measured_processor({&run_, 1}, base);
    for (const std::string& warning : processor.warnings) note(warning);
    append_step("step from roofline", roofline_scenario(run_, processor.profile));
  }

  Json base_processor() const {
    if (run_.backend == "cuda" && !options_.machine.empty()) {
      const Scenario scenario = load_collective_setting({.machine = options_.machine}, store_);
      const auto profile = store_.open(ProfileKind::gpu, scenario.cluster.machine.gpu);
      if (profile)
        return *profile->value;
    }
    return shipped_processor(run_, store_);
  }

  void append_step(const std::string& how, const Json& scenario) {
    StatedCase stated;
    stated.result.name = run_.name + ", " + how;
    stated.result.group = stated.result.name;
    stated.scenario = scenario;
    stated.iteration_s = run_.alone->iteration.median;
    append_case(stated);
  }

  void append_case(StatedCase& stated) {
    stated.result.split = "heldout";
    stated.scenario_file = run_.file;
    validation_.cases.push_back(run_case(stated, store_, errors_.of(stated.result.group)));
  }

  const HarnessRun& run_;
  const ValidationOptions& options_;
  const ProfileStore& store_;
  const CaseErrors& errors_;
  Validation& validation_;
};

using Cases = std::vector<const ValidationCase*>;

// Of the median of iterations that spread as a normal distribution does: 80 % of that are 2.563 standard deviations wide,
// and the median of n scatters by 1.2533 of them over the root of n (the root of pi / 2).
double variance_of_median(const ValidationCase& entry) {
  const CapSetting& setting = *entry.setting;
  const double deviation = (setting.measured_p90_s - setting.measured_p10_s) / 2.563;
  return 1.5708 * deviation * deviation / static_cast<double>(setting.measured_count);
}

// Of caps that are predicted alike, the first.
BestCap best_cap(const std::string& run, const Cases& cases) {
  const auto predicted = *std::min_element(cases.begin(), cases.end(), [](const auto* a, const auto* b) {
    return a->predicted_s < b->predicted_s;
  });
  const auto measured = *std::min_element(
      cases.begin(), cases.end(), [](const auto* a, const auto* b) { return a->measured_s < b->measured_s; });
  return {.run = run,
          .predicted_mb = predicted->setting->bucket_cap_mb,
          .measured_mb = measured->setting->bucket_cap_mb,
          .cost_percent = (predicted->measured_s / measured->measured_s - 1) * 100,
          .cost_error_percent = predicted == measured ? 0
                                                      : 100 / measured->measured_s *
                                                            std::sqrt(variance_of_median(*predicted) +
                                                                      variance_of_median(*measured))};
}

std::vector<BestCap> find_best_caps(const std::vector<ValidationCase>& cases) {
  std::vector<std::pair<std::string, Cases>> by_run;
  for (const ValidationCase& entry : cases) {
    if (!entry.setting || !entry.setting->variant.empty())
      continue;
    const auto known = std::find_if(by_run.begin(), by_run.end(),
                                    [&](const auto& other) { return other.first == entry.setting->run; });
    Cases& members =
        known == by_run.end() ? by_run.emplace_back(entry.setting->run, Cases{}).second : known->second;
    members.push_back(&entry);
  }
  std::vector<BestCap> best;
  for (const auto& [run, members] : by_run)
    if (members.size() > 1)
      best.push_back(best_cap(run, members));
  return best;
}

std::vector<HarnessRun> read_runs(const std::vector<std::string>& files) {
  std::vector<HarnessRun> runs;
  std::vector<std::string> problems;
  for (const std::string& file : files) try {
      runs.push_back(read_harness_run(file));
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems.begin(), error.problems.end());
    }
  if (!problems.empty())
    throw ConfigError(problems);
  return runs;
}

// Two runs of one name would be one group and one curve.
void check_names_differ(const std::vector<HarnessRun>& runs) {
  std::map<std::string, std::string> file_of;
  for (const HarnessRun& run : runs) {
    const auto [known, is_new] = file_of.try_emplace(run.name, run.file);
    if (!is_new)
      throw ConfigError(
          fmt::format("{}: /name: found \"{}\", which is also the name of {}, expected names "
                      "that differ (the harness's --name)",
                      run.file, run.name, known->second));
  }
}

}  // namespace

void append_runs(const ValidationOptions& options, const ProfileStore& store, const CaseErrors& errors,
                 Validation& validation) {
  const std::vector<HarnessRun> runs = read_runs(options.runs);
  check_names_differ(runs);
  for (const HarnessRun& run : runs) RunCases(run, options, store, errors, validation).append();
  validation.best_caps = find_best_caps(validation.cases);
}

}  // namespace lockstep
