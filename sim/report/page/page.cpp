#include "sim/report/page/page.h"

#include <algorithm>
#include <kainjow/mustache.hpp>

#include "sim/base/check.h"
#include "sim/base/printable.h"
#include "sim/report/page/page_templates.h"

namespace lockstep {
namespace {

using kainjow::mustache::data;

std::string escaped(const std::string& text) {
  return kainjow::mustache::html_escape(printable(text));
}

// Which scripts a page needs is seen from what it shows: a chart anywhere in it has points to read.
bool has_chart(const nlohmann::ordered_json& view) {
  if (view.is_object() && view.contains("readout"))
    return true;
  return view.is_structured() && std::any_of(view.begin(), view.end(), has_chart);
}

data data_of(const nlohmann::ordered_json& view) {
  if (view.is_string())
    return view.get_ref<const std::string&>();
  if (view.is_object()) {
    data object(data::type::object);
    for (const auto& [key, value] : view.items()) object[key] = data_of(value);
    return object;
  }
  if (view.is_array()) {
    data list(data::type::list);
    for (const auto& value : view) list.push_back(data_of(value));
    return list;
  }
  if (view.is_number())
    return view.dump();
  return view.is_boolean() && view.get<bool>() ? data::type::bool_true : data::type::bool_false;
}

std::string template_text(std::string_view name) {
  const auto found = std::find_if(page_templates.begin(), page_templates.end(),
                                  [&](const PageTemplate& entry) { return entry.name == name; });
  LOCKSTEP_CHECK(found != page_templates.end(), "every template that is asked for is in templates/");
  return std::string(found->text);
}

}  // namespace

std::string render_page(std::string_view body, const nlohmann::ordered_json& view) {
  data values = data_of(view);
  const bool has_timeline = view.contains("has_timeline") && view["has_timeline"].get<bool>();
  values["has_chart"] = has_chart(view);
  values["has_scripts"] = has_timeline || has_chart(view);
  for (const PageTemplate& entry : page_templates)
    values[std::string(entry.name)] = kainjow::mustache::partial([&] { return std::string(entry.text); });
  values["body"] = kainjow::mustache::partial([&] { return template_text(body); });
  kainjow::mustache::mustache frame(template_text("page.html"));
  frame.set_custom_escape(escaped);
  std::string page = frame.render(values);
  LOCKSTEP_CHECK(frame.is_valid(), "templates are well formed: " + frame.error_message());
  return page;
}

}  // namespace lockstep
