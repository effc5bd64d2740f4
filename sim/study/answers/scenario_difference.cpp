#include "sim/study/answers/scenario_difference.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/base/json_text.h"
#include "sim/load/reading/changed_profile.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Pointer = ordered_json::json_pointer;

const std::string base_name(base_key);

// One place of one scenario: what is stated there, null where nothing is, and what it came to.
struct Side {
  const LoadedScenario& scenario;
  ordered_json stated;
  std::string pointer = {};

  const ordered_json* resolved() const {
    const Pointer place(pointer);
    return scenario.resolved.contains(place) ? &scenario.resolved.at(place) : nullptr;
  }
  Side below(const std::string& key) const {
    const bool is_there = stated.is_object() && stated.contains(key);
    return {scenario, is_there ? stated.at(key) : ordered_json(), extended_pointer(pointer, key)};
  }
};

// Of the nearest place at or above.
std::string origin_of(const Side& side) {
  if (!side.stated.is_null())
    return "given";
  for (std::string place = side.pointer;; place.erase(place.rfind('/'))) {
    if (side.scenario.provenance.contains(place))
      return side.scenario.provenance[place].get<std::string>();
    if (place.empty())
      return "";
  }
}

DifferingValue value_of(const Side& side) {
  const ordered_json* resolved = side.resolved();
  const bool follows = side.stated.is_null() && resolved != nullptr;
  return {.value = follows ? *resolved : side.stated, .origin = origin_of(side)};
}

bool has_dotted_key(const ordered_json& value) {
  const auto items = value.items();
  return std::any_of(items.begin(), items.end(),
                     [](const auto& item) { return item.key().find('.') != std::string::npos; });
}

bool states_a_choice(const ordered_json& value) {
  constexpr std::array keys{"name", "kind", "distribution"};
  return value.contains(base_key) ||
         std::any_of(keys.begin(), keys.end(), [&](const char* key) { return value.contains(key); });
}

// {"based_on": name} is what a name becomes when something below it is changed.
void open_name(Side& name, const Side& other) {
  if (name.stated.is_string() && other.stated.is_object() && other.stated.contains(base_key))
    name.stated = {{base_name, name.stated}};
}

bool is_model(const std::string& pointer) {
  return pointer == "/model";
}

bool is_another_choice(const Side& a, const Side& b) {
  if (is_model(a.pointer) || a.stated.contains(base_key) || b.stated.contains(base_key))
    return false;
  for (const char* key : {"name", "kind", "distribution"})
    if (a.stated.value(key, ordered_json()) != b.stated.value(key, ordered_json()))
      return !a.pointer.empty();
  return false;
}

bool may_be_entered(const Side& side, const Side& other) {
  if (side.stated.is_object())
    return !has_dotted_key(side.stated);
  return side.stated.is_null() && side.resolved() != nullptr && side.resolved()->is_object() &&
         (is_model(side.pointer) || !states_a_choice(other.stated));
}

bool are_entered(const Side& a, const Side& b) {
  const bool is_section = a.stated.is_object() || b.stated.is_object();
  if (!is_section || !may_be_entered(a, b) || !may_be_entered(b, a))
    return false;
  return !a.stated.is_object() || !b.stated.is_object() || !is_another_choice(a, b);
}

bool mean_the_same(const Side& a, const Side& b) {
  return a.resolved() != nullptr && b.resolved() != nullptr && *a.resolved() == *b.resolved();
}

std::string dotted(std::string pointer) {
  std::replace(pointer.begin(), pointer.end(), '/', '.');
  return pointer.empty() ? pointer : pointer.substr(1);
}

constexpr std::array<const char*, 2> measured_steps{"single_gpu_iteration", "anchors"};

// What tells of a scenario, and what is compared once the rest is alike.
bool is_no_part(const std::string& pointer) {
  constexpr std::array<std::string_view, 5> apart{"/name", "/description", "/source",
                                                  "/compute/single_gpu_iteration", "/compute/anchors"};
  return std::find(apart.begin(), apart.end(), pointer) != apart.end();
}

ScenarioDifference difference_of(const Side& a, const Side& b) {
  const std::size_t base = a.pointer.rfind("/" + base_name);
  return {
      .path = dotted(a.pointer.substr(0, base)), .a = value_of(a), .b = value_of(b), .set = b.stated.dump()};
}

class DifferenceWalk {
 public:
  std::vector<ScenarioDifference> find(const LoadedScenario& a, const LoadedScenario& b) {
    walk({a, a.given}, {b, b.given});
    return std::move(found_);
  }

 private:
  void walk(Side a, Side b) {
    open_name(a, b);
    open_name(b, a);
    if (a.pointer.empty() || are_entered(a, b))
      enter(a, b);
    else
      compare(a, b);
  }

  void enter(const Side& a, const Side& b) {
    for (const std::string& key : keys_of_both(a, b)) walk(a.below(key), b.below(key));
  }

  void compare(const Side& a, const Side& b) {
    if (is_no_part(a.pointer) || a.stated == b.stated)
      return;
    found_.push_back(difference_of(a, b));
    found_.back().means_the_same = mean_the_same(a, b);
  }

  static std::vector<std::string> keys_of_both(const Side& a, const Side& b) {
    std::vector<std::string> keys;
    for (const Side* side : {&a, &b})
      if (side->stated.is_object())
        for (const auto& item : side->stated.items())
          if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
            keys.push_back(item.key());
    return keys;
  }

  std::vector<ScenarioDifference> found_ = {};
};

}  // namespace

std::vector<ScenarioDifference> find_differences(const LoadedScenario& a, const LoadedScenario& b) {
  return DifferenceWalk().find(a, b);
}

std::vector<ScenarioDifference> find_other_steps(const LoadedScenario& changed, const LoadedScenario& b) {
  const Side of_a = Side{changed, changed.given}.below("compute");
  const Side of_b = Side{b, b.given}.below("compute");
  std::vector<ScenarioDifference> found;
  for (const char* key : measured_steps) {
    const Side step = of_a.below(key);
    const Side other = of_b.below(key);
    if (step.stated == other.stated || mean_the_same(step, other))
      continue;
    found.push_back(difference_of(step, other));
    found.back().stands_on_others = true;
  }
  return found;
}

}  // namespace lockstep
