#include "sim/load/training/host_waits.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "sim/training/megatron.h"
#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {
namespace {

Version version_of(const TrainingSpec& training, Version newest) {
  return parse_version(training.framework_version).value_or(newest);
}

// Under its interleaved schedules Megatron-LM overlaps its messages; otherwise it batches them, and after each batch
// its host waits for the GPU. With tensor parallelism DeepSpeed read back what each message said of its sizes, until
// it kept that.
bool waits_for_messages(const TrainingSpec& training) {
  constexpr Version keeps_sizes{0, 11};
  const Layout& layout = training.layout;
  if (layout.pipeline == 1)
    return false;
  if (runs_megatron(training.framework))
    return !pipeline_schedule_named(layout.schedule).sends_apart;
  return training.framework == "deepspeed" && layout.degrees.tensor > 1 &&
         version_of(training, keeps_sizes) < keeps_sizes;
}

constexpr Version sends_batches_whole{0, 5};  // of Megatron Core

// Megatron-DeepSpeed has what Megatron-LM had.
bool waits_for_batch(const TrainingSpec& training) {
  if (training.framework == "deepspeed")
    return training.layout.is_cut();
  return training.framework == "megatron" && version_of(training, sends_batches_whole) < sends_batches_whole;
}

bool waits_for_loss(const TrainingSpec& training) {
  return training.framework == "megatron" &&
         !(version_of(training, sends_batches_whole) < sends_batches_whole);
}

bool read_wait(const JsonReader& json, const Place& place, std::string_view key, bool usual,
               std::string_view why) {
  if (const auto stated = json.optional(key))
    return stated->boolean();
  (place / key).note("default (" + std::string(why) + ")");
  return usual;
}

}  // namespace

HostWaits read_host_waits(const JsonReader& json, const Place& place, const TrainingSpec& training) {
  HostWaits waits;
  if (training.layout.pipeline > 1)
    waits.for_messages =
        read_wait(json, place, host_wait_keys[0], waits_for_messages(training),
                  "Megatron-LM: batch_p2p_sync, but for its interleaved schedules; DeepSpeed "
                  "before 0.11: where it has tensor parallelism");
  else
    json.optional(host_wait_keys[0]);
  waits.for_batch =
      read_wait(json, place, host_wait_keys[1], waits_for_batch(training),
                "Megatron-LM before 0.5 and Megatron-DeepSpeed: broadcast_data reads the sizes back");
  waits.for_loss = read_wait(json, place, host_wait_keys[2], waits_for_loss(training),
                             "Megatron-LM from 0.5 on: check_for_nan_in_loss_and_grad");
  waits.for_kernels = read_wait(json, place, host_wait_keys[3], false, "CUDA_LAUNCH_BLOCKING is not set");
  return waits;
}

void leave_nothing_beside(const JsonReader& json, const Place& place, TrainingSpec& training) {
  if (!training.host_waits.for_kernels || training.layout.degrees.tensor == 1)
    return;
  if (const auto stated = json.optional("tensor_parallel_overlap");
      stated && training.layout.degrees.tensor_overlap != TensorOverlap::none)
    stated->problem(fmt::format("found {} with cuda_launch_blocking; expected none: {}",
                                stated->value().dump(), waits_for_messages_too));
  training.layout.degrees.tensor_overlap = TensorOverlap::none;
  (place / "tensor_parallel_overlap").note(fmt::format("none ({})", waits_for_messages_too));
}

}  // namespace lockstep
