#include "sim/base/json_record.h"

#include <algorithm>

namespace lockstep {
namespace {

bool has_elements(const std::map<std::string, JsonNote>& notes, const std::string& place) {
  const auto found = notes.find(place);
  return found != notes.end() && (found->second.has_any_key || found->second.kinds.contains("array"));
}

bool is_index(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == name.npos;
}

// Most questions are asked again and again: nothing is made for one that was.
void add_to(std::set<std::string, std::less<>>& texts, std::string_view text) {
  if (!texts.contains(text))
    texts.emplace(text);
}

void add_choices(JsonNote& note, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (std::find(note.choices.begin(), note.choices.end(), name) == note.choices.end())
      note.choices.push_back(name);
}

// Of an object that was not read as one nothing was asked.
void merge_keys(std::map<std::string, bool, std::less<>>& keys,
                const std::map<std::string, bool, std::less<>>& others) {
  if (keys.empty() || others.empty()) {
    keys.insert(others.begin(), others.end());
    return;
  }
  for (auto& [key, is_required] : keys) {
    const auto other = others.find(key);
    is_required = is_required && other != others.end() && other->second;
  }
  for (const auto& [key, is_required] : others) keys.try_emplace(key, false);
}

void add_minimum(JsonNote& note, double minimum) {
  note.has_minimum &= !note.minimum || *note.minimum == minimum;
  note.minimum = minimum;
}

void merge_notes(JsonNote& note, const JsonNote& other) {
  note.kinds.insert(other.kinds.begin(), other.kinds.end());
  note.quantities.insert(other.quantities.begin(), other.quantities.end());
  merge_keys(note.keys, other.keys);
  add_choices(note, other.choices);
  note.is_free_text |= other.is_free_text;
  note.is_closed |= other.is_closed;
  note.has_any_key |= other.has_any_key;
  if (other.minimum)
    add_minimum(note, *other.minimum);
  note.has_minimum &= other.has_minimum;
}

}  // namespace

std::string JsonRecord::place_of(std::string_view pointer) const {
  std::string place;
  while (!pointer.empty()) {
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    const std::string_view name = pointer.substr(1, end - 1);
    const auto above = notes_.find(place);
    const bool is_of_user = above != notes_.end() && above->second.has_any_key;
    const bool is_any = is_of_user || (is_index(name) && has_elements(notes_, place));
    place += '/';
    place += is_any ? std::string_view("*") : name;
    pointer.remove_prefix(end);
  }
  return place;
}

JsonNote& JsonRecord::at(std::string_view pointer) {
  return notes_[place_of(pointer)];
}

void JsonRecord::note_kind(std::string_view pointer, std::string_view kind) {
  add_to(at(pointer).kinds, kind);
}

void JsonRecord::note_key(std::string_view pointer, std::string_view key, bool is_required) {
  JsonNote& note = at(pointer);
  add_to(note.kinds, "object");
  const auto known = note.keys.find(key);
  if (known == note.keys.end())
    note.keys.emplace(key, is_required);
  else
    known->second = known->second && is_required;
}

void JsonRecord::note_minimum(std::string_view pointer, std::string_view kind, double minimum) {
  JsonNote& note = at(pointer);
  add_to(note.kinds, kind);
  add_minimum(note, minimum);
}

void JsonRecord::note_quantity(std::string_view pointer, std::string_view example) {
  JsonNote& note = at(pointer);
  add_to(note.kinds, "string");
  add_to(note.quantities, example);
}

void JsonRecord::note_choices(std::string_view pointer, const std::vector<std::string>& valid) {
  JsonNote& note = at(pointer);
  add_to(note.kinds, "string");
  add_choices(note, valid);
}

void JsonRecord::merge(const JsonRecord& other) {
  for (const auto& [place, note] : other.notes_) {
    const auto [entry, is_new] = notes_.try_emplace(place, note);
    if (!is_new)
      merge_notes(entry->second, note);
  }
}

}  // namespace lockstep
