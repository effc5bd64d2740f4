#include "sim/report/kernel_account.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/report/text_table.h"
#include "sim/run/describe_job.h"
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

class KernelAccount {
 public:
  KernelAccount(const Scenario& scenario, const Job& job) : job_(job), pricing_(pricing_of(scenario, job)) {}

  void add(const std::string& direction, const KernelWork& work, std::int64_t times) {
    KernelGroup& group = groups_[{kind_of(job_, work), direction}];
    group.kernels += work.launches * times;
    group.time += work_time(pricing_, work) * times;
  }

  std::vector<KernelGroup> groups() const {
    std::vector<KernelGroup> found;
    for (const auto& [key, group] : groups_)
      if (group.kernels > 0 || group.time.total() > Duration::zero())
        found.push_back({key.first, key.second, group.kernels, group.time});
    std::stable_sort(found.begin(), found.end(), [](const KernelGroup& a, const KernelGroup& b) {
      return a.time.total() > b.time.total();
    });
    return found;
  }

 private:
  const Job& job_;
  Pricing pricing_;
  std::map<std::pair<std::string, std::string>, KernelGroup> groups_;
};

std::string share_of(Duration part, Duration whole) {
  return percentage(part.in_seconds(), whole.in_seconds());
}

}  // namespace

std::vector<KernelGroup> kernel_account(const Scenario& scenario) {
  const Job job = describe_job(scenario);
  KernelAccount account(scenario, job);
  const std::int64_t micro_batches = job.training.gradient_accumulation;
  for (const LayerWork& layer : job.layers) {
    account.add("forward", layer.forward, micro_batches);
    account.add("backward", layer.backward, micro_batches);
    for (const std::uint32_t again : layer.recomputed)
      account.add("recompute", job.layers[again].forward, micro_batches);
  }
  account.add("optimizer", job.optimizer, 1);
  return account.groups();
}

std::string to_text(const std::vector<KernelGroup>& groups) {
  TextTable table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::right});
  table.add_row({"kernels", "", "count", "time", "share", "multiplying", "memory", "starting"});
  Duration whole;
  for (const KernelGroup& group : groups) whole += group.time.total();
  for (const KernelGroup& group : groups) {
    const Duration total = group.time.total();
    table.add_row({group.kind, group.direction, grouped(group.kernels), format_duration(total),
                   share_of(total, whole), share_of(group.time.matrix, total),
                   share_of(group.time.memory, total), share_of(group.time.launch, total)});
  }
  return table.text(2);
}

}  // namespace lockstep
