#pragma once

// Where ranks meet, agree, and learn that one of them is gone.
//
// Problem:   processes on several machines need each other's addresses before any library can connect them; and
//            a rank that dies leaves the others waiting in a collective that will never end.
// Idea:      rank 0 serves a small key-value store over TCP at MASTER_ADDR:MASTER_PORT, as torchrun's. Every
//            rank keeps its connection open and sends a sign of life each second. A connection that closes
//            without a goodbye, or falls silent, is a lost rank: rank 0 tells all, and each process ends itself
//            with a message and exit code 4, even while it is inside NCCL or Gloo.
// Invariant: a lost rank ends all ranks within 10 s; a rank that finished is never taken for lost.
// Errors:    ConfigError for what the environment or the user got wrong (ranks that differ in what they are
//            asked to do, a rank given twice, a port that is taken); EnvironmentError for what cannot be reached.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::harness {

struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  std::string address = "127.0.0.1";
  int port = 29500;
};

// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT (torchrun), else Open MPI's
// OMPI_COMM_WORLD_* (mpirun), else Slurm's SLURM_* (srun). Nothing set: one rank. `variable` is std::getenv but
// in tests. Throws ConfigError naming each variable that is missing, no number or out of range.
World read_world(const std::function<const char*(const char*)>& variable);

class Rendezvous {
 public:
  struct Options {
    World world;
    std::chrono::milliseconds connect_timeout{60'000};
    std::chrono::milliseconds silence_timeout{6'000};
    // Called on a thread of its own when a rank is lost; must not return. Tests replace it.
    std::function<void(const std::string& message)> on_lost;
  };

  explicit Rendezvous(Options options);
  ~Rendezvous();  // says goodbye

  const World& world() const;
  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key);  // waits until some rank has set it
  void barrier(const std::string& name);
  // What every rank gave under this name, by rank. A name is used once.
  std::vector<std::string> exchange(const std::string& name, const std::string& value);
  std::vector<double> exchange(const std::string& name, double value);
  // Throws ConfigError where ranks differ in `text`, saying which and how.
  void check_same(const std::string& what, const std::string& text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::harness
