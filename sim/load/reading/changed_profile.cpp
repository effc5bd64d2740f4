#include "sim/load/reading/changed_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "sim/base/json_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

bool states_a_whole(const ordered_json& object) {
  return object.contains("name") || object.contains("kind") ||
         (object.contains("bandwidth") && object.contains("latency"));
}

std::optional<std::size_t> index_of(const std::string& key) {
  std::size_t index = 0;
  const char* end = key.data() + key.size();
  const auto [rest, error] = std::from_chars(key.data(), end, index);
  return error == std::errc{} && rest == end ? std::optional(index) : std::nullopt;
}

bool has_indices_alone(const ordered_json& object) {
  const auto& members = object.get_ref<const ordered_json::object_t&>();
  return std::all_of(members.begin(), members.end(),
                     [](const auto& member) { return index_of(member.first).has_value(); });
}

class Layering {
 public:
  explicit Layering(ChangedDocument& document) : document_(document) {}

  ordered_json lay(const ordered_json& base, const ordered_json& change, const std::string& pointer) {
    if (!change.is_object()) {
      return replace(base, change, pointer);
    }
    if (base.is_string() && change.contains(base_key)) {
      replace(base, change[std::string(base_key)], pointer);
      return change;
    }
    if (base.is_string()) {
      return states_a_whole(change) ? replace(base, change, pointer) : based_on(base, change);
    }
    if (base.is_array()) {
      return lay_over_list(base, change, pointer);
    }
    return base.is_object() ? lay_over_object(base, change, pointer) : replace(base, change, pointer);
  }

 private:
  ordered_json replace(const ordered_json& base, const ordered_json& change, const std::string& pointer) {
    if (base != change) {
      document_.values.push_back({.path = dotted(pointer), .value = change, .before = base});
    }
    return change;
  }

  // Noted where that profile is read.
  static ordered_json based_on(const ordered_json& name, const ordered_json& change) {
    ordered_json derived{{std::string(base_key), name}};
    derived.update(change);
    return derived;
  }

  ordered_json lay_over_object(const ordered_json& base, const ordered_json& change,
                               const std::string& pointer) {
    ordered_json result = base;
    for (const auto& [key, value] : change.items()) {
      const auto stated = base.find(key);
      result[key] =
          lay(stated == base.end() ? ordered_json() : *stated, value, extended_pointer(pointer, key));
    }
    return result;
  }

  ordered_json lay_over_list(const ordered_json& base, const ordered_json& change,
                             const std::string& pointer) {
    if (!has_indices_alone(change)) {
      return lay_over_alike(base, change, pointer);
    }
    ordered_json result = base;
    for (const auto& [key, value] : change.items()) {
      const std::size_t index = *index_of(key);
      const std::string place = extended_pointer(pointer, key);
      if (index < base.size()) {
        result[index] = lay(base[index], value, place);
      } else {
        document_.problems.push_back(
            fmt::format("{}: found no such element, expected an index below {}", place, base.size()));
      }
    }
    return result;
  }

  // As one: its elements are NICs that are alike, or it is stated anew.
  ordered_json lay_over_alike(const ordered_json& base, const ordered_json& change,
                              const std::string& pointer) {
    if (const ordered_json nics = short_form_of_nics(base); !nics.is_null()) {
      return lay_over_object(nics, change, pointer);
    }
    if (!change.contains("count") || !change.contains("link")) {
      document_.problems.push_back(
          fmt::format("{}: found a list whose elements differ, expected the index of one of them, below {}",
                      pointer, base.size()));
    }
    return replace(base, change, pointer);
  }

  static std::string dotted(const std::string& pointer) {
    std::string path = pointer.substr(std::min<std::size_t>(1, pointer.size()));
    std::replace(path.begin(), path.end(), '/', '.');
    return path;
  }

  ChangedDocument& document_;
};

}  // namespace

ChangedDocument lay_over(const ordered_json& base, const ordered_json& changes) {
  ChangedDocument document;
  document.value = Layering(document).lay(base, changes, "");
  return document;
}

ordered_json short_form_of_nics(const ordered_json& nics) {
  if (!nics.is_array() || nics.empty() || !nics.front().is_object() || !nics.front().contains("link")) {
    return nullptr;
  }
  const ordered_json& link = nics.front()["link"];
  const bool are_alike = std::all_of(nics.begin(), nics.end(), [&](const ordered_json& nic) {
    return nic.is_object() && nic.contains("link") && nic["link"] == link;
  });
  return are_alike ? ordered_json{{"count", nics.size()}, {"link", link}} : ordered_json();
}

}  // namespace lockstep
