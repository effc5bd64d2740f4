// lockstep completion: what a shell offers, asked of the shell itself where it is installed.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/program.h"

namespace lockstep::completion_test {

using testing::Answer;
using testing::check_refused;
using testing::check_says;
using testing::contains;
using testing::Folder;
using testing::run_command;
using testing::run_program;

// What bash offers for the last of these words, one a line.
std::string offered(const std::string& words, const std::string& folder = LOCKSTEP_SOURCE_DIR) {
  const Folder own;
  const std::string script = own.write(
      "ask", "cd " + folder +
                 "\nsource <(" LOCKSTEP_BINARY " completion bash)\nCOMP_WORDS=(" LOCKSTEP_BINARY " " + words +
                 ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_lockstep\n"
                 "printf '%s\\n' \"${COMPREPLY[@]}\"\n");
  const Answer answer = run_command("bash " + script);
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  CHECK(answer.diagnostics.empty());
  return "\n" + answer.out;
}

TEST_CASE("bash offers verbs, a verb's options and the program's, and choices") {
  check_says(offered("''"), {"\npredict\n", "\ncompare\n", "\ncompletion\n"});
  CHECK(offered("pred") == "\npredict\n");
  check_says(offered("predict --"), {"\n--set\n", "\n--fidelity\n", "\n--data\n", "\n--help\n"});
  CHECK_FALSE(contains(offered("predict --"), "\n--vary\n"));
  CHECK(offered("predict --fidelity ''") == "\nflow\nstep\n");
  CHECK(offered("collective all_r") == "\nall_reduce\n");
  check_says(offered("completion ''"), {"\nbash\n", "\nfish\n", "\nzsh\n"});
  check_says(offered("--quiet list ''"), {"\nmachines\n", "\nmodels\n"});
}

TEST_CASE("bash offers what is shipped by name, and files where a file is asked for") {
  CHECK(offered("collective all_reduce --machine dgx_h10") == "\ndgx_h100\n");
  CHECK(offered("show model resnet5") == "\nresnet50\n");
  CHECK(offered("show machines dgx_h1") == "\ndgx_h100\n");
  CHECK(offered("predict scenarios/resnet50_ddp_2x") == "\nscenarios/resnet50_ddp_2x8_a100.json\n");
  CHECK(offered("predict --set cluster.nodes = 4 scenarios/resnet50_ddp_2x") ==
        "\nscenarios/resnet50_ddp_2x8_a100.json\n");
  CHECK(offered("compare scenarios/fsdp_llama2_7b.json scenarios/zero3") ==
        "\nscenarios/zero3_llama2_7b.json\n");
  CHECK(offered("--data hw_profiles/mach") == "\nhw_profiles/machines\n");
  CHECK(offered("predict --trace-iterations ''") == "\n\n");
}

TEST_CASE("each shell reads its script without a complaint") {
  struct Shell {
    std::string name, check;
  };
  for (const auto& [name, check] :
       std::vector<Shell>{{"bash", "-n"}, {"zsh", "-n"}, {"fish", "--no-execute"}}) {
    CAPTURE(name);
    const Answer script = run_program("completion " + name);
    REQUIRE(script.exit_code == 0);
    check_says(script.out, {"predict", "what-if", "all_reduce"});
    if (run_command("command -v " + name).exit_code != 0)
      continue;
    const Folder folder;
    const Answer read = run_command(name + " " + check + " " + folder.write("script", script.out));
    CAPTURE(read.diagnostics);
    CHECK(read.exit_code == 0);
    CHECK(read.diagnostics.empty());
  }
}

TEST_CASE("fish offers verbs, choices and names") {
  if (run_command("command -v fish").exit_code != 0)
    return;
  const Folder folder;
  const std::string script = folder.write("script", run_program("completion fish").out);
  const auto offers = [&](const std::string& line) {
    return run_command("PATH=$(dirname " LOCKSTEP_BINARY "):$PATH HOME=" + folder.path() +
                       " fish -c 'source " + script + "; complete -C \"" + line + "\"'")
        .out;
  };
  check_says(offers("lockstep pred"), {"predict"});
  check_says(offers("lockstep predict --fid"), {"--fidelity"});
  check_says(offers("lockstep predict --fidelity "), {"flow", "step"});
  check_says(offers("lockstep collective all_reduce --machine dgx_h"), {"dgx_h100"});
}

TEST_CASE("another shell is a mistake with its neighbours") {
  check_refused("completion bsh", {"did you mean \"bash\""});
}

}  // namespace lockstep::completion_test
