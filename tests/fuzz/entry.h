#pragma once

// What reads strangers' bytes, as a list: one entry a reader.
//
// Problem:   a file that nobody thought of must be read or refused, never end the program.
// Idea:      each reader is a function of bytes with a name and seeds from the repository. libFuzzer calls it with what
//            it finds (fuzzer.cpp); the law suite calls it with its seeds and a few hundred changes of them.
// Invariant: an entry ends in one of two ways: the bytes are taken, or they are refused as their user's mistake, with
//            at least one line that says why. Anything else leaves `read_bytes` as an exception. What an entry does
//            depends on the bytes alone.

#include <functional>
#include <string>
#include <vector>

namespace lockstep::fuzz {

enum class Form { json, text };

struct Entry {
  std::string name;
  Form form = Form::text;          // how its bytes are changed: value by value, or letter by letter
  std::vector<std::string> seeds;  // files, folders and FOLDER/*.json, from the repository's root
  std::function<void(const std::string& bytes)> read;
  bool takes_every_seed = true;  // as it stands in the repository
};

// Sorted by name; every registered importer is one of them.
const std::vector<Entry>& entries();

// Null: there is none.
const Entry* find_entry(const std::string& name);

// Paths, sorted, of the files in its folders and of its files.
std::vector<std::string> seed_files(const Entry& entry);

std::string bytes_of_file(const std::string& path);

enum class Answer { taken, refused };

Answer read_bytes(const Entry& entry, const std::string& bytes);

}  // namespace lockstep::fuzz
