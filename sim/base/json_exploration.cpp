#include "sim/base/json_exploration.h"

#include <algorithm>
#include <deque>
#include <string_view>
#include <utility>

#include "sim/base/error.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// Of a kind, as a record names it. An object with a key, since the keys of some are the user's; "based_on" is one that
// changes of a profile have.
std::vector<ordered_json> values_of(std::string_view kind) {
  if (kind == "object")
    return {ordered_json::object(), ordered_json{{"based_on", "?"}}};
  if (kind == "array")
    return {ordered_json::array({"?"})};
  if (kind == "boolean")
    return {true};
  return {kind == "string" ? ordered_json("?") : ordered_json(1)};
}

// Where `place` is in this document; the parts that are not there are made. Null: it leads through another value.
ordered_json* value_at(ordered_json& document, std::string_view place) {
  ordered_json* value = &document;
  while (!place.empty()) {
    const std::size_t end = std::min(place.find('/', 1), place.size());
    const std::string name(place.substr(1, end - 1));
    place.remove_prefix(end);
    if (value->is_null())
      *value = ordered_json::object();
    if (name == "*" && value->is_structured())
      value = value->empty() ? nullptr : &value->front();
    else
      value = value->is_object() ? &(*value)[name] : nullptr;
    if (value == nullptr)
      return nullptr;
  }
  return value;
}

class Exploration {
 public:
  explicit Exploration(const RecordedReading& read) : read_(read) {}

  JsonRecord find(const std::vector<ordered_json>& seeds) {
    waiting_.assign(seeds.begin(), seeds.end());
    for (; !waiting_.empty(); waiting_.pop_front()) visit(waiting_.front());
    return std::move(found_);
  }

 private:
  void visit(const ordered_json& document) {
    JsonRecord record;
    try {
      read_(document, record);
    } catch (const ConfigError&) {  // what was asked until then counts
    }
    found_.merge(record);
    for (const auto& [place, note] : record.notes()) {
      for (const auto& [key, is_required] : note.keys) ask_kinds_of(place + "/" + key, document);
      if (place.empty())
        continue;
      ask_kinds_of(place, document);
      for (const std::string& kind : note.kinds)
        attempt(place + ":" + kind, document, place, values_of(kind));
      for (const std::string& name : note.choices) attempt(place + "=" + name, document, place, {name});
    }
  }

  // A value that is of none is asked for each.
  void ask_kinds_of(const std::string& place, const ordered_json& document) {
    attempt(place, document, place, {ordered_json::binary({})});
  }

  // Once, in the first document that can have something there.
  void attempt(const std::string& what, const ordered_json& document, const std::string& place,
               const std::vector<ordered_json>& values) {
    if (tried_.contains(what))
      return;
    for (const ordered_json& value : values) {
      ordered_json changed = document;
      ordered_json* target = value_at(changed, place);
      if (target == nullptr)
        return;
      *target = value;
      waiting_.push_back(std::move(changed));
    }
    tried_.insert(what);
  }

  const RecordedReading& read_;
  JsonRecord found_;
  std::deque<ordered_json> waiting_;
  std::set<std::string> tried_;
};

}  // namespace

JsonRecord explore(const RecordedReading& read, const std::vector<ordered_json>& seeds) {
  return Exploration(read).find(seeds);
}

}  // namespace lockstep
