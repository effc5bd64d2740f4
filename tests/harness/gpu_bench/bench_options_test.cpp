#include "validate/harness/gpu_bench/bench_options.h"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include "sim/base/error.h"
#include "tests/support/program.h"

namespace lockstep::harness::bench_options_test {

BenchOptions read(std::vector<const char*> words) {
  words.insert(words.begin(), "lockstep_gpu_bench");
  return read_bench_options(static_cast<int>(words.size()), words.data()).value();
}

std::string refusal(const std::vector<const char*>& words) {
  try {
    read(words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a part, a file and a time are all it takes") {
  const BenchOptions options = read({"gemm", "-o", "gemm.csv", "--seconds", "90.5"});
  CHECK(options.part == "gemm");
  CHECK(options.output == "gemm.csv");
  CHECK(options.seconds == 90.5);
  CHECK_FALSE(options.resumes);
  CHECK(options.most_bytes == 1 << 30);
}

TEST_CASE("what is wrong is said all at once, with the nearest valid name") {
  const std::string text = refusal({"gem", "--seconds", "0", "--op", "allreduce", "--up-to", "12"});
  testing::check_says(
      text, {"PART: found \"gem\"; did you mean \"gemm\"?", "-o: a file is needed", "--seconds: is above 0",
             "--op: found \"allreduce\"; did you mean \"all_reduce\"?", "--up-to: found \"12\""});
  CHECK(refusal({"gemm", "-o", "x", "--gpu", "a,b"}) == "--gpu: holds no comma, quote or line end");
  CHECK(refusal({"gemm", "-o", "x", "--fast"}).find("--fast") != std::string::npos);
}

#ifdef LOCKSTEP_GPU_BENCH

// Where no GPU is visible there is none, whatever the machine has.
TEST_CASE("without a GPU the bench says so in one line, ends with exit code 4 and writes nothing") {
  const testing::Folder folder;
  for (const std::string part : {"gemm", "machine", "collective"}) {
    const std::string file = folder.path() + "/" + part;
    const testing::Answer answer =
        testing::run_command("CUDA_VISIBLE_DEVICES= " LOCKSTEP_GPU_BENCH " " + part + " -o " + file);
    CAPTURE(answer.diagnostics);
    CHECK(answer.exit_code == 4);
    CHECK(answer.diagnostics.starts_with("lockstep_gpu_bench: no CUDA device was found"));
    CHECK(std::count(answer.diagnostics.begin(), answer.diagnostics.end(), '\n') == 1);
    CHECK_FALSE(std::filesystem::exists(file));
  }
}

TEST_CASE("a file that cannot be written is refused before a GPU is looked for") {
  const testing::Answer answer = testing::run_command(LOCKSTEP_GPU_BENCH " gemm -o /nowhere/at/all.csv");
  CHECK(answer.exit_code == 2);
  CHECK(answer.diagnostics.find("/nowhere/at/all.csv") != std::string::npos);
}

TEST_CASE("what would be measured is listed without a GPU") {
  const testing::Answer answer = testing::run_command(LOCKSTEP_GPU_BENCH " gemm --list");
  CHECK(answer.exit_code == 0);
  CHECK(answer.out.starts_with("bf16,1,8192,8192,8192,NT,fwd\n"));
}

#endif

}  // namespace lockstep::harness::bench_options_test
