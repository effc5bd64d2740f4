#pragma once

// Which of how many processes this is, and where the first of them is found.
//
// Problem:   each launcher tells its processes who they are in variables of its own.
// Idea:      the first launcher whose variables are set is believed, and then entirely: torchrun's, Open
//            MPI's, MVAPICH's, that of MPICH and Intel MPI, Slurm's. Nothing set: one rank, alone. A launcher
//            that does not say which rank of its machine this is leaves that to be found by place_on_host.
// Errors:    ConfigError with every variable that is missing, no number or out of range.

#include <functional>
#include <string>
#include <vector>

namespace lockstep::harness {

struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // of its machine
  int local_size = 1;
  bool is_told_local_rank = true;  // else 0 stands for it until the ranks have met
  bool is_told_local_size = true;
  std::string address = "127.0.0.1";
  int port = 29500;
  int listener = -1;  // of rank 0: an inherited socket that listens at `port`; -1: it opens its own
  std::string secret = {};  // what every rank of this run knows and nobody else; empty: there is none
};

// What shows a rank to the others of its run; a command line could be read by anybody on the machine.
inline constexpr const char* secret_variable = "LOCKSTEP_SECRET";
inline constexpr std::size_t least_secret_size = 16;

// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT (torchrun), else
// OMPI_COMM_WORLD_* (mpirun of Open MPI), MV2_COMM_WORLD_* (MVAPICH), PMI_* and MPI_LOCAL* (MPICH, Intel MPI),
// else SLURM_* of a step (srun). `variable` is std::getenv but in tests.
World read_world(const std::function<const char*(const char*)>& variable);

// What distinguishes this machine, or this container of it, from the others: the boot's id and the host's name.
std::string host_id();

// What the launcher did not tell of this rank's place, found from the hosts of all ranks, in order of rank.
World place_on_host(World world, const std::vector<std::string>& hosts);

}  // namespace lockstep::harness
