#include "validate/harness/communication/local_launch.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include "sim/base/error.h"
#include "sim/base/failure.h"
#include "validate/harness/communication/proof.h"
#include "validate/harness/communication/world.h"

namespace lockstep::harness {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int exit_no_program = 127;  // as a shell's
constexpr const char* launched = "LOCKSTEP_LAUNCHED";

constexpr std::chrono::seconds between_asked_and_killed{3};

std::string describe(int error_number) {
  return std::generic_category().message(error_number);
}

// Listens at a port of this machine alone; rank 0 inherits it.
class Listener {
 public:
  explicit Listener(int port) {
    if (socket_ < 0)
      throw EnvironmentError(fmt::format("cannot open a socket: {}", describe(errno)));
    const int yes = 1;
    ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (::bind(socket_, generic, size) != 0 || ::listen(socket_, SOMAXCONN) != 0)
      throw_unusable(port, errno);
    ::getsockname(socket_, generic, &size);
    port_ = ntohs(address.sin_port);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { ::close(socket_); }

  int socket() const { return socket_; }
  int port() const { return port_; }

 private:
  [[noreturn]] void throw_unusable(int port, int error_number) const {
    ::close(socket_);
    if (error_number == EADDRINUSE)
      throw ConfigError(fmt::format("port {} is taken; --port chooses another", port));
    throw ConfigError(
        fmt::format("port {} cannot be used ({}); --port chooses another", port, describe(error_number)));
  }

  int socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  int port_ = 0;
};

// The signals that this process waits for instead of being interrupted by them.
class AwaitedSignals {
 public:
  AwaitedSignals() {
    ::sigemptyset(&awaited_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) ::sigaddset(&awaited_, signal);
    ::pthread_sigmask(SIG_BLOCK, &awaited_, &before_);
    ::signal(SIGCHLD, SIG_DFL);  // where it is ignored, processes end unseen
  }
  AwaitedSignals(const AwaitedSignals&) = delete;
  AwaitedSignals& operator=(const AwaitedSignals&) = delete;
  ~AwaitedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // The next one, or 0 when there was none for so long.
  int wait(std::chrono::milliseconds most) const {
    const timespec time{.tv_sec = most.count() / 1'000, .tv_nsec = most.count() % 1'000 * 1'000'000};
    return std::max(::sigtimedwait(&awaited_, nullptr, &time), 0);
  }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t awaited_{};
  sigset_t before_{};
};

std::vector<int> usable_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0)
    return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set))
      cores.push_back(core);
  }
  return cores;
}

// What exec wants, made before the fork: after it a process may allocate nothing.
class Texts {
 public:
  explicit Texts(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  Texts(const Texts&) = delete;
  Texts& operator=(const Texts&) = delete;

  char* const* pointers() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

std::vector<std::string> environment_of(int rank, int ranks, const Listener& listener,
                                        const std::string& secret) {
  std::vector<std::string> variables{fmt::format("RANK={}", rank),
                                     fmt::format("WORLD_SIZE={}", ranks),
                                     fmt::format("LOCAL_RANK={}", rank),
                                     fmt::format("LOCAL_WORLD_SIZE={}", ranks),
                                     "MASTER_ADDR=127.0.0.1",
                                     fmt::format("MASTER_PORT={}", listener.port()),
                                     "TORCHELASTIC_USE_AGENT_STORE=False",  // this port is nobody else's
                                     fmt::format("{}={}", secret_variable, secret),
                                     fmt::format("{}=1", launched)};
  if (rank == 0)
    variables.push_back(fmt::format("LOCKSTEP_LISTENER={}", listener.socket()));
  for (char** inherited = environ; *inherited != nullptr; ++inherited) {
    const std::string_view variable(*inherited);
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    const bool is_set = std::any_of(variables.begin(), variables.end(),
                                    [&](const std::string& own) { return own.starts_with(name); });
    if (!is_set && name != "LOCKSTEP_LISTENER=")
      variables.emplace_back(variable);
  }
  return variables;
}

// One rank's process.
struct Rank {
  pid_t process = 0;
  bool is_running = true;
};

class Launcher {
 public:
  explicit Launcher(const LocalLaunch& launch) : launch_(launch), cores_(usable_cores()) {}
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  ~Launcher() {
    signal_all(SIGKILL);
    for (const Rank& rank : ranks_) {
      if (rank.is_running)
        ::waitpid(rank.process, nullptr, 0);
    }
  }

  int run() {
    {
      const Listener listener(launch_.port);
      for (int rank = 0; rank < launch_.ranks; ++rank) start(rank, listener);
    }
    while (running() > 0) {
      const int signal = signals_.wait(std::chrono::milliseconds(200));
      if (signal == SIGINT || signal == SIGTERM)
        interrupt(signal);
      reap();
      hurry();
    }
    return exit_code_;
  }

 private:
  void start(int rank, const Listener& listener) {
    const Texts arguments(launch_.arguments);
    const Texts environment(environment_of(rank, launch_.ranks, listener, secret_));
    const pid_t parent = ::getpid();
    const pid_t process = ::fork();
    if (process < 0)
      throw EnvironmentError(fmt::format("cannot start rank {}: {}", rank, describe(errno)));
    if (process > 0) {
      ranks_.push_back({.process = process});
      return;
    }
    become_rank(rank, parent);
    if (rank != 0)
      ::close(listener.socket());
    ::execve(launch_.program.c_str(), arguments.pointers(), environment.pointers());
    ::_exit(exit_no_program);
  }

  // Between fork and exec: system calls only.
  void become_rank(int rank, pid_t parent) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent)
      ::_exit(exit_environment);
    if (launch_.pins_cores && !cores_.empty()) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<std::size_t>(cores_[static_cast<std::size_t>(rank) % cores_.size()]), &set);
      ::sched_setaffinity(0, sizeof set, &set);
    }
    ::pthread_sigmask(SIG_SETMASK, &signals_.before(), nullptr);
  }

  void interrupt(int signal) {
    signal_all(signal);
    note_end(exit_interrupted);
  }

  void reap() {
    for (Rank& rank : ranks_) {
      int status = 0;
      if (!rank.is_running || ::waitpid(rank.process, &status, WNOHANG) != rank.process)
        continue;
      rank.is_running = false;
      note_end(exit_code_of(rank, status));
    }
  }

  int exit_code_of(const Rank& rank, int status) const {
    const auto number = &rank - ranks_.data();
    if (WIFSIGNALED(status)) {
      // What we sent ourselves needs no words.
      if (exit_code_ == 0)
        fmt::print(stderr, "lockstep_ddp: rank {} was ended by a signal ({})\n", number,
                   ::strsignal(WTERMSIG(status)));
      return exit_environment;
    }
    if (WEXITSTATUS(status) != exit_no_program)
      return WEXITSTATUS(status);
    fmt::print(stderr, "lockstep_ddp: rank {} could not be started ({})\n", number, launch_.program);
    return exit_environment;
  }

  void note_end(int code) {
    if (exit_code_ != 0 || code == 0)
      return;
    exit_code_ = code;
    ending_since_ = Clock::now();
  }

  void hurry() {
    if (exit_code_ == 0)
      return;
    const auto waited = Clock::now() - ending_since_;
    if (waited > launch_.until_asked + between_asked_and_killed)
      signal_all(SIGKILL);
    else if (waited > launch_.until_asked)
      signal_all(SIGTERM);
  }

  void signal_all(int signal) const {
    for (const Rank& rank : ranks_) {
      if (rank.is_running)
        ::kill(rank.process, signal);
    }
  }

  std::ptrdiff_t running() const {
    return std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.is_running; });
  }

  const LocalLaunch& launch_;
  const std::string secret_ = draw_secret();
  std::vector<int> cores_;
  AwaitedSignals signals_;
  std::vector<Rank> ranks_;
  int exit_code_ = 0;
  Clock::time_point ending_since_;
};

}  // namespace

bool is_launched_rank() {
  return std::getenv(launched) != nullptr;
}

int launch_ranks(const LocalLaunch& launch) {
  return Launcher(launch).run();
}

}  // namespace lockstep::harness
