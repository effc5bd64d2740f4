#include "validate/harness/stand_in/multiprocessor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "validate/harness/stand_in/fibre.h"

namespace lockstep::harness::stand_in {
namespace {

constexpr std::size_t lanes = 32;

// Threads that wait for each other: all of a block, or all of a warp.
struct Meeting {
  std::size_t arrived = 0;
  std::source_location place = {};
  int distance = 0;  // of a shuffle

  bool is_at(const std::source_location& other, int other_distance) const {
    return place.line() == other.line() && place.column() == other.column() && distance == other_distance &&
           std::string_view(place.function_name()) == other.function_name();
  }
};

std::string shown(const std::source_location& place) {
  std::string_view file = place.file_name();
  file.remove_prefix(file.find_last_of('/') + 1);
  return fmt::format("{}:{}", file, place.line());
}

struct Thread {
  Fibre* fibre = nullptr;
  bool waits = false;
  bool has_ended = false;
  std::source_location place = {};  // where it waits
};

struct Warp {
  Meeting meeting;
  std::array<unsigned, lanes> given = {};
  std::array<unsigned, lanes> exchanged = {};
};

class Multiprocessor {
 public:
  void seed(std::uint64_t seed) {
    seed_ = seed;
    draws_ = 0;
  }
  void run_grid(dim3 blocks, dim3 threads, const std::function<void()>& kernel);
  void wait_for_block(const std::source_location& place);
  unsigned value_of_lane_beside(unsigned value, int distance, const std::source_location& place);

  // What every fibre does, again and again.
  [[noreturn]] void run_threads();

 private:
  void run_block(const std::function<void()>& kernel);
  void run_ready_threads();
  void resume(std::size_t thread);
  void arrive(Meeting& meeting, const std::source_location& place, int distance);
  void pause(const std::source_location& place);
  void release(std::size_t first, std::size_t end);
  void drop_fibres();
  Fibre* free_fibre();
  std::string who_waits() const;
  std::size_t drawn_below(std::size_t bound) {
    return static_cast<std::size_t>(random_below(keyed_random(seed_, 0, ++draws_), bound));
  }

  std::uint64_t seed_ = 0;
  std::uint64_t draws_ = 0;
  const std::function<void()>* kernel_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::size_t> ready_;
  Meeting barrier_;
  std::size_t current_ = 0;
  std::exception_ptr failure_;
  std::vector<std::unique_ptr<Fibre>> fibres_;
  std::vector<Fibre*> free_fibres_;
};

// One for each thread of the operating system: where a kernel's thread is must be known to functions that
// take no argument, as it is on a GPU.
Multiprocessor& multiprocessor() {
  static thread_local Multiprocessor own;
  return own;
}

void Multiprocessor::run_grid(dim3 blocks, dim3 threads, const std::function<void()>& kernel) {
  LOCKSTEP_CHECK(kernel_ == nullptr, "a kernel starts no other");
  LOCKSTEP_CHECK(blocks.x > 0 && blocks.y > 0 && blocks.y <= 65'535 && blocks.z == 1,
                 "a GPU launches this grid");
  LOCKSTEP_CHECK(threads.x * threads.y <= 1024 && threads.z == 1, "a GPU launches this block");
  std::vector<std::size_t> order(static_cast<std::size_t>(blocks.x) * blocks.y);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[drawn_below(i)]);
  gridDim = blocks;
  blockDim = threads;
  for (const std::size_t block : order) {
    blockIdx = {static_cast<unsigned>(block % blocks.x), static_cast<unsigned>(block / blocks.x), 0};
    run_block(kernel);
  }
}

void Multiprocessor::run_block(const std::function<void()>& kernel) {
  const std::size_t count = blockDim.x * blockDim.y;
  threads_.assign(count, Thread{});
  warps_.assign((count + lanes - 1) / lanes, Warp{});
  ready_.resize(count);
  std::iota(ready_.begin(), ready_.end(), std::size_t{0});
  barrier_ = {};
  kernel_ = &kernel;
  run_ready_threads();
  kernel_ = nullptr;
  if (failure_ == nullptr)
    return;
  drop_fibres();
  std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Multiprocessor::run_ready_threads() {
  while (!ready_.empty() && failure_ == nullptr) {
    std::swap(ready_.back(), ready_[drawn_below(ready_.size())]);
    const std::size_t next = ready_.back();
    ready_.pop_back();
    resume(next);
  }
  const auto has_ended = [](const Thread& thread) { return thread.has_ended; };
  if (failure_ == nullptr && !std::all_of(threads_.begin(), threads_.end(), has_ended))
    failure_ = std::make_exception_ptr(InternalError(who_waits()));
}

void Multiprocessor::resume(std::size_t next) {
  current_ = next;
  threadIdx = {static_cast<unsigned>(next % blockDim.x), static_cast<unsigned>(next / blockDim.x), 0};
  Thread& thread = threads_[next];
  if (thread.fibre == nullptr)
    thread.fibre = free_fibre();
  thread.fibre->resume();
  if (thread.has_ended)
    free_fibres_.push_back(thread.fibre);
}

void Multiprocessor::run_threads() {
  while (true) {
    Fibre* const own = threads_[current_].fibre;
    try {
      (*kernel_)();
    } catch (...) {
      failure_ = std::current_exception();
    }
    threads_[current_].has_ended = true;
    own->pause();
  }
}

Fibre* Multiprocessor::free_fibre() {
  if (free_fibres_.empty()) {
    fibres_.push_back(std::make_unique<Fibre>([] { multiprocessor().run_threads(); }));
    free_fibres_.push_back(fibres_.back().get());
  }
  Fibre* const fibre = free_fibres_.back();
  free_fibres_.pop_back();
  return fibre;
}

// Some stand in the middle of a kernel that will not go on.
void Multiprocessor::drop_fibres() {
  free_fibres_.clear();
  fibres_.clear();
}

void Multiprocessor::arrive(Meeting& meeting, const std::source_location& place, int distance) {
  LOCKSTEP_CHECK(kernel_ != nullptr, "a kernel's thread waits within a kernel");
  if (meeting.arrived++ == 0) {
    meeting.place = place;
    meeting.distance = distance;
  }
  if (!meeting.is_at(place, distance))
    throw InternalError(fmt::format("threads of one block part: one waits at {}, another at {}",
                                    shown(meeting.place), shown(place)));
}

void Multiprocessor::pause(const std::source_location& place) {
  Thread& thread = threads_[current_];
  thread.waits = true;
  thread.place = place;
  thread.fibre->pause();
}

void Multiprocessor::release(std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) {
    if (std::exchange(threads_[i].waits, false))
      ready_.push_back(i);
  }
}

// The last to arrive goes on at once.
void Multiprocessor::wait_for_block(const std::source_location& place) {
  arrive(barrier_, place, 0);
  if (barrier_.arrived < threads_.size())
    return pause(place);
  barrier_.arrived = 0;
  release(0, threads_.size());
}

unsigned Multiprocessor::value_of_lane_beside(unsigned value, int distance,
                                              const std::source_location& place) {
  const std::size_t lane = current_ % lanes;
  const std::size_t first = current_ - lane;
  Warp& warp = warps_[current_ / lanes];
  arrive(warp.meeting, place, distance);
  warp.given[lane] = value;
  if (warp.meeting.arrived < lanes) {
    pause(place);
  } else {
    warp.meeting.arrived = 0;
    warp.exchanged = warp.given;
    release(first, first + lanes);
  }
  return warp.exchanged[lane ^ static_cast<std::size_t>(distance)];
}

std::string Multiprocessor::who_waits() const {
  std::string text = "threads of one block wait for others that will not come:";
  std::size_t ended = 0;
  const Thread* told = nullptr;  // not each of those that wait at one place
  for (const Thread& thread : threads_) {
    ended += thread.has_ended ? 1 : 0;
    if (thread.has_ended || (told != nullptr && told->place.line() == thread.place.line()))
      continue;
    told = &thread;
    text += fmt::format(" thread {} at {},", &thread - threads_.data(), shown(thread.place));
  }
  return fmt::format("{} {} of {} have ended", text, ended, threads_.size());
}

Moves& moves() {
  static thread_local Moves own;
  return own;
}

}  // namespace

void count_move(std::size_t bytes) {
  ++(bytes == 16 ? moves().of_16_bytes : moves().smaller);
}

Moves moves_since_asked() {
  return std::exchange(moves(), {});
}

void seed_threads(std::uint64_t seed) {
  multiprocessor().seed(seed);
}

void run_grid(dim3 blocks, dim3 threads, const std::function<void()>& kernel) {
  multiprocessor().run_grid(blocks, threads, kernel);
}

void wait_for_block(const std::source_location& place) {
  multiprocessor().wait_for_block(place);
}

unsigned value_of_lane_beside(unsigned value, int distance, const std::source_location& place) {
  return multiprocessor().value_of_lane_beside(value, distance, place);
}

}  // namespace lockstep::harness::stand_in
