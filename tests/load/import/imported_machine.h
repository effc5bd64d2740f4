#pragma once

// Dumps of topologies, imported and read as a machine's file is.

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "sim/base/error.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/load/import/import_file.h"
#include "sim/load/reading/store_shelf.h"
#include "tests/support/import_samples.h"
#include "tests/support/scenarios.h"

namespace lockstep {

// A sample of any kind, by the name of its file.
inline std::string topology_dump(const std::string& name) {
  return testing::bytes_of(testing::sample_named(name));
}

inline Imported import_text(const std::string& kind, const std::string& text,
                            const nlohmann::ordered_json& stated = nlohmann::ordered_json::object()) {
  const StoreShelf shelf(shipped_profiles());
  std::istringstream file(text);
  const ImportRequest request{.file_name = "dump", .file = file, .stated = stated, .profiles = &shelf};
  Imported imported = importer_named(kind).second.import(request);
  require_complete(imported, request);
  return imported;
}

// As the verb lays what is stated over it.
inline nlohmann::ordered_json with_stated(Imported imported, nlohmann::ordered_json stated) {
  for (const std::string& key : imported.answered) stated.erase(key);
  imported.document.merge_patch(stated);
  return imported.document;
}

inline MachineSpec machine_from(const nlohmann::ordered_json& value) {
  LoadContext context{.store = shipped_profiles(), .folder = ""};
  JsonDocument document = JsonDocument::from_value(value, "dump");
  const Place place{context, ""};
  MachineReading reading = read_named(document.root(), place, ProfileKind::machine, read_machine);
  context.add_problems(document.problems());
  CHECK(context.problems == std::vector<std::string>{});
  return reading.machine;
}

inline MachineSpec imported_machine(const std::string& kind, const std::string& dump,
                                    const nlohmann::ordered_json& stated = nlohmann::ordered_json::object()) {
  return machine_from(with_stated(import_text(kind, topology_dump(dump), stated), stated));
}

// GPU by GPU and link by link; names and sources differ, and no dump tells how fast a host is.
inline void check_is_built_as(const MachineSpec& machine, const std::string& shipped) {
  MachineSpec expected = machine_from(shipped);
  expected.host.operator_time = machine.host.operator_time;
  CHECK(machine.gpu == expected.gpu);
  CHECK(machine.gpus == expected.gpus);
  CHECK(machine.gpu_links == expected.gpu_links);
  CHECK(machine.host == expected.host);
  CHECK(machine.nics == expected.nics);
  CHECK(machine.library == expected.library);
}

inline std::string refusal_of(const std::string& kind, const std::string& text,
                              const nlohmann::ordered_json& stated = nlohmann::ordered_json::object()) {
  try {
    import_text(kind, text, stated);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

inline bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace lockstep
