// A process that a launcher started as one of several: which verbs look for the others, and what if they cannot.

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/program.h"

namespace lockstep::join_test {

using testing::Answer;
using testing::check_says;
using testing::Folder;
using testing::lab_text;
using testing::run_command;

namespace fs = std::filesystem;

const std::string alone = LOCKSTEP_BINARY " ";
const std::string first_of_two = "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 " LOCKSTEP_BINARY " ";
const std::string second_of_two = "PMI_SIZE=2 PMI_RANK=1 " LOCKSTEP_BINARY " ";

TEST_CASE("a verb that shares nothing, and a shard, run by themselves whoever started them") {
  const Folder folder;
  const std::string lab = folder.write("lab.json", lab_text);
  CHECK(run_command(second_of_two + "predict " + lab).out == run_command(alone + "predict " + lab).out);
  const std::string sweep = "sweep " + lab + " --vary cluster.nodes=2,3 --shard 2/2 -o " + folder.path();
  const Answer whole = run_command(alone + sweep + "/a.csv");
  CHECK(whole.exit_code == 0);
  CHECK(run_command(second_of_two + sweep + "/b.csv").out == whole.out);
}

TEST_CASE("where the module is missing the first of several processes says so, once") {
  if (fs::exists(fs::path(LOCKSTEP_BINARY).parent_path() / "lockstep_mpi.so"))
    return;
  const Folder folder;
  const std::string sweep = "sweep " + folder.write("lab.json", lab_text) + " --vary cluster.nodes=2,3 -o " +
                            folder.path() + "/a.csv";
  const Answer first = run_command(first_of_two + sweep);
  CHECK(first.exit_code == 4);
  check_says(first.diagnostics, {"one of 2 processes", "lockstep_mpi.so", "-DLOCKSTEP_MPI=ON", "--shard"});
  const Answer second = run_command(second_of_two + sweep);
  CHECK(second.exit_code == 0);
  CHECK(second.diagnostics.empty());
  CHECK_FALSE(fs::exists(folder.path() + "/a.csv"));
}

}  // namespace lockstep::join_test
