#include "sim/training/expert_synchroniser.h"

#include <utility>

#include "sim/base/check.h"

namespace lockstep {
namespace {

StrategyContext told_of(const StrategyContext& context, const Job& job, const ProcessGroup& group,
                        Carried& carried) {
  return {.writer = context.writer,
          .job = job,
          .group = group,
          .subgroups = context.subgroups,
          .compute = context.compute,
          .cluster = context.cluster,
          .communications = context.communications,
          .carried = carried,
          .watched = context.watched,
          .iteration = context.iteration,
          .is_first_iteration = context.is_first_iteration,
          .host = context.host,
          .memory = context.memory,
          .roles = context.roles,
          .choices = context.choices};
}

// What both do every micro-batch or what neither does: they are of one strategy.
class ExpertSynchroniser : public Synchroniser {
 public:
  ExpertSynchroniser(const Strategy& strategy, const StrategyContext& context,
                     const ProcessGroup& expert_group)
      : Synchroniser(context), kinds_(*job_.kinds) {
    context.carried.of_kinds.resize(2);
    dense_context_ = std::make_unique<StrategyContext>(
        told_of(context, kinds_.dense.front(), context.group, context.carried.of_kinds[0]));
    expert_context_ = std::make_unique<StrategyContext>(
        told_of(context, kinds_.experts.front(), expert_group, context.carried.of_kinds[1]));
    dense_ = strategy.synchroniser(*dense_context_);
    expert_context_->host = nullptr;  // it issues one step of the optimizer, which begins with the dense
    experts_ = strategy.synchroniser(*expert_context_);
  }

  void begin() override {
    dense_->begin();
    experts_->begin();
  }
  void pre_forward(const MicroBatch& micro, std::size_t layer) override {
    dense_->pre_forward(micro, layer);
    experts_->pre_forward(micro, layer);
  }
  void post_forward(const MicroBatch& micro, std::size_t layer, const std::vector<OpId>& done) override {
    dense_->post_forward(micro, layer, done);
    experts_->post_forward(micro, layer, done);
  }
  void pre_backward(const MicroBatch& micro, std::size_t layer) override {
    dense_->pre_backward(micro, layer);
    experts_->pre_backward(micro, layer);
  }
  void post_backward(const MicroBatch& micro, std::size_t layer, const std::vector<OpId>& done) override {
    dense_->post_backward(micro, layer, done);
    experts_->post_backward(micro, layer, done);
  }
  void gradient_ready(std::uint32_t gradient, const std::vector<OpId>& done) override {
    Synchroniser& owner = kinds_.is_expert[gradient] ? *experts_ : *dense_;
    owner.gradient_ready(kinds_.number[gradient], done);
  }
  void finish() override {
    dense_->finish();
    experts_->finish();
  }
  void clip() override {
    dense_->clip();
    experts_->clip();
  }
  void update() override {
    dense_->update();
    experts_->update();
  }

 private:
  const ParameterKinds& kinds_;
  std::unique_ptr<StrategyContext> dense_context_;
  std::unique_ptr<StrategyContext> expert_context_;
  std::unique_ptr<Synchroniser> dense_;
  std::unique_ptr<Synchroniser> experts_;
};

}  // namespace

std::unique_ptr<Synchroniser> synchroniser_of(const Strategy& strategy, const StrategyContext& context) {
  if (!context.job.kinds)
    return strategy.synchroniser(context);
  const ProcessGroup* group = context.subgroup(expert_data_group);
  LOCKSTEP_CHECK(group != nullptr, "experts of several copies have a group to be reduced in");
  return std::make_unique<ExpertSynchroniser>(strategy, context, *group);
}

}  // namespace lockstep
