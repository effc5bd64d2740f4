// Logs as people have them, invented here with figures that agree with each other.

#include "sim/study/logs/collective_log.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/base/error.h"
#include "sim/base/random.h"
#include "tests/support/property.h"

namespace lockstep::collective_log_test {

namespace fs = std::filesystem;

class LogFolder {
 public:
  LogFolder() {
    std::string name = (fs::temp_directory_path() / "lockstep-log-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;
  ~LogFolder() { fs::remove_all(path_); }

  fs::path path() const { return path_; }
  fs::path file() const { return path_ / "run.log"; }

  // Removed first: a file system may hurry a file to the disk when one is overwritten.
  void write(std::string_view text) const {
    fs::remove(file());
    std::ofstream(file(), std::ios::binary) << text;
  }
  CollectiveLog read(std::string_view text) const {
    write(text);
    return read_collective_log(file());
  }
  // Without the folder, whose name is drawn.
  std::vector<std::string> problems(std::string_view text) const {
    try {
      read(text);
      return {};
    } catch (const ConfigError& error) {
      return without_folder(error.problems);
    }
  }
  std::vector<std::string> without_folder(std::vector<std::string> problems) const {
    const std::string folder = path_.string() + "/";
    for (std::string& problem : problems) {
      for (std::size_t place = problem.find(folder); place != problem.npos; place = problem.find(folder)) {
        problem.erase(place, folder.size());
      }
    }
    return problems;
  }

 private:
  fs::path path_;
};

std::string repeated(std::string_view text, std::int64_t bytes) {
  std::string result;
  while (static_cast<std::int64_t>(result.size()) < bytes) {
    result += text;
  }
  return result;
}

constexpr std::string_view today_log =
    R"(srun -N2 --ntasks-per-node=2 ./build/all_reduce_perf_mpi -b 1M -e 4M -f 2
# nccl-tests version 2.17.6 nccl-headers=22808 nccl-library=22809
# Collective test starting: all_reduce_perf_mpi
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1
#
# Using devices
#  Rank  0 Group  0 Pid   1887 on   worker-0 device  0 [0000:18:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   1888 on   worker-0 device  1 [0000:2a:00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid   2204 on   worker-1 device  0 [0000:18:00] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid   2205 on   worker-1 device  1 [0000:2a:00] NVIDIA H100 80GB HBM3
worker-0:1887:1887 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.7<0>
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    50.00   20.97   31.46       0    52.00   20.16   30.25       0
     2097152        524288     float     sum      -1    80.00   26.21   39.32       0    81.00   25.89   38.84       0
     4194304       1048576     float     sum      -1    140.0   29.96   44.94       0    139.0   30.17   45.26       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 38.345
#
# Collective test concluded: all_reduce_perf_mpi
)";

TEST_CASE("A log of today's nccl-tests says what ran where, and how long it took") {
  const LogFolder folder;
  const CollectiveLog log = folder.read(today_log);
  CHECK(log.file == folder.file().string());
  CHECK(log.op == CollectiveOp::all_reduce);
  CHECK(log.op_name == "all_reduce");
  CHECK(log.ranks == 4);
  CHECK(log.nodes == 2);
  CHECK(log.gpus_per_node == 2);
  CHECK(log.gpu == "NVIDIA H100 80GB HBM3");
  CHECK(log.library_version == "2.28.9");
  CHECK(log.data_type == "float");
  REQUIRE(log.rows.size() == 3);
  CHECK(log.rows[1].line == 17);
  CHECK(log.rows[1].size == Bytes{2 << 20});
  CHECK(log.rows[1].time == Duration::microseconds(80));
  CHECK(log.rows[1].in_place_time == Duration::microseconds(81));
  CHECK(log.rows[1].busbw_gbs == 39.32);
  CHECK(log.skipped_lines == 0);
  CHECK(find_broken_run(log).empty());
}

TEST_CASE("A log that ends in failure is broken, whatever its rows say") {
  constexpr std::string_view sound = "values : 0 OK";
  std::string failed(today_log);
  failed.replace(failed.find(sound), sound.size(), "values : 4 FAILED");
  const LogFolder folder;
  CHECK(find_broken_run(folder.read(failed)) ==
        std::vector<std::string>{"says itself that values are out of bounds (FAILED)"});
}

TEST_CASE("A log of 2019, by mpirun with tags, is read the same") {
  const LogFolder folder;
  const CollectiveLog log = folder.read(
      R"(Warning: Permanently added 'worker-1' to the list of known hosts.
[1,0]<stdout>:# nThread 1 nGpus 1 minBytes 8192 maxBytes 16384 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
[1,0]<stdout>:#   Rank  0 Pid   1320 on ip-172-31-20-228 device  0 [0x00] Tesla V100-SXM2-16GB
[1,0]<stdout>:#   Rank  1 Pid   2066 on ip-172-31-22-230 device  0 [0x00] Tesla V100-SXM2-16GB
[1,0]<stdout>:NCCL version 2.4.8+cuda10.1
[1,0]<stdout>:#                                                     out-of-place                       in-place
[1,0]<stdout>:#       size         count    type    root     time   algbw   busbw  error     time   algbw   busbw  error
[1,0]<stdout>:#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
[1,0]<stdout>:        8192          2048   float       0    40.96    0.20    0.20  0e+00    41.00    0.20    0.20  0e+00
[1,0]<stdout>:       16384          4096   float       0    64.00    0.26    0.26    N/A    63.00    0.26    0.26    N/A
[1,1]<stderr>:ip-172-31-22-230:2066:2066 [0] NCCL INFO Launch mode Parallel
)");
  CHECK(log.op_name.empty());
  CHECK_FALSE(log.op);
  CHECK(log.ranks == 2);
  CHECK(log.nodes == 2);
  CHECK(log.gpus_per_node == 1);
  CHECK(log.gpu == "Tesla V100-SXM2-16GB");
  CHECK(log.library_version == "2.4.8");
  REQUIRE(log.rows.size() == 2);
  CHECK(log.rows[0].time == Duration::nanoseconds(40'960));
  CHECK(log.rows[1].in_place_time == Duration::microseconds(63));
  CHECK(find_broken_run(log).empty());
}

// Its count is of one rank's part, and in place it is not meant to work.
TEST_CASE("An old alltoall that prints its redop blank is read, whatever it deviates by in place") {
  const LogFolder folder;
  const CollectiveLog log = folder.read(
      R"(+ mpirun -np 8 ./alltoall_perf -b 1024 -e 2048 -f 2
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
        1024            32   float            28.00    0.04    0.03  0e+00    27.00    0.04    0.03  1e+00
        2048            64   float            28.00    0.07    0.06  0e+00    27.00    0.08    0.07  7e-03
)");
  CHECK(log.op_name == "alltoall");
  CHECK(log.rows.size() == 2);
  CHECK(find_broken_run(log).empty());
}

TEST_CASE("An operation that the simulator does not have is named, with no op") {
  const LogFolder folder;
  const CollectiveLog log = folder.read(
      "./hypercube_perf -b 8\n"
      "1024 32 float none -1 28.00 0.04 0.03 0\n");
  CHECK(log.op_name == "hypercube");
  CHECK_FALSE(log.op);
}

TEST_CASE("A log of rccl-tests, by srun with labels and Windows line ends, is read the same") {
  const LogFolder folder;
  const CollectiveLog log = folder.read(
      "\xEF\xBB\xBF"
      "0: # Collective test starting: all_gather_perf\r\n"
      "0: rccl-tests: Version develop:6405c76\r\n"
      "0: #  Rank  0 Group  0 Pid 3252337 on ses2-1 device  0 [0000:05:00] AMD Instinct MI300X\r\n"
      "0: #  Rank  1 Group  0 Pid 3252338 on ses2-1 device  1 [0000:15:00] AMD Instinct MI300X\r\n"
      "0: RCCL version : 2.27.7-develop:29e1567\r\n"
      "0: #       size         count      type   redop    root     time   algbw   busbw #wrong     time   "
      "algbw   "
      "busbw #wrong\r\n"
      "0:      1048576        262144      half    none      -1    64.00   16.38    8.19      0    63.00   "
      "16.64    "
      "8.32    N/A\r\n");
  CHECK(log.op == CollectiveOp::all_gather);
  CHECK(log.ranks == 2);
  CHECK(log.gpu == "AMD Instinct MI300X");
  CHECK(log.library_version == "2.27.7");
  CHECK(log.data_type == "half");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].in_place_time == Duration::microseconds(63));
  CHECK(find_broken_run(log).empty());
}

TEST_CASE("CSV is read, and says nothing of what ran") {
  const LogFolder folder;
  const CollectiveLog log = folder.read(
      "size_bytes,time_us,algbw_gbs,busbw_gbs,inplace_time_us,inplace_algbw_gbs,inplace_busbw_gbs\r\n"
      "1048576,50.0,20.97,31.46,,,\r\n"
      "2097152,80.0,26.21,39.32,81.0,25.89,38.84\r\n\r\n");
  REQUIRE(log.rows.size() == 2);
  CHECK_FALSE(log.rows[0].in_place_time);
  CHECK(log.rows[1].line == 3);
  CHECK(log.rows[1].in_place_time == Duration::microseconds(81));
  CHECK(log.op_name.empty());
  CHECK_FALSE(log.ranks);
  CHECK(log.data_type.empty());
  CHECK(log.skipped_lines == 0);
  CHECK(find_broken_run(log).empty());
}

TEST_CASE("A table that is repeated is kept as often as it stands there") {
  const LogFolder folder;
  const CollectiveLog log = folder.read(std::string(today_log) + std::string(today_log));
  CHECK(log.rows.size() == 2 * 3);
  CHECK(log.rows[3].line == 22 + 16);
  CHECK(log.ranks == 4);
}

TEST_CASE("Rows of several data types have none in common") {
  const LogFolder folder;
  const CollectiveLog log = folder.read(
      "8 2 float sum -1 12.00 0.00 0.00 0\n"
      "8 4 half sum -1 12.00 0.00 0.00 0\n");
  CHECK(log.data_type.empty());
  CHECK(log.rows[1].data_type == "half");
}

TEST_CASE("A log whose beginning was cut off is named by its end") {
  const LogFolder folder;
  const CollectiveLog log = folder.read(
      "8 2 float none 0 12.00 0.00 0.00 0\n"
      "# Collective test concluded: broadcast_perf\n");
  CHECK(log.op == CollectiveOp::broadcast);
}

TEST_CASE("Cut rows are skipped and noted, the first twenty by line") {
  const LogFolder folder;
  const CollectiveLog log = folder.read(
      std::string(today_log) + repeated("  8388608   2097152   float\n", 25 * 28) + "  8388608   20");
  CHECK(log.rows.size() == 3);
  CHECK(log.skipped_lines == 26);
  REQUIRE(log.notes.size() == 20);
  CHECK(log.notes[0].line == 23);
  CHECK(log.notes[0].text == "it has 3 columns, the header on line 14 names 13");
  CHECK(log.notes[19].line == 42);
}

TEST_CASE("A file that is not there, a folder and a file nobody may read are refused") {
  const LogFolder folder;
  const auto problems_of = [&](const fs::path& file) -> std::vector<std::string> {
    try {
      read_collective_log(file);
      return {};
    } catch (const ConfigError& error) {
      return folder.without_folder(error.problems);
    }
  };
  using Lines = std::vector<std::string>;
  CHECK(problems_of(folder.path() / "none.log") ==
        Lines{"none.log: found no such file, expected the log of a collective benchmark"});
  fs::create_directory(folder.path() / "logs");
  CHECK(problems_of(folder.path() / "logs") ==
        Lines{"logs: found a directory, expected the log of a collective benchmark"});
  folder.write(today_log);
  fs::permissions(folder.file(), fs::perms::none);
  if (::geteuid() != 0) {  // root may read it all the same
    CHECK(problems_of(folder.file()) ==
          Lines{"run.log: cannot be read, expected the log of a collective benchmark"});
  }
}

TEST_CASE("A log without a row says what was looked for and shows what stands there instead") {
  const LogFolder folder;
  const std::vector<std::string> problems =
      folder.problems("# a comment\n\nhello\x01\n  world \nthird\nfourth\n");
  REQUIRE(problems.size() == 4);
  CHECK(problems[0] ==
        "run.log: found no row of results in 6 lines, expected what nccl-tests or rccl-tests print (size "
        "count type "
        "redop root time algbw busbw #wrong) or CSV with the header size_bytes,time_us,algbw_gbs,busbw_gbs");
  CHECK(problems[1] == "run.log:3: \"hello?\" is no row");
  CHECK(problems[2] == "run.log:4: \"world\" is no row");
  CHECK(problems[3] == "run.log:5: \"third\" is no row");
  CHECK(folder.problems("").size() == 1);
  CHECK(folder.problems("").front().starts_with("run.log: found an empty file"));
}

TEST_CASE("A header without rows is shown, and one without times says what it lacks") {
  const LogFolder folder;
  const std::vector<std::string> alone =
      folder.problems("hello\n# size count type redop root time algbw busbw #wrong\n");
  REQUIRE(alone.size() == 2);
  CHECK(alone[1] == "run.log:2: no row follows this header");
  const std::vector<std::string> without_time = folder.problems("size_bytes,time_ms\n8,0.01\n");
  REQUIRE(without_time.size() == 3);
  CHECK(without_time[1] == "run.log:1: \"size_bytes,time_ms\" is a header without the column time_us");
}

TEST_CASE("A log of cut rows alone says why each was skipped") {
  const LogFolder folder;
  const std::vector<std::string> problems = folder.problems(
      "noise\n"
      "# size count type redop root time algbw busbw #wrong\n"
      " 1048576 262144 float sum -1 50.00 20.\n");
  REQUIRE(problems.size() == 2);
  CHECK(problems[1] == "run.log:3: its column algbw holds \"20.\"");
}

TEST_CASE("Several collectives in a file are refused, both named") {
  const LogFolder folder;
  const std::vector<std::string> problems = folder.problems(
      "./all_reduce_perf -b 8\n"
      "8 2 float sum -1 12.00 0.00 0.00 0\n"
      "./all_gather_perf -b 8\n"
      "8 2 float none -1 12.00 0.00 0.00 0\n");
  REQUIRE(problems.size() == 1);
  CHECK(problems[0] ==
        "run.log:4: found rows of all_reduce (named on line 1) and of all_gather (named on line 3), expected "
        "one "
        "collective in a file (several files can be given)");
}

TEST_CASE("Runs on different numbers of ranks or nodes are refused") {
  const LogFolder folder;
  const std::string row = "8 2 float sum -1 12.00 0.00 0.00 0\n";
  const std::string one = "# Rank 0 Pid 1 on a device 0 [0x1] T4\n";
  const std::string same_node = "# Rank 1 Pid 1 on a device 1 [0x2] T4\n";
  const std::string other_node = "# Rank 1 Pid 1 on b device 0 [0x1] T4\n";
  const std::vector<std::string> problems = folder.problems(one + row + one + same_node + row);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0] ==
        "run.log:5: found rows of 1 ranks on 1 nodes (listed on line 1) and of 2 on 1 (line 3), expected "
        "runs on as "
        "many in a file (several files can be given)");
  CHECK(folder.problems(one + same_node + row + one + other_node + row).size() == 1);
  CHECK(folder.problems(one + same_node + row + one + same_node + row).empty());
}

TEST_CASE("Decimal commas are refused at their line") {
  const LogFolder folder;
  const std::vector<std::string> problems =
      folder.problems("# header\n  8  2  float  sum  -1  12,34  0,00  0,00  0\n");
  REQUIRE(problems.size() == 1);
  CHECK(problems[0] ==
        "run.log:2: found \"8  2  float  sum  -1  12,34  0,00  0,00  0\", expected numbers with a decimal "
        "point, "
        "and no comma inside a number");
}

TEST_CASE("A file above 64 MiB is refused unread") {
  const LogFolder folder;
  folder.write(today_log);
  fs::resize_file(folder.file(), std::uintmax_t{64} << 20);
  CHECK(read_collective_log(folder.file()).rows.size() == 3);
  fs::resize_file(folder.file(), (std::uintmax_t{64} << 20) + 1);
  try {
    read_collective_log(folder.file());
    FAIL("it was read");
  } catch (const ConfigError& error) {
    CHECK(folder.without_folder(error.problems).at(0) ==
          "run.log: found more than 64.0 MiB, expected the log of a collective benchmark");
  }
}

TEST_CASE("Noise is given up after its first mebibyte, a talkative library is not") {
  const LogFolder folder;
  const std::string row = "8 2 float sum -1 12.00 0.00 0.00 0\n";
  const std::string noise = repeated("all work and no play makes jack a dull boy\n", (1 << 20) + 100);
  const std::vector<std::string> problems = folder.problems(noise + row);
  REQUIRE(problems.size() == 4);
  CHECK(problems[0].starts_with("run.log: found no row of results in the first 24386 lines"));
  const std::string talk =
      repeated("host:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via P2P/CUMEM\n", 2 << 20);
  CHECK(folder.read(talk + row).rows.size() == 1);
  CHECK(folder.read(row + noise).rows.size() == 1);
}

TEST_CASE("A line without end does not hide the rows after it") {
  const LogFolder folder;
  const std::string row = "8 2 float sum -1 12.00 0.00 0.00 0";
  const CollectiveLog log = folder.read(row + "\n" + std::string(3 << 20, 'x') + "\n" + row);
  REQUIRE(log.rows.size() == 2);
  CHECK(log.rows[1].line == 3);
}

TEST_CASE("Lines as long as the buffer are one line each") {
  const LogFolder folder;
  const std::string row = "8 2 float sum -1 12.00 0.00 0.00 0\n";
  for (std::size_t length = (64 << 10) - 3; length < (64 << 10) + 3; ++length) {
    CAPTURE(length);
    const CollectiveLog log = folder.read(row + std::string(length, 'x') + "\n" + row);
    REQUIRE(log.rows.size() == 2);
    CHECK(log.rows[1].line == 3);
  }
}

// Whatever stands in a file: it is read, or refused as the user's mistake.
void check_that_it_ends_well(const LogFolder& folder, std::string_view text) {
  try {
    const CollectiveLog log = folder.read(text);
    CHECK_FALSE(log.rows.empty());
    find_broken_run(log);
  } catch (const ConfigError& error) {
    CHECK_FALSE(error.problems.empty());
  }
}

TEST_CASE("No bytes crash the reader") {
  const LogFolder folder;
  check_for_all(300, "arbitrary bytes are read or refused", [&](const std::string& text) {
    check_that_it_ends_well(folder, text);
    check_that_it_ends_well(folder, "size_bytes,time_us\n" + text);
    check_that_it_ends_well(folder, "# size count type redop root time algbw busbw\n" + text);
  });
}

std::string mutated(std::string text, std::uint64_t draw) {
  constexpr std::string_view letters = "0123456789.,-+e #:;|[]()<>\n\r\t\"/ANnaif*\x01\x80\xff";
  const std::uint64_t changes = 1 + keyed_random(1, draw, 0) % 12;
  for (std::uint64_t change = 0; change < changes && !text.empty(); ++change) {
    const std::uint64_t bits = keyed_random(2, draw, change);
    const std::size_t place = (bits >> 16U) % text.size();
    switch (bits % 4) {
      case 0:
        text[place] = letters[(bits >> 4U) % letters.size()];
        break;
      case 1:
        text.erase(place, 1 + (bits >> 40U) % 64);
        break;
      case 2:
        text.insert(place, 1, letters[(bits >> 4U) % letters.size()]);
        break;
      default:
        text.insert(place, text.substr((bits >> 32U) % text.size(), (bits >> 48U) % 200));
    }
  }
  return text;
}

TEST_CASE("No damage to a log crashes the reader") {
  const LogFolder folder;
  const std::string csv =
      "size_bytes,time_us,algbw_gbs,busbw_gbs,inplace_time_us,inplace_algbw_gbs,inplace_busbw_gbs\n"
      "1048576,50.0,20.97,31.46,,,\n2097152,80.0,26.21,39.32,81.0,25.89,38.84\n";
  for (std::uint64_t draw = 0; draw < 2'000; ++draw) {
    CAPTURE(draw);
    check_that_it_ends_well(folder, mutated(draw % 4 == 0 ? csv : std::string(today_log), draw));
  }
}

TEST_CASE("Any prefix of a log is read or refused, and never invents a row") {
  const LogFolder folder;
  const CollectiveLog whole = folder.read(today_log);
  for (std::size_t length = 0; length < today_log.size(); length += 7) {
    CAPTURE(length);
    folder.write(today_log.substr(0, length));
    try {
      const CollectiveLog log = read_collective_log(folder.file());
      REQUIRE(log.rows.size() <= whole.rows.size());
      for (std::size_t place = 0; place < log.rows.size(); ++place) {
        CHECK(log.rows[place].time == whole.rows[place].time);
      }
    } catch (const ConfigError& error) {
      CHECK_FALSE(error.problems.empty());
    }
  }
}

}  // namespace lockstep::collective_log_test
