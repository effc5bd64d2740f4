#include "tests/fuzz/mutation.h"

#include <array>
#include <cmath>
#include <string_view>

#include "sim/base/random.h"
#include "sim/collectives/collective.h"
#include "sim/load/reading/profile_store.h"
#include "sim/network/topology.h"
#include "sim/training/schedules/pipeline_schedule.h"
#include "sim/training/strategy.h"

namespace lockstep::fuzz {
namespace {

using Json = nlohmann::ordered_json;
using Pointer = Json::json_pointer;

// One after another, of one number.
class Draws {
 public:
  explicit Draws(std::uint64_t draw) : draw_(draw) {}
  std::size_t below(std::size_t bound) {
    return static_cast<std::size_t>(random_below(keyed_random(1, draw_, next_++), bound));
  }
  template <class List>
  const auto& any_of(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::uint64_t draw_;
  std::uint64_t next_ = 0;
};

void collect(const Json& json, const Pointer& place, std::vector<Pointer>& places) {
  places.push_back(place);
  if (json.is_object())
    for (const auto& item : json.items()) collect(item.value(), place / item.key(), places);
  if (json.is_array())
    for (std::size_t i = 0; i < json.size(); ++i) collect(json[i], place / i, places);
}

std::vector<Pointer> places_of(const Json& json) {
  std::vector<Pointer> places;
  collect(json, Pointer(), places);
  return places;
}

constexpr std::array odd_values{"null", "true", "false", "0",        "-1", "\"\"",
                                "[]",   "{}",   "[[]]",  "\"1 us\"", "1.5"};
constexpr std::array extremes{"0",          "-1",         "1",
                              "2147483647", "2147483648", "4294967296",
                              "1000000",    "1000001",    "9007199254740993",
                              "1e18",       "1e308",      "9223372036854775807",
                              "0.5",        "1e-9",       "18446744073709551615"};
constexpr std::array units{"us",  "ms",     "ns",    "s",       "GB/s", "MB", "MiB",
                           "GiB", "Gbit/s", "GFLOP", "TFLOP/s", "day",  "W"};

bool is_quantity(const std::string& text) {
  return !text.empty() && text[0] >= '0' && text[0] <= '9' && text.find(' ') != std::string::npos;
}

// A tenth, ten times, a thousand times, ...; whole numbers stay whole.
Json scaled(const Json& number, Draws& draws) {
  constexpr std::array factors{1e-6, 1e-3, 0.1, 0.5, 2.0, 3.0, 10.0, 100.0, 1e3, 1e6};
  const double product = number.get<double>() * draws.any_of(factors);
  constexpr double largest = 9e18;
  const bool is_whole = !number.is_number_float() && std::abs(product) < largest;
  return is_whole ? Json(static_cast<std::int64_t>(product)) : Json(product);
}

Json changed_number(const Json& number, Draws& draws) {
  switch (draws.below(4)) {
    case 0:
      return Json::parse(draws.any_of(extremes));
    case 1:
      return number.is_number_integer() && number < 1'000'000 ? Json(number.get<std::int64_t>() + 1)
                                                              : Json(1);
    default:
      return scaled(number, draws);
  }
}

Json changed_quantity(const std::string& text, Draws& draws) {
  const std::size_t space = text.find(' ');
  const std::string number = text.substr(0, space), unit = text.substr(space);
  if (draws.below(4) == 0)
    return number + " " + draws.any_of(units);
  if (draws.below(4) == 0)
    return draws.any_of(extremes) + unit;
  constexpr std::array zeros{"0", "000", "000000", "0000000000"};
  const bool is_larger = number.find('.') == std::string::npos && draws.below(2) == 0;
  return (is_larger ? number + draws.any_of(zeros)
                    : std::string("0.") + draws.any_of(zeros) + number.substr(0, 1)) +
         unit;
}

Json changed_value(const Json& value, const Material& material, Draws& draws) {
  if (draws.below(8) == 0)
    return Json::parse(draws.any_of(odd_values));
  if (value.is_boolean())
    return !value.get<bool>();
  if (value.is_number())
    return changed_number(value, draws);
  if (value.is_string() && is_quantity(value.get<std::string>()))
    return changed_quantity(value.get<std::string>(), draws);
  if (value.is_string() && !material.names.empty())
    return draws.any_of(material.names);
  return Json::parse(draws.any_of(odd_values));
}

void erase(Json& document, const Pointer& place) {
  if (place.empty())
    return;
  Json& parent = document[place.parent_pointer()];
  if (parent.is_object())
    parent.erase(place.back());
  else
    parent.erase(std::stoul(place.back()));
}

void duplicate(Json& document, const Pointer& place, const Material& material, Draws& draws) {
  if (place.empty())
    return;
  const Json copy = document[place];
  Json& parent = document[place.parent_pointer()];
  if (parent.is_array())
    parent.insert(parent.begin() + static_cast<std::ptrdiff_t>(draws.below(parent.size() + 1)), copy);
  else if (!material.names.empty())
    parent[draws.any_of(material.names)] = copy;
}

void exchange(Json& document, const Pointer& place, Draws& draws) {
  const Pointer other = draws.any_of(places_of(document));
  const Json one = document[place], two = document[other];
  document[place] = two;
  if (document.contains(other))
    document[other] = one;
}

// What stands somewhere in another document, put there in this one as well, as far as its sections are here.
void graft(Json& document, const Material& material, Draws& draws) {
  if (material.documents.empty())
    return;
  const Json& other = draws.any_of(material.documents);
  const Pointer place = draws.any_of(places_of(other));
  if (place.empty() || !document.contains(place.parent_pointer()))
    return;
  Json& parent = document[place.parent_pointer()];
  if (parent.is_object())
    parent[place.back()] = other[place];
  else if (parent.is_array())
    parent.push_back(other[place]);
}

void change(Json& document, const Material& material, Draws& draws) {
  const std::vector<Pointer> places = places_of(document);
  const Pointer place = draws.any_of(places);
  switch (draws.below(10)) {
    case 0:
      return erase(document, place);
    case 1:
      return duplicate(document, place, material, draws);
    case 2:
      return exchange(document, place, draws);
    case 3:
    case 4:
    case 5:
      return graft(document, material, draws);
    default:
      if (!document[place].is_structured() || draws.below(16) == 0)
        document[place] = changed_value(document[place], material, draws);
  }
}

template <class Registered>
void add_registered(std::vector<std::string>& names) {
  for (const auto& [name, entry] : Registry<Registered>::all()) names.push_back(name);
}

}  // namespace

Material material_of(std::vector<Json> documents) {
  Material material{.documents = std::move(documents), .names = {}};
  const ProfileStore store(LOCKSTEP_SOURCE_DIR);
  for (const ProfileKind kind : {ProfileKind::gpu, ProfileKind::link, ProfileKind::machine,
                                 ProfileKind::fabric, ProfileKind::calibration, ProfileKind::model})
    for (const std::string& name : store.names(kind)) material.names.push_back(name);
  add_registered<Strategy>(material.names);
  add_registered<Collective>(material.names);
  add_registered<PipelineSchedule>(material.names);
  add_registered<FabricKind>(material.names);
  for (const char* name :
       {"auto",       "ll",    "ll128",    "simple",    "nccl",    "gloo",      "rccl",
        "fp32",       "bf16",  "amp_fp16", "fp8",       "flow",    "step",      "adamw",
        "sgd",        "none",  "full",     "selective", "pytorch", "deepspeed", "megatron_lm",
        "tensorflow", "nodes", "rank",     "fraction",  "optimal"})
    material.names.emplace_back(name);
  return material;
}

Json mutated(Json document, const Material& material, std::uint64_t draw) {
  constexpr std::size_t most_changes = 4;
  Draws draws(draw);
  const std::size_t changes = 1 + draws.below(most_changes);
  for (std::size_t i = 0; i < changes; ++i) change(document, material, draws);
  return document;
}

std::string mutated(std::string bytes, std::uint64_t draw) {
  constexpr std::string_view letters = "\"{}[]:,=#0123456789-.eE ntfs/\\\n\t<>x\x01\x80\xff";
  Draws draws(draw);
  const std::size_t changes = 1 + draws.below(6);
  for (std::size_t i = 0; i < changes && !bytes.empty(); ++i) {
    const std::size_t place = draws.below(bytes.size());
    switch (draws.below(4)) {
      case 0:
        bytes[place] = draws.any_of(letters);
        break;
      case 1:
        bytes.erase(place, 1 + draws.below(8));
        break;
      case 2:
        bytes.insert(place, 1, draws.any_of(letters));
        break;
      default:
        bytes.insert(place, bytes.substr(draws.below(bytes.size()), draws.below(32)));
    }
  }
  return bytes;
}

}  // namespace lockstep::fuzz
