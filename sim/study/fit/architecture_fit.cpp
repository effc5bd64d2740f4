#include "sim/study/fit/architecture_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>

#include "sim/base/median.h"
#include "sim/compute/kernel_time.h"
#include "sim/load/hardware/kernel_constants_json.h"
#include "sim/study/bench/kernel_prediction.h"
#include "sim/study/fit/calibration_profile.h"
#include "sim/study/least_squares.h"

namespace lockstep {
namespace {

constexpr std::size_t one_kept_aside_in = 5;
constexpr std::size_t most_rows = 1'200;
constexpr std::size_t fewest_kernels_of_section = 8;
constexpr double loss_scale = 0.1;  // beyond some ten per cent a row is a library's slow kernel
constexpr int most_iterations = 60;
constexpr int polishing_rounds = 20;
constexpr double polishing_gain = 1e-4;

// Where constants may lie, in the field's own unit.
struct ConstantRange {
  double usual;
  double least;
  double most;
};

bool is_attention(std::string_view section) {
  return section == "attention" ||
         std::ranges::find(own_attentions, section, &OwnAttention::section) != own_attentions.end();
}

ConstantRange range_of(const KernelConstantField& field, const KernelConstants& defaults) {
  const auto usual = static_cast<double>(field.get(defaults));
  // No GPU keeps its stream longer for nothing: more is the host of who measured.
  if (field.key == "start")
    return {usual, 1e6, field.section == "memory" ? 4e6 : 1e7};
  if (field.section == "memory" || (is_attention(field.section) && field.key == "memory_efficiency"))
    return {usual, 0.2e6, 0.93e6};
  if (field.unit == ConstantUnit::time)
    return {std::max(usual, 1e5), 0, 3e7};
  if (field.unit == ConstantUnit::bandwidth)
    return {usual, usual / 20, usual * 20};
  if (field.unit == ConstantUnit::power)
    return {1'000, 0, 20'000};
  if (field.key == "across")
    return {usual, 0.3e6, usual};
  if (field.key == "split_traffic")
    return {usual, 0, 5e6};
  // Its products run on the units that all products run on, and softmax is counted beside them: nothing takes the
  // rest of the peak twice. FlashAttention-2 reaches a sixth of a B200's.
  if (is_attention(field.section) && field.key.ends_with("efficiency"))
    return {usual, 0.05e6, 1e6};
  if (field.key.ends_with("efficiency"))
    return {usual, 0.2e6, 1.3e6};
  if (field.key == "wide")
    return {usual, 0.3e6, usual};
  if (field.key == "softmax")
    return {usual, 0, 40e6};
  // Queries are read and written as they turn, or turn within the kernel.
  if (field.key == "rotation")
    return {usual, 0, 6e6};
  if (field.key == "cached")
    return {usual, 1e6, 6e6};
  if (field.key.ends_with("winograd"))
    return {0.8e6, 0.2e6, 2.25e6};  // of the product, which an implicit convolution may exceed by half
  if (field.key == "forward" || field.key.starts_with("by_") || field.key == "alone" ||
      field.key == "transform")
    return {usual, 0.1e6, 1.5e6};
  return {std::max(usual, 1e5), 0, 1e6};
}

// Tensor cores go by no transform, and kernels that move bytes draw nothing here. What rows that begin anywhere lose is
// timed side by side, not told from tables in which few do.
bool is_unused(const KernelConstantField& field) {
  if (field.key == "standby" || is_of_alignment(field))
    return true;
  return field.section == "tensor_convolution" &&
         (field.key.ends_with("winograd") || field.key == "transform");
}

// Products of a few shapes, such as squares alone, tell a tile from its peak and the clock from its limit: how memory
// is reached stays as it is known.
constexpr std::size_t most_few_shapes = 24;

bool have_few_shapes(const std::vector<TimedKernel>& rows) {
  std::set<std::array<std::int64_t, 4>> shapes;
  for (const TimedKernel& row : rows)
    if (const auto* shape = std::get_if<GemmShape>(&row.kernel.shape))
      shapes.insert({shape->batch, shape->m, shape->n, shape->k});
  return !shapes.empty() && shapes.size() <= most_few_shapes;
}

bool shows_in_few_shapes(const KernelConstantField& field) {
  return field.key == "efficiency" || field.key == "operands" || field.key == "tile" ||
         field.key == "whole_waves" || field.key == "draw";
}

// Softmax takes as long at any width of a head: heads of one width tell it from no product, and it is left as usual.
bool have_one_width(const std::vector<TimedKernel>& rows) {
  std::set<std::int64_t> widths;
  for (const TimedKernel& row : rows)
    if (const auto* shape = std::get_if<AttentionShape>(&row.kernel.shape))
      widths.insert(shape->query_width + shape->value_width);
  return widths.size() == 1;
}

// Moves one section's constants; what Ceres holds is one more than a constant over its usual value, so that a
// constant of nothing still has a step.
class SectionFitter {
 public:
  SectionFitter(std::string section, KernelConstants start, std::vector<TimedKernel> rows, bool moves_draw)
      : start_(std::move(start)), rows_(std::move(rows)) {
    const bool has_few_shapes = have_few_shapes(rows_);
    const bool has_one_width = have_one_width(rows_);
    for (const KernelConstantField& field : kernel_constant_fields()) {
      if (field.section != section || is_unused(field) || (has_few_shapes && !shows_in_few_shapes(field)))
        continue;
      if (has_one_width && field.key == "softmax")
        field.set(start_, field.get(KernelConstants{}));
      else if (moves_draw || field.unit != ConstantUnit::power)
        add(field);
    }
    for (const TimedKernel& row : rows_) gpus_.try_emplace(&row.gpu, row.gpu);
    if (section == "attention")
      std::ranges::copy_if(own_attentions, std::back_inserter(followers_), [&](const OwnAttention& own) {
        return start_.*own.constants == start_.attention;
      });
  }

  // The valleys are several: from what is known, from what is usual, and from tiles that cost next to nothing.
  KernelConstants fit() {
    KernelConstants light;
    for (ProductConstants* products : {&light.tensor, &light.vector}) {
      products->tile = Duration::nanoseconds(100);
      products->operands = Bandwidth{20'000'000'000};
      products->whole_waves = Ratio::percent(90);
    }
    std::vector<double> best;
    double least = 0;
    for (const KernelConstants& start : {start_, KernelConstants{}, light}) {
      std::vector<double> values = values_of(start);
      const double cost = solve(question(), values);
      if (best.empty() || cost < least) {
        best = values;
        least = cost;
      }
    }
    cost_ = polish(best);
    return constants_of(best.data());
  }

  // Of what `fit` found.
  double cost() const { return cost_; }

 private:
  void add(const KernelConstantField& field) {
    fields_.push_back(&field);
    ranges_.push_back(range_of(field, KernelConstants{}));
  }

  // One constant at a time, by steps that shrink: tiles and waves make the floor of a valley uneven, and a
  // gradient stops on it. The same rows decide.
  double polish(std::vector<double>& values) {
    double cost = cost_of(values);
    for (double step = 0.04; step > 0.004; step /= 2)
      for (int round = 0; round < polishing_rounds; ++round) {
        const double before = cost;
        for (std::size_t i = 0; i < values.size(); ++i)
          for (const double sign : {1.0, -1.0}) step_towards(values, i, sign * step, cost);
        if (cost > before * (1 - polishing_gain))
          break;
      }
    return cost;
  }

  // Keeps what is better.
  void step_towards(std::vector<double>& values, std::size_t i, double step, double& cost) {
    const double before = values[i];
    const double least = 1 + ranges_[i].least / ranges_[i].usual;
    const double most = 1 + ranges_[i].most / ranges_[i].usual;
    values[i] = std::clamp(before + (before - 1) * step, least, most);
    if (const double tried = cost_of(values); tried < cost)
      cost = tried;
    else
      values[i] = before;
  }

  double cost_of(const std::vector<double>& values) {
    std::vector<double> residuals(rows_.size());
    evaluate(values.data(), residuals.data());
    return std::inner_product(residuals.begin(), residuals.end(), residuals.begin(), 0.0);
  }

  std::vector<double> values_of(const KernelConstants& constants) const {
    std::vector<double> values;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const double now =
          static_cast<double>(fields_[i]->get(shows_in_few_tables(*fields_[i]) ? start_ : constants));
      values.push_back(1 + std::clamp(now, ranges_[i].least, ranges_[i].most) / ranges_[i].usual);
    }
    return values;
  }

  KernelConstants constants_of(const double* values) const {
    KernelConstants constants = start_;
    for (std::size_t i = 0; i < fields_.size(); ++i)
      fields_[i]->set(constants, std::llround((values[i] - 1) * ranges_[i].usual));
    for (const OwnAttention& own : followers_) constants.*own.constants = constants.attention;
    return constants;
  }

  void evaluate(const double* values, double* residuals) {
    const KernelConstants constants = constants_of(values);
    for (auto& [sheet, gpu] : gpus_) gpu.kernels = constants;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Duration predicted = *predict_kernel(gpus_.at(&rows_[i].gpu), rows_[i].kernel) + rows_[i].host;
      const double error = std::log(predicted.in_seconds() / rows_[i].kernel.time.in_seconds());
      const double robust = loss_scale * std::sqrt(std::log1p(error * error / (loss_scale * loss_scale)));
      residuals[i] = std::copysign(robust, error);
    }
  }

  LeastSquares question() {
    std::vector<ParameterBounds> bounds;
    for (const ConstantRange& range : ranges_)
      bounds.push_back({.least = 1 + range.least / range.usual, .most = 1 + range.most / range.usual});
    return {.residuals = rows_.size(),
            .bounds = std::move(bounds),
            .relative_step = 1e-3,
            .tolerance = 1e-5,
            .most_iterations = most_iterations,
            .evaluate = [this](const double* values, double* residuals) { evaluate(values, residuals); }};
  }

  KernelConstants start_;
  std::vector<TimedKernel> rows_;
  std::vector<OwnAttention> followers_;  // that are as any attention, and stay so
  double cost_ = 0;
  std::vector<const KernelConstantField*> fields_;
  std::vector<ConstantRange> ranges_;
  std::map<const GpuSpec*, GpuSpec> gpus_;
};

// Of each source and GPU so many, spread evenly over what there is: a large table is no better than a small one.
std::vector<TimedKernel> thinned(const std::vector<TimedKernel>& rows) {
  std::map<std::tuple<const GpuSpec*, std::string, KernelDirection>, std::vector<TimedKernel>> benches;
  for (const TimedKernel& row : rows)
    benches[{&row.gpu, row.kernel.source, row.kernel.direction}].push_back(row);
  std::vector<TimedKernel> some;
  for (const auto& [bench, of_bench] : benches) {
    const std::size_t step =
        std::max<std::size_t>(divided_up(of_bench.size(), most_rows / benches.size()), 1);
    for (std::size_t i = 0; i < of_bench.size(); i += step) some.push_back(of_bench[i]);
  }
  return some;
}

// Operands that stayed in the cache from one repeat to the next: a training step does not repeat.
bool is_faster_than_memory(const KernelCase& kernel, const GpuSpec& gpu) {
  const auto work = work_of(kernel);
  return work && std::holds_alternative<GemmShape>(kernel.shape) &&
         kernel.time < time_to_move(Bytes{work->bytes}, gpu.memory_bandwidth);
}

SectionResidual residual_of(const std::string& section, bool is_fitted, std::span<const TimedKernel> rows,
                            const KernelConstants& constants) {
  std::vector<double> errors;
  std::map<const GpuSpec*, GpuSpec> gpus;
  for (const TimedKernel& row : rows) {
    GpuSpec& gpu = gpus.try_emplace(&row.gpu, row.gpu).first->second;
    gpu.kernels = constants;
    const Duration predicted = *predict_kernel(gpu, row.kernel) + row.host;
    errors.push_back(predicted.in_seconds() / row.kernel.time.in_seconds() - 1);
  }
  SectionResidual residual{.section = section, .is_fitted = is_fitted, .kernels = errors.size()};
  residual.bias = 100 * median(errors);
  for (double& error : errors) error = std::abs(error);
  residual.median = 100 * median(errors);
  std::sort(errors.begin(), errors.end());
  residual.p90 = 100 * errors[(errors.size() - 1) * 9 / 10];
  return residual;
}

}  // namespace

bool TellingRows::add(const KernelCase& kernel, const GpuSpec& gpu) {
  if (floors_.hides(kernel)) {
    ++hidden_;
    return false;
  }
  if (is_faster_than_memory(kernel, gpu)) {
    ++cached_;
    return false;
  }
  rows_.push_back({kernel, gpu, floors_.before(kernel)});
  return true;
}

std::vector<std::string> TellingRows::warnings() const {
  std::vector<std::string> lines;
  if (hidden_ > 0)
    lines.push_back(
        fmt::format("{} rows tell how long their host took to start a kernel, and were left out", hidden_));
  if (cached_ > 0)
    lines.push_back(fmt::format(
        "{} rows are faster than memory, so their operands stayed in the cache: left out", cached_));
  return lines;
}

bool is_kept_aside(const KernelCase& kernel) {
  // FNV-1a: the same on every system.
  std::uint64_t hash = 1469598103934665603u;
  const std::string text = describe(kernel);
  for (const char letter : text.substr(std::min(text.find(' '), text.size())))
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211u;
  return (hash >> 20U) % one_kept_aside_in == 0;
}

namespace {

std::string section_of(AttentionLibrary library) {
  const auto own = std::ranges::find(own_attentions, library, &OwnAttention::library);
  return std::string(own == own_attentions.end() ? "attention" : own->section);
}

}  // namespace

std::string section_of(const KernelCase& kernel, const GpuSpec& gpu) {
  const std::string unit = uses_tensor_cores(gpu, kernel.multiplied) ? "tensor" : "vector";
  if (std::holds_alternative<GemmShape>(kernel.shape))
    return unit;
  if (std::holds_alternative<ConvolutionShape>(kernel.shape))
    return unit + "_convolution";
  if (const auto* attention = std::get_if<AttentionShape>(&kernel.shape))
    return section_of(attention->library);
  return std::holds_alternative<MemoryBoundShape>(kernel.shape) ? "memory" : "";
}

KernelConstants to_four_digits(KernelConstants constants) {
  for (const KernelConstantField& field : kernel_constant_fields())
    field.set(constants, to_four_digits(field.get(constants)));
  return constants;
}

namespace {

using RowsOfSections = std::map<std::string, std::vector<TimedKernel>>;

bool fills_cache(const TimedKernel& row) {
  return std::get<AttentionShape>(row.kernel.shape).fills_cache;
}

// Where no server that runs FlashAttention was timed with its cache, nothing tells what that costs: one set of
// constants is for all attention.
void join_attention(RowsOfSections& fitted, RowsOfSections& aside, KernelConstants& constants) {
  if (fitted["server_attention"].empty() || std::ranges::any_of(fitted["attention"], fills_cache))
    return;
  for (RowsOfSections* rows : {&fitted, &aside}) {
    std::vector<TimedKernel>& all = (*rows)["attention"];
    for (const TimedKernel& row : (*rows)["server_attention"]) all.push_back(row);
    rows->erase("server_attention");
  }
  constants.server_attention = constants.attention;
}

// A board's limit shows in attention where long kernels are slower than short ones; a fit that is not better by this
// share leaves it to draw what products do.
constexpr double gain_of_draw = 0.1;

KernelConstants fit_section(const std::string& section, const KernelConstants& start,
                            const std::vector<TimedKernel>& rows) {
  SectionFitter moved(section, start, rows, true);
  const KernelConstants found = moved.fit();
  if (!is_attention(section))
    return found;
  SectionFitter held(section, start, rows, false);
  const KernelConstants simpler = held.fit();
  return moved.cost() < (1 - gain_of_draw) * held.cost() ? found : simpler;
}

}  // namespace

ArchitectureFit fit_architecture(const KernelConstants& start, std::span<const TimedKernel> kernels) {
  ArchitectureFit result{.constants = start, .residuals = {}};
  RowsOfSections fitted;
  RowsOfSections aside;
  for (const TimedKernel& row : kernels)
    if (const std::string section = section_of(row.kernel, row.gpu);
        !section.empty() && predict_kernel(row.gpu, row.kernel))
      (is_kept_aside(row.kernel) ? aside : fitted)[section].push_back(row);
  join_attention(fitted, aside, result.constants);
  // Convolutions stand on products.
  for (const std::string section : {"tensor", "vector", "attention", "flash_attention_2", "server_attention",
                                    "tensor_convolution", "vector_convolution", "memory"}) {
    if (fitted[section].size() < fewest_kernels_of_section)
      continue;
    result.constants = fit_section(section, result.constants, thinned(fitted[section]));
    result.residuals.push_back(residual_of(section, true, fitted[section], result.constants));
    if (!aside[section].empty())
      result.residuals.push_back(residual_of(section, false, aside[section], result.constants));
  }
  return result;
}

}  // namespace lockstep
