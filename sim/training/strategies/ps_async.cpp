// Asynchronous parameter servers: every worker pulls, computes and pushes at its own pace.
//
// The plan holds what a GPU does by itself, forward and backward of its micro-batches: weights are updated
// where they stand, at the servers. When a worker pulls and pushes depends on everybody before it, so the
// update loop plays that (scenario/update_run). A worker holds weights and gradients and, where the
// servers update, no optimizer states.
//
// Reference: Dean et al., "Large scale distributed deep networks" (NIPS 2012); Li et al., "Scaling distributed
// machine learning with the parameter server" (OSDI 2014).

#include "sim/training/shared_options.h"
#include "sim/training/step_writer.h"
#include "sim/training/synchroniser.h"

namespace lockstep::strategies::ps_async {
namespace {

class WorkerComputing : public Synchroniser {
 public:
  using Synchroniser::Synchroniser;

  // So that an iteration of the plan is one moment for all; nobody waits in the update loop.
  void begin() override {
    context_.writer.section("begin together", Category::other);
    const std::vector<OpId> ends = write_mark(context_);
    const OpId all = context_.writer.join(context_.compute.front(), ends);
    write_wait(context_, "begin together", std::vector<OpId>(ends.size(), all));
  }

  void update() override {}
};

// The states stand where the weights are updated.
MemoryShares memory(const Job& job, std::int64_t) {
  return {.states = job.training.parameter_server.servers.updates_weights ? 0 : 1};
}

OptionList options(TrainingSpec& training) {
  OptionList list = server_options(training);
  list.push_back(
      {"staleness_bound", OptionalCountOption{training.parameter_server.staleness_bound, 0, most_things}});
  return list;
}

// A worker waits for nobody; all are alike but for their speed (update_loop.h).
std::vector<UnusedKey> unused(const TrainingSpec& training) {
  std::vector<UnusedKey> keys = unused_with_servers(training);
  keys.push_back({"communication.timeout", "workers of ps_async wait for nobody"});
  keys.push_back(
      {"communication.overlap", "a worker of ps_async pushes each gradient as soon as it is there"});
  keys.push_back(
      {"cluster.slow_links", "workers of ps_async share one port a direction, whose links are alike"});
  const ParameterServerOptions& options = training.parameter_server;
  if (options.pull_once_per_node && options.local_reduce == LocalReduce::none)
    keys.push_back(
        {"training.local_reduce",
         "where a node pulls once it is one worker of ps_async, whose GPUs add up what they found"});
  return keys;
}

const Registration<Strategy> ps_async_registration{
    "ps_async",
    {.synchroniser = make_synchroniser<WorkerComputing>,
     .description = "asynchronous parameter servers: every gradient is applied when it comes",
     .accepts = {.options = options,
                 .compressions = {CompressionKind::none, CompressionKind::fp16, CompressionKind::bf16},
                 .problems = server_problems,
                 .batches = "come at each worker's own pace"},
     .sends = {.at_most = server_traffic_bound},
     .unused = unused,
     .memory = memory,
     .servers = stated_servers,
     .is_asynchronous = true,
     .reaches_across = true}};

}  // namespace
}  // namespace lockstep::strategies::ps_async
