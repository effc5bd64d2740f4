#include "sim/study/harness/measured_processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "sim/base/median.h"
#include "sim/base/quantity_text.h"
#include "sim/load/reading/exact_text.h"
#include "sim/study/gpu_name.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Smaller copies may stay in a cache.
constexpr Bytes first_beyond_caches{64 << 20};
constexpr double least_efficiency = 0.001;

double four_digits(double ratio) {
  return std::round(ratio * 1e4) / 1e4;
}

// FLOP/s by FLOPs, for each precision; products of equally many FLOPs are one point.
using Rates = std::map<double, std::vector<double>>;

std::map<std::string, Rates> rates_of(std::span<const HarnessRun> runs) {
  std::map<std::string, Rates> rates;
  for (const HarnessRun& run : runs)
    for (const MatmulPoint& point : run.matmuls)
      rates[point.precision][point.flops()].push_back(point.flops() / point.time_s);
  return rates;
}

double best_rate(const Rates& rates) {
  double best = 0;
  for (const auto& [flops, repeats] : rates) best = std::max(best, median(repeats));
  return best;
}

// Bytes read and written a second, of copies that no cache holds.
double memory_rate(std::span<const HarnessRun> runs) {
  Bytes largest{0};
  for (const HarnessRun& run : runs)
    for (const MemoryCopyPoint& copy : run.memory_copies) largest = std::max(largest, copy.bytes);
  std::vector<double> rates;
  for (const HarnessRun& run : runs)
    for (const MemoryCopyPoint& copy : run.memory_copies)
      if (copy.bytes >= std::min(first_beyond_caches, largest))
        rates.push_back(2 * static_cast<double>(copy.bytes.count()) / copy.time_s);
  return rates.empty() ? 0 : median(std::move(rates));
}

Json curve_json(const Rates& rates, double peak) {
  Json curve = Json::array();
  for (const auto& [flops, repeats] : rates) {
    const double efficiency = std::clamp(median(repeats) / peak, least_efficiency, 1.0);
    curve.push_back({{"flops", exact_text(Flops{std::llround(flops)})},
                     {"efficiency", std::max(four_digits(efficiency), least_efficiency)}});
  }
  return curve;
}

std::string rate_text(double flops_per_s) {
  return exact_text(FlopRate{std::llround(flops_per_s / 1e6) * 1'000'000});
}

// A data sheet's figure in the base profile; nothing where it states none.
template <class T>
double stated(const Json& json, const char* key, Parsed<T> (*parse)(std::string_view)) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string())
    return 0;
  const Parsed<T> parsed = parse(found->get<std::string>());
  return std::holds_alternative<T>(parsed) ? static_cast<double>(std::get<T>(parsed).count()) : 0;
}

class ProfileMaker {
 public:
  ProfileMaker(std::span<const HarnessRun> runs, Json base) : runs_(runs), profile_(std::move(base)) {}

  MeasuredProcessor make() && {
    const std::map<std::string, Rates> rates = rates_of(runs_);
    const double memory = memory_rate(runs_);
    if (rates.empty() && memory == 0)
      return {.profile = nullptr, .warnings = {"no matrix products and no copies were timed"}};
    name_it();
    for (const auto& [precision, points] : rates) put_curve(precision, points);
    if (memory > 0)
      put_memory(memory);
    return {.profile = std::move(profile_), .warnings = std::move(warnings_)};
  }

 private:
  bool is_cpu() const { return runs_.front().backend == "cpu"; }

  void name_it() {
    profile_["name"] = profile_.at("name").get<std::string>() + "_measured";
    profile_["source"] =
        fmt::format("{}; matrix products and copies timed by {} harness run{}, the first {} {}",
                    profile_.value("source", ""), runs_.size(), runs_.size() == 1 ? "" : "s",
                    runs_.front().name, runs_.front().date);
    for (const char* key : {"matmul_efficiency", "memory_efficiency"})
      profile_["sources"][key] = "timed by harness runs on " + runs_.front().device;
  }

  void put_curve(const std::string& precision, const Rates& rates) {
    Json& peaks = profile_["peak"];
    const double best = best_rate(rates);
    if (is_cpu())
      peaks[precision] = rate_text(best);
    const double peak = stated(peaks, precision.c_str(), parse_flop_rate);
    if (peak == 0) {
      warnings_.push_back(fmt::format("{}: its profile states no peak of {}, so its products say nothing",
                                      runs_.front().device, precision));
      return;
    }
    if (best > 1.01 * peak)
      warnings_.push_back(fmt::format("{}: {} reaches {:.4g} TFLOP/s, more than the stated peak of {:.4g}",
                                      runs_.front().device, precision, best / 1e12, peak / 1e12));
    if (is_cpu() && precision == "fp32")
      profile_["vector_peak"] = peaks[precision];
    profile_["matmul_efficiency"][precision] = curve_json(rates, peak);
  }

  void put_memory(double rate) {
    if (is_cpu())
      profile_["memory_bandwidth"] = exact_text(Bandwidth{std::llround(rate / 1e6) * 1'000'000});
    const double whole = stated(profile_, "memory_bandwidth", parse_bandwidth);
    if (whole > 0)
      profile_["memory_efficiency"] = std::max(four_digits(std::min(rate / whole, 1.0)), least_efficiency);
  }

  std::span<const HarnessRun> runs_;
  Json profile_;
  std::vector<std::string> warnings_;
};

// "NVIDIA H200" holds what "h200_sxm" begins with.
bool is_named_for(const std::string& device, const std::string& gpu) {
  std::string letters;
  for (const char letter : device)
    if (letter != ' ')
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const std::string stem = gpu.substr(0, gpu.find('_'));
  const auto place = letters.find(stem);
  const bool ends_there = place != letters.npos && (place + stem.size() == letters.size() ||
                                                    std::isdigit(letters[place + stem.size()]) == 0);
  return ends_there;
}

}  // namespace

MeasuredProcessor measured_processor(std::span<const HarnessRun> runs, Json base) {
  return ProfileMaker(runs, std::move(base)).make();
}

Json shipped_processor(const HarnessRun& run, const ProfileStore& store) {
  if (const std::string name = find_gpu_named(run.device, store); run.backend != "cpu" && !name.empty())
    return *store.open(ProfileKind::gpu, name)->value;
  std::vector<std::string> names;
  for (const std::string& name : store.names(ProfileKind::gpu))
    if (run.backend == "cpu" ? name == "cpu" : is_named_for(run.device, name))
      names.push_back(name);
  return names.size() == 1 ? *store.open(ProfileKind::gpu, names.front())->value : Json(nullptr);
}

}  // namespace lockstep
