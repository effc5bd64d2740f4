#include "sim/load/import/scenario_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

namespace lockstep {
namespace {

using nlohmann::ordered_json;

std::string lower(std::string_view text) {
  std::string lowered(text);
  for (char& letter : lowered)
    letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  return lowered;
}

}  // namespace

ScenarioDraft::ScenarioDraft(const ImportRequest& request)
    : document_{{"name", std::filesystem::path(request.file_name).stem().string()},
                {"cluster", ordered_json::object()},
                {"model", ordered_json::object()},
                {"training", ordered_json::object()},
                {"communication", ordered_json::object()},
                {"compute", ordered_json::object()}} {}

void ScenarioDraft::ask(std::string path, std::string example, std::string why) {
  for (Question& question : imported_.questions)
    if (question.path == path) {
      question.why += ", and " + why;
      return;
    }
  imported_.questions.push_back({std::move(path), std::move(example), std::move(why)});
}

void ScenarioDraft::add_keys(const std::vector<KeyUse>& keys) {
  other_keys_.insert(other_keys_.end(), keys.begin(), keys.end());
}

Imported ScenarioDraft::finish(KeyAccount& keys) {
  if (!cluster().contains("machine"))
    ask("cluster.machine", "dgx_h100", "the file does not say on which machines it trains");
  if (!model().contains("name") && !model().contains("family"))
    ask("model", "llama3_8b", "the file does not say which model it trains (a name, or its config.json)");
  const bool has_batch = model().contains("batch_per_gpu") || training().contains("micro_batch");
  const bool is_asked =
      std::any_of(imported_.questions.begin(), imported_.questions.end(),
                  [](const Question& asked) { return asked.path == "model.batch_per_gpu"; });
  if (!has_batch && !is_asked && !training().contains("global_batch"))
    ask("model.batch_per_gpu", "8", "the file does not say how many samples a GPU has at once");
  if (const std::vector<std::string> unknown = keys.unknown(); !unknown.empty()) {
    std::string list;
    for (const std::string& key : unknown) list += (list.empty() ? "" : ", ") + key;
    warn(fmt::format("not known here, and left aside: {}", list));
    keys.leave_unknown("not known here: what it changes is not predicted");
  }
  for (const char* section : {"compute", "communication", "cluster"})
    if (document_[section].empty())
      document_.erase(section);
  imported_.document = std::move(document_);
  imported_.keys = keys.uses();
  imported_.keys.insert(imported_.keys.end(), other_keys_.begin(), other_keys_.end());
  return std::move(imported_);
}

std::string optimizer_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 18> known{{
      {"adamw_torch", "adamw"},
      {"adamw_torch_fused", "adamw"},
      {"adamw_torch_xla", "adamw"},
      {"adamw_hf", "adamw"},
      {"adamw_apex_fused", "adamw"},
      {"adamw", "adamw"},
      {"torchadamw", "adamw"},
      {"fusedadamw", "adamw"},
      {"adam", "adam"},
      {"torchadam", "adam"},
      {"fusedadam", "adam"},
      {"sgd", "sgd"},
      {"momentum", "momentum"},
      {"lamb", "lamb"},
      {"fusedlamb", "lamb"},
      {"torch_sgd", "sgd"},
      {"deepspeedcpuadam", ""},
      {"", ""},
  }};
  const std::string wanted = lower(name);
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const auto& entry) { return entry.first == wanted; });
  return found == known.end() ? "" : std::string(found->second);
}

void refuse_other_dimensions(KeyAccount& keys, const std::string& prefix) {
  for (const char* name : {"dp_replicate_size", "dp_shard_size", "tp_size", "cp_size", "sp_size"})
    if (keys.integer(prefix + name, -1, std::int64_t{1} << 20).value_or(1) > 1)
      keys.refused(
          prefix + name,
          "is not read from here: training.shard_group, tensor_parallel and context_parallel say it");
}

void refuse_beside_bf16(KeyAccount& keys, const std::string& fp16, bool is_bf16, bool is_fp16) {
  if (is_bf16 && is_fp16)
    keys.refused(fp16, "stands beside bf16; expected one of them");
}

std::string autocast_precision(std::string_view name) {
  const std::string wanted = lower(name);
  if (wanted == "no" || wanted.empty())
    return "fp32";
  if (wanted == "fp16" || wanted == "bf16")
    return "amp_" + wanted;
  return wanted == "fp8" ? "fp8" : "";
}

}  // namespace lockstep
