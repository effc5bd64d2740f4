#pragma once

// The constants of a library's communication: what each is, which part of a machine it belongs to, and where it goes.
//
// Problem:   a constant that belongs to a whole machine says nothing of the next one; what an SM does in a step of LL,
//            what NVLink 4 carries of its rate, what a hop over InfiniBand costs are the same wherever they are built in.
// Idea:      a machine's calibration is composed of three parts: its GPUs, the links between them in a node, and its
//            network. Each constant is a positive number that belongs to one of them, with the value and the spread that
//            such numbers usually have (of the logarithm), which stand where nothing was measured.
// Invariant: this table is the only list of them: fits move it, part files hold it, calibrations are filled from it.
//            Constants are put in the order of the table (what a NIC's share bounds comes after that share).
// Reference: usual values: one-channel rings of NVIDIA/nccl-tests issue 123 (about 2 us a step), Hu et al.,
//            "Demystifying NCCL", arXiv 2507.04786 (LL 1, LL128 2, Simple 6 us a hop), the planning figures
//            of NVIDIA/nccl src/graph (three quarters of NVLink, nine tenths of a NIC).

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/network/calibration.h"
#include "sim/network/machine.h"

namespace lockstep {

enum class MachinePart : std::uint8_t { gpu, in_node, network };
inline constexpr std::array machine_parts{MachinePart::gpu, MachinePart::in_node, MachinePart::network};
constexpr std::string_view name_of(MachinePart part) {
  constexpr std::array<std::string_view, 3> names{"gpu", "in_node", "network"};
  return names[static_cast<std::size_t>(part)];
}

enum class CommunicationUnit : std::uint8_t { microseconds, ratio, gigabytes_per_second };

// Whose values tell of a part's own: of all parts of its kind, of all and of other generations of one network nearly as
// much as its own (without_generation), of those that are carried alike (by hosts, or by NICs), or of no other.
enum class AlikeParts : std::uint8_t { all, generations, carried_alike, itself };

struct CommunicationConstant {
  MachinePart part;
  std::string_view key;  // as in a part's file
  CommunicationUnit unit;
  double usual;
  double spread;  // standard deviation of the logarithm
  // `in_node`: the classes of the links between the GPUs of a node.
  void (*put)(Calibration& calibration, std::span<const LinkClass> in_node, double value);
  double felt_from = 0;  // points say nothing of smaller values: a search begins here
  AlikeParts told_by = AlikeParts::all;
  double own_spread = 2 * spread;  // the same where a machine's own tables are fitted
};

std::span<const CommunicationConstant> communication_constants();

// Those that mean something on this machine: multicast is of switches.
std::vector<const CommunicationConstant*> constants_of(const MachineSpec& machine);

// The classes of links that GPUs of one node send through.
std::vector<LinkClass> classes_in_node(const MachineSpec& machine);

// A host starts a kernel in about this long (CUDA launch guides: 4 to 6 us).
inline constexpr Duration usual_host_launch = Duration::nanoseconds(4'500);

// `base` with its communication emptied and the protocols LL, LL128 and Simple in it.
Calibration blank_communication(Calibration base);

}  // namespace lockstep
