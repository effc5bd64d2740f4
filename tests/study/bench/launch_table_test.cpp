// A benchmark's table of launches, and the row that counts.

#include "sim/study/bench/launch_table.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tests/scenario/lab.h"

namespace lockstep::launch_table_test {

const std::string header = "gpu,what,kernels,time_us,host_us,from_idle_us,source\n";

LaunchTimes read(const std::string& rows) {
  const testing::Folder folder;
  return read_launch_table(folder.write("launches.csv", header + rows));
}

TEST_CASE("a kernel that does nothing tells what a launch costs its stream and its host") {
  const LaunchTimes times = read("l40s,event_record,0,0.5,0.7,3,us\nl40s,null_kernel,1,2.1,3.4,7,us\n");
  CHECK(times.gpu == "l40s");
  CHECK(times.kernel == Duration::nanoseconds(2'100));
  CHECK(times.host == Duration::nanoseconds(3'400));
}

TEST_CASE("where the host was slower than the stream, the stream's part is not known") {
  CHECK_FALSE(read("l40s,null_kernel,1,,3.4,7,us\n").kernel);
}

TEST_CASE("a table without such a row, and one that is broken, are refused with their place") {
  CHECK_THROWS_WITH_AS(read("l40s,graph,1,2.1,3.4,7,us\n"), doctest::Contains("no row of a null_kernel"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(read("l40s,null_kernel,1,2.1,-3,7,us\n"),
                       doctest::Contains("launches.csv:2:24: host_us"), ConfigError);
}

TEST_CASE("the table is known by its name") {
  CHECK(is_launch_table("runs/launches.csv"));
  CHECK_FALSE(is_launch_table("runs/gemm.csv"));
}

}  // namespace lockstep::launch_table_test
