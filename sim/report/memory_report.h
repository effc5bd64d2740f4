#pragma once

// What the GPU that holds most holds: when, of what, and whether that fits.
//
// Invariant: the parts of the peak add up to what the track shows at that moment.

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/units.h"
#include "sim/report/memory_remedies.h"
#include "sim/report/memory_track.h"

namespace lockstep {

struct MemoryReport {
  MemoryUse peak;      // what it holds at that moment
  MemoryUse standing;  // and all the time
  std::string moment;  // what runs then; empty where nothing comes and goes
  Duration since_start;
  std::vector<std::pair<Duration, Bytes>> track;  // what it holds from then on, over the iteration
  Bytes capacity;
  bool counts_activations = true;           // false: the model does not tell what its layers keep
  std::vector<MemoryRemedy> remedies = {};  // where it does not fit, if asked for
  bool fits() const { return peak.total() <= capacity; }
};

// Of the last iteration, which began at `iteration_start`.
MemoryReport report_memory(const Scenario& scenario, const Simulation& simulation, Time iteration_start);

struct MemoryPart {
  std::string_view key;  // under memory_bytes
  Bytes MemoryUse::*bytes;
};

// In the order in which they are told.
inline constexpr std::array<MemoryPart, 8> memory_parts{{
    {"parameters", &MemoryUse::parameters},
    {"gradients", &MemoryUse::gradients},
    {"optimizer_states", &MemoryUse::optimizer_states},
    {"activations", &MemoryUse::activations},
    {"communication_buffers", &MemoryUse::communication_buffers},
    {"workspaces", &MemoryUse::workspaces},
    {"framework", &MemoryUse::framework},
    {"allocator", &MemoryUse::allocator},
}};

}  // namespace lockstep
