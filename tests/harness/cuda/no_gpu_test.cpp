#ifdef LOCKSTEP_DDP_CUDA

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace {

struct Outcome {
  int exit_code = -1;
  std::string text;  // of both streams
};

Outcome run(const std::string& command) {
  Outcome outcome;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  for (int letter = std::fgetc(pipe); letter != EOF; letter = std::fgetc(pipe))
    outcome.text += static_cast<char>(letter);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

}  // namespace

// Where no GPU is visible there is none, whatever the machine has.
TEST_CASE("without a GPU the CUDA program says so, names its twin and ends with exit code 4") {
  const Outcome outcome = run("CUDA_VISIBLE_DEVICES= " LOCKSTEP_DDP_CUDA " --model mlp --iterations 1");
  CHECK(outcome.exit_code == 4);
  CHECK(outcome.text.find("no CUDA device was found") != std::string::npos);
  CHECK(outcome.text.find("lockstep_ddp_cpu runs the same step on the CPU") != std::string::npos);
}

#endif
