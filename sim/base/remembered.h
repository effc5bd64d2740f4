#pragma once

// What was found once and may be asked for again, by name.
//
// Problem:   threads that predict alike scenarios find the same things again and again.
// Idea:      who finds something may leave it here, as long as there is room; who comes later reads it.
// Invariant: what is left under one name is always the same, so that nobody can tell who left it, or whether
//            it was there; nothing is taken out again, so that what `find` returns lives as long as this does.
// Cost:      a lock and a look-up.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace lockstep {

template <class Value>
class Remembered {
 public:
  // `room`: sizes of all that is kept together, in whatever unit `keep` is told.
  explicit Remembered(std::int64_t room) : room_(room) {}

  const Value* find(const std::string& name) const {
    const std::scoped_lock lock(mutex_);
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
  }

  void keep(const std::string& name, const Value& value, std::int64_t size) {
    const std::scoped_lock lock(mutex_);
    if (size <= room_ && values_.try_emplace(name, value).second)
      room_ -= size;
  }

 private:
  mutable std::mutex mutex_;  // guards all below
  std::int64_t room_;         // left
  std::map<std::string, Value> values_;
};

}  // namespace lockstep
