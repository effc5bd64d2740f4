#include "validate/harness/communication/world.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace lockstep::harness::world_test {

using Variables = std::map<std::string, std::string>;

World read(const Variables& variables) {
  return read_world([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string problems_of(const Variables& variables) {
  try {
    read(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("Without a launcher's variables a rank is alone") {
  const World world = read({{"MASTER_ADDR", "elsewhere"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}});
  CHECK(world.size == 1);
  CHECK(world.rank == 0);
  CHECK(world.listener == -1);
}

TEST_CASE("torchrun's variables are read") {
  const World world = read({{"RANK", "5"},
                            {"WORLD_SIZE", "8"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "4"},
                            {"MASTER_ADDR", "10.0.0.1"},
                            {"MASTER_PORT", "1234"}});
  CHECK(world.rank == 5);
  CHECK(world.size == 8);
  CHECK(world.local_rank == 1);
  CHECK(world.local_size == 4);
  CHECK(world.address == "10.0.0.1");
  CHECK(world.port == 1234);
}

TEST_CASE("A run's secret comes from the environment, whoever launched it, and is no short one") {
  const std::string secret(64, 'a');
  CHECK(read({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "first"}, {"LOCKSTEP_SECRET", secret}})
            .secret == secret);
  CHECK(read({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "first"}, {"LOCKSTEP_SECRET", secret}})
            .secret == secret);
  CHECK(read({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "first"}}).secret.empty());
  const std::string problem = problems_of(
      {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "first"}, {"LOCKSTEP_SECRET", "too short"}});
  CHECK(says(problem, "LOCKSTEP_SECRET has 9 characters; it must have at least 16"));
  CHECK_FALSE(says(problem, "too short"));
}

TEST_CASE("A process of a node of its own needs no local rank") {
  const World world = read({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "first"}});
  CHECK(world.local_rank == 0);
  CHECK(world.local_size == 1);
  CHECK(world.port == World{}.port);
}

TEST_CASE("Open MPI's variables are read, and one machine needs no address") {
  const Variables variables{{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  const World world = read(variables);
  CHECK(world.rank == 1);
  CHECK(world.local_size == 2);
  CHECK(world.address == "127.0.0.1");

  Variables two_machines = variables;
  two_machines["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  two_machines["OMPI_COMM_WORLD_LOCAL_RANK"] = "0";
  CHECK(says(problems_of(two_machines), "environment of mpirun: MASTER_ADDR is not set"));
}

TEST_CASE("Of Slurm's step, rank 0 is on the first host of its list") {
  const auto address = [](const char* hosts) {
    return read({{"SLURM_STEP_ID", "0"},
                 {"SLURM_PROCID", "3"},
                 {"SLURM_STEP_NUM_TASKS", "4"},
                 {"SLURM_LOCALID", "1"},
                 {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                 {"SLURM_STEP_NODELIST", hosts}})
        .address;
  };
  CHECK(address("node7,node9") == "node7");
  CHECK(address("node[03-07,12],other") == "node03");
  CHECK(address("node[5,8]") == "node5");
  CHECK(address("gpu[11]") == "gpu11");
}

TEST_CASE("A step of one node that Slurm made is a machine of its own") {
  const World world = read({{"SLURM_STEP_ID", "0"},
                            {"SLURM_PROCID", "3"},
                            {"SLURM_STEP_NUM_TASKS", "4"},
                            {"SLURM_LOCALID", "3"},
                            {"SLURM_STEP_TASKS_PER_NODE", "4"},
                            {"SLURM_STEP_NODELIST", "node7"}});
  CHECK(world.local_rank == 3);
  CHECK(world.local_size == 4);
  CHECK(world.address == "127.0.0.1");
}

TEST_CASE("Where torchrun's own store holds MASTER_PORT, ranks meet one port above") {
  Variables variables{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}};
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  CHECK(read(variables).port == 29500 + 1);
  variables.erase("MASTER_PORT");
  CHECK(read(variables).port == World{}.port + 1);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  CHECK(read(variables).port == World{}.port);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  variables["MASTER_PORT"] = "65535";
  CHECK(says(problems_of(variables), "no port is above it; --port chooses one"));
}

TEST_CASE("The mpirun of MPICH and Intel MPI is known by its variables") {
  const World world = read({{"PMI_RANK", "3"},
                            {"PMI_SIZE", "4"},
                            {"MPI_LOCALRANKID", "1"},
                            {"MPI_LOCALNRANKS", "2"},
                            {"MASTER_ADDR", "first"}});
  CHECK(world.rank == 3);
  CHECK(world.size == 4);
  CHECK(world.local_rank == 1);
  CHECK(world.local_size == 2);
  CHECK(world.address == "first");
  CHECK(says(problems_of({{"PMI_SIZE", "4"}}), "environment of mpirun: PMI_RANK is not set"));
}

TEST_CASE("MVAPICH's variables are read") {
  const World world = read({{"MV2_COMM_WORLD_RANK", "1"},
                            {"MV2_COMM_WORLD_SIZE", "2"},
                            {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
                            {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}});
  CHECK(world.rank == 1);
  CHECK(world.local_size == 2);
}

// srun --mpi=pmi2 sets both; an mpirun that starts its daemons by srun leaves the step of the daemons.
TEST_CASE("Of Slurm's and MPICH's variables those of the launcher that made this process are believed") {
  Variables variables{{"SLURM_STEP_ID", "0"},
                      {"SLURM_PROCID", "3"},
                      {"SLURM_STEP_NUM_TASKS", "4"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_STEP_NODELIST", "node7,node9"},
                      {"PMI_RANK", "3"},
                      {"PMI_SIZE", "4"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
  CHECK(read(variables).local_rank == 1);
  CHECK(read(variables).address == "node7");
  variables["SLURM_STEP_NUM_TASKS"] = "2";
  variables["SLURM_PROCID"] = "1";
  variables["MASTER_ADDR"] = "node8";
  CHECK(read(variables).rank == 3);
  CHECK(read(variables).size == 4);
}

TEST_CASE("A local rank that no launcher told is found by the hosts of the ranks before") {
  const std::vector<std::string> hosts = {"a", "b", "a", "b", "b"};
  const auto place = [&](int rank) {
    return place_on_host(read({{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "5"}, {"MASTER_ADDR", "a"}}),
                         hosts);
  };
  CHECK(place(0).local_rank == 0);
  CHECK(place(2).local_rank == 1);
  CHECK(place(4).local_rank == 2);
  CHECK(place(2).local_size == 2);
  CHECK(place(1).local_size == 3);
}

TEST_CASE("What a launcher told of a rank's place stays, whatever the hosts say") {
  const World told{.rank = 1, .size = 2, .local_rank = 0, .local_size = 1};
  CHECK(place_on_host(told, {"a", "a"}).local_rank == 0);
  CHECK(place_on_host(told, {"a", "a"}).local_size == 1);
}

TEST_CASE("Processes of one machine have one host id, of a boot and a name") {
  CHECK(host_id() == host_id());
  CHECK(host_id().find(' ') != std::string::npos);
  CHECK(host_id().size() > 1);
}

TEST_CASE("torchrun's variables are believed before those of the launcher around it") {
  const World world = read({{"RANK", "1"},
                            {"WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "a"},
                            {"OMPI_COMM_WORLD_RANK", "7"},
                            {"OMPI_COMM_WORLD_SIZE", "9"}});
  CHECK(world.rank == 1);
  CHECK(world.size == 2);
}

TEST_CASE("Every variable that is wrong is named, with what was found") {
  const std::string problems = problems_of(
      {{"WORLD_SIZE", "4"}, {"RANK", "4"}, {"LOCAL_WORLD_SIZE", "two"}, {"MASTER_PORT", "65536"}});
  CHECK(says(problems, "RANK is \"4\"; it must be a whole number from 0 to 3"));
  CHECK(says(problems, "LOCAL_WORLD_SIZE is \"two\""));
  CHECK(says(problems, "MASTER_PORT is \"65536\"; it must be a whole number from 1 to 65535"));
  CHECK(says(problems, "MASTER_ADDR is not set"));
}

TEST_CASE("What a launcher should have set is missed") {
  CHECK(says(problems_of({{"RANK", "0"}}), "WORLD_SIZE is not set"));
  CHECK(says(problems_of({{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}), "RANK is not set"));
  CHECK(says(problems_of({{"WORLD_SIZE", "-1"}}), "WORLD_SIZE is \"-1\""));
  CHECK(says(problems_of({{"WORLD_SIZE", "2 "}, {"RANK", "0"}}), "WORLD_SIZE is \"2 \""));
}

}  // namespace lockstep::harness::world_test
