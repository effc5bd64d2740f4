// What a user names, sorted by what it is.

#include "sim/study/fit/calibration_files.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "sim/base/error.h"
#include "tests/scenario/lab.h"
#include "tests/support/harness_run_file.h"

namespace lockstep::calibration_files_test {

using testing::Folder;
using Names = std::vector<std::string>;

const std::string gemm = "gpu,precision,batch,m,n,k,direction,time_us\n";

TEST_CASE("files are what their names, columns and schemas say") {
  const Folder folder;
  const std::string run = folder.write("a.json", testing::harness_run().dump());
  const std::string table = folder.write("mine.csv", gemm);
  const std::string launches = folder.write("launches.csv", "gpu\n");
  const CalibrationFiles files = sort_calibration_files({table, run, launches});
  CHECK(files.runs == Names{run});
  CHECK(files.kernel_tables == Names{table});
  CHECK(files.launch_tables == Names{launches});
  CHECK(files.all().size() == 3);
  const Names logs{folder.write("x.log", ""), folder.write("rows.csv", "size_bytes,time_us\n"),
                   "missing.json"};
  CHECK(sort_calibration_files(logs).logs == logs);
}

// As a measurement of a GPU leaves it: what is for people, and traces under load, lie beside what is fitted.
TEST_CASE("of a folder, what harness and benchmark have written counts") {
  const Folder folder;
  std::filesystem::create_directories(folder.path() + "/kernels");
  folder.write("machine.json", "{}");
  folder.write("launches.csv", "gpu\n");
  folder.write("sustained.csv", "gpu,precision,batch,m,n,k,layout,direction,slice,since_begin_s,time_us\n");
  folder.write("kernels/gemm.csv", gemm);
  folder.write("kernels/step.json", testing::harness_run().dump());
  const CalibrationFiles files = sort_calibration_files({folder.path()});
  CHECK(files.kernel_tables == Names{folder.path() + "/kernels/gemm.csv"});
  CHECK(files.launch_tables == Names{folder.path() + "/launches.csv"});
  CHECK(files.runs == Names{folder.path() + "/kernels/step.json"});
  CHECK(files.logs.empty());
}

TEST_CASE("logs beside runs or tables, and folders without either, are refused by name") {
  const Folder folder;
  const std::string log = folder.write("x.log", "");
  CHECK_THROWS_WITH_AS(sort_calibration_files({folder.write("gemm.csv", gemm), log}),
                       doctest::Contains("x.log is none: fit kernels and benchmark logs apart"), ConfigError);
  CHECK_THROWS_WITH_AS(sort_calibration_files({folder.write("a.json", testing::harness_run().dump()), log}),
                       doctest::Contains("fit runs and benchmark logs apart"), ConfigError);
  const Folder empty;
  CHECK_THROWS_WITH_AS(sort_calibration_files({empty.path()}), doctest::Contains("no tables of kernels"),
                       ConfigError);
}

}  // namespace lockstep::calibration_files_test
