#include "sim/report/page/page.h"

#include <doctest/doctest.h>

#include <string>

#include "sim/base/check.h"
#include "sim/report/page/chart.h"
#include "sim/report/page/page_table.h"

namespace lockstep::page_test {

using nlohmann::ordered_json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ordered_json view_with(const std::string& name, const PageTable& table) {
  ordered_json view{{"title", name},        {"kind", name},     {"subtitle", name},
                    {"note", name},         {"scatter", false}, {"summaries", ordered_json::array()},
                    {"cases", table.view()}};
  view.update(facts_view({{name, PageCell(name, 0.1), name}}));
  return view;
}

TEST_CASE("what a view says is text: markup, quotes and control characters of a name are none of the page") {
  const std::string name =
      "<script>alert(1)</script>\" onload='x' {{title}} {{> table.html}} \x1b[7m\xe2\x80\xae";
  PageTable table(name, {{name}, {name, PageColumn::Kind::bar}});
  table.add_row({name, std::vector<BarPart>{{.left = 0, .width = 50, .title = name, .colour = name}}});
  const std::string page = render_page("validation.html", view_with(name, table));
  CHECK_FALSE(contains(page, "<script"));
  CHECK_FALSE(contains(page, "\x1b"));
  CHECK_FALSE(contains(page, "\xe2\x80\xae"));
  CHECK_FALSE(contains(page, "\" onload"));
  CHECK(contains(
      page,
      "&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=&apos;x&apos; {{title}} {{&gt; table.html}}"));
}

TEST_CASE("a figure is told as text and as the number of the document") {
  const auto text = [](double value) { return std::to_string(static_cast<int>(value)) + " apples"; };
  PageTable table("apples", {{"who"}, {"how many"}, {"unknown"}});
  table.add_row({"Eve", figure(ordered_json(7.0634521), text), figure(ordered_json(), text)});
  const std::string page = render_page("validation.html", view_with("apples", table));
  CHECK(contains(page,
                 "<th scope=\"row\">Eve</th><td><data value=\"7.0634521\">7 apples</data></td><td>-</td>"));
}

TEST_CASE("a table without rows is no table") {
  CHECK(PageTable("none", {{"column"}}).view().is_null());
}

TEST_CASE("a page with a chart carries the script that reads it, and its policy names that script") {
  ordered_json view = view_with("x", PageTable("x", {{"y"}}));
  const std::string without = render_page("validation.html", view);
  CHECK_FALSE(contains(without, "script-src"));
  view["scatter"] = to_json(Chart{.caption = "c", .x = {.name = "x"}, .y = {.name = "y"}, .series = {}});
  const std::string page = render_page("validation.html", view);
  CHECK(contains(page, "<figure data-chart=\"{"));
  CHECK(contains(page, "script-src 'sha256-"));
  const std::string begin = "<script type=\"text/javascript\">";
  CHECK(page.find(begin) != std::string::npos);
  CHECK(page.find(begin) == page.rfind(begin));
  for (const char* word : {"url(", "@import", "src=\""}) CHECK_FALSE(contains(page, word));
}

TEST_CASE("a page loads nothing: its own policy forbids it, and no address is in it") {
  const std::string page = render_page("validation.html", view_with("x", PageTable("x", {{"y"}})));
  CHECK(contains(page, "default-src 'none'"));
  for (const char* word : {"http:", "https:", "url(", "@import", "src=", "<script"})
    CHECK_FALSE(contains(page, word));
}

TEST_CASE("a template that is not there is a bug") {
  CHECK_THROWS_AS(render_page("missing.html", ordered_json{{"title", "x"}}), InternalError);
}

}  // namespace lockstep::page_test
