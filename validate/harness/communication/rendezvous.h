#pragma once

// Where ranks meet, agree, and learn that one of them is gone.
//
// Problem:   processes on several machines need each other's addresses before any library can connect them;
//            and a rank that dies leaves the others waiting in a collective that will never end.
// Idea:      rank 0 serves a small key-value store over TCP at MASTER_ADDR:MASTER_PORT, as torchrun's. Every
//            rank keeps its connection open and sends a sign of life each second. A connection that closes
//            without a goodbye, or falls silent, is a lost rank: rank 0 tells all, and each process ends
//            itself with a message and exit code 4, even while it is inside NCCL or Gloo. Who is a rank is
//            shown by the run's secret (proof.h), where it has one.
// Invariant: a lost rank ends all ranks within 10 s; a rank that finished is never taken for lost.
// Errors:    ConfigError for what the environment or the user got wrong (ranks that differ in what they are
//            asked to do, a rank given twice, a port that is taken); EnvironmentError for what cannot be
//            reached.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "validate/harness/communication/world.h"

namespace lockstep::harness {

class Rendezvous {
 public:
  struct Options {
    World world;
    std::chrono::milliseconds connect_timeout{60'000};
    std::chrono::milliseconds silence_timeout{6'000};
    // How long a rank that reported its failure may take to end: freeing memory may wait for a GPU for ever.
    std::chrono::milliseconds farewell_timeout{4'000};
    // Called on a thread of its own when a rank is lost or has failed, or this one failed and does not end.
    // Left empty, it prints the message, removes unfinished files and ends the process. Tests replace it;
    // after it returned, whoever waits here is thrown an EnvironmentError.
    std::function<void(const std::string& message, int exit_code)> on_lost = {};
  };

  // Returns when all ranks are there.
  explicit Rendezvous(Options options);
  // Says goodbye; rank 0 first waits for the others' goodbyes. While an exception is on its way out of the
  // scope, it reports a failure instead, so that nobody waits for this rank.
  ~Rendezvous();

  const World& world() const;
  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key);  // waits until some rank has set it
  void barrier(const std::string& name);
  // What every rank gave under this name, by rank. A name may be used again once all have got their answer.
  std::vector<std::string> exchange(const std::string& name, const std::string& value);
  std::vector<double> exchange(const std::string& name, double value);
  // Throws ConfigError, on every rank, where ranks differ in `text`, saying which and how.
  void check_same(const std::string& what, const std::string& text);

  // This rank cannot go on: all others print why and end with this exit code. main calls it for what it
  // caught.
  void report_failure(const std::string& why, int exit_code);
  // After a library's error that a lost rank may have caused: gives the watchdog this long to name that rank
  // (and end the process).
  void wait_for_loss(std::chrono::milliseconds most);

  // The numeric address at which the others reach this process.
  const std::string& own_address() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::harness
