#include "sim/report/kernel_account.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/base/units.h"
#include "sim/report/breakdown.h"
#include "sim/report/text_table.h"
#include "sim/run/describe_job.h"
#include "sim/run/host_issue.h"
#include "sim/run/pricing.h"

namespace lockstep {
namespace {

std::string kind_of(const Job& job, const KernelWork& work) {
  if (work.work_class == WorkClass::fixed)
    return "stated";
  if (work.products == no_products)
    return work.flops > 0 ? "product" : "memory";
  const ProductShape& shape = job.products[work.products].front().shape;
  return std::holds_alternative<ConvolutionShape>(shape)
             ? "convolution"
             : (std::holds_alternative<AttentionShape>(shape) ? "attention" : "product");
}

// Of causal attention half the square is multiplied, of a step of a ring the keys that its queries meet.
std::int64_t multiplied_flops(const Job& job, const KernelWork& work) {
  if (work.products == no_products)
    return work.flops;
  const auto* attention = std::get_if<AttentionShape>(&job.products[work.products].front().shape);
  if (attention == nullptr)
    return work.flops;
  if (attention->is_causal)
    return work.flops / 2;
  return arithmetic::product_divided_up(work.flops, std::min(attention->keys_of_query(), attention->sequence),
                                        attention->sequence);
}

class KernelAccount {
 public:
  KernelAccount(const Scenario& scenario, const Job& job) : job_(job), pricing_(pricing_of(scenario, job)) {}

  void add(const IssuedWork& issued) {
    const KernelWork work = divided(*issued.work, issued.parts);
    const std::string kind = kind_of(job_, work);
    Group& group = groups_[{kind, std::string(part_of(issued.category).key)}];
    group.at_peak_s += kind == "stated" ? 0 : at_peak_s(work, kind == "memory");
    group.kernels += work.launches;
    group.time += work_time(pricing_, work);
    group.waiting += issued.waiting;
  }

  std::vector<KernelGroup> groups() const {
    std::vector<KernelGroup> found;
    for (const auto& [key, group] : groups_)
      if (group.kernels > 0 || group.total() > Duration::zero())
        found.push_back({key.first, key.second, group.kernels, group.time, group.waiting,
                         group.at_peak_s / std::max(group.time.total().in_seconds(), 1e-12)});
    std::stable_sort(found.begin(), found.end(),
                     [](const KernelGroup& a, const KernelGroup& b) { return a.total() > b.total(); });
    return found;
  }

 private:
  struct Group : KernelGroup {
    double at_peak_s = 0;
  };

  double at_peak_s(const KernelWork& work, bool is_of_memory) const {
    const GpuSpec& gpu = pricing_.gpu;
    return is_of_memory ? static_cast<double>(work.bytes) /
                              static_cast<double>(gpu.memory_bandwidth.count())
                        : static_cast<double>(multiplied_flops(job_, work)) /
                              static_cast<double>(matmul_peak(gpu, pricing_.precision).count());
  }

  const Job& job_;
  Pricing pricing_;
  std::map<std::pair<std::string, std::string>, Group> groups_;
};

std::string share_of(Duration part, Duration whole) {
  return percentage(part.in_seconds(), whole.in_seconds());
}

}  // namespace

std::vector<KernelGroup> kernel_account(const Scenario& scenario) {
  const Job job = describe_job(scenario);
  KernelAccount account(scenario, job);
  for (const IssuedWork& issued : issued_step(scenario, job, {})) account.add(issued);
  return account.groups();
}

std::string to_text(const std::vector<KernelGroup>& groups) {
  TextTable table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::right, Align::right, Align::right});
  table.add_row(
      {"kernels", "", "count", "time", "share", "multiplying", "memory", "starting", "host", "of peak"});
  Duration whole;
  for (const KernelGroup& group : groups) whole += group.total();
  for (const KernelGroup& group : groups) {
    const Duration total = group.total();
    table.add_row({group.kind, group.direction, grouped(group.kernels), format_duration(total),
                   share_of(total, whole), share_of(group.time.matrix, total),
                   share_of(group.time.memory, total), share_of(group.time.launch, total),
                   share_of(group.waiting, total), group.of_peak > 0 ? percentage(group.of_peak, 1) : "-"});
  }
  return table.text(2);
}

}  // namespace lockstep
