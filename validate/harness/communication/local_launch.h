#pragma once

// Several ranks on this machine, from one command.
//
// Problem:   trying data parallelism on one machine should need no launcher to be installed.
// Idea:      the program starts itself once a rank, with the variables that torchrun would set; the socket at
//            which rank 0 will listen is opened here and inherited, so no port can be lost between choosing
//            and using it; a secret of this run alone stands in their environment, which other users cannot read
//            as they can a command line. A new process, not a fork of this one: CUDA and Gloo do not survive a
//            fork.
// Invariant: no rank outlives this process, however it ends; one rank that fails ends all.
// Errors:    ConfigError where the port is taken; EnvironmentError where no process can be started.

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::harness {

struct LocalLaunch {
  int ranks = 2;
  int port = 0;            // 0: one that is free
  bool pins_cores = false;  // rank i to the i-th of the cores this process may use, round and round
  // After one rank ended the others end by themselves and say why; then they are asked to, and soon made to.
  std::chrono::milliseconds until_asked{4'000};
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments;  // argv of every rank, its own name first
};

// True in a process that `launch_ranks` started: it must not launch again.
bool is_launched_rank();

// Waits for all ranks. SIGINT and SIGTERM are passed on. Returns 0, or the exit code of the first rank that
// failed (4 where a signal ended it), or 130 where this process was interrupted.
int launch_ranks(const LocalLaunch& launch);

}  // namespace lockstep::harness
