#include "sim/load/error_model_json.h"

#include "sim/base/json_reader.h"
#include "sim/load/reading/exact_text.h"
#include "sim/load/reading/fields.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr const char* error_model_name = "steps";
constexpr const char* left_out_name = "steps_left_out";

constexpr RatioRange under_prediction{-0.999, 0};
constexpr RatioRange over_prediction{0, 1000};
constexpr RatioRange stretch{0.01, 100};

ErrorRange read_error_range(const JsonReader& json) {
  const std::string_view meaning = "measured over predicted, minus 1";
  const ErrorRange range{ratio(json.required("low"), under_prediction, meaning),
                         ratio(json.required("high"), over_prediction, meaning)};
  json.finish();
  return range;
}

std::vector<ResidualBand> read_message_ranges(const JsonReader& json) {
  std::vector<ResidualBand> bands;
  for (const JsonReader& element : json.elements()) {
    ResidualBand band{.from = element.required("from").bytes()};
    if (!bands.empty() && bands.back().from >= band.from)
      element.problem("expected ranges in ascending order of from");
    const ErrorRange range = read_error_range(element);
    band.low = range.low;
    band.high = range.high;
    bands.push_back(band);
  }
  return bands;
}

ErrorModel read_error_model(const JsonReader& json) {
  ErrorModel model;
  model.name = json.required("name").text();
  json.optional("source");
  json.optional("sources");
  model.factor = ratio(json.required("factor"), stretch, "a ratio");
  model.measured = read_error_range(json.required("measured"));
  model.in_node = read_error_range(json.required("in_node"));
  model.between_nodes = read_error_range(json.required("between_nodes"));
  model.transferred = read_error_range(json.required("transferred"));
  for (const auto& [kind, range] : json.required("unanchored").members())
    model.unanchored[kind] = read_error_range(range);
  model.host = read_error_range(json.required("host"));
  model.communication = read_message_ranges(json.required("communication"));
  json.finish();
  return model;
}

ordered_json write_error_range(const ErrorRange& range) {
  return {{"low", range.low.in_real()}, {"high", range.high.in_real()}};
}

}  // namespace

std::optional<ErrorModel> find_error_model(const ProfileStore& store) {
  const std::optional<Profile> profile = store.open(ProfileKind::errors, error_model_name);
  if (!profile)
    return std::nullopt;
  JsonDocument document = JsonDocument::over(*profile->value, profile->file);
  ErrorModel model = read_error_model(document.root());
  document.throw_if_problems();
  return model;
}

std::map<std::string, ErrorModel> find_left_out_models(const ProfileStore& store) {
  std::map<std::string, ErrorModel> models;
  const std::optional<Profile> profile = store.open(ProfileKind::errors, left_out_name);
  if (!profile)
    return models;
  JsonDocument document = JsonDocument::over(*profile->value, profile->file);
  const JsonReader root = document.root();
  root.required("name").text();
  root.optional("source");
  for (const auto& [group, model] : root.required("without").members())
    models[group] = read_error_model(model);
  root.finish();
  document.throw_if_problems();
  return models;
}

ordered_json write_error_model(const ErrorModel& model) {
  ordered_json json{{"name", model.name},
                    {"factor", model.factor.in_real()},
                    {"measured", write_error_range(model.measured)},
                    {"in_node", write_error_range(model.in_node)},
                    {"between_nodes", write_error_range(model.between_nodes)},
                    {"transferred", write_error_range(model.transferred)},
                    {"unanchored", ordered_json::object()},
                    {"host", write_error_range(model.host)},
                    {"communication", ordered_json::array()}};
  for (const auto& [kind, range] : model.unanchored) json["unanchored"][kind] = write_error_range(range);
  for (const ResidualBand& band : model.communication) {
    ordered_json entry{{"from", exact_text(band.from)}};
    entry.update(write_error_range({band.low, band.high}));
    json["communication"].push_back(std::move(entry));
  }
  return json;
}

ordered_json write_left_out_models(const std::map<std::string, ErrorModel>& models) {
  ordered_json without = ordered_json::object();
  for (const auto& [group, model] : models) without[group] = write_error_model(model);
  return {{"name", left_out_name},
          {"source", "made as steps.json, from all groups of measurements but the named one"},
          {"without", std::move(without)}};
}

}  // namespace lockstep
