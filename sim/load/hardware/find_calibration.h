#pragma once

// The calibration to use for a machine that names none.
//
// Problem:   most machines were never measured, and a wire's datasheet is far from what a library gets of it.
// Idea:      what was fitted to the nearest relative (kinship.h) is a better guess than nothing. The user
//            reads whose it is and how far that is, and its band is wider.
//            An efficiency is borrowed as a share of the wire where the wire was the limit. Where the host
//            was (less than half of a NIC filled, or PCIe without peer to peer), it is borrowed as the rate
//            efficiency x wire of that machine: the host gives no more to a faster wire, and of a slower one
//            the library gets the usual share, if that is less.
// Invariant: a Gloo machine never borrows from an NCCL one or the other way round; equal distances go to the
//            same GPU, the newer architecture, more nodes, the newer release, the name, in this order. A
//            machine with a calibration of its own name uses that, also where a scenario put other parts into
//            it, unless these make it a machine of another kind.
// Cost:      every calibrated machine is read, some milliseconds; only for machines that must borrow.

#include "sim/load/reading/load_context.h"
#include "sim/network/calibration.h"
#include "sim/network/machine.h"

namespace lockstep {

struct CalibrationSearch {
  const MachineSpec& machine;
  std::int64_t compute_capability = 0;
  LibraryKind library = LibraryKind::nccl;
  std::int64_t library_version = 0;  // 0: not stated
};

// Warns through the context unless the calibration was fitted to the machine itself.
Calibration find_calibration(const CalibrationSearch& search, const Place& place);

}  // namespace lockstep
