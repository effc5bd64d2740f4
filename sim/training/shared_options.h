#pragma once

// Options that several strategies have in common.
//
// Problem:   a single GPU has the options of DistributedDataParallel, ZeRO's stages and parameter servers share
//            most of theirs; each list stands once.
// Idea:      functions that a registration names as they are, or puts its own options behind.

#include <string_view>
#include <vector>

#include "sim/training/strategy.h"

namespace lockstep {

// DistributedDataParallel's; a single GPU is what that is on one rank.
OptionList ddp_options(TrainingSpec& training);

// Of all stages of ZeRO.
OptionList zero_options(TrainingSpec& training);

// Of parameter servers.
OptionList server_options(TrainingSpec& training);
const ServerSpec& stated_servers(const TrainingSpec& training);
std::vector<OptionProblem> server_problems(const TrainingSpec& training, const ClusterShape& shape);
TrafficBound server_traffic_bound(const TrafficInput& input);
// Where nothing is computed beside a collective.
std::vector<UnusedKey> unused_in_turn(std::string_view why);
// Of what is sent to servers and back.
std::vector<UnusedKey> unused_with_servers(const TrainingSpec& training);

// Ranges of what is counted: sizes in elements, and numbers of things.
inline constexpr std::int64_t most_elements = 1'000'000'000'000;
inline constexpr std::int64_t most_things = million;

}  // namespace lockstep
