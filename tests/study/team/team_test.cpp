// Tasks of several processes, which here are threads that talk through a hub: what is lost, late or different.

#include "sim/study/team/team.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <functional>
#include <thread>

#include "sim/base/error.h"
#include "sim/study/team/team_message.h"
#include "tests/support/process_hub.h"

namespace lockstep::team_test {

using testing::ProcessHub;

constexpr std::size_t count = 40;
constexpr std::chrono::milliseconds long_silence = team_lost_after + team_beats_every;

std::string outcome_of(std::size_t task) {
  return "outcome of " + std::to_string(task * task);
}

// What one process knows.
struct Process {
  std::unique_ptr<Team> team;
  std::vector<std::string> outcomes = std::vector<std::string>(count);
  std::vector<std::string> warnings = {};
  std::function<void(std::size_t)> before_task = [](std::size_t) {};
  std::string question = "the same";
  bool is_for_all = true;

  void share() {
    const auto run = [this](std::size_t task) {
      before_task(task);
      outcomes[task] = outcome_of(task);
    };
    const auto tell = [=, this](std::size_t task) {
      run(task);
      return outcomes[task];
    };
    const auto take = [this](std::size_t task, std::string_view bytes) {
      CHECK(outcomes[task].empty());
      outcomes[task] = bytes;
    };
    team->share({.count = count,
                 .question = question,
                 .run = run,
                 .tell = tell,
                 .take = take,
                 .is_for_all = is_for_all},
                1);
  }

  bool knows_all() const {
    for (std::size_t task = 0; task < count; ++task)
      if (outcomes[task] != outcome_of(task))
        return false;
    return true;
  }
};

// Processes of one command.
class Command {
 public:
  explicit Command(int size) : hub(size) {
    for (int rank = 0; rank < size; ++rank) {
      auto process = std::make_unique<Process>();
      process->team =
          make_team(hub.transport_of(rank),
                    [&lines = process->warnings](const std::string& line) { lines.push_back(line); });
      processes.push_back(std::move(process));
    }
  }

  Process& operator[](std::size_t rank) { return *processes[rank]; }

  // Each on a thread of its own, until all have ended.
  void run(const std::function<void(Process&)>& play) {
    std::vector<std::jthread> threads;
    for (const auto& process : processes) threads.emplace_back([&play, &process] { play(*process); });
  }

  ProcessHub hub;
  std::vector<std::unique_ptr<Process>> processes;
};

void share_and_leave(Process& process) {
  process.share();
  process.team->leave();
}

TEST_CASE("a message is read as it was written") {
  const std::string text("a\0b", 3);
  const TeamMessage message =
      read_team_message(to_bytes({.word = TeamWord::outcome, .section = 3, .number = 7, .text = text}));
  CHECK(message.word == TeamWord::outcome);
  CHECK(message.section == 3);
  CHECK(message.number == 7);
  CHECK(message.text == text);
}

TEST_CASE("after a section that is for all every process knows every outcome, each taken once") {
  Command command(3);
  command.run([](Process& process) {
    for (int section = 0; section < 3; ++section) {
      process.outcomes.assign(count, "");
      process.share();
      CHECK(process.knows_all());
    }
    process.team->leave();
  });
}

TEST_CASE("what is for the manager alone is told to nobody else") {
  Command command(3);
  for (const auto& process : command.processes) process->is_for_all = false;
  command.run(share_and_leave);
  CHECK(command[0].knows_all());
  CHECK_FALSE(command[1].knows_all());
}

// Once somebody has come here, the test goes on, and whoever came waits.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
  }
  void await(int how_many) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [=, this] { return waiting_ >= how_many; });
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool is_open_ = false;
};

TEST_CASE("a worker that gives no more sign costs the tasks that it held, and the others have all outcomes") {
  Command command(3);
  Gate gate;
  for (const auto& process : command.processes) process->before_task = [&](std::size_t) { gate.pass(); };
  std::jthread end([&] {
    gate.await(3);  // each holds a task
    command.hub.kill(2);
    command.hub.let_pass(long_silence);
    gate.open();
  });
  command.run([](Process& process) {
    if (process.team->rank() == 2)
      CHECK_THROWS_AS(process.share(), EnvironmentError);
    else
      process.share();
    process.team->leave();
  });
  CHECK(command[0].knows_all());
  CHECK(command[1].knows_all());
  REQUIRE(command[0].warnings.size() == 1);
  CHECK(command[0].warnings[0].starts_with("rank 2 on "));
  CHECK(command[0].warnings[0].find("no sign for 10 s") != std::string::npos);
}

TEST_CASE("without the manager nobody goes on") {
  Command command(3);
  Gate gate;
  for (const auto& process : command.processes) process->before_task = [&](std::size_t) { gate.pass(); };
  std::vector<std::jthread> threads;
  for (std::size_t rank = 1; rank < 3; ++rank)
    threads.emplace_back([&command, rank] {
      CHECK_THROWS_WITH_AS(command[rank].share(), doctest::Contains("rank 0, has given no sign"),
                           EnvironmentError);
      CHECK_FALSE(command[rank].team->excuse("nobody hears it"));
      command[rank].team->leave();
    });
  std::jthread manager([&] { command[0].share(); });
  gate.await(3);
  command.hub.kill(0);
  command.hub.let_pass(long_silence);
  gate.open();
}

TEST_CASE("a task that fails in a worker is run by another, and the manager says who has left and why") {
  Command command(2);
  Gate gate;
  command[0].before_task = [&](std::size_t) { gate.pass(); };
  command[1].before_task = [](std::size_t) { throw EnvironmentError("no disk"); };
  std::jthread worker([&] {
    CHECK_THROWS_WITH_AS(command[1].share(), "no disk", EnvironmentError);
    CHECK(command[1].team->excuse("no disk"));
    gate.open();
    command[1].team->leave();
  });
  share_and_leave(command[0]);
  CHECK(command[0].knows_all());
  REQUIRE(command[0].warnings.size() == 1);
  CHECK(command[0].warnings[0].find("takes no further part: no disk") != std::string::npos);
}

TEST_CASE("a task that fails in the manager ends the command, and workers hear of it") {
  Command command(3);
  Gate gate;
  for (const auto& process : command.processes) process->before_task = [&](std::size_t) { gate.pass(); };
  command[0].before_task = [&](std::size_t) {
    gate.open();
    throw ConfigError("not so");
  };
  command.run([&](Process& process) {
    if (process.team->rank() == 0)
      CHECK_THROWS_WITH_AS(process.share(), "not so", ConfigError);
    else
      CHECK_THROWS_AS(process.share(), TeamDissolved);
    process.team->leave();
  });
}

TEST_CASE("a process that was asked something else is refused before the answer is believed") {
  Command command(2);
  command[1].question = "another";
  command.run([](Process& process) {
    if (process.team->rank() == 0)
      CHECK_THROWS_WITH_AS(process.share(), doctest::Contains("was asked something else"), ConfigError);
    else
      CHECK_THROWS_AS(process.share(), TeamDissolved);
    process.team->leave();
  });
}

TEST_CASE("without a team tasks run here, those alone that have not") {
  std::vector<int> runs(count);
  run_shared(nullptr, 2,
             {.count = count,
              .run = [&](std::size_t task) { ++runs[task]; },
              .has_run = [](std::size_t task) { return task % 2 == 0; }});
  for (std::size_t task = 0; task < count; ++task) CHECK(runs[task] == static_cast<int>(task % 2));
}

}  // namespace lockstep::team_test
