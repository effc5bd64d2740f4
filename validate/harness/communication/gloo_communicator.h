#pragma once

// Collectives of CPU ranks by Gloo over TCP, as PyTorch's ProcessGroupGloo runs them.
//
// Problem:   Gloo's collectives keep the thread that calls them; DDP wants to go on computing.
// Idea:      started collectives stand in a queue and two threads (PyTorch's default) take them in order: so
//            two share the links at a time. Each has a tag of its own, by which ranks tell them apart.
//            All-reduce is Gloo's ring.
// Invariant: `wait` blocks the caller: a CPU device does its work when asked, so later work is later.
// Errors:    EnvironmentError out of `wait` (and `times_of`) with Gloo's words, after the watchdog had time
//            to name a lost rank.

#include <gloo/rendezvous/context.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "validate/harness/communication/communicator.h"
#include "validate/harness/communication/rendezvous.h"

namespace lockstep::harness {

class GlooCommunicator : public Communicator {
 public:
  // At the interface that GLOO_SOCKET_IFNAME names, else the one by which ranks reach each other already.
  GlooCommunicator(Rendezvous& rendezvous, Device& device);
  GlooCommunicator(const GlooCommunicator&) = delete;
  GlooCommunicator& operator=(const GlooCommunicator&) = delete;
  ~GlooCommunicator() override;

  int rank() const override;
  int size() const override;
  std::string library() const override;

  Ticket start_all_reduce(Tensor values) override;
  Ticket start_broadcast(Tensor values, int root) override;
  void wait(Ticket ticket) override;
  bool has_ended(Ticket ticket) override;
  void forget_tickets() override;
  CollectiveTimes times_of(Ticket ticket, Mark since) override;

 private:
  using Clock = std::chrono::steady_clock;

  struct Collective {
    std::function<void(std::uint32_t tag)> run;
    std::uint32_t tag = 0;
    bool is_done = false;
    std::string error;
    Clock::time_point start;
    Clock::time_point end;
  };

  Ticket start(std::function<void(std::uint32_t tag)> run);
  void work();
  void run(Collective& collective) const;

  Rendezvous& rendezvous_;
  Device& device_;
  std::shared_ptr<gloo::rendezvous::Context> context_;  // shared, because Gloo's collectives ask for it so

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<Collective> collectives_;  // by ticket; addresses are stable
  std::size_t next_ = 0;                // the first that no thread has taken
  std::uint32_t next_tag_ = 0;
  bool has_failed_ = false;
  bool is_closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::harness
