#pragma once

// What ranks tell each other about what they measured.
//
// Problem:   collectives must match, so ranks must agree on how often each is repeated, and a time is one
//            only when the slowest, or the median, of all ranks is known.
// Idea:      every rank gives a row of numbers and gets all rows; what is decided from them alone is decided
//            alike everywhere.
// Invariant: all ranks make the same calls in the same order.
// Cost:      a few network latencies a call; never within what is timed.

#include <cstdint>
#include <string>
#include <vector>

#include "validate/harness/communication/rendezvous.h"

namespace lockstep::harness {

class Ranks {
 public:
  explicit Ranks(Rendezvous& rendezvous) : rendezvous_(rendezvous) {}

  int rank() const { return rendezvous_.world().rank; }
  int size() const { return rendezvous_.world().size; }

  void barrier();
  // By rank; rows may differ in length.
  std::vector<std::vector<double>> gather(const std::vector<double>& row);
  // Element by element; rows have one length.
  std::vector<double> slowest(const std::vector<double>& row);
  std::vector<double> medians(const std::vector<double>& row);
  double slowest(double value) { return slowest(std::vector<double>{value}).front(); }
  std::vector<std::string> exchange(const std::string& text);

 private:
  std::string next_name();

  Rendezvous& rendezvous_;
  std::int64_t calls_ = 0;
};

}  // namespace lockstep::harness
