#include "sim/study/answers/layout_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/report/breakdown_bar.h"
#include "sim/report/page/page.h"
#include "sim/report/page/page_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Kind = PageColumn::Kind;

// "4" of training.tensor_parallel; nothing where the layout leaves it to its default.
std::string value_of(const ordered_json& set, const char* key) {
  const auto found = set.find(std::string("training.") + key);
  if (found == set.end() || found->is_null())
    return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string degrees_of(const ordered_json& set) {
  struct Degree {
    const char* key;
    const char* name;
  };
  constexpr std::array degrees{Degree{"tensor_parallel", "tp"}, Degree{"pipeline_parallel", "pp"},
                               Degree{"context_parallel", "cp"}, Degree{"expert_parallel", "ep"}};
  std::string text;
  for (const auto& [key, name] : degrees)
    if (const std::string value = value_of(set, key); !value.empty() && value != "1")
      text += fmt::format(" x {} {}", name, value);
  if (const std::string sharers = value_of(set, "expert_tensor_parallel"); !sharers.empty())
    text += fmt::format(", etp {}", sharers);
  return text;
}

// What is beside the degrees: "interleaved, 2 chunks, recompute selective".
std::string details_of(const ordered_json& set) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (const std::string schedule = value_of(set, "pipeline_schedule"); !schedule.empty())
    add(schedule);
  if (const std::string stages = value_of(set, "virtual_stages"); !stages.empty() && stages != "1")
    add(stages + " chunks a stage");
  if (value_of(set, "sequence_parallel") == "true")
    add("sequence parallel");
  if (const std::string recompute = value_of(set, "recompute"); !recompute.empty())
    add("recompute " + recompute);
  if (const std::string placement = value_of(set, "placement"); !placement.empty())
    add(placement);
  return text;
}

std::string name_of_layout(const ordered_json& layout) {
  return "dp " + layout.at("data_parallel").dump() + degrees_of(layout.at("set"));
}

std::string batch_of(const ordered_json& layout) {
  return value_of(layout.at("set"), "micro_batch") + " x " + layout.at("gradient_accumulation").dump();
}

std::vector<PageFact> facts_of_layout(const ordered_json& layout, const ordered_json& document) {
  return {{"layout", PageCell(name_of_layout(layout)), details_of(layout.at("set"))},
          {"iteration", figure(layout.at("iteration_time_s"), duration_text)},
          {"samples a second", figure(layout.at("samples_per_s"), rate_text),
           layout.at("tokens_per_s").is_null()
               ? ""
               : rate_text(layout.at("tokens_per_s").get<double>()) + " tokens a second"},
          {"MFU", figure(layout.at("mfu"), share_text)},
          {"micro-batches", PageCell(batch_of(layout)), "samples, and how many a rank takes in turn"},
          {"memory of a GPU", figure(layout.at("memory_bytes"), bytes_text),
           "of " + bytes_text(document.at("memory_bytes_capacity").get<double>())}};
}

std::string command_of(const ordered_json& set) {
  std::string text = "lockstep predict SCENARIO";
  for (const auto& [path, value] : set.items()) text += fmt::format(" --set {}={}", path, as_set(value));
  return text;
}

ordered_json layouts_table(const ordered_json& layouts) {
  double longest = 0;
  for (const ordered_json& layout : layouts)
    longest = std::max(longest, layout.at("iteration_time_s").get<double>());
  PageTable table("Best first", {{"rank"},
                                 {"layout", Kind::words},
                                 {"micro-batch"},
                                 {"iteration"},
                                 {"parts", Kind::bar},
                                 {"samples/s"},
                                 {"MFU"},
                                 {"against the best", Kind::long_words},
                                 {"details", Kind::long_words}});
  std::vector<ordered_json> breakdowns;
  for (const ordered_json& layout : layouts) {
    const ordered_json& breakdown = breakdowns.emplace_back(layout.at("breakdown_s"));
    const bool is_best = breakdowns.size() == 1;
    table.add_row(
        {std::to_string(breakdowns.size()), name_of_layout(layout), batch_of(layout),
         figure(layout.at("iteration_time_s"), duration_text), breakdown_bar(breakdown, longest),
         figure(layout.at("samples_per_s"), rate_text), figure(layout.at("mfu"), share_text),
         is_best ? "the best" : layout.at("against_best").get<std::string>(), details_of(layout.at("set"))},
        is_best);
  }
  ordered_json view = table.view();
  if (!view.is_null())
    view.update(breakdown_legend(breakdowns));
  return view;
}

ordered_json memory_table(const ordered_json& document) {
  const double capacity = document.at("memory_bytes_capacity").get<double>();
  PageTable table("At its most, of what the GPU has",
                  {{"rank"}, {"layout", Kind::words}, {"used"}, {"share", Kind::bar}, {"of the GPU's"}});
  std::size_t rank = 0;
  for (const ordered_json& layout : document.at("layouts")) {
    const double share = layout.at("memory_bytes").get<double>() / capacity;
    table.add_row({std::to_string(++rank), name_of_layout(layout),
                   figure(layout.at("memory_bytes"), bytes_text),
                   std::vector<BarPart>{{.left = 0, .width = 100 * share, .title = share_text(share)}},
                   share_text(share)});
  }
  return table.view();
}

ordered_json rejected_table(const ordered_json& rejected) {
  constexpr std::array reasons{
      std::pair{"not_loadable", "cannot be"}, std::pair{"out_of_memory", "do not fit into a GPU's memory"},
      std::pair{"cut_by_bound", "cannot be among the best: their lower bound is longer"},
      std::pair{"needless_recomputation", "fit with less recomputation too, which is faster"},
      std::pair{"too_large", "are too large to be simulated"}};
  PageTable table("How many, and why", {{"reason", Kind::words}, {"layouts"}});
  for (const auto& [key, words] : reasons)
    if (rejected.at(key).get<double>() > 0)
      table.add_row({words, figure(rejected.at(key), count_text)});
  return table.view();
}

std::string lacking_text(const ordered_json& layout, const char* what) {
  return fmt::format("{}: {}, no less than {} an iteration, lacks {} of memory on a GPU.", what,
                     "tp " + value_of(layout.at("set"), "tensor_parallel") + " x pp " +
                         value_of(layout.at("set"), "pipeline_parallel") + ", " +
                         details_of(layout.at("set")),
                     duration_text(layout.at("iteration_time_s_at_least").get<double>()),
                     bytes_text(layout.at("memory_bytes_lacking").get<double>()));
}

ordered_json told_if_any(const ordered_json& document, const char* key, const char* what) {
  const auto found = document.find(key);
  return found == document.end() || found->is_null() ? ordered_json(false)
                                                     : ordered_json(lacking_text(*found, what));
}

void add_answer(const ordered_json& document, ordered_json& view) {
  const ordered_json& layouts = document.at("layouts");
  view["counts"] =
      fmt::format("Of {} layouts {} were simulated.", count_text(document.at("candidates").get<double>()),
                  count_text(document.at("simulated").get<double>()));
  view["verdict_style"] = layouts.empty() ? "bad" : "good";
  if (layouts.empty()) {
    view["verdict"] = "No layout fits.";
    view["promise"] = told_if_any(document, "nearest_that_does_not_fit", "The nearest");
    view.update(facts_view({}));
    return;
  }
  const ordered_json& best = layouts.front();
  view["verdict"] = fmt::format("The fastest is {}.", name_of_layout(best));
  view["promise"] =
      told_if_any(document, "might_be_faster_with_more_memory", "With more memory another might be faster");
  view["command"] = command_of(best.at("set"));
  view.update(facts_view(facts_of_layout(best, document)));
}

}  // namespace

std::string layout_page(const nlohmann::ordered_json& document) {
  ordered_json view{
      {"title", document.at("scenario")},
      {"kind", "Lockstep: layouts"},
      {"subtitle",
       fmt::format("{} GPUs, {} nodes of {}, global batch {}", count_text(document.at("gpus").get<double>()),
                   count_text(document.at("nodes").get<double>()), document.at("machine").get<std::string>(),
                   count_text(document.at("global_batch").get<double>()))},
      {"command", false},
      {"layouts", layouts_table(document.at("layouts"))},
      {"memory", memory_table(document)},
      {"rejected", rejected_table(document.at("rejected"))}};
  add_answer(document, view);
  view.update(warnings_view(document.at("warnings")));
  return render_page("layouts.html", view);
}

}  // namespace lockstep
