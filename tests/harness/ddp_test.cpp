// The program as a user runs it: several ranks over Gloo on this machine, started by itself.

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/communication/local_group.h"
#include "tests/support/program.h"

namespace lockstep::harness::ddp_test {

using testing::Answer;
using testing::Folder;

const std::string program = LOCKSTEP_DDP_CPU;
const std::string tiny_mlp = " --model mlp --size hidden=32 --size layers=3 --batch 8 ";
const std::string tiny_gpt =
    " --model gpt --size hidden=32 --size heads=2 --size layers=2 --size sequence=16 --size vocabulary=64 "
    "--batch 4 ";
const std::string tiny_resnet = " --model resnet50 --size image_size=32 --size classes=4 --batch 2 ";

Answer run(const std::string& arguments) {
  return testing::run_command(program + " " + arguments);
}

// Every line of the answer says ok, and each of `says` is in it.
void check_is_training(const std::string& arguments) {
  const Answer answer = run("--check --quiet " + arguments);
  CAPTURE(answer.out);
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  testing::check_says(answer.out,
                      {"gradients of 1 bucket equal", "the loss of the same samples falls", "bit by bit"});
  CHECK_FALSE(testing::contains(answer.out, "FAILED"));
  CHECK_FALSE(testing::contains(answer.out, "nan"));
}

TEST_CASE("two ranks train an MLP as one process would, with buckets small and large") {
  check_is_training("--ranks 2 --bucket-cap-mb 0.001 --size hidden=256 --model mlp --batch 8");
  check_is_training("--ranks 3 --overlap off" + tiny_mlp);
}

TEST_CASE("accumulated micro-batches are one large batch, and momentum and AdamW keep ranks equal") {
  check_is_training("--ranks 2 --accumulate 3 --optimizer momentum" + tiny_mlp);
  check_is_training("--ranks 2 --accumulate 2 --optimizer adamw" + tiny_gpt);
}

TEST_CASE("two ranks train a GPT as one process would") {
  check_is_training("--ranks 2 --optimizer adamw" + tiny_gpt);
}

TEST_CASE("two ranks train a ResNet-50 as one process that takes their micro-batches in turn") {
  check_is_training("--ranks 2" + tiny_resnet);
}

TEST_CASE("mixed precision and compressed buckets train within what their rounding allows") {
  check_is_training("--ranks 2 --precision bf16" + tiny_mlp);
  check_is_training("--ranks 2 --precision fp16" + tiny_mlp);
  check_is_training("--ranks 2 --compress bf16" + tiny_mlp);
}

// At the first loss scale, 65536, this network's gradients are infinite.
TEST_CASE("gradients in fp16 are compared where they are finite") {
  check_is_training("--ranks 2 --precision fp16" + tiny_resnet);
}

// A run of everything at its smallest, and the file it leaves.
const std::string everything =
    " --warmup 1 --iterations 5 --most-seconds 1 --curve-up-to 64KiB --bucket-cap-mb 0.001,25 --overlap "
    "both ";

TEST_CASE("a run leaves one file with all that was measured, and nothing on standard output") {
  const Folder folder;
  const std::string file = folder.path() + "/run.json";
  const Answer answer = run("--ranks 2 --quiet -o " + file + everything + tiny_mlp +
                            "--link-rate '200 Mbit/s' --mtu 9000 --machine-class 'a test'");
  CAPTURE(answer.diagnostics);
  REQUIRE(answer.exit_code == 0);
  CHECK(answer.out.empty());
  CHECK(answer.diagnostics.empty());
  const auto json = nlohmann::json::parse(testing::text_of(file));
  CHECK(json["schema"] == "lockstep.run/1");
  CHECK(json["name"] == "mlp, 2 ranks, 200 Mbit/s");
  CHECK(json["ranks"] == 2);
  CHECK(json["nodes"] == 2);
  CHECK(json["network"]["goodput_byte_s"] == 24816951);
  CHECK(json["machine"]["class"] == "a test");
  CHECK(json["harness"]["backend"] == "cpu");
  CHECK(testing::contains(json["harness"]["communication"].get<std::string>(), "Gloo"));
  CHECK(json["collective_curve"].size() == 7);  // 1 KiB doubled up to 64 KiB
  CHECK(json["interference"].size() == 1);      // all sizes are above the curve's
  CHECK(json["matmuls"].size() > 3);
  CHECK(json["memory_copies"].size() > 3);
  CHECK(json["bucket_copies"].size() > 3);
  CHECK(json["iterations"].size() == 2 * 2);
  std::int64_t elements = 0;
  double last_ready = 0;
  for (const auto& parameter : json["model"]["parameters"]) {
    elements += parameter["elements"].get<std::int64_t>();
    CHECK(parameter["gradient_ready_s"].get<double>() > 0);
    last_ready = std::max(last_ready, parameter["gradient_ready_s"].get<double>());
  }
  CHECK(last_ready <= json["without_communication"]["backward_s"]["p90"].get<double>() * 2);
  for (const auto& iteration : json["iterations"]) {
    CHECK(iteration["iteration_s"]["count"] == 5);
    CHECK(iteration["iteration_s"]["least"].get<double>() > 0);
    std::int64_t bytes = 0;
    for (const auto& bucket : iteration["buckets"]) {
      bytes += bucket["bytes"].get<std::int64_t>();
      CHECK(bucket["end_s"].get<double>() > bucket["start_s"].get<double>());
    }
    CHECK(bytes == 4 * elements);
  }
}

nlohmann::json losses_of(const std::string& arguments) {
  const Folder folder;
  const std::string file = folder.path() + "/run.json";
  const Answer answer =
      run("--quiet --only curve --curve-up-to 1KiB --losses 40 -o " + file + " " + arguments);
  CAPTURE(answer.diagnostics);
  REQUIRE(answer.exit_code == 0);
  return nlohmann::json::parse(testing::text_of(file))["losses"];
}

TEST_CASE("the losses of two ranks are those of one that has both their samples, and they fall") {
  const std::string sizes = "--model mlp --size hidden=32 --size layers=3 --bucket-cap-mb 0.001 ";
  const nlohmann::json two = losses_of(sizes + "--ranks 2 --batch 8");
  const nlohmann::json one = losses_of(sizes + "--ranks 1 --batch 16");
  REQUIRE(two["loss"].size() == 40);
  REQUIRE(one["loss"].size() == 40);
  CHECK(two["bucket_cap_mb"] == 0.001);
  CHECK(two["samples_of_iteration"] == 2 * 8);
  CHECK(one["samples_of_iteration"] == 16);
  double before = 0;
  double early = 0;
  double late = 0;
  for (std::size_t iteration = 0; iteration < 40; ++iteration) {
    const double loss = two["loss"][iteration];
    CHECK(loss == doctest::Approx(one["loss"][iteration].get<double>()).epsilon(1e-3));
    CHECK(two["end_s"][iteration].get<double>() > before);
    before = two["end_s"][iteration];
    (iteration < 10 ? early : late) += iteration < 10 || iteration >= 30 ? loss : 0;
  }
  CHECK(late < early);
}

TEST_CASE("a run that was not asked for losses has none") {
  const Folder folder;
  const std::string file = folder.path() + "/run.json";
  REQUIRE(run("--quiet --only step --warmup 1 --iterations 1 -o " + file + tiny_mlp).exit_code == 0);
  CHECK_FALSE(nlohmann::json::parse(testing::text_of(file)).contains("losses"));
}

TEST_CASE("without a file the figures are a table, and progress goes to standard error") {
  const Answer answer = run("--only step --warmup 1 --iterations 5" + tiny_mlp);
  CHECK(answer.exit_code == 0);
  testing::check_says(answer.out, {"step, no communication", "backward"});
  CHECK(testing::contains(answer.diagnostics, "step without communication"));
}

void check_refused(const Answer& answer, const std::string& says) {
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 2);
  CHECK(answer.out.empty());
  CHECK(testing::contains(answer.diagnostics, says));
}

TEST_CASE("wrong input ends with 2 and says what is valid") {
  check_refused(run("--bucket-cap-bm 1"), "did you mean \"--bucket-cap-mb\"");
  check_refused(run("--ranks 2 --model mpl"), "mlp");
  check_refused(run("--ranks 2 --size hiden=3"), "hidden");
  check_refused(run("--ranks 2 --precision tf32 --only step"), "tf32");
  check_refused(run("--ranks 2 -o /no/such/folder/run.json"), "/no/such/folder");
  const Listener taken;
  check_refused(run("--ranks 2 --port " + std::to_string(taken.port)), std::to_string(taken.port));
}

// Two ranks as a launcher starts them, each with arguments of its own.
std::vector<Answer> run_pair(const std::string& first, const std::string& second) {
  int port = 0;
  {
    const Listener listener;
    port = listener.port;
    ::close(listener.socket);
  }
  const auto rank = [&](const std::string& number, const std::string& arguments) {
    return testing::run_command("RANK=" + number + " WORLD_SIZE=2 LOCAL_RANK=" + number +
                                " LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
                                std::to_string(port) + " " + program + " " + arguments);
  };
  auto other = std::async(std::launch::async, rank, "1", second);
  const Answer here = rank("0", first);
  return {here, other.get()};
}

TEST_CASE("ranks that were asked for different things all end with 2 and say how they differ") {
  for (const Answer& answer : run_pair("--batch 8", "--batch 16")) {
    CHECK(answer.exit_code == 2);
    CHECK(testing::contains(answer.diagnostics, "--batch 16"));
  }
}

TEST_CASE("a file that rank 0 cannot write ends every rank at once") {
  for (const Answer& answer : run_pair("-o /no/such/folder/x.json", "")) CHECK(answer.exit_code == 2);
}

TEST_CASE("a batch that no memory holds ends all ranks with 4") {
  const Answer answer = run("--ranks 2 --model mlp --batch 65536 --size hidden=65536");
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 4);
  CHECK(testing::contains(answer.diagnostics, "memory"));
}

// Processes that run the program with `word` among their arguments.
std::vector<int> processes_with(const std::string& word) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string number = entry.path().filename();
    if (number.find_first_not_of("0123456789") != number.npos)
      continue;
    const std::string line = testing::text_of(entry.path() / "cmdline");
    if (line.find("lockstep_ddp_cpu") != line.npos && line.find(word) != line.npos && line[0] == '/')
      found.push_back(std::stoi(number));
  }
  return found;
}

// The environment of a process tells its rank.
int process_of_rank(const std::vector<int>& processes, int rank) {
  for (const int process : processes) {
    const std::string environment = '\0' + testing::text_of("/proc/" + std::to_string(process) + "/environ");
    if (environment.find(std::string("\0RANK=", 6) + std::to_string(rank)) != environment.npos)
      return process;
  }
  return -1;
}

// Waits for what another process will do, looking again at most for 20 seconds.
template <class Condition>
bool comes_true(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition())
    if (std::chrono::steady_clock::now() > deadline)
      return false;
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return true;
}

TEST_CASE("killing one rank ends all within 10 s with 4, no file and no process left") {
  const Folder folder;
  const std::string file = folder.path() + "/run.json";
  const std::string mark = "--name=" + file;
  auto running = std::async(std::launch::async, [&] {
    return run("--ranks 3 " + mark + " -o " + file +
               " --iterations 100000 --most-seconds 1000 --only iterations" + tiny_mlp);
  });
  int victim = -1;
  REQUIRE(comes_true([&] { return (victim = process_of_rank(processes_with(mark), 2)) > 0; }));
  // Its second thread is Rendezvous': the rank has met the others or is about to.
  REQUIRE(comes_true([&] {
    return std::distance(std::filesystem::directory_iterator("/proc/" + std::to_string(victim) + "/task"),
                         {}) > 2;
  }));
  const auto killed = std::chrono::steady_clock::now();
  REQUIRE(::kill(victim, SIGKILL) == 0);
  const Answer answer = running.get();
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 4);
  CHECK(std::chrono::steady_clock::now() - killed < std::chrono::seconds(10));
  CHECK(testing::contains(answer.diagnostics, "rank 2"));
  CHECK(processes_with(mark).empty());
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("an interrupt ends all ranks with 130 and leaves no file") {
  const Folder folder;
  const std::string file = folder.path() + "/run.json";
  const std::string mark = "--name=" + file;
  auto running = std::async(std::launch::async, [&] {
    return run("--ranks 2 " + mark + " -o " + file +
               " --iterations 100000 --most-seconds 1000 --only iterations" + tiny_mlp);
  });
  int rank = -1;
  REQUIRE(comes_true([&] { return (rank = process_of_rank(processes_with(mark), 1)) > 0; }));
  int launcher = -1;
  for (const int process : processes_with(mark))
    if (process_of_rank({process}, 0) < 0 && process_of_rank({process}, 1) < 0)
      launcher = process;
  REQUIRE(launcher > 0);
  REQUIRE(::kill(launcher, SIGINT) == 0);
  CHECK(running.get().exit_code == 130);
  CHECK(processes_with(mark).empty());
  CHECK(std::filesystem::is_empty(folder.path()));
}

}  // namespace lockstep::harness::ddp_test
