#pragma once

// What a machine is made of, as far as communication can tell, and what is known of these parts.
//
// Problem:   a machine that was never measured is made of things that were: GPUs of an architecture, a generation of
//            links, a kind of network.
// Idea:      a machine names its parts by physics (compute capability, link, bandwidth and latency), the nearest first;
//            hw_profiles/parts/ holds what one fit to all machines says of each: value and uncertainty of its constants,
//            on how many machines that rests, and how far predictions of machines that were left out missed.
// Invariant: no name of a machine counts. A part that stands in for another is said to the user, with its name; a wider
//            band goes with it.
// Cost:      three small files a machine.

#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/load/hardware/communication_constants.h"
#include "sim/load/reading/load_context.h"

namespace lockstep {

// "hopper", "nvlink4", "infiniband": what each part is, then what could stand in for it, the nearest first.
using PartNames = std::array<std::vector<std::string>, machine_parts.size()>;

// A network may be used another way than its NICs allow ("slingshot_tcp", "slingshot_software_match"): `network` says
// how; empty: as it is.
PartNames parts_of(const MachineSpec& machine, std::int64_t compute_capability,
                   const std::string& network = {});

// A network whose bytes the host's processor copies: sockets, and whatever goes by way of its memory. It may carry any
// part of a NIC, where all others carry most of it.
bool is_carried_by_host(std::string_view network);

// The network whatever its rate: what a hop costs beside its bytes is much the same in every generation of InfiniBand.
std::string_view without_generation(std::string_view network);

// `value` in the unit of the constant; `spread`: of its logarithm on the next machine with this part.
struct PartConstant {
  double value = 0;
  double spread = 0;
  bool operator==(const PartConstant&) const = default;
};

struct PartProfile {
  std::string name;
  MachinePart part = MachinePart::gpu;
  std::string source;
  std::int64_t machines = 0;  // that its constants rest on
  std::int64_t tables = 0;
  std::map<std::string, PartConstant> constants;  // by CommunicationConstant::key
  std::vector<ResidualBand> residuals;            // of machines with this part that were left out whole
  Calibration computing;                          // a GPU's: what concerns the kernels beside collectives
};

PartProfile read_part(const JsonReader& json, const Place& place);
nlohmann::ordered_json write_part(const PartProfile& part);

// A machine's parts as they are known; `remarks` says which stand in for others.
struct MachineParts {
  std::array<PartProfile, machine_parts.size()> profiles;
  std::vector<std::string> remarks;
};
MachineParts open_parts(const MachineSpec& machine, std::int64_t compute_capability, const Place& place);

// A part's value of a constant; the usual one where it has none.
double value_of(const PartProfile& part, const CommunicationConstant& constant);
// Half as far from 1 again, in logarithms, as for a fit of which nothing was held out.
void widen(std::vector<ResidualBand>& bands);

// `machine`'s calibration, composed; its bands are the widest of its parts, and wider where a part stands in.
Calibration compose(const MachineSpec& machine, const MachineParts& parts);

}  // namespace lockstep
