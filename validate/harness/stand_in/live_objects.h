#pragma once

// The handles and descriptors a fake library has given out.
//
// Idea:      whoever holds one holds a pointer, as with the real library; the object belongs to this list
//            until it is ended, so that one that was ended, or never made, is told from one that lives.
// Invariant: what lives is counted under its kind: what is left at the end is a leak.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "validate/harness/stand_in/operation.h"

namespace lockstep::harness::stand_in {

template <class Object>
class LiveObjects {
 public:
  explicit LiveObjects(const char* kind) : kind_(kind) {}

  Object* make() {
    const std::lock_guard lock(mutex_);
    auto object = std::make_unique<Object>();
    Object* const address = object.get();
    objects_.emplace(address, std::move(object));
    count_live(kind_, 1);
    return address;
  }

  // False where there is no such object.
  bool end(const Object* object) {
    const std::lock_guard lock(mutex_);
    if (objects_.erase(object) == 0)
      return false;
    count_live(kind_, -1);
    return true;
  }

  bool holds(const Object* object) const {
    const std::lock_guard lock(mutex_);
    return objects_.contains(object);
  }

 private:
  const char* kind_;
  mutable std::mutex mutex_;
  std::map<const Object*, std::unique_ptr<Object>> objects_;
};

}  // namespace lockstep::harness::stand_in
