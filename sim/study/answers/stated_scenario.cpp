#include "sim/study/answers/stated_scenario.h"

#include <fmt/format.h>

#include <utility>

#include "sim/base/error.h"
#include "sim/base/json_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Pointer = ordered_json::json_pointer;

constexpr const char* result_schema = "lockstep.result/1";

class FewestWords {
 public:
  FewestWords(ordered_json document, const LoadOptions& options)
      : options_(options), document_(std::move(document)), meaning_(meaning_of(document_)) {}

  ordered_json find() {
    for (const char* place : {"/cluster/machine", "/cluster/fabric"}) name_again(Pointer(place));
    const std::vector<std::string> sections = keys_of(document_);
    for (auto section = sections.rbegin(); section != sections.rend(); ++section)
      leave_out_of(Pointer("/" + *section));
    const Pointer compared("/compare/strategies");
    for (std::size_t index = 0; document_.contains(compared) && index < document_[compared].size(); ++index)
      leave_out_of(compared / index);
    return document_;
  }

 private:
  ordered_json meaning_of(const ordered_json& document) const {
    return load_value(document, options_).resolved;
  }

  void keep_if_alike(ordered_json candidate) {
    try {
      if (meaning_of(candidate) == meaning_)
        document_ = std::move(candidate);
    } catch (const ConfigError&) {  // then the value is needed
    }
  }

  void name_again(const Pointer& place) {
    if (!document_.contains(place) || !document_[place].is_object() || !document_[place].contains("name"))
      return;
    ordered_json candidate = document_;
    candidate[place] = document_[place]["name"];
    keep_if_alike(std::move(candidate));
  }

  void leave_out_of(const Pointer& place) {
    if (!document_[place].is_object())
      return;
    const std::vector<std::string> keys = keys_of(document_[place]);
    for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
      ordered_json candidate = document_;
      candidate[place].erase(*key);
      keep_if_alike(std::move(candidate));
    }
  }

  static std::vector<std::string> keys_of(const ordered_json& object) {
    std::vector<std::string> keys;
    for (const auto& item : object.items()) keys.push_back(item.key());
    return keys;
  }

  LoadOptions options_;
  ordered_json document_;
  ordered_json meaning_;
};

void check_schema(const ordered_json& document, const std::string& file) {
  const ordered_json& schema = document["schema"];
  if (schema != result_schema)
    throw ConfigError(fmt::format("{}: /schema: found {}, expected a scenario, or a result: \"{}\"", file,
                                  describe_value(schema), result_schema));
  if (!document.contains("scenario") || !document["scenario"].is_object())
    throw ConfigError(fmt::format(
        "{}: found a result without its \"scenario\", expected what lockstep predict --json prints", file));
}

}  // namespace

StatedScenario read_stated_scenario(LoadRequest request) {
  request = with_text(std::move(request));
  const std::string file = file_name_of(request);
  const ordered_json document = read_document(request);
  if (!document.is_object() || !document.contains("schema"))
    return {.request = std::move(request)};
  check_schema(document, file);
  const ProfileStore store(request.data_directory);
  LoadRequest bare = request;
  bare.overrides.clear();
  const ordered_json stated = FewestWords(document["scenario"], options_of(bare, store)).find();
  request.text = stated.dump();
  const auto told = document.find("iteration_time_s");
  const bool is_told = told != document.end() && told->is_number() && request.overrides.empty();
  return {.request = std::move(request),
          .told_iteration_s = is_told ? std::optional(told->get<double>()) : std::nullopt};
}

}  // namespace lockstep
