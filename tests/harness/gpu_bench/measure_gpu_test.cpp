// The script that measures a GPU, with programs that only pretend: its order, its time, and what it makes of
// failures.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace lockstep::harness::measure_gpu_test {

using testing::Answer;
using testing::contains;
using testing::text_of;

// Both programs: notes how it was called, and writes what is asked for. GPUS says how many there are; FAILS,
// WRONG, PARTIAL and KILLS name a word of the call that fails, does not hold, runs out of time, or ends the
// script.
constexpr const char* program_text = R"sh(#!/bin/sh
echo "$(basename "$0") $*" >>"$FOLDER/calls"
file=""
previous=""
for word in "$@"; do
  [ "$previous" = -o ] && file=$word
  previous=$word
done
case " $* " in
  *" machine "*)
    [ "$GPUS" -gt 0 ] || { echo "lockstep_gpu_bench: no CUDA device was found" >&2; exit 4; }
    for gpu in $(seq "$GPUS"); do echo "\"index\": $gpu, \"memory_bytes\": $MEMORY"; done >"$file"
    exit 0 ;;
  *" $FAILS "*) echo "it went wrong" >&2; exit 4 ;;
  *" $WRONG "*) echo "FAILED  gradients"; exit 3 ;;
  *" $PARTIAL "*) printf 'a,b\n1,2\n' >"$file"; echo "$1: 1 of 9 cases, 0 left out, 8 to go"; exit 0 ;;
  *" $KILLS "*) kill -TERM "$(cat "$FOLDER/pid")"; exec sleep 1000 ;;
esac
[ -z "$file" ] || printf 'a,b\n1,2\n3,4\n' >"$file"
echo "$1: 9 of 9 cases, 0 left out, 0 to go"
)sh";

// In the place of the system's: no test waits for a real clock. LATE names a word of what is ended as too
// late.
constexpr const char* timeout_text = R"sh(#!/bin/sh
case $1 in --*) shift ;; esac
shift
case " $* " in *" $LATE "*) exit 124 ;; esac
exec "$@"
)sh";

constexpr const char* unable_text = "#!/bin/sh\nexit 9\n";

class FakeMachine {
 public:
  FakeMachine() {
    for (const char* name : {"programs/lockstep_gpu_bench", "programs/lockstep_ddp_cuda"})
      write(name, program_text);
    write("tools/timeout", timeout_text);
    write("tools/nvidia-smi", unable_text);
    write("tools/python3", "#!/bin/sh\ntest \"$TORCH\" = there && echo '{\"runs\": 1}'\n");
    write("tools/compute-sanitizer", "#!/bin/sh\nshift 6\nexec \"$@\"\n");
  }

  // `settings`: GPUS=2 and the like, over those of a sound machine with one GPU.
  Answer run(const std::string& arguments, const std::string& settings = "") const {
    const std::string variables = "export FOLDER=" + folder_.path() + " PATH=" + folder_.path() +
                                  "/tools:$PATH GPUS=1 MEMORY=80000000000 FAILS=none WRONG=none PARTIAL=none "
                                  "KILLS=none LATE=none " +
                                  settings + "; ";
    // The script keeps the number of the shell that becomes it.
    return testing::run_command(variables + "sh -c 'echo $$ >" + folder_.path() + "/pid; exec " +
                                LOCKSTEP_SOURCE_DIR "/validate/measure_gpu --program " + folder_.path() +
                                "/programs " + arguments + "'");
  }
  Answer measure(const std::string& arguments = "", const std::string& settings = "") const {
    return run("-o " + output() + " " + arguments, settings);
  }

  std::string output() const { return folder_.path() + "/output"; }
  std::string file(const std::string& name) const { return text_of(output() + "/" + name); }
  std::vector<std::string> calls() const {
    std::istringstream text(text_of(folder_.path() + "/calls"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  void forget_calls() const { std::filesystem::remove(folder_.path() + "/calls"); }

 private:
  void write(const std::string& name, const std::string& text) {
    std::filesystem::permissions(folder_.write(name, text), std::filesystem::perms::owner_all);
  }

  testing::Folder folder_;
};

// Where a call with this word stands among the calls.
std::ptrdiff_t place_of(const std::vector<std::string>& calls, const std::string& word) {
  const auto found =
      std::find_if(calls.begin(), calls.end(), [&](const std::string& call) { return contains(call, word); });
  REQUIRE_MESSAGE(found != calls.end(), word);
  return found - calls.begin();
}

// The state that the table gives a step.
std::string state_of(const Answer& answer, const std::string& step) {
  std::istringstream text(answer.out);
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string name, file, rows, seconds, state;
    words >> name >> file >> rows >> seconds;
    std::getline(words >> std::ws, state);
    if (name == step)
      return state;
  }
  return "";
}

TEST_CASE("measure_gpu runs every part, most valuable first, each with a file of its own") {
  const FakeMachine machine;
  const Answer answer = machine.measure();
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  const auto calls = machine.calls();
  std::ptrdiff_t before = -1;
  for (const std::string part :
       {"lockstep_gpu_bench machine", "--check --model mlp", "--ranks 2 --check",
        "lockstep_gpu_bench launches", "lockstep_gpu_bench gemm", "--preset", "lockstep_gpu_bench conv2d",
        "lockstep_gpu_bench attention", "lockstep_gpu_bench memory_bound", "lockstep_gpu_bench interference",
        "lockstep_gpu_bench host_copies", "lockstep_gpu_bench sustained"}) {
    CHECK(place_of(calls, part) > before);
    before = place_of(calls, part);
  }
  for (const std::string name : {"kernels/gemm.csv", "kernels/conv2d.csv", "kernels/attention.csv",
                                 "kernels/memory_bound.csv", "launches.csv", "steps/gpt_bf16.json"})
    CHECK(machine.file(name) == "a,b\n1,2\n3,4\n");
  CHECK(contains(machine.file("check/resnet50_tf32.txt"), "9 of 9"));
  CHECK(state_of(answer, "gemm") == "done");
  // A machine without nvidia-smi is measured all the same.
  CHECK(state_of(answer, "nvidia_smi") == "refused");
}

TEST_CASE("three models are checked in four precisions, and two ranks of each on one GPU") {
  const FakeMachine machine;
  machine.measure();
  const auto calls = machine.calls();
  for (const std::string model : {"mlp", "gpt", "resnet50"}) {
    for (const std::string precision : {"fp32", "bf16", "fp16", "tf32"})
      place_of(calls, "--check --model " + model + " --precision " + precision);
    place_of(calls, "--ranks 2 --check --model " + model);
  }
}

TEST_CASE("several GPUs are measured with every collective, forced choices and a sweep of bucket caps") {
  const FakeMachine machine;
  const Answer answer = machine.measure("", "GPUS=4");
  CHECK(answer.exit_code == 0);
  const auto calls = machine.calls();
  for (const std::string op :
       {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_recv"})
    place_of(calls, "collective --op " + op);
  for (const std::string model : {"mlp", "gpt", "resnet50"})
    place_of(calls, "--ranks 4 --preset h100 --model " + model);
  CHECK(machine.file("collectives/all_reduce_Tree_LL128.txt") == "a,b\n1,2\n3,4\n");
  CHECK(machine.file("collectives/all_reduce_16_channels.txt") == "a,b\n1,2\n3,4\n");
}

TEST_CASE("PyTorch is measured where it is asked for and installed, and missed by nobody else") {
  const FakeMachine machine;
  CHECK(state_of(machine.measure("", "TORCH=there"), "torch").empty());
  CHECK(state_of(machine.measure("--resume --with-torch", "TORCH=missing"), "torch") == "refused");
  const FakeMachine other;
  const Answer answer = other.measure("--with-torch", "TORCH=there");
  CHECK(state_of(answer, "torch") == "done");
  CHECK(state_of(answer, "torch_steps") == "done");
  CHECK(other.file("torch.json") == "{\"runs\": 1}\n");
}

TEST_CASE("a small GPU gets small models") {
  const FakeMachine machine;
  machine.measure("", "MEMORY=16000000000");
  place_of(machine.calls(), "--preset small");
}

TEST_CASE("a part that fails is recorded, the rest goes on, and the exit code tells") {
  const FakeMachine machine;
  const Answer answer = machine.measure("", "FAILS=gemm");
  CHECK(answer.exit_code == 4);
  CHECK(state_of(answer, "gemm") == "failed");
  CHECK(contains(machine.file("logs/gemm.log"), "it went wrong"));
  CHECK(contains(answer.diagnostics, "gemm: failed (exit code 4): it went wrong"));
  CHECK(machine.file("kernels/gemm.csv").empty());
  CHECK(state_of(answer, "conv2d") == "done");
}

TEST_CASE("a check that does not hold is exit code 3, whatever else failed, and its words are kept") {
  const FakeMachine machine;
  const Answer answer = machine.measure("", "WRONG=bf16 FAILS=conv2d");
  CHECK(answer.exit_code == 3);
  CHECK(state_of(answer, "check_gpt_bf16") == "wrong");
  CHECK(machine.file("check/gpt_bf16.txt") == "FAILED  gradients\n");
}

TEST_CASE("a part that runs too long is ended, and the rest goes on") {
  const FakeMachine machine;
  const Answer answer = machine.measure("", "LATE=attention");
  CHECK(answer.exit_code == 4);
  CHECK(state_of(answer, "attention") == "time was up");
  CHECK(state_of(answer, "memory_bound") == "done");
}

TEST_CASE("--resume skips what is complete and goes on with what is partial or failed") {
  const FakeMachine machine;
  const Answer first = machine.measure("", "PARTIAL=gemm FAILS=conv2d");
  CHECK(state_of(first, "gemm") == "partial");
  machine.forget_calls();
  const Answer second = machine.measure("--resume");
  CHECK(second.exit_code == 0);
  const auto calls = machine.calls();
  REQUIRE(calls.size() == 3);  // the machine is looked at in every run
  CHECK(contains(calls[1], "lockstep_gpu_bench gemm"));
  CHECK(contains(calls[1], "--resume"));
  CHECK(contains(calls[2], "lockstep_gpu_bench conv2d"));
  CHECK(state_of(second, "gemm") == "done");
  CHECK(state_of(second, "launches") == "done");
}

TEST_CASE("a complete part whose file is gone is measured again") {
  const FakeMachine machine;
  machine.measure();
  std::filesystem::remove(machine.output() + "/kernels/attention.csv");
  machine.forget_calls();
  machine.measure("--resume");
  CHECK(machine.calls().size() == 2);
  CHECK(machine.file("kernels/attention.csv") == "a,b\n1,2\n3,4\n");
}

TEST_CASE("what is there is not measured over without being asked") {
  const FakeMachine machine;
  machine.measure();
  const Answer answer = machine.measure();
  CHECK(answer.exit_code == 2);
  CHECK(contains(answer.diagnostics, "go on with --resume"));
}

TEST_CASE("ended by a signal it ends what runs, prints the table and keeps whole files; --resume goes on") {
  const FakeMachine machine;
  const Answer answer = machine.measure("", "KILLS=conv2d");
  CHECK(answer.exit_code == 130);
  CHECK(state_of(answer, "gemm") == "done");
  CHECK(state_of(answer, "conv2d") == "not run");
  CHECK(machine.file("kernels/gemm.csv") == "a,b\n1,2\n3,4\n");
  CHECK(machine.measure("--resume").exit_code == 0);
  CHECK(machine.file("kernels/conv2d.csv") == "a,b\n1,2\n3,4\n");
}

TEST_CASE("without a GPU there is one line and exit code 4") {
  const FakeMachine machine;
  const Answer answer = machine.measure("", "GPUS=0");
  CHECK(answer.exit_code == 4);
  CHECK(answer.diagnostics == "measure_gpu: no GPU: lockstep_gpu_bench: no CUDA device was found\n");
  CHECK(answer.out.empty());
  // Nothing was measured, so nothing stands in the way of the next try.
  CHECK(machine.measure().exit_code == 0);
}

TEST_CASE("wrong use is exit code 2 and says what is valid") {
  const FakeMachine machine;
  const auto refuses = [&](const std::string& arguments, const std::string& reason) {
    const Answer answer = machine.run(arguments);
    CAPTURE(answer.diagnostics);
    CHECK(answer.exit_code == 2);
    CHECK(contains(answer.diagnostics, reason));
  };
  refuses("", "-o DIR is needed");
  refuses("-o", "-o needs a value");
  refuses("-o x --fast", "unknown argument \"--fast\"; valid: -o");
  refuses("-o x --minutes 0", "--minutes must be a number from 1 to 9999, not \"0\"");
  refuses("-o x --minutes soon", "not \"soon\"");
  refuses("-o x --program /nowhere", "there is no folder \"/nowhere\"");
  refuses("-o /proc/nowhere", "cannot write to \"/proc/nowhere\"");
}

// 15 seconds are kept for a last step that is late. The last share is all that is left, so what is rounded
// off is not lost.
TEST_CASE("a dry run shows the order and shares that add up to the minutes, and runs nothing") {
  const FakeMachine machine;
  for (const int minutes : {5, 25, 60}) {
    const Answer answer = machine.measure("--dry-run --minutes " + std::to_string(minutes));
    CHECK(answer.exit_code == 0);
    std::istringstream text(answer.out);
    int sum = 0;
    int steps = 0;
    for (std::string line; std::getline(text, line); ++steps) {
      std::istringstream words(line);
      std::string name;
      int seconds = 0;
      words >> name >> seconds;
      sum += seconds;
    }
    CHECK(steps > 20);
    CHECK(sum == 60 * minutes - 15);
  }
  CHECK(machine.calls().empty());
  CHECK_FALSE(std::filesystem::exists(machine.output()));
}

// A step of training takes up to 45 seconds whatever it is given, and writes its file at the end. Nine minutes
// are enough for all, seven not for the last, two for none.
TEST_CASE("what cannot be told when to end gets the seconds that it needs in a short run too, or none") {
  const FakeMachine machine;
  const auto seconds_of = [&](const std::string& step, int minutes) {
    std::istringstream text(machine.measure("--dry-run --minutes " + std::to_string(minutes)).out);
    for (std::string line; std::getline(text, line);) {
      std::istringstream words(line);
      std::string name;
      int seconds = 0;
      words >> name >> seconds;
      if (name == step)
        return seconds;
    }
    return -1;
  };
  CHECK(seconds_of("step_gpt_bf16", 25) >= 45);
  CHECK(seconds_of("step_gpt_fp16", 9) == 45);
  CHECK(seconds_of("step_gpt_bf16", 7) == 45);
  CHECK(seconds_of("step_gpt_fp16", 7) == 0);
  CHECK(seconds_of("step_gpt_bf16", 2) == 0);
}

}  // namespace lockstep::harness::measure_gpu_test
