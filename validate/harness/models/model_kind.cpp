#include "validate/harness/models/model_kind.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"

namespace lockstep::harness {

namespace {

constexpr std::int64_t largest_batch = 1 << 16;

std::vector<std::string> size_names(const ModelKind& kind) {
  std::vector<std::string> names;
  for (const SizeRule& rule : kind.sizes) names.push_back(rule.name);
  return names;
}

void check_range(const std::string& what, std::int64_t found, const SizeRule& rule,
                 std::vector<std::string>& problems) {
  if (found < rule.least || found > rule.most)
    problems.push_back(fmt::format("{} is {}; valid: {} to {}", what, found, rule.least, rule.most));
}

void check_sizes(const ModelKind& kind, const ModelSpec& spec, std::vector<std::string>& problems) {
  for (const auto& [name, size] : spec.sizes) {
    const auto rule = std::ranges::find(kind.sizes, name, &SizeRule::name);
    if (rule == kind.sizes.end()) {
      problems.push_back(fmt::format("model \"{}\" has no size \"{}\"; {}", kind.name, name,
                                     describe_choices(name, size_names(kind))));
    } else {
      check_range(fmt::format("model \"{}\": {}", kind.name, name), size, *rule, problems);
    }
  }
  check_range(fmt::format("model \"{}\": batch", kind.name), spec.batch, {.most = largest_batch}, problems);
}

}  // namespace

ModelSpec completed(const ModelKind& kind, ModelSpec spec) {
  for (const SizeRule& rule : kind.sizes) spec.sizes.try_emplace(rule.name, rule.usual);
  if (spec.batch == 0)
    spec.batch = kind.usual_batch;
  std::vector<std::string> problems;
  check_sizes(kind, spec, problems);
  if (problems.empty() && kind.find_conflict != nullptr) {
    const std::string conflict = kind.find_conflict(spec);
    if (!conflict.empty())
      problems.push_back(fmt::format("model \"{}\": {}", kind.name, conflict));
  }
  if (!problems.empty())
    throw ConfigError(problems);
  return spec;
}

}  // namespace lockstep::harness
