#ifdef LOCKSTEP_DDP_CUDA

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "tests/scenario/lab.h"

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

// A library before all others that says when somebody pins.
class Spy {
 public:
  Spy() {
    const std::string source =
        folder_.write("spy.c",
                      "#define _GNU_SOURCE\n#include <sched.h>\n#include <unistd.h>\n"
                      "int sched_setaffinity(pid_t process, size_t size, const cpu_set_t* set) {\n"
                      "  (void)process, (void)size, (void)set;\n"
                      "  return write(2, \"pins\\n\", 5) == 5 ? 0 : -1;\n}\n");
    REQUIRE(run("cc -shared -fPIC -o " + library() + " " + source).exit_code == 0);
  }
  std::string library() const { return folder_.path() + "/spy.so"; }

 private:
  lockstep::testing::Folder folder_;
};

// A rank on a GPU needs cores for its launches, NCCL's proxies and the driver; one on the CPU is to have one.
TEST_CASE("Ranks on GPUs are pinned to no core, ranks on the CPU are") {
  const Spy spy;
  // A sanitizer would be first itself.
  const std::string spied = "ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=" + spy.library() + " CUDA_VISIBLE_DEVICES='' ";
  CHECK(run(spied + LOCKSTEP_DDP_CUDA + " --ranks 2").text.find("pins") == std::string::npos);
  CHECK(run(spied + LOCKSTEP_DDP_CPU + " --ranks 2 --only step --iterations 1 --warmup 1 --batch 1 --quiet")
            .text.find("pins") != std::string::npos);
}

// What a machine lacks shall not keep the program from saying so: the loader asks for CUDA's libraries alone.
TEST_CASE("The GPU program needs no library of the simulator's, nor fmt, nor the compiler's") {
  const std::string program = std::string(LOCKSTEP_DDP_CUDA);
  const std::size_t slash = program.rfind('/');
  const std::string needed =
      run("readelf -d " + program.substr(0, slash) + "/libexec" + program.substr(slash)).text;
  CAPTURE(needed);
  CHECK(needed.find("[libcublas.so") != std::string::npos);
  for (const char* absent : {"libfmt", "libtbb", "libceres", "libstdc++", "libgcc_s", "libcudart"})
    CHECK_MESSAGE(needed.find(absent) == std::string::npos, absent);
  CHECK(needed.find("$ORIGIN/../lib:") != std::string::npos);
}

// Where no GPU is visible there is none, whatever the machine has.
TEST_CASE("without a GPU the CUDA program says so, names its twin and ends with exit code 4") {
  const Outcome outcome = run("CUDA_VISIBLE_DEVICES= " LOCKSTEP_DDP_CUDA " --model mlp --iterations 1");
  CHECK(outcome.exit_code == 4);
  CHECK(outcome.text.find("no CUDA device was found") != std::string::npos);
  CHECK(outcome.text.find("lockstep_ddp_cpu runs the same step on the CPU") != std::string::npos);
}

#endif
