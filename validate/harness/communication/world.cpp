#include "validate/harness/communication/world.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.h"

namespace lockstep::harness {
namespace {

constexpr int most_ranks = 1 << 20;
constexpr int most_port = 65'535;

// The variables of one launcher. `started_by` is set exactly where it started this process.
struct LauncherVariables {
  const char* name;
  const char* started_by;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

// Slurm sets SLURM_PROCID in a batch script too, where no other process exists; only srun makes a step.
constexpr LauncherVariables srun{
    "srun", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr};

// Hydra, the mpirun of MPICH and Intel MPI, sets PMI_RANK and PMI_SIZE, and so do srun --mpi=pmi2 and others
// that say nothing of local ranks.
constexpr LauncherVariables hydra{
    "mpirun", "PMI_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

constexpr LauncherVariables launchers[] = {
    {"torchrun", "RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"torchrun", "WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpirun", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
     "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
    hydra,
    srun,
};

class Variables {
 public:
  explicit Variables(const std::function<const char*(const char*)>& variable) : variable_(variable) {}

  std::optional<std::string> text(const char* name) const {
    const char* value = variable_(name);
    return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
  }

  // Within [least, most]; what is wrong is noted, and `least` stands for it.
  int number(const char* name, int least, int most, std::optional<int> otherwise) {
    const std::optional<std::string> found = text(name);
    if (!found) {
      if (!otherwise)
        problems_.push_back(fmt::format("{} is not set", name));
      return otherwise.value_or(least);
    }
    int value = 0;
    const auto [end, error] = std::from_chars(found->data(), found->data() + found->size(), value);
    if (error == std::errc() && end == found->data() + found->size() && value >= least && value <= most)
      return value;
    problems_.push_back(
        fmt::format("{} is \"{}\"; it must be a whole number from {} to {}", name, *found, least, most));
    return least;
  }

  void complain(std::string problem) { problems_.push_back(std::move(problem)); }

  bool has_problems() const { return !problems_.empty(); }

  void throw_problems(const char* launcher) const {
    if (problems_.empty())
      return;
    std::vector<std::string> lines;
    for (const std::string& problem : problems_)
      lines.push_back(fmt::format("environment of {}: {}", launcher, problem));
    throw ConfigError(lines);
  }

 private:
  const std::function<const char*(const char*)>& variable_;
  std::vector<std::string> problems_;
};

// "2(x3),1" is two tasks on each of three nodes and one on the last: the first figure, as a bound.
int slurm_local_size(const Variables& variables, int size) {
  const std::string tasks = variables.text("SLURM_STEP_TASKS_PER_NODE").value_or("");
  int count = 0;
  std::from_chars(tasks.data(), tasks.data() + tasks.size(), count);
  return count >= 1 && count <= size ? count : size;
}

// The first host of "node[03-07,12],other": "node03".
std::string first_host(std::string_view list) {
  const std::size_t end = list.find_first_of("[,");
  std::string host(list.substr(0, end));
  if (end == std::string_view::npos || list[end] == ',')
    return host;
  const std::string_view numbers = list.substr(end + 1);
  host += numbers.substr(0, numbers.find_first_of("-,]"));
  return host;
}

std::optional<std::string> address_of(const LauncherVariables& launcher, const Variables& variables,
                                      const World& world) {
  if (const auto given = variables.text("MASTER_ADDR"))
    return given;
  if (world.local_size == world.size)
    return World{}.address;
  const auto nodes = variables.text("SLURM_STEP_NODELIST");
  if (launcher.name == std::string_view("srun") && nodes)
    return first_host(*nodes);
  return std::nullopt;
}

// Where torchrun's own store holds MASTER_PORT, which it says by this variable, ranks meet one port above.
int read_port(Variables& variables) {
  const int port = variables.number("MASTER_PORT", 1, most_port, World{}.port);
  if (variables.text("TORCHELASTIC_USE_AGENT_STORE") != "True")
    return port;
  if (port == most_port)
    variables.complain(
        fmt::format("MASTER_PORT is {}, torchrun's own, and no port is above it; --port chooses one", port));
  return port + 1;
}

// A short one would be found by trying all against what crossed the wire.
std::string read_secret(Variables& variables) {
  std::string secret = variables.text(secret_variable).value_or("");
  if (!secret.empty() && secret.size() < least_secret_size)
    variables.complain(fmt::format("{} has {} characters; it must have at least {} (openssl rand -hex 32)",
                                   secret_variable, secret.size(), least_secret_size));
  return secret;
}

World read_world_of(const LauncherVariables& launcher, Variables& variables) {
  World world;
  world.size = variables.number(launcher.size, 1, most_ranks, std::nullopt);
  const int last = variables.has_problems() ? most_ranks : world.size - 1;
  world.rank = variables.number(launcher.rank, 0, last, std::nullopt);
  world.is_told_local_rank = variables.text(launcher.local_rank).has_value();
  world.is_told_local_size = launcher.local_size != nullptr && variables.text(launcher.local_size);
  world.local_rank = variables.number(launcher.local_rank, 0, last, 0);
  // Whoever tells no local size has at least as many ranks here as the local rank says.
  world.local_size = launcher.local_size == nullptr ? slurm_local_size(variables, world.size)
                                                    : variables.number(launcher.local_size, 1, last + 1, 1);
  world.local_size = std::max(world.local_size, world.local_rank + 1);
  world.port = read_port(variables);
  world.listener = variables.number("LOCKSTEP_LISTENER", 0, most_ranks, -1);
  world.secret = read_secret(variables);
  if (const auto address = address_of(launcher, variables, world))
    world.address = *address;
  else
    variables.complain("MASTER_ADDR is not set; it names the host of rank 0");
  variables.throw_problems(launcher.name);
  return world;
}

// Of two that are set, srun made the processes where their number is that of its step; elsewhere its
// variables are those of the daemons through which mpirun makes them.
bool is_of_srun(const Variables& variables) {
  return variables.text(srun.started_by) && variables.text(srun.size) == variables.text(hydra.size);
}

}  // namespace

World read_world(const std::function<const char*(const char*)>& variable) {
  Variables variables(variable);
  for (const LauncherVariables& launcher : launchers) {
    const bool is_doubtful = launcher.started_by == std::string_view(hydra.started_by);
    if (variables.text(launcher.started_by) && !(is_doubtful && is_of_srun(variables)))
      return read_world_of(launcher, variables);
  }
  return {};
}

std::string host_id() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return fmt::format("{} {}", boot, name.data());
}

World place_on_host(World world, const std::vector<std::string>& hosts) {
  const auto own = hosts.begin() + world.rank;
  if (!world.is_told_local_rank)
    world.local_rank = static_cast<int>(std::count(hosts.begin(), own, *own));
  if (!world.is_told_local_size)
    world.local_size = static_cast<int>(std::count(hosts.begin(), hosts.end(), *own));
  world.is_told_local_rank = world.is_told_local_size = true;
  return world;
}

}  // namespace lockstep::harness
