#include "sim/plan/model_family.h"

#include "sim/base/other_names.h"
#include "sim/base/registry.h"

namespace lockstep {

Model build_model(JsonReader& json, const ModelRequest& request) {
  const auto name = json.optional("name");
  const auto source = json.optional("source");
  read_other_names(json);
  const std::string family = json.required("family").one_of(Registry<ModelFamily>::names());
  const ModelFamily* found = Registry<ModelFamily>::find(family);
  Model model = found == nullptr ? Model{} : found->build(json, request);
  model.name = name ? name->text() : "";
  model.source = source ? source->text() : "";
  model.family = family;
  if (found != nullptr)
    json.finish();
  return model;
}

}  // namespace lockstep
