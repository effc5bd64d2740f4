#include "validate/harness/communication/local_launch.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "sim/base/error.h"
#include "tests/harness/communication/local_group.h"

namespace lockstep::harness::local_launch_test {

namespace fs = std::filesystem;

// A shell script as the program that is launched, and a folder where it may write.
class Script {
 public:
  Script() {
    std::string name = (fs::temp_directory_path() / "lockstep-launch-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  ~Script() { fs::remove_all(folder_); }

  LocalLaunch launch(int ranks, const std::string& text) const {
    return {.ranks = ranks,
            .until_asked = std::chrono::milliseconds(300),
            .program = "/bin/sh",
            .arguments = {"sh", "-c", "cd " + folder_.string() + "; " + text}};
  }
  std::string content(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / file).rdbuf();
    return text.str();
  }
  fs::path file(const std::string& name) const { return folder_ / name; }

 private:
  fs::path folder_;
};

bool exists(pid_t process) {
  return ::kill(process, 0) == 0 || errno != ESRCH;
}

// A process that is gone may still await its parent's or init's notice.
bool runs(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/stat");
  std::string number, name, state;
  status >> number >> name >> state;
  return exists(process) && !state.empty() && state != "Z";
}

TEST_CASE("Every rank is told who it is, and rank 0 alone has the listener") {
  const Script script;
  const int code = launch_ranks(script.launch(3,
                                              "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE "
                                              "$MASTER_ADDR ${LOCKSTEP_LISTENER:+listens} > $RANK; "
                                              "test $MASTER_PORT -gt 0"));
  CHECK(code == 0);
  CHECK(script.content("0") == "0 3 0 3 127.0.0.1 listens\n");
  CHECK(script.content("1") == "1 3 1 3 127.0.0.1\n");
  CHECK(script.content("2") == "2 3 2 3 127.0.0.1\n");
}

TEST_CASE("The ranks of a launch have a secret in common, in their environment and on no command line") {
  std::string secrets[2];
  for (std::string& secret : secrets) {
    const Script script;
    ::setenv("LOCKSTEP_SECRET", "that of another run, which ended", 1);
    const int code = launch_ranks(script.launch(2,
                                                "printf %s $LOCKSTEP_SECRET > $RANK; ! grep -q "
                                                "$LOCKSTEP_SECRET /proc/$$/cmdline /proc/$PPID/cmdline"));
    ::unsetenv("LOCKSTEP_SECRET");
    CHECK(code == 0);
    secret = script.content("0");
    CHECK(script.content("1") == secret);
    CHECK(secret.size() == 64);
    CHECK(secret.find_first_not_of("0123456789abcdef") == std::string::npos);
  }
  CHECK(secrets[0] != secrets[1]);
}

TEST_CASE("Ranks that a torchrun's process starts are told that their port is nobody else's") {
  const Script script;
  ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  const int code = launch_ranks(script.launch(2, "echo $TORCHELASTIC_USE_AGENT_STORE > $RANK"));
  ::unsetenv("TORCHELASTIC_USE_AGENT_STORE");
  CHECK(code == 0);
  CHECK(script.content("1") == "False\n");
}

TEST_CASE("Ranks may use every core of the launcher where they are not pinned") {
  const Script script;
  const std::string cores = "grep Cpus_allowed_list /proc/self/status > ";
  CHECK(launch_ranks(script.launch(2, cores + "$RANK")) == 0);
  CHECK(std::system(("cd " + script.file("").string() + " && " + cores + "here").c_str()) == 0);
  CHECK(script.content("0") == script.content("here"));
  CHECK(script.content("1") == script.content("here"));
}

TEST_CASE("Ranks are pinned to one core each, round and round, when asked") {
  const Script script;
  LocalLaunch launch = script.launch(2, "grep Cpus_allowed_list /proc/self/status > $RANK");
  launch.pins_cores = true;
  CHECK(launch_ranks(launch) == 0);
  const std::string line = script.content("0");
  // One core is a number without "-" or ",".
  CHECK(line.find_first_of("-,") == std::string::npos);
  if (std::thread::hardware_concurrency() > 1)
    CHECK(line != script.content("1"));
}

TEST_CASE("The first rank that fails gives the exit code and ends the others") {
  const Script script;
  // The others would sleep for longer than any test may take; the exec makes the sleep the rank itself.
  const int code = launch_ranks(
      script.launch(3, "test $RANK = 1 && exit 2; trap 'kill $!; exit 5' TERM; sleep 1000 & wait"));
  CHECK(code == 2);
}

TEST_CASE("A rank that a signal ends is a failure of the environment") {
  const Script script;
  CHECK(launch_ranks(script.launch(2, "test $RANK = 1 && kill -9 $$; exec sleep 1000")) == 4);
}

TEST_CASE("A program that cannot be started is a failure of the environment") {
  CHECK(launch_ranks({.ranks = 2, .program = "/no/such/program", .arguments = {"program"}}) == 4);
}

TEST_CASE("A port that is taken is named before anything is started") {
  const Listener listener;
  const Script script;
  LocalLaunch launch = script.launch(2, "echo started > $RANK");
  launch.port = listener.port;
  const std::string expected = "port " + std::to_string(listener.port) + " is taken; --port chooses another";
  CHECK_THROWS_WITH_AS(launch_ranks(launch), expected.c_str(), ConfigError);
  CHECK_FALSE(fs::exists(script.file("0")));
  ::close(listener.socket);
}

// Runs a launch in a process of its own, whose end can be forced; returns when all ranks have written their
// process ids.
struct Launched {
  pid_t launcher = 0;
  std::vector<pid_t> ranks;
};

Launched launch_apart(const Script& script, int count) {
  // A pipe that every rank writes to once it runs, so that nobody has to poll.
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const LocalLaunch launch =
      script.launch(count, "echo $$ >&" + std::to_string(ends[1]) + "; exec sleep 1000");
  Launched launched;
  launched.launcher = ::fork();
  if (launched.launcher == 0)
    ::_exit(launch_ranks(launch));
  ::close(ends[1]);
  std::string text;
  char byte = 0;
  while (std::count(text.begin(), text.end(), '\n') < count && ::read(ends[0], &byte, 1) == 1) text += byte;
  ::close(ends[0]);
  std::istringstream numbers(text);
  for (pid_t process = 0; numbers >> process;) launched.ranks.push_back(process);
  REQUIRE(launched.ranks.size() == static_cast<std::size_t>(count));
  return launched;
}

// Within the time a kernel needs to end a process.
bool all_end(const std::vector<pid_t>& processes) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (const pid_t process : processes) {
    while (runs(process)) {
      if (std::chrono::steady_clock::now() > deadline)
        return false;
      std::this_thread::yield();
    }
  }
  return true;
}

TEST_CASE("An interrupt reaches every rank and is what the launch ends with") {
  const Script script;
  for (const int signal : {SIGINT, SIGTERM}) {
    const Launched launched = launch_apart(script, 2);
    ::kill(launched.launcher, signal);
    int status = 0;
    REQUIRE(::waitpid(launched.launcher, &status, 0) == launched.launcher);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 130);
    CHECK(all_end(launched.ranks));
  }
}

TEST_CASE("No rank outlives a launcher that was killed") {
  const Script script;
  const Launched launched = launch_apart(script, 3);
  ::kill(launched.launcher, SIGKILL);
  REQUIRE(::waitpid(launched.launcher, nullptr, 0) == launched.launcher);
  CHECK(all_end(launched.ranks));
}

}  // namespace lockstep::harness::local_launch_test
