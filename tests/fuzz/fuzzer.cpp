// libFuzzer's entry points: `lockstep_fuzz NAME [FOLDER] [-libFuzzer's=options]`.
//
// Idea:      the first argument names the reader; its seeds in the repository are put behind the others, so that what is
//            found goes into FOLDER and never into the repository. Half of the changes of a JSON file are made value by
//            value, all others by libFuzzer.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "tests/fuzz/entry.h"
#include "tests/fuzz/mutation.h"
#include "tests/fuzz/scratch.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace lockstep::fuzz {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uintmax_t largest_seed = 48 << 10;  // beyond it an execution says little for its time

// What stays from LLVMFuzzerInitialize on.
struct Run {
  const Entry* entry = nullptr;
  Material material = {};
  std::vector<std::string> arguments = {};
  std::vector<char*> pointers = {};
};

Run& run() {
  static Run the_run;
  return the_run;
}

std::vector<Json> documents_of(const Entry& entry) {
  std::vector<Json> documents;
  for (const std::string& file : seed_files(entry))
    if (Json document = Json::parse(bytes_of_file(file), nullptr, false, true); !document.is_discarded())
      documents.push_back(std::move(document));
  return documents;
}

[[noreturn]] void refuse_arguments() {
  std::fputs("usage: lockstep_fuzz NAME [FOLDER] [libFuzzer's options]\nNAME:", stderr);
  for (const Entry& entry : entries()) std::fprintf(stderr, " %s", entry.name.c_str());
  std::fputs("\n", stderr);
  std::exit(2);
}

void list_entries() {
  for (const Entry& entry : entries()) std::printf("%s\n", entry.name.c_str());
  std::exit(0);
}

// libFuzzer reads folders only beside folders: seeds are copied into one of the process.
std::string folder_of_seeds(const Entry& entry) {
  const std::string folder = scratch_folder() + "/seeds";
  std::filesystem::create_directory(folder);
  int number = 0;
  for (const std::string& file : seed_files(entry))
    if (std::filesystem::file_size(file) <= largest_seed)
      std::filesystem::copy_file(file, folder + "/" + std::to_string(number++));
  return folder;
}

void begin(int& count, char**& values) {
  Run& now = run();
  if (count < 2)
    refuse_arguments();
  if (std::strcmp(values[1], "--list") == 0)
    list_entries();
  now.entry = find_entry(values[1]);
  if (now.entry == nullptr)
    refuse_arguments();
  if (now.entry->form == Form::json)
    now.material = material_of(documents_of(*now.entry));
  now.arguments.assign(values, values + count);
  now.arguments.erase(now.arguments.begin() + 1);
  const auto is_file = [](const std::string& argument) { return std::filesystem::is_regular_file(argument); };
  if (std::none_of(now.arguments.begin() + 1, now.arguments.end(), is_file))  // else a finding is run again
    now.arguments.push_back(folder_of_seeds(*now.entry));
  for (std::string& argument : now.arguments) now.pointers.push_back(argument.data());
  now.pointers.push_back(nullptr);
  count = static_cast<int>(now.arguments.size());
  values = now.pointers.data();
}

// Zero: it is no document, or too large a one.
std::size_t mutated_document(std::uint8_t* data, std::size_t size, std::size_t most, unsigned draw) {
  try {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const JsonDocument document = JsonDocument::from_text(bytes, "seed");
    const std::string text =
        mutated(document.value(), run().material, draw).dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() > most)
      return 0;
    std::memcpy(data, text.data(), text.size());
    return text.size();
  } catch (const ConfigError&) {
    return 0;
  }
}

}  // namespace
}  // namespace lockstep::fuzz

extern "C" int LLVMFuzzerInitialize(int* count, char*** values) {
  lockstep::fuzz::begin(*count, *values);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep::fuzz;
  read_bytes(*run().entry, std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned draw) {
  using namespace lockstep::fuzz;
  const bool by_value = run().entry->form == Form::json && draw % 2 == 0;
  const std::size_t changed = by_value ? mutated_document(data, size, most, draw) : 0;
  return changed > 0 ? changed : LLVMFuzzerMutate(data, size, most);
}
