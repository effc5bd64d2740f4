#include "sim/cli/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/base/nearest_name.h"
#include "sim/collectives/collective.h"
#include "sim/load/import/importer.h"
#include "sim/plan/model_family.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// A named profile beside the store it came from.
struct ShippedProfile {
  const std::string& name;
  const ordered_json& value;
  const ProfileStore& store;
};

using DescribeProfile = std::string (*)(const ShippedProfile& profile);

struct Kind {
  std::string plural;
  std::string singular;
  std::optional<ProfileKind> profiles = {};
  DescribeProfile facts = nullptr;
  std::vector<CatalogueEntry> (*registered)() = nullptr;  // of those that are kept in no file
};

// The text or number under a key; "" when it is something else or not there.
std::string field(const ordered_json& value, const char* key) {
  const auto found = value.is_object() ? value.find(key) : value.end();
  if (!value.is_object() || found == value.end() || found->is_structured()) {
    return "";
  }
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() || part.empty() ? "" : ", ") + part;
  }
  return text;
}

// A name; of an inline object its own, or else its bandwidth.
std::string name_at(const ordered_json& value, const char* key) {
  if (!value.contains(key) || !value[key].is_object()) {
    return field(value, key);
  }
  const std::string name = field(value[key], "name");
  return name.empty() ? field(value[key], "bandwidth") : name;
}

std::string describe_nics(const ordered_json& machine) {
  if (!machine.contains("nics")) {
    return "no NIC";
  }
  const ordered_json& nics = machine["nics"];
  if (nics.is_array()) {
    return nics.empty() ? "no NIC" : fmt::format("{} x {}", nics.size(), name_at(nics.front(), "link"));
  }
  return fmt::format("{} x {}", field(nics, "count"), name_at(nics, "link"));
}

std::string describe_machine(const ShippedProfile& profile) {
  const ordered_json& value = profile.value;
  const std::string links = value.contains("gpu_links") ? field(value["gpu_links"], "kind") : "";
  return joined({fmt::format("{} x {}", field(value, "gpus"), name_at(value, "gpu")),
                 links == "none" ? "" : links, describe_nics(value)});
}

std::string describe_gpu(const ShippedProfile& profile) {
  const ordered_json& value = profile.value;
  std::string peak;
  for (const char* precision : {"bf16", "fp16", "fp32"}) {
    if (peak.empty() && value.contains("peak") && value["peak"].contains(precision)) {
      peak = fmt::format("{} {}", precision, field(value["peak"], precision));
    }
  }
  return joined({field(value, "memory"), field(value, "memory_bandwidth"), peak});
}

std::string describe_link(const ShippedProfile& profile) {
  return joined(
      {field(profile.value, "class"), field(profile.value, "bandwidth"), field(profile.value, "latency")});
}

std::string describe_fabric(const ShippedProfile& profile) {
  const std::string oversubscription = field(profile.value, "oversubscription");
  return joined({field(profile.value, "kind"), oversubscription.empty() ? "" : oversubscription + ":1",
                 field(profile.value, "hop_latency")});
}

std::string describe_model(const ShippedProfile& profile) {
  JsonDocument document = JsonDocument::from_value(profile.value, profile.name);
  JsonReader reader = document.root();
  const Model model = build_model(reader, {});
  const auto parameters = static_cast<double>(parameter_count(model));
  const std::string size = parameters < 1e9 ? fmt::format("{:.1f} M", parameters / 1e6)
                                            : fmt::format("{:.2f} G", parameters / 1e9);
  return fmt::format("{} parameters in {} tensors", size, model.parameters.size());
}

std::string describe_calibration(const ShippedProfile& profile) {
  return profile.value.contains("residuals") ? "with residuals" : "";
}

template <class Entry>
std::vector<CatalogueEntry> registered_entries() {
  std::vector<CatalogueEntry> entries;
  for (const auto& [name, entry] : Registry<Entry>::all()) {
    entries.push_back({.name = name, .facts = "", .status = "", .source = entry.description});
  }
  return entries;
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"machines", "machine", ProfileKind::machine, describe_machine},
      {"gpus", "gpu", ProfileKind::gpu, describe_gpu},
      {"links", "link", ProfileKind::link, describe_link},
      {"fabrics", "fabric", ProfileKind::fabric, describe_fabric},
      {"calibrations", "calibration", ProfileKind::calibration, describe_calibration},
      {"models", "model", ProfileKind::model, describe_model},
      {.plural = "strategies", .singular = "strategy", .registered = registered_entries<Strategy>},
      {.plural = "collectives", .singular = "collective", .registered = registered_entries<Collective>},
      {.plural = "importers", .singular = "importer", .registered = registered_entries<Importer>}};
  return all;
}

const Kind& kind_named(const std::string& plural) {
  return *std::find_if(kinds().begin(), kinds().end(),
                       [&](const Kind& kind) { return kind.plural == plural; });
}

// A machine is calibrated by the file of its own name, or by the one it states.
std::string calibration_status(const ShippedProfile& profile) {
  const std::string stated = field(profile.value, "calibration");
  const std::string& wanted = stated.empty() ? profile.name : stated;
  const bool is_calibrated = ProfileStore::is_path(wanted) ||
                             profile.value.value("calibration", ordered_json()).is_object() ||
                             profile.store.has(ProfileKind::calibration, wanted);
  return is_calibrated ? "calibrated" : "*uncalibrated*";
}

CatalogueEntry describe_profile(const Kind& kind, const std::string& name, const ProfileStore& store) {
  try {
    const ordered_json& value = *store.open(*kind.profiles, name)->value;
    const ShippedProfile profile{name, value, store};
    return {.name = name,
            .facts = kind.facts(profile),
            .status = kind.profiles == ProfileKind::machine ? calibration_status(profile) : "",
            .source = field(value, "source")};
  } catch (const ConfigError& error) {
    return {.name = name, .facts = "cannot be read", .status = "", .source = error.problems.front()};
  }
}

}  // namespace

const std::vector<std::string>& catalogue_kinds() {
  static const std::vector<std::string> plurals = [] {
    std::vector<std::string> names;
    for (const Kind& kind : kinds()) {
      names.push_back(kind.plural);
    }
    return names;
  }();
  return plurals;
}

std::string parse_catalogue_kind(const std::string& text) {
  for (const Kind& kind : kinds()) {
    if (text == kind.plural || text == kind.singular) {
      return kind.plural;
    }
  }
  throw ConfigError(fmt::format("{}: no such kind; {}", text, describe_choices(text, catalogue_kinds())));
}

std::vector<CatalogueEntry> list_entries(const std::string& kind, const ProfileStore& store) {
  const Kind& described = kind_named(kind);
  if (described.registered != nullptr) {
    return described.registered();
  }
  std::vector<CatalogueEntry> entries;
  for (const std::string& name : store.names(*described.profiles)) {
    entries.push_back(describe_profile(described, name, store));
  }
  return entries;
}

std::vector<std::string> entry_names(const std::string& kind, const ProfileStore& store) {
  if (const auto profiles = profile_kind_of(kind)) {
    return store.names(*profiles);
  }
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : kind_named(kind).registered()) {
    names.push_back(entry.name);
  }
  return names;
}

std::optional<ProfileKind> profile_kind_of(const std::string& kind) {
  return kind_named(kind).profiles;
}

}  // namespace lockstep
