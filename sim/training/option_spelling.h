#pragma once

// How the values of strategies' own options are written.
//
// They stand here and not with load's other spellings, because a strategy's list of options names them
// (option_list.h), and training knows nothing of load.

#include <array>

#include "sim/base/spelling.h"
#include "sim/training/options.h"

namespace lockstep {

// What weights and gradients travel in.
inline constexpr auto element_type_spellings = std::to_array<Spelling<Precision>>(
    {{"fp32", Precision::fp32}, {"fp16", Precision::fp16}, {"bf16", Precision::bf16}});
inline constexpr auto backward_prefetch_spellings = std::to_array<Spelling<BackwardPrefetch>>(
    {{"none", BackwardPrefetch::none}, {"pre", BackwardPrefetch::pre}, {"post", BackwardPrefetch::post}});
inline constexpr auto collective_device_spellings = std::to_array<Spelling<CollectiveDevice>>(
    {{"gpu", CollectiveDevice::gpu}, {"cpu", CollectiveDevice::cpu}});
inline constexpr auto announcement_spellings = std::to_array<Spelling<Announcement>>(
    {{"launched", Announcement::launched}, {"computed", Announcement::computed}});
inline constexpr auto server_place_spellings = std::to_array<Spelling<ServerPlace>>(
    {{"cpu", ServerPlace::cpu}, {"gpu", ServerPlace::gpu}, {"machines", ServerPlace::machines}});
inline constexpr auto shard_placement_spellings =
    std::to_array<Spelling<ShardPlacement>>({{"round_robin", ShardPlacement::round_robin},
                                             {"greedy", ShardPlacement::greedy},
                                             {"partitioned", ShardPlacement::partitioned}});
inline constexpr auto update_lock_spellings = std::to_array<Spelling<UpdateLock>>(
    {{"locked", UpdateLock::locked}, {"sharded", UpdateLock::sharded}, {"lock_free", UpdateLock::lock_free}});
inline constexpr auto server_transport_spellings = std::to_array<Spelling<ServerTransport>>(
    {{"direct", ServerTransport::direct}, {"grpc", ServerTransport::grpc}});
inline constexpr auto server_scheduling_spellings = std::to_array<Spelling<ServerScheduling>>(
    {{"none", ServerScheduling::none}, {"priority", ServerScheduling::priority}});
inline constexpr auto local_reduce_spellings = std::to_array<Spelling<LocalReduce>>(
    {{"none", LocalReduce::none}, {"host", LocalReduce::host}, {"nccl", LocalReduce::nccl}});

}  // namespace lockstep
