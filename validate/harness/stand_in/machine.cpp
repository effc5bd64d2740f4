#include "validate/harness/stand_in/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/failure.h"
#include "validate/harness/stand_in/call.h"

namespace lockstep::harness::stand_in {

Machine* Machine::current_ = nullptr;

ThreadState& this_thread() {
  thread_local ThreadState state;
  return state;
}

Machine& Machine::current() {
  if (current_ != nullptr)
    return *current_;
  static Machine of_one_rank({});
  if (this_thread().host == nullptr)
    of_one_rank.begin_rank(0);
  return of_one_rank;
}

void Machine::begin_rank(int rank) {
  this_thread() = {.host = &hosts_[static_cast<std::size_t>(rank)]};
  Turns::Lock lock = turns_.lock();
  turns_.begin(lock, rank);
}

Machine::Machine(MachineOptions options)
    : options_(std::move(options)),
      hosts_(static_cast<std::size_t>(options_.ranks)),
      memory_(options_.bytes_of_gpu, options_.computes),
      streams_(options_.gpus, options_.computes, memory_, collectives_,
               {.report = [this](const std::string& finding) { report(finding); },
                .new_line = [this] { return lines_++; }}),
      order_(options_.seed, streams_),
      counts_(options_.failing),
      turns_(options_.ranks,
             {.choose = [this](const std::vector<int>& ready) { return choose(ready); },
              .move_world = [this](const std::vector<int>& ready) { return move_world(ready); },
              .woken =
                  [this](int rank) {
                    Host& host = hosts_[static_cast<std::size_t>(rank)];
                    if (clock_)
                      host.seconds = std::max(host.seconds, clock_->now());
                  },
              .hang = [this] { hang(); }}) {
  if (options_.clock)
    clock_.emplace(*options_.clock, streams_);
  for (int rank = 0; rank < options_.ranks; ++rank)
    hosts_[static_cast<std::size_t>(rank)] = {.rank = rank, .line = lines_++};
}

std::vector<RankEnd> Machine::run(const std::function<void(int rank)>& function) {
  LOCKSTEP_CHECK(current_ == nullptr, "one machine runs at a time");
  current_ = this;
  std::vector<RankEnd> ends(hosts_.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options_.ranks; ++rank)
    threads.emplace_back([&, rank] { ends[static_cast<std::size_t>(rank)] = run_rank(rank, function); });
  for (std::thread& thread : threads) thread.join();
  current_ = nullptr;
  return ends;
}

RankEnd Machine::run_rank(int rank, const std::function<void(int rank)>& function) {
  begin_rank(rank);
  RankEnd end;
  try {
    function(rank);
  } catch (...) {
    const Failure failure = describe_failure();
    end = {.exit_code = failure.exit_code, .lines = failure.lines};
  }
  Turns::Lock lock = turns_.lock();
  turns_.end(lock, rank);
  return end;
}

std::map<std::string, std::int64_t> Machine::leaks() const {
  std::map<std::string, std::int64_t> left;
  for (const auto& [kind, count] : live_)
    if (count != 0)
      left.emplace(kind, count);
  if (memory_.count_live() > 0)
    left.emplace("memory", memory_.count_live());
  return left;
}

double Machine::earliest(const std::vector<int>& ready) const {
  double seconds = std::numeric_limits<double>::infinity();
  for (const int rank : ready) seconds = std::min(seconds, hosts_[static_cast<std::size_t>(rank)].seconds);
  return seconds;
}

int Machine::choose(const std::vector<int>& ready) {
  if (!clock_)
    return ready[order_.draw(ready.size())];
  const double seconds = earliest(ready);
  return *std::find_if(ready.begin(), ready.end(),
                       [&](int rank) { return hosts_[static_cast<std::size_t>(rank)].seconds <= seconds; });
}

bool Machine::move_world(const std::vector<int>& ready) {
  if (is_broken())
    return false;
  if (clock_)
    return clock_->step(earliest(ready));
  return (ready.empty() || order_.is_eager()) && order_.step();
}

void Machine::hang() {
  std::string waiting;
  for (const Host& host : hosts_)
    if (!host.waits_for.empty())
      waiting += fmt::format("{}rank {} in {}", waiting.empty() ? "" : ", ", host.rank, host.waits_for);
  report("nothing can go on any more: " + waiting);
}

}  // namespace lockstep::harness::stand_in
