#pragma once

// Where the host of a framework waits for its GPU.
//
// Problem:   a host that runs ahead hides what it takes to issue kernels; where it reads something back from the GPU
//            it begins anew, and all that it issues until it is ahead again is waited for.
// Idea:      three places, each an option named as Megatron-LM names what waits there: a message between stages
//            (batch_p2p_sync), the sizes of a micro-batch that a tensor group shares (broadcast_data_sync) and the
//            loss of a micro-batch (check_for_nan_in_loss). A framework and its release say what is left out. And one
//            that CUDA takes from the environment: after every kernel (cuda_launch_blocking).
// Reference: Megatron-LM, core/model_parallel_config.py and core/pipeline_parallel/p2p_communication.py
//            (batch_p2p_sync); core/tensor_parallel/data.py (broadcast_data copies sizes to the host; pretrain_gpt.py
//            calls it until get_batch_on_this_tp_rank of 0.5 replaced it); pretrain_gpt.py, loss_func
//            (check_for_nan_in_loss_and_grad, from 0.5 on); DeepSpeed, pull request 4360.

#include <array>
#include <string_view>

#include "sim/base/json_reader.h"
#include "sim/load/reading/load_context.h"
#include "sim/load/training/framework_presets.h"
#include "sim/training/options.h"

namespace lockstep {

// Their keys, below `training`.
inline constexpr std::array host_wait_keys{"batch_p2p_sync", "broadcast_data_sync", "check_for_nan_in_loss",
                                           "cuda_launch_blocking"};

// Of a layout that has been read.
HostWaits read_host_waits(const JsonReader& json, const Place& place, const TrainingSpec& training);

inline constexpr std::string_view waits_for_messages_too =
    "CUDA_LAUNCH_BLOCKING: the host waits for each message as well";

// Of a tensor group's messages, where the host waits for every kernel; to state otherwise is a problem.
void leave_nothing_beside(const JsonReader& json, const Place& place, TrainingSpec& training);

}  // namespace lockstep
