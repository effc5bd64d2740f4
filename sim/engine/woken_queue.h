#pragma once

// A queue whose user is woken when the next of what it holds is done.
//
// Problem:   who comes and goes moves the moment at which the next one is done, and events cannot be taken
//            back.
// Idea:      one alarm at a time. A later moment need not be announced: the alarm that goes off too early
//            finds nobody done and is set anew; an earlier moment gets an alarm that takes the old one's
//            place.
// Invariant: an alarm that lost its place does nothing.
// Cost:      that of the queue, and an event for every time the next moment comes nearer.

#include <optional>
#include <utility>

#include "sim/engine/event_queue.h"

namespace lockstep {

template <class Queue>
class WokenQueue {
 public:
  // Its alarms are events of this tag.
  template <class... Arguments>
  explicit WokenQueue(std::uint32_t tag, Arguments... arguments) : queue_(arguments...), tag_(tag) {}

  const Queue& queue() const { return queue_; }

  void start(std::uint32_t id, Duration work, EventQueue& events) {
    queue_.start(id, work, events.now());
    set_alarm(events);
  }

  // At an alarm: hands everybody who is done to `done`, which may start others.
  template <class Done>
  void wake(EventQueue& events, Done done) {
    if (alarm_ != events.now())
      return;
    alarm_.reset();
    while (queue_.next_finish() && *queue_.next_finish() <= events.now()) done(queue_.finish(events.now()));
    set_alarm(events);
  }

 private:
  void set_alarm(EventQueue& events) {
    const std::optional<Time> next = queue_.next_finish();
    if (!next || (alarm_ && *alarm_ <= *next))
      return;
    alarm_ = next;
    events.push(*next, 0, tag_);
  }

  Queue queue_;
  std::uint32_t tag_;
  std::optional<Time> alarm_;
};

}  // namespace lockstep
