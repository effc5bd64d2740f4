#pragma once

// What other tools know of a model, a machine or a training run, as Lockstep's own files.
//
// Problem:   users already hold files that say what they train and on what (a Hugging Face config.json, the output of
//            nvidia-smi topo -m, a profiler's trace); writing it all again by hand is work, and mistakes.
// Idea:      one importer a kind of file, registered by name like a collective. It writes the JSON that a user could
//            have written; the readers of that JSON check it, so that defaults, errors and provenance come free. The
//            same importers stand below `load`: where a scenario names a file, what is recognised is imported in place.
// Invariant: an importer says of every key of its file whether it is used, left aside (and why), or refused; nothing is
//            dropped silently. It reads a file once, front to back, in memory that does not grow with a trace's length.
//            What a file does not say (which GPU a topology is of) is asked for by name, never guessed.
// Errors:    ConfigError with the file and the line or key.

#include <cstdint>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/registry.h"
#include "sim/base/units.h"
#include "sim/load/import/profile_shelf.h"

namespace lockstep {

enum class KeyFate { used, left_aside, refused };

// One key (or column, argument, line) of the file that was read.
struct KeyUse {
  std::string key;
  KeyFate fate = KeyFate::used;
  std::string said = {};  // what it became ("layers"), or why it is left aside or refused
};

struct ImportRequest {
  std::string file_name;  // for messages
  std::istream& file;     // as it lies on the disk: an importer of packed files unpacks it
  nlohmann::ordered_json stated =
      nlohmann::ordered_json::object();    // what its user adds: --set gpu=h100_sxm_80gb
  const ProfileShelf* profiles = nullptr;  // null: none are at hand
};

// What the file does not say and `stated` has to: asked for together, each with the --set that answers it.
struct Question {
  std::string path;     // "training.global_batch", "gpu": where the answer belongs in what is made
  std::string example;  // "256", "h100_sxm_80gb"
  std::string why;      // "train_batch_size is \"auto\""
};

// `log`: what another library did, to be set beside what Lockstep would do; nothing reads it as input.
enum class ImportedThing { model, machine, scenario, plan, log };

// A collective that the file shows as it was run: what it took, beside what will be predicted.
struct ObservedCollective {
  std::string kind;        // as nccl-tests spells it: "all_reduce"
  std::int64_t bytes = 0;  // as nccl-tests counts them
  double calls = 0;        // a step
  Duration time;           // the median
};

struct Imported {
  nlohmann::ordered_json document;  // what `lockstep` reads; `stated` is laid over it by the caller
  std::vector<KeyUse> keys;
  std::vector<Question> questions = {};
  std::vector<std::string> warnings = {};  // also what is left aside and matters
  std::vector<ObservedCollective> collectives = {};
  std::optional<ImportedThing> makes = {};  // where that depends on what is stated; else as the importer says
  std::string report = {};                  // what is worth printing beside it, in lines; empty: nothing
  // Outermost keys of `stated` that were answers to a question and are no keys of what is made: not laid over it.
  std::vector<std::string> answered = {};
};

struct Importer {
  Imported (*import)(const ImportRequest& request) = nullptr;
  // Whether a file that begins like this is of the kind; null: it is not told from others and imported by name only.
  bool (*recognises)(std::string_view beginning) = nullptr;
  ImportedThing makes = ImportedThing::model;
  std::string description;  // "config.json of a Hugging Face model"
  // The outermost keys of `stated` that change what it makes; others need no second reading of the file.
  std::vector<std::string> asks_for = {};
  // The file that stands for a path of several: NAME.0.et for NAME. Null: each path is a file.
  std::string (*first_file)(const std::string& path) = nullptr;
};

}  // namespace lockstep
