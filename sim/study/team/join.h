#pragma once

// Whether this process was started as one of several, and with whom.
//
// Idea:      launchers of MPI tell each process how many there are before it has said a word; only then is the module
//            loaded that knows MPI. A process that runs a shard of its own is nobody's colleague.
// Invariant: without a launcher nothing is loaded and nothing is slower.
// Reference: mpirun(1) of Open MPI (OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_RANK); MPICH's Hydra (PMI_SIZE, PMI_RANK).

#include <functional>
#include <memory>
#include <string>

#include "sim/study/team/team.h"

namespace lockstep {

// Nothing where this process is alone. Throws EnvironmentError where it is one of several and the module is missing,
// TeamDissolved where another of them says so.
std::unique_ptr<Team> join_team(std::function<void(const std::string&)> warn);

}  // namespace lockstep
