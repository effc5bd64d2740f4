#pragma once

// What readers ask of JSON: which keys, of what kind.
//
// Problem:   a description of a file format that is written beside its readers drifts away from them.
// Idea:      a document that is given a record tells it every question its readers put to it; what they accept is
//            what they ask for. A place is a JSON pointer in which "*" stands for any element of an array, and for
//            any member of an object whose keys are the user's.
// Invariant: recording changes no answer. A question that is asked of a missing value counts as well.
// Cost:      a look-up by text a question; none for documents without a record.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

struct JsonNote {
  std::set<std::string, std::less<>> kinds = {};       // "string", "integer", ...: as JSON Schema names them
  std::map<std::string, bool, std::less<>> keys = {};  // asked for; whether one may not leave it out
  std::vector<std::string> choices = {};               // the names that are valid
  std::set<std::string, std::less<>> quantities = {};  // "25 MiB": what a quantity looks like there
  bool is_free_text = false;                           // any string is looked at, not only the choices
  bool is_closed = false;                              // no other key is allowed
  bool has_any_key = false;                            // the keys are the user's
  std::optional<double> minimum = {};                  // of numbers; a maximum often depends on other values
  bool has_minimum = true;                             // it was the same whenever it was asked
};

class JsonRecord {
 public:
  // At the pointer of a value; made where there is none yet.
  JsonNote& at(std::string_view pointer);

  void note_kind(std::string_view pointer, std::string_view kind);
  void note_key(std::string_view pointer, std::string_view key, bool is_required);
  void note_minimum(std::string_view pointer, std::string_view kind, double minimum);
  void note_quantity(std::string_view pointer, std::string_view example);
  void note_choices(std::string_view pointer, const std::vector<std::string>& valid);

  // What another reading asked, too. What one of both leaves unasked nobody must state.
  void merge(const JsonRecord& other);

  // By place.
  const std::map<std::string, JsonNote>& notes() const { return notes_; }
  std::string place_of(std::string_view pointer) const;

 private:
  std::map<std::string, JsonNote> notes_;
};

}  // namespace lockstep
