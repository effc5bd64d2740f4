#include "sim/study/answers/comparison_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/json_text.h"
#include "sim/report/breakdown.h"
#include "sim/report/breakdown_bar.h"
#include "sim/report/memory_report.h"
#include "sim/report/page/page.h"
#include "sim/report/page/page_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;
using Kind = PageColumn::Kind;

constexpr const char* dearer_hue = "hue-1";
constexpr const char* cheaper_hue = "hue-0";

double number_or_zero(const ordered_json& number) {
  return number.is_null() ? 0 : number.get<double>();
}

std::string with_sign(double value, std::string (*text)(double)) {
  if (value == 0)
    return "-";
  return (value < 0 ? "-" : "+") + text(value < 0 ? -value : value);
}

PageCell signed_cell(const ordered_json& number, std::string (*text)(double)) {
  return number.is_null() ? PageCell("-") : PageCell(with_sign(number.get<double>(), text), number);
}

PageCell percent_cell(const ordered_json& percent) {
  if (percent.is_null())
    return "";
  return {percent == 0.0 ? "" : percent_text(percent.get<double>()), percent};
}

// ---- what differs ----

// What is chosen by its name is told by it.
std::string value_words(const ordered_json& side) {
  const ordered_json& value = side.at("value");
  if (value.is_null())
    return "none";
  const bool is_named = value.is_object() && value.contains("name");
  const ordered_json& told = is_named ? value.at("name") : value;
  const std::string text = abbreviated(told.is_string() ? told.get<std::string>() : told.dump());
  const auto origin = side.at("origin").get<std::string>();
  return origin.empty() || origin == "given"
             ? text
             : fmt::format("{} ({})", text, origin.substr(0, origin.find_first_of(" :")));
}

std::string remark_of(const ordered_json& difference) {
  if (!difference.at("problem").is_null())
    return difference.at("problem").get<std::string>();
  const auto with = difference.at("with").get<std::vector<std::string>>();
  return with.empty() ? "" : fmt::format("with {}", fmt::join(with, ", "));
}

// Where costs lie between the one that saves most and the dearest.
class CostScale {
 public:
  explicit CostScale(const ordered_json& document) {
    for (const ordered_json& difference : document.at("differences"))
      add(number_or_zero(difference.at("difference_s")));
    add(document.at("together").at("interaction_s").get<double>());
    add(document.at("together").at("difference_s").get<double>());
  }

  std::vector<BarPart> bar(double seconds) const {
    const double zero = share(0);
    std::vector<BarPart> parts{
        {.left = zero - 0.25, .width = 0.5, .title = "no difference", .hue = "hue-quiet"}};
    if (seconds != 0)
      parts.push_back({.left = std::min(zero, share(seconds)),
                       .width = std::max(share(seconds), zero) - std::min(share(seconds), zero),
                       .title = with_sign(seconds, duration_text),
                       .hue = seconds > 0 ? dearer_hue : cheaper_hue});
    return parts;
  }

 private:
  void add(double seconds) {
    low_ = std::min(low_, seconds);
    high_ = std::max(high_, seconds);
  }
  // In percent, with room for the line at zero.
  double share(double seconds) const {
    return low_ == high_ ? 50 : 0.5 + 99 * (seconds - low_) / (high_ - low_);
  }

  double low_ = 0, high_ = 0;
};

ordered_json costs_table(const ordered_json& document) {
  const ordered_json& together = document.at("together");
  const ordered_json& differences = document.at("differences");
  const CostScale scale(document);
  PageTable table("What each costs A alone, the most first", {{"what differs", Kind::words},
                                                              {"A", Kind::long_words},
                                                              {"B", Kind::long_words},
                                                              {"cost", Kind::bar},
                                                              {"difference"},
                                                              {""},
                                                              {"iteration"},
                                                              {"remark", Kind::long_words}});
  for (const ordered_json& difference : differences)
    table.add_row({difference.at("path").get<std::string>(), value_words(difference.at("a")),
                   value_words(difference.at("b")), scale.bar(number_or_zero(difference.at("difference_s"))),
                   signed_cell(difference.at("difference_s"), duration_text),
                   percent_cell(difference.at("difference_percent")),
                   figure(difference.at("iteration_time_s"), duration_text), remark_of(difference)});
  if (table.is_empty())
    return {};
  const ordered_json& interaction = together.at("interaction_s");
  if (differences.size() > 1)
    table.add_row({"what they do to each other", "", "", scale.bar(interaction.get<double>()),
                   signed_cell(interaction, duration_text), "", "", ""});
  table.add_row({"together", "", "", scale.bar(together.at("difference_s").get<double>()),
                 signed_cell(together.at("difference_s"), duration_text),
                 percent_cell(together.at("difference_percent")),
                 figure(together.at("iteration_time_s"), duration_text), ""},
                true);
  return table.view();
}

// ---- both sides ----

ordered_json bars_table(const ordered_json& a, const ordered_json& b) {
  const double longest =
      std::max(a.at("iteration_time_s").get<double>(), b.at("iteration_time_s").get<double>());
  PageTable table("One iteration of each", {{"", Kind::words},
                                            {"iteration"},
                                            {"parts", Kind::bar},
                                            {"80 % from"},
                                            {"to"},
                                            {"samples/s"},
                                            {"tokens/s"},
                                            {"MFU"}});
  for (const auto& [letter, side] : {std::pair("A", &a), std::pair("B", &b)})
    table.add_row({letter, figure(side->at("iteration_time_s"), duration_text),
                   breakdown_bar(side->at("breakdown_s"), longest),
                   figure(side->at("iteration_time_low_s"), duration_text),
                   figure(side->at("iteration_time_high_s"), duration_text),
                   figure(side->at("samples_per_s"), rate_text), figure(side->at("tokens_per_s"), rate_text),
                   figure(side->at("mfu"), share_text)});
  ordered_json view = table.view();
  view.update(breakdown_legend({a.at("breakdown_s"), b.at("breakdown_s")}));
  return view;
}

ordered_json parts_table(const ordered_json& document) {
  const ordered_json& a = document.at("a").at("breakdown_s");
  const ordered_json& b = document.at("b").at("breakdown_s");
  PageTable table("Part by part", {{"part", Kind::words}, {"A"}, {"B"}, {"B against A"}});
  for (const TimePart& part : time_parts) {
    const std::string key(part.key);
    if (a.at(key) == 0.0 && b.at(key) == 0.0)
      continue;
    PageCell name = words(key);
    name.swatch = part.page_colour;
    table.add_row({std::move(name), figure(a.at(key), duration_text), figure(b.at(key), duration_text),
                   signed_cell(document.at("together").at("breakdown_s").at(key), duration_text)});
  }
  return table.view();
}

ordered_json memory_table(const ordered_json& a, const ordered_json& b) {
  PageTable table("Of one GPU, at its most", {{"part", Kind::words}, {"A"}, {"B"}, {"B against A"}});
  const auto add = [&](const std::string& name, const std::string& key) {
    const ordered_json difference = b.at(key).get<std::int64_t>() - a.at(key).get<std::int64_t>();
    table.add_row({name, figure(a.at(key), bytes_text), figure(b.at(key), bytes_text),
                   signed_cell(difference, bytes_text)});
  };
  for (const MemoryPart& part : memory_parts)
    if (const std::string key(part.key); a.at(key) != 0 || b.at(key) != 0)
      add(words(part.key), key);
  add("total", "total");
  add("what the GPU has", "capacity");
  return table.view();
}

std::string fit_text(const ordered_json& document) {
  const bool fits_a = document.at("a").at("memory_bytes").at("fits").get<bool>();
  const bool fits_b = document.at("b").at("memory_bytes").at("fits").get<bool>();
  if (fits_a && fits_b)
    return "Both fit.";
  return fits_a ? "B does not fit." : fits_b ? "A does not fit." : "Neither fits.";
}

// ---- the answer ----

std::string verdict_of(const ordered_json& together) {
  const double seconds = together.at("difference_s").get<double>();
  if (seconds == 0)
    return "An iteration of B takes as long as one of A.";
  const std::string much = duration_text(seconds < 0 ? -seconds : seconds);
  return fmt::format("An iteration of B takes {} {} than one of A.", much, seconds < 0 ? "less" : "more");
}

std::vector<PageFact> facts_of(const ordered_json& document) {
  const ordered_json& together = document.at("together");
  return {{"A", figure(document.at("a").at("iteration_time_s"), duration_text),
           document.at("a").at("name").get<std::string>()},
          {"B", figure(document.at("b").at("iteration_time_s"), duration_text),
           document.at("b").at("name").get<std::string>()},
          {"B against A", signed_cell(together.at("difference_s"), duration_text),
           together.at("difference_percent").is_null()
               ? ""
               : percent_text(together.at("difference_percent").get<double>())},
          {"memory of a GPU", signed_cell(together.at("memory_bytes"), bytes_text), fit_text(document)}};
}

std::string title_of(const ordered_json& document) {
  const auto a = document.at("a").at("name").get<std::string>();
  const auto b = document.at("b").at("name").get<std::string>();
  return a == b ? a : a + " against " + b;
}

}  // namespace

std::string comparison_page(const ordered_json& document) {
  const std::size_t differences = document.at("differences").size();
  ordered_json view{
      {"title", title_of(document)},
      {"kind", "Lockstep: compare"},
      {"subtitle", differences == 0   ? "nothing differs"
                   : differences == 1 ? "one difference"
                                      : fmt::format("{} differences", differences)},
      {"verdict", verdict_of(document.at("together"))},
      {"costs", costs_table(document)},
      {"iterations", bars_table(document.at("a"), document.at("b"))},
      {"parts", parts_table(document)},
      {"memory", memory_table(document.at("a").at("memory_bytes"), document.at("b").at("memory_bytes"))}};
  view.update(facts_view(facts_of(document)));
  view.update(warnings_view(document.at("warnings")));
  return render_page("comparison.html", view);
}

}  // namespace lockstep
