// ds_config.json of DeepSpeed: what --deepspeed_config names.

#include "sim/base/json_text.h"
#include "sim/load/import/deepspeed_settings.h"
#include "sim/load/import/import_file.h"

namespace lockstep {
namespace {

bool is_deepspeed_config(std::string_view beginning) {
  const auto says = [&](std::string_view key) { return beginning.find(key) != beginning.npos; };
  return !says("\"per_device_train_batch_size\"") && !says("\"output_dir\"") &&
         (says("\"zero_optimization\"") || says("\"train_batch_size\"") ||
          says("\"train_micro_batch_size_per_gpu\""));
}

Imported import_deepspeed_config(const ImportRequest& request) {
  const std::string text = read_whole(request);
  if (!is_deepspeed_config(text))
    refuse_file(text, request, "settings of DeepSpeed: zero_optimization, train_batch_size, ...");
  KeyAccount keys(parse_json_text(text, request.file_name), request.file_name);
  ScenarioDraft draft(request);
  read_deepspeed_settings(keys, "", nullptr, draft);
  return draft.finish(keys);
}

const Registration<Importer> deepspeed_config_registration{
    "deepspeed_config", Importer{.import = import_deepspeed_config,
                                 .recognises = is_deepspeed_config,
                                 .makes = ImportedThing::scenario,
                                 .description = "ds_config.json of DeepSpeed",
                                 .asks_for = {"cluster", "model", "training"}}};

}  // namespace
}  // namespace lockstep
