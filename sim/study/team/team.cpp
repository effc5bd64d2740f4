#include "sim/study/team/team.h"

#include <utility>

#include "sim/study/parallel.h"
#include "sim/study/team/team_manager.h"
#include "sim/study/team/team_worker.h"

namespace lockstep {

std::unique_ptr<Team> make_team(std::unique_ptr<Transport> transport,
                                std::function<void(const std::string&)> warn) {
  if (transport->rank() == 0)
    return std::make_unique<TeamManager>(std::move(transport), std::move(warn));
  return std::make_unique<TeamWorker>(std::move(transport));
}

void run_shared(Team* team, int jobs, const SharedTasks& tasks) {
  if (team != nullptr)
    return team->share(tasks, jobs);
  run_in_parallel(jobs, tasks.count, [&](std::size_t task) {
    if (!tasks.has_run || !tasks.has_run(task))
      tasks.run(task);
  });
}

}  // namespace lockstep
