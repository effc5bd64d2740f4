#pragma once

// Typed indices, and vectors that only their own index opens.
//
// Problem: a rank number used as a link number is the commonest silent error in a simulator of flat arrays.
// Idea: Id<Tag> is a 32-bit index whose type says what it indexes; IdVector<Id, T> accepts no other index.
// Invariant: a default-made Id is invalid, and a vector never grows into the invalid index.
// Cost: none; an IdVector is a std::vector, and its [] checks bounds where the standard library is built to
// check
// (-D_GLIBCXX_ASSERTIONS, as the dev and asan presets do). 32 bits halve the arrays the engine walks.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/check.h"

namespace lockstep {

template <class Tag>
struct Id {
  static constexpr std::uint32_t invalid_index = UINT32_MAX;

  std::uint32_t index = invalid_index;

  constexpr bool is_valid() const { return index != invalid_index; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

// The ids 0 .. size - 1. (std::views::iota would do, were it not that clang 14 cannot read it.)
template <class IdType>
struct IdRange {
  struct Iterator {
    std::uint32_t index;
    IdType operator*() const { return IdType{index}; }
    Iterator& operator++() {
      ++index;
      return *this;
    }
    friend bool operator==(Iterator, Iterator) = default;
  };
  std::uint32_t size;

  Iterator begin() const { return {0}; }
  Iterator end() const { return {size}; }
};

template <class IdType, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t size) : items_(checked_size(size)) {}
  IdVector(std::size_t size, const T& value) : items_(checked_size(size), value) {}

  decltype(auto) operator[](IdType id) { return items_[id.index]; }
  decltype(auto) operator[](IdType id) const { return items_[id.index]; }

  // Appends and returns the id of what was appended.
  IdType push_back(T item) {
    const IdType id{static_cast<std::uint32_t>(checked_size(items_.size() + 1) - 1)};
    items_.push_back(std::move(item));
    return id;
  }
  bool contains(IdType id) const { return id.index < items_.size(); }

  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void reserve(std::size_t size) { items_.reserve(size); }
  void resize(std::size_t size) { items_.resize(checked_size(size)); }
  void resize(std::size_t size, const T& value) { items_.resize(checked_size(size), value); }
  void assign(std::size_t size, const T& value) { items_.assign(checked_size(size), value); }
  void clear() { items_.clear(); }

  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  T* data() { return items_.data(); }
  const T* data() const { return items_.data(); }

  // Every valid id in order: for (const RankId rank : speeds.ids()).
  IdRange<IdType> ids() const { return {static_cast<std::uint32_t>(items_.size())}; }

  friend bool operator==(const IdVector&, const IdVector&) = default;

 private:
  static std::size_t checked_size(std::size_t size) {
    LOCKSTEP_CHECK(size <= IdType::invalid_index, "ids are 32-bit indices");
    return size;
  }

  std::vector<T> items_;
};

}  // namespace lockstep
