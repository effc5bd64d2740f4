// The order of the plain schedule, call by call.

#include "sim/training/schedules/plain.h"

#include <doctest/doctest.h>

#include "sim/training/schedules/schedule.h"
#include "tests/support/recording_synchroniser.h"

namespace lockstep::plain_test {

KernelWork work(std::int64_t nanoseconds) {
  return {.duration = Duration::nanoseconds(nanoseconds)};
}

// Gradient 0 belongs to layer 0, gradients 2 and 1, in this order, to layer 1; layer 2 has none.
Job three_layers(std::int64_t micro_batches) {
  Job job;
  for (const char* name : {"a", "b", "c"}) job.gradients.push_back({.name = name, .bytes = Bytes{4}});
  const std::vector<std::vector<std::uint32_t>> gradients{{0}, {2, 1}, {}};
  for (std::size_t layer = 0; layer < gradients.size(); ++layer)
    job.layers.push_back({.name = "layer " + std::to_string(layer),
                          .forward = work(1),
                          .backward = work(2),
                          .gradients = gradients[layer],
                          .recomputed = {}});
  job.optimizer = work(3);
  job.training.strategy = one_gpu_strategy();
  job.training.gradient_accumulation = micro_batches;
  return job;
}

// One rank, all that a strategy is told of it, and what it writes.
class OneRank {
 public:
  explicit OneRank(const Job& job)
      : writer_(roles_),
        compute_{writer_.lane({.rank = Rank{0}})},
        context_{.writer = writer_,
                 .job = job,
                 .group = group_,
                 .subgroups = {},
                 .compute = compute_,
                 .cluster = {},
                 .communications = communications_,
                 .carried = carried_,
                 .watched = watched_} {}

  const StrategyContext& context() const { return context_; }
  Plan plan() && { return std::move(writer_).finish(); }

 private:
  Roles roles_ = unfolded_roles(1);
  PlanWriter writer_;
  std::vector<LaneId> compute_;
  Communicator alone_;
  ProcessGroup group_{.name = "alone", .communicator = &alone_};
  Communications communications_;
  Carried carried_;
  WatchedOps watched_;
  StrategyContext context_;
};

class ReducesEvery : public Synchroniser {
 public:
  using Synchroniser::Synchroniser;
  bool reduces_every_micro_batch() const override { return true; }
};

template <class Kind>
std::string told(const Job& job) {
  OneRank rank(job);
  Kind synchroniser(rank.context());
  RecordingSynchroniser recording(rank.context(), synchroniser);
  write_plain_schedule(rank.context(), recording);
  std::string text;
  for (const ScheduleCall& call : recording.calls()) text += (text.empty() ? "" : " ") + text_of(call);
  return text;
}

const std::string forward = " f0( f0) f1( f1) f2( f2)";
const std::string backward = " b2( b2) b1( b1) b0( b0)";
const std::string reduced = " b2( b2) b1( g2 g1 b1) b0( g0 b0) finish";

TEST_CASE(
    "Forward goes through the layers, backward from the last, and each gradient is told with its layer's") {
  CHECK(told<Synchroniser>(three_layers(1)) == "begin" + forward + reduced + " clip update");
}

TEST_CASE("Gradients are told in the last micro-batch alone, unless each is to be reduced") {
  CHECK(told<Synchroniser>(three_layers(3)) ==
        "begin" + forward + backward + forward + backward + forward + reduced + " clip update");
  CHECK(told<ReducesEvery>(three_layers(2)) ==
        "begin" + forward + reduced + forward + reduced + " clip update");
}

// Three forwards, three backwards and the optimizer, one after another on the one lane.
TEST_CASE("A synchroniser that sends nothing leaves the passes and the optimizer") {
  const Job job = three_layers(1);
  OneRank rank(job);
  write_scheduled_iteration(strategy_named("single"), rank.context());
  CHECK(rank.context().communications.empty());
  const Plan plan = std::move(rank).plan();
  REQUIRE(plan.kernel_of.size() == 7);
  CHECK(plan.size() == 7);
  CHECK(section_of(plan, plan.kernel_of[2].first).category == Category::forward);
  CHECK(section_of(plan, plan.kernel_of[3].first).category == Category::backward);
  CHECK(plan.names[section_of(plan, plan.kernel_of[3].first).name] == "backward layer 2");
  CHECK(section_of(plan, plan.kernel_of[6].first).category == Category::optimizer);
}

}  // namespace lockstep::plain_test
