#pragma once

// A communicator that remembers what it was asked for and multiplies in place of summing: as if every rank
// held what this one holds.

#include <string>
#include <vector>

#include "validate/harness/communication/communicator.h"

namespace lockstep::harness {

class RecordingCommunicator : public Communicator {
 public:
  RecordingCommunicator(Device& device, int size) : device_(device), size_(size) {}

  int rank() const override { return 0; }
  int size() const override { return size_; }
  std::string library() const override { return "none"; }

  Ticket start_all_reduce(Tensor values) override {
    reduced.push_back(values);
    events.push_back("reduce");
    device_.scale(values, values, static_cast<float>(size_));
    return {static_cast<std::uint32_t>(reduced.size() - 1)};
  }
  Ticket start_broadcast(Tensor values, int root) override {
    broadcast.push_back(values);
    roots.push_back(root);
    return {};
  }
  void wait(Ticket ticket) override { waited.push_back(ticket.index); }
  bool has_ended(Ticket) override { return true; }
  void forget_tickets() override {}
  CollectiveTimes times_of(Ticket, Mark) override { return {}; }

  std::vector<Tensor> reduced;
  std::vector<Tensor> broadcast;
  std::vector<int> roots;
  std::vector<std::uint32_t> waited;
  std::vector<std::string> events;

 private:
  Device& device_;
  int size_;
};

}  // namespace lockstep::harness
