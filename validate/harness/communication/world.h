#pragma once

// Which of how many processes this is, and where the first of them is found.
//
// Problem:   each launcher tells its processes who they are in variables of its own.
// Idea:      the first launcher whose variables are set is believed, and then entirely: torchrun's, Open
//            MPI's, Slurm's. Nothing set: one rank, alone.
// Errors:    ConfigError with every variable that is missing, no number or out of range.

#include <functional>
#include <string>

namespace lockstep::harness {

struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  std::string address = "127.0.0.1";
  int port = 29500;
  int listener = -1;  // of rank 0: an inherited socket that listens at `port`; -1: it opens its own
};

// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT (torchrun), else Open
// MPI's OMPI_COMM_WORLD_* (mpirun), else Slurm's SLURM_* of a step (srun). `variable` is std::getenv but in
// tests.
World read_world(const std::function<const char*(const char*)>& variable);

}  // namespace lockstep::harness
