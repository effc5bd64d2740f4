#pragma once

// A GPU that computes nothing and takes its time: streams, marks, a queue of launches and a host, all in virtual
// seconds. What a measurement reports of it can be compared with what it was given.
//
// Idea:      a host call moves the host's clock by its cost, then the streams up to it. The first operation of
//            each stream runs; computing and traffic slow each other down while both run. A host that waits, or
//            finds the queue of a stream full, goes on when the streams have come that far.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "tests/harness/models/no_device.h"
#include "validate/harness/communication/communicator.h"

namespace lockstep::harness {

// Seconds, of the host unless it says otherwise.
struct VirtualTimes {
  double launch = 5e-6;
  double event = 1e-6;
  double event_creation = 20e-6;
  double query = 0.5e-6;
  double collective_call = 15e-6;
  std::size_t queue = 1024;  // launches of a stream
  std::int64_t cold_launches = 0;
  double cold_launch = 0;  // of each of the first launches: loading, looking for an algorithm

  double kernel = 50e-6;       // of the device, as are all below
  double event_on_device = 0;  // that a mark holds up its stream
  double copy = 160e-6;
  double collective = 60e-6;
  double compute_slowdown = 1;  // while traffic runs
  double traffic_slowdown = 1;  // while computing runs
};

class VirtualStreams {
 public:
  enum Stream : std::size_t { computing, copying, reducing };
  using Event = std::size_t;

  explicit VirtualStreams(const VirtualTimes& times) : times_(times) {}

  void spend(double host_seconds) {
    host_ += host_seconds;
    advance_to(host_);
  }
  void work(Stream stream, double seconds) { push(stream, {.left = seconds}); }
  Event record(Stream stream) {
    if (times_.event_on_device > 0)
      work(stream, times_.event_on_device);
    events_.push_back(not_passed);
    push(stream, {.kind = Kind::event, .event = events_.size() - 1});
    return events_.size() - 1;
  }
  void wait(Stream stream, Event event) { push(stream, {.kind = Kind::wait, .event = event}); }

  bool has_passed(Event event) {
    settle();
    return events_[event] != not_passed;
  }
  double wait_for(Event event) {
    while (!has_passed(event)) step();
    return events_[event];
  }
  void drain(Stream stream) {
    for (settle(); !streams_[stream].empty(); settle()) step();
  }

 private:
  static constexpr double not_passed = -1;
  enum class Kind : std::uint8_t { work, event, wait };
  struct Operation {
    Kind kind = Kind::work;
    double left = 0;
    Event event = 0;
  };

  void push(Stream stream, const Operation& operation) {
    while (streams_[stream].size() >= times_.queue) step();
    streams_[stream].push_back(operation);
    settle();
  }

  bool runs(std::size_t stream) const {
    return !streams_[stream].empty() && streams_[stream].front().kind == Kind::work;
  }
  double slowdown(std::size_t stream) const {
    if (stream != computing)
      return runs(computing) ? times_.traffic_slowdown : 1;
    return runs(copying) || runs(reducing) ? times_.compute_slowdown : 1;
  }
  double next_end() const {
    double end = std::numeric_limits<double>::infinity();
    for (std::size_t stream = 0; stream < streams_.size(); ++stream)
      if (runs(stream))
        end = std::min(end, now_ + streams_[stream].front().left * slowdown(stream));
    return end;
  }

  // Events pass, and waits end, as soon as they are first in their stream.
  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& stream : streams_)
        for (; !stream.empty() && stream.front().kind != Kind::work; moved = true) {
          const Operation& first = stream.front();
          if (first.kind == Kind::wait && events_[first.event] == not_passed)
            break;
          if (first.kind == Kind::event)
            events_[first.event] = now_;
          stream.pop_front();
        }
    }
  }

  void run_until(double time) {
    const std::array<double, 3> slowdowns = {slowdown(0), slowdown(1), slowdown(2)};
    for (std::size_t stream = 0; stream < streams_.size(); ++stream)
      if (runs(stream)) {
        Operation& first = streams_[stream].front();
        first.left -= (time - now_) / slowdowns[stream];
        if (first.left < 1e-12)
          streams_[stream].pop_front();
      }
    now_ = time;
    settle();
  }

  void advance_to(double time) {
    for (double end = next_end(); end <= time; end = next_end()) run_until(end);
    run_until(time);
  }

  // The host waits for whatever ends next.
  void step() {
    const double end = next_end();
    REQUIRE_MESSAGE(end < std::numeric_limits<double>::infinity(), "nothing runs that could be waited for");
    run_until(end);
    host_ = now_;
  }

  VirtualTimes times_;
  double host_ = 0;
  double now_ = 0;  // of the streams; never behind the host
  std::array<std::deque<Operation>, 3> streams_;
  std::vector<double> events_;
};

// Events in the order they were recorded; more than were reserved cost the host their creation.
class VirtualEvents {
 public:
  VirtualEvents(VirtualStreams& streams, const VirtualTimes& times) : streams_(streams), times_(times) {}

  std::uint32_t record(VirtualStreams::Stream stream) {
    reserve(1);
    streams_.spend(times_.event);
    events_.push_back(streams_.record(stream));
    return static_cast<std::uint32_t>(events_.size() - 1);
  }
  VirtualStreams::Event at(std::uint32_t index) const { return events_.at(index); }
  void reserve(std::int64_t count) {
    for (; created_ < events_.size() + static_cast<std::size_t>(count); ++created_)
      streams_.spend(times_.event_creation);
  }
  void forget() { events_.clear(); }

 private:
  VirtualStreams& streams_;
  VirtualTimes times_;
  std::vector<VirtualStreams::Event> events_;
  std::size_t created_ = 0;
};

class VirtualGpu : public NoDevice {
 public:
  explicit VirtualGpu(const VirtualTimes& times) : times_(times), streams_(times), marks_(streams_, times) {}

  std::string name() const override { return "virtual"; }
  bool runs_ahead() const override { return true; }
  bool copy_beside(Tensor, Tensor) override {
    streams_.spend(times_.launch);
    streams_.work(VirtualStreams::copying, times_.copy);
    return true;
  }
  Mark mark() override { return {marks_.record(VirtualStreams::computing)}; }
  Mark mark_beside() override { return {marks_.record(VirtualStreams::copying)}; }
  double seconds_between(Mark from, Mark to) override {
    const double begin = streams_.wait_for(marks_.at(from.index));
    return streams_.wait_for(marks_.at(to.index)) - begin;
  }
  bool has_passed(Mark mark) override {
    streams_.spend(times_.query);
    return streams_.has_passed(marks_.at(mark.index));
  }
  void reserve_marks(std::int64_t count) override { marks_.reserve(count); }
  void forget_marks() override { marks_.forget(); }
  void synchronize() override {
    streams_.drain(VirtualStreams::computing);
    streams_.drain(VirtualStreams::copying);
  }

  std::int64_t launches() const { return launches_; }
  VirtualStreams& streams() { return streams_; }
  VirtualEvents& marks() { return marks_; }
  const VirtualTimes& times() const { return times_; }

 protected:
  void work() override {
    streams_.spend(times_.launch + (launches_ < times_.cold_launches ? times_.cold_launch : 0));
    streams_.work(VirtualStreams::computing, times_.kernel);
    ++launches_;
  }

 private:
  VirtualTimes times_;
  VirtualStreams streams_;
  VirtualEvents marks_;
  std::int64_t launches_ = 0;
};

// Two ranks, of which the other is always there in time.
class VirtualCommunicator : public Communicator {
 public:
  explicit VirtualCommunicator(VirtualGpu& gpu) : gpu_(gpu), events_(gpu.streams(), gpu.times()) {}

  int rank() const override { return 0; }
  int size() const override { return 2; }
  std::string library() const override { return "virtual"; }

  Ticket start_all_reduce(Tensor values) override {
    order_after_computing();
    return start(values);
  }
  Ticket start_all_reduce_beside(Tensor values) override {
    if (!starts_at_once)
      order_after_computing();
    return start(values);
  }
  Ticket start_broadcast(Tensor values, int) override { return start_all_reduce(values); }
  void wait(Ticket ticket) override {
    gpu_.streams().spend(gpu_.times().event);
    gpu_.streams().wait(VirtualStreams::computing, events_.at(2 * ticket.index + 1));
  }
  bool has_ended(Ticket ticket) override {
    gpu_.streams().spend(gpu_.times().query);
    return gpu_.streams().has_passed(events_.at(2 * ticket.index + 1));
  }
  void reserve_tickets(std::int64_t count) override { events_.reserve(2 * count); }
  void forget_tickets() override { events_.forget(); }
  CollectiveTimes times_of(Ticket ticket, Mark since) override {
    const double origin = gpu_.streams().wait_for(gpu_.marks().at(since.index));
    return {.start = gpu_.streams().wait_for(events_.at(2 * ticket.index)) - origin,
            .end = gpu_.streams().wait_for(events_.at(2 * ticket.index + 1)) - origin};
  }

  bool starts_at_once = true;  // else traffic waits for the computing before it, as a step's all-reduces do

 private:
  void order_after_computing() {
    gpu_.streams().spend(gpu_.times().event);
    gpu_.streams().wait(VirtualStreams::reducing, gpu_.streams().record(VirtualStreams::computing));
  }
  Ticket start(Tensor) {
    const std::uint32_t begin = events_.record(VirtualStreams::reducing);
    gpu_.streams().spend(gpu_.times().collective_call);
    gpu_.streams().work(VirtualStreams::reducing, gpu_.times().collective);
    events_.record(VirtualStreams::reducing);
    return {begin / 2};
  }

  VirtualGpu& gpu_;
  VirtualEvents events_;
};

}  // namespace lockstep::harness
