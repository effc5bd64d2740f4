#pragma once

// When everything would happen on GPUs of given rates.
//
// Problem:   what measures time can be wrong by a factor and look right; it has to measure something whose
//            times are known.
// Idea:      a fluid simulation: the first item of each stream runs at rate one, or slower while another kind
//            of work runs beside it on the same GPU; the next thing to happen is the earliest end. Hosts have
//            clocks too: a call costs them time, and a GPU's work begins no earlier than it was asked for.
// Invariant: nothing happens after a host that may still ask for work (the caller gives that limit), so what
//            is computed never has to be taken back. Equal programs have equal times.
// Reference: Fujimoto, "Parallel discrete event simulation", 1990 (conservative synchronisation).

#include <cstdint>

#include "validate/harness/stand_in/streams.h"

namespace lockstep::harness::stand_in {

struct ClockRates {
  // Of the host, in seconds a call.
  double launch = 0;  // of a kernel, a copy or a fill
  double event = 0;   // recorded, or waited for by a stream
  double collective = 0;
  double question = 1e-6;  // whether an event has passed: a host that asks on and on comes to an end
  std::int64_t queue = 1024;  // launches that a GPU holds before the host waits

  double delay = 0;  // from a call until its work may begin
  double least_kernel = 1e-6;
  double flops = 1e12;
  double memory_bytes = 1e11;
  double link_latency = 1e-5;
  double link_bytes = 1e9;

  // How many times longer something lasts while the other runs beside it.
  double compute_beside_collective = 1;
  double collective_beside_compute = 1;
  double compute_beside_copy = 1;
  double copy_beside_compute = 1;
};

class VirtualClock {
 public:
  VirtualClock(const ClockRates& rates, Streams& streams) : rates_(rates), streams_(streams) {}

  const ClockRates& rates() const { return rates_; }
  double now() const { return now_; }
  // Something happens, at `limit` at the latest; false where nothing does, and `limit` is reached if finite.
  bool step(double limit);

  double seconds_of(const Operation& operation) const;
  double seconds_of(const CollectiveCall& call) const;

 private:
  bool settle();
  bool settle(CUstream_st& stream);
  bool is_due(const CUstream_st& stream) const;
  // Of what this GPU runs beside it, and of the slowest part of a collective.
  double own_factor(const CUstream_st& stream) const;
  double factor_of(const CUstream_st& stream) const;
  double next_moment() const;
  void move_to(double moment);

  ClockRates rates_;
  Streams& streams_;
  double now_ = 0;
};

}  // namespace lockstep::harness::stand_in
