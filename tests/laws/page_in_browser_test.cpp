// Every shipped scenario's page, opened in a browser: what a person would see is there, and the console is empty.
//
// Chromium writes the console's lines to its log as "...:CONSOLE:LINE] ...", and with --dump-dom the document as
// it stands once it is laid out and its scripts have run. Built where Chromium is found (CMakeLists.txt).

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/shipped_scenarios.h"

namespace lockstep::testing::page_in_browser_test {

using Json = nlohmann::ordered_json;

struct OpenedPage {
  std::string document;
  std::vector<std::string> console;  // errors of scripts and what failed to load are among it
};

// Without a sandbox, which containers cannot give (the pages are our own); with a profile that nobody shares.
OpenedPage open_page(const std::string& page, const Folder& profile) {
  const Answer browser = run_command(
      std::string(LOCKSTEP_CHROMIUM) +
      " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --enable-logging=stderr" +
      " --allow-file-access-from-files --user-data-dir=" + profile.path() + " --dump-dom file://" + page);
  CHECK(browser.exit_code == 0);
  OpenedPage opened{.document = browser.out, .console = {}};
  std::istringstream log(browser.diagnostics);
  for (std::string line; std::getline(log, line);)
    if (contains(line, ":CONSOLE"))
      opened.console.push_back(line);
  return opened;
}

// A page of frames that tells what documents they hold once all are loaded: a browser takes longer to start than to
// open a page.
OpenedPage open_in_frames(const std::vector<std::string>& pages, const Folder& folder) {
  std::string text = "<!doctype html><html><body>";
  for (const std::string& page : pages) text += "<iframe src=\"file://" + page + "\"></iframe>";
  text += R"(<script>window.onload = () => {
    for (const frame of [...document.querySelectorAll('iframe')]) {
      const told = document.createElement('pre');
      told.className = 'opened';
      told.textContent = frame.contentDocument.documentElement.outerHTML;
      frame.remove();
      document.body.append(told);
    }
  };</script>)";
  return open_page(folder.write("frames.html", text), folder);
}

// What stands in each frame, as its page would be dumped by itself.
std::vector<std::string> documents_in_frames(const std::string& document) {
  constexpr std::string_view begin = "<pre class=\"opened\">";
  std::vector<std::string> documents;
  for (std::size_t at = document.find(begin); at != document.npos; at = document.find(begin, at)) {
    at += begin.size();
    std::string text = document.substr(at, document.find("</pre>", at) - at);
    for (const auto& [escaped, letter] :
         {std::pair("&lt;", "<"), std::pair("&gt;", ">"), std::pair("&amp;", "&")})
      for (std::size_t place = text.find(escaped); place != text.npos; place = text.find(escaped, place + 1))
        text.replace(place, std::string_view(escaped).size(), letter);
    documents.push_back(std::move(text));
  }
  return documents;
}

TEST_CASE("a page that is broken is seen to be: the browser tells what its scripts complain of") {
  const Folder folder;
  const std::string page = folder.path() + "/page.html";
  std::ofstream(page) << "<!doctype html><html><body><p id=\"told\"></p>"
                         "<script>document.getElementById('told').textContent = 6 * 7; missing()</script>";
  const OpenedPage opened = open_page(page, folder);
  CHECK(contains(opened.document, ">42<"));
  REQUIRE(opened.console.size() == 1);
  CHECK(contains(opened.console[0], "missing is not defined"));
}

TEST_CASE("a page that is broken is seen to be in a frame as well, beside one that is whole") {
  const Folder folder;
  const std::string whole =
      folder.write("whole.html", "<!doctype html><html><body><h1>a &lt; b</h1></body></html>");
  const std::string broken = folder.write(
      "broken.html",
      "<!doctype html><html><body><p></p><script>document.querySelector('p').append(6 * 7); missing()"
      "</script></body></html>");
  const OpenedPage opened = open_in_frames({whole, broken}, folder);
  const std::vector<std::string> documents = documents_in_frames(opened.document);
  REQUIRE(documents.size() == 2);
  CHECK(contains(documents[0], "<h1>a &lt; b</h1>"));
  CHECK(contains(documents[1], "<p>42</p>"));
  REQUIRE(opened.console.size() == 1);
  CHECK(contains(opened.console[0], "missing is not defined"));
}

TEST_CASE("every scenario's page opens in a browser without a word in its console") {
  const Folder folder;
  std::vector<std::string> pages;
  for (const std::string& file : shipped_scenarios()) {
    pages.push_back(folder.path() + "/" + std::to_string(pages.size()) + ".html");
    REQUIRE(run_program("predict " + file + " --report " + pages.back()).exit_code == 0);
    CHECK(text_of(pages.back()).size() < 3'000'000);
  }
  const OpenedPage opened = open_in_frames(pages, folder);
  for (const std::string& line : opened.console) FAIL_CHECK(line);
  const std::vector<std::string> documents = documents_in_frames(opened.document);
  REQUIRE(documents.size() == pages.size());
  for (std::size_t i = 0; i < documents.size(); ++i) {
    CAPTURE(shipped_scenarios()[i]);
    CHECK(contains(documents[i], "<h1"));
    CHECK(contains(documents[i], "</html>"));
    CHECK(contains(documents[i], "<canvas") == contains(documents[i], "data-timeline="));
  }
}

// ---- the timeline ----

// What the page does, and what a reader then writes into it; its own policy would not let a stranger's script run.
OpenedPage open_with(const std::string& page, const std::string& script, const Folder& folder) {
  std::string text = text_of(page);
  const std::string policy = "Content-Security-Policy";
  text.replace(text.find(policy), policy.size(), "X-None");
  text.insert(text.find("</body>"), "<p id=\"read\"></p><script>" + script + "</script>");
  return open_page(folder.write("read.html", text), folder);
}

constexpr const char* press = R"(
  const box = document.querySelector('.zoomed');
  const press = key => box.dispatchEvent(new KeyboardEvent('keydown', {key}));
  const told = [];
  const read = () => told.push(document.querySelector('.told').textContent);
)";

TEST_CASE("the timeline is zoomed and read by keys alone, and says what the trace says") {
  const Folder folder;
  const std::string page = folder.path() + "/page.html";
  const std::string scenario = std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/resnet50_ddp_2x8_a100.json";
  const std::string trace = folder.path() + "/trace.json";
  REQUIRE(run_program("predict " + scenario + " --report " + page + " --trace " + trace).exit_code == 0);
  const OpenedPage opened = open_with(page, std::string(press) + R"(
    press('n'); read(); press('n'); read(); press('ArrowDown'); press('+'); press('n'); read(); press('0');
    document.getElementById('read').textContent = told.join('|');)",
                                      folder);
  for (const std::string& line : opened.console) FAIL_CHECK(line);
  CHECK(contains(opened.document, "compute: flatten buffers (gradient copy), 4.808 µs from 0 ns|"));
  CHECK(contains(opened.document, "|communication: "));
  const Json events = Json::parse(text_of(trace))["traceEvents"];
  const std::size_t computed =
      static_cast<std::size_t>(std::count_if(events.begin(), events.end(), [](const Json& event) {
        return event["ph"] == "X" && event["tid"] == 1000;
      }));
  const std::string attribute = "data-timeline=\"";
  const std::string text = text_of(page);
  const std::size_t from = text.find(attribute) + attribute.size();
  std::string detail = text.substr(from, text.find('"', from) - from);
  for (std::size_t at = detail.find("&quot;"); at != detail.npos; at = detail.find("&quot;", at))
    detail.replace(at, 6, "\"");
  const Json lanes = Json::parse(detail)["lanes"];
  CHECK(lanes[0]["name"] == "compute");
  CHECK(lanes[0]["starts"].size() * 2 == computed);  // the trace has the warm-up as well
}

TEST_CASE("loaders, copies and links have lanes of their own, whose keys tell how busy a link is") {
  const Folder folder;
  const std::string page = folder.path() + "/page.html";
  const std::string scenarios = std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/";
  const std::string walk = std::string(press) + R"(
    for (let lane = 0; lane < 20; ++lane) { press('n'); press('p'); read(); press('ArrowDown'); }
    document.getElementById('read').textContent = told.join('|');)";
  REQUIRE(run_program("predict " + scenarios + "input_bound_resnet50.json --report " + page).exit_code == 0);
  const OpenedPage loading = open_with(page, walk, folder);
  for (const char* told : {"|copies: copy the batch (copy)", "|loader 8: load the batch (loading)",
                           "|storage: load the batch (loading)", "|GPU link: node0: ", " % busy|"})
    CHECK_MESSAGE(contains(loading.document, told), told);
  REQUIRE(run_program("predict " + scenarios + "ps_sync_resnet50_grpc.json --report " + page).exit_code == 0);
  const OpenedPage copying = open_with(page, walk, folder);
  for (const char* told : {"|copies: ", "|copies 2: ", "|PCIe: ", "|network: "})
    CHECK_MESSAGE(contains(copying.document, told), told);
  for (const OpenedPage& opened : {loading, copying})
    for (const std::string& line : opened.console) FAIL_CHECK(line);
}

// ---- charts ----

constexpr const char* press_in_chart = R"(
  const svg = document.querySelector('[data-chart] svg');
  const press = key => svg.dispatchEvent(new KeyboardEvent('keydown', {key}));
  const told = [];
  const read = () => told.push(document.querySelector('[data-chart] .told').textContent);
)";

std::string sweep_over_caps(const Folder& folder, const std::string& options) {
  return "sweep " + std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/resnet50_ddp_2x8_a100.json " +
         "--vary training.bucket_cap_mb=1,5,25 --discard -o " + folder.path() + "/caps.csv --report " +
         folder.path() + "/page.html " + options;
}

TEST_CASE("the points of a curve are read by arrow keys and by pointing, and told in words") {
  const Folder folder;
  const Answer answer = run_program(sweep_over_caps(folder, "--json"));
  REQUIRE(answer.exit_code == 0);
  const OpenedPage opened = open_with(folder.path() + "/page.html", std::string(press_in_chart) + R"(
    read(); press('ArrowRight'); read(); press('ArrowRight'); read(); press('End'); read(); press('ArrowRight'); read();
    press('Home'); read(); press('Escape'); read();
    const dot = svg.querySelectorAll('circle:not(.cursor circle)')[1].getBoundingClientRect();
    svg.dispatchEvent(new PointerEvent('pointermove', {clientX: dot.x + 6, clientY: dot.y + 5, bubbles: true})); read();
    document.getElementById('read').textContent = told.join('|');)",
                                      folder);
  for (const std::string& line : opened.console) FAIL_CHECK(line);
  const std::string hint = "Point at the chart, or focus it and press";
  const std::string one = "training.bucket_cap_mb 1: ";
  const std::string five = "training.bucket_cap_mb 5: ";
  const std::string last = "training.bucket_cap_mb 25: ";
  const std::string read = opened.document.substr(opened.document.find("<p id=\"read\">"));
  std::size_t at = 0;
  for (const std::string& told : {hint, one, five, last, last, one, hint, five}) {
    at = read.find(told, at);
    REQUIRE_MESSAGE(at != read.npos, told << " in " << read.substr(0, 1000));
    at += told.size();
  }
  CHECK(contains(opened.document, "role=\"application\""));
  CHECK(contains(opened.document, "role=\"status\""));
}

TEST_CASE("up and down go between the lines of a chart, to the nearest point") {
  const Folder folder;
  REQUIRE(run_program(sweep_over_caps(folder, "--vary cluster.nodes=1,2")).exit_code == 0);
  const OpenedPage opened = open_with(folder.path() + "/page.html", std::string(press_in_chart) + R"(
    press('Home'); press('ArrowRight'); read(); press('ArrowDown'); read(); press('ArrowDown'); read(); press('ArrowUp'); read();
    document.getElementById('read').textContent = told.join('|');)",
                                      folder);
  for (const std::string& line : opened.console) FAIL_CHECK(line);
  const std::string first = "training.bucket_cap_mb 5, cluster.nodes 1: ";
  const std::string second = "training.bucket_cap_mb 5, cluster.nodes 2: ";
  const std::string read = opened.document.substr(opened.document.find("<p id=\"read\">"));
  std::size_t at = 0;
  for (const std::string& told : {first, second, second, first}) {
    at = read.find(told, at);
    REQUIRE_MESSAGE(at != read.npos, told << " in " << read.substr(0, 1000));
    at += told.size();
  }
}

TEST_CASE("a chart without its script is a picture with a title at each dot") {
  const Folder folder;
  REQUIRE(run_program(sweep_over_caps(folder, "")).exit_code == 0);
  const std::string page = text_of(folder.path() + "/page.html");
  CHECK(contains(page, "role=\"img\""));
  CHECK(contains(page, "<title>training.bucket_cap_mb 25: "));
}

// ---- the pages of answers ----

// A request small enough for a test, of a name that no browser should obey.
const std::string hostile = "<script>document.body.textContent = 'obeyed'</script>\" onload='x' \\u001b[7m";

std::string small_request(const Folder& folder) {
  Json request =
      Json::parse(text_of(std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/plans/resnet50_rented.json"),
                  nullptr, true, true);
  request["name"] = hostile;
  for (Json& candidate : request["candidates"]) candidate["price_source"] = hostile;
  return folder.write("request.json", request.dump());
}

// Every number under one of `keys` in a list of the document is in a cell of the page, as it stands there.
void check_figures(const std::string& page, const Json& entries, const std::vector<std::string>& keys) {
  REQUIRE(!entries.empty());
  for (const Json& entry : entries)
    for (const std::string& key : keys)
      if (entry.at(key).is_number())
        CHECK_MESSAGE(contains(page, "<data value=\"" + entry.at(key).dump() + "\">"), key);
}

struct VerbPage {
  std::string command;
  std::string list;  // of the document
  std::vector<std::string> keys;
};

void check_page(const VerbPage& verb, const Folder& folder) {
  CAPTURE(verb.command);
  const std::string page = folder.path() + "/page.html";
  const std::string again = folder.path() + "/again.html";
  const Answer answer = run_program(verb.command + " --json --report " + page);
  REQUIRE(answer.exit_code == 0);
  REQUIRE(run_program(verb.command + " --report " + again).exit_code == 0);
  CHECK(text_of(page) == text_of(again));
  CHECK(text_of(page).size() < 3'000'000);
  const OpenedPage opened = open_page(page, folder);
  for (const std::string& line : opened.console) FAIL_CHECK(line);
  std::string document = opened.document;
  const std::string ours = "<script type=\"text/javascript\">";
  if (const std::size_t script = document.find(ours); script != document.npos)
    document.erase(script, ours.size());
  CHECK_FALSE(contains(document, "<script"));
  CHECK_FALSE(contains(opened.document, "obeyed</body>"));
  CHECK(contains(opened.document, "<svg"));
  check_figures(opened.document, Json::parse(answer.out)[verb.list], verb.keys);
}

TEST_CASE(
    "pages of plans, layouts, sweeps, comparisons and validations tell the document's figures, and obey no "
    "name") {
  const Folder folder;
  const std::string source = LOCKSTEP_SOURCE_DIR;
  const std::string csv = folder.path() + "/sweep.csv";
  const std::vector<VerbPage> verbs{
      {"plan " + small_request(folder),
       "plans",
       {"nodes", "iteration_time_s", "time_to_train_s", "cost_usd", "energy_kwh", "goodput", "memory_bytes"}},
      {"layouts " + source + "/scenarios/pipeline_four_stages.json --top 5",
       "layouts",
       {"iteration_time_s", "samples_per_s", "mfu", "memory_bytes"}},
      {"sweep " + source + "/scenarios/resnet50_ddp_2x8_a100.json --vary training.bucket_cap_mb=1,5,25 -o " +
           csv,
       "rows",
       {"iteration_time_s", "iteration_time_low_s", "samples_per_s"}},
      {"compare " + source +
           "/scenarios/resnet50_ddp_2x8_a100.json --set cluster.nodes=4 --set training.bucket_cap_mb=100",
       "differences",
       {"iteration_time_s", "difference_s", "difference_percent"}},
      {"compare " + source + "/scenarios/fsdp_llama2_7b.json " + source + "/scenarios/zero3_llama2_7b.json",
       "differences",
       {"iteration_time_s", "difference_s", "difference_percent"}},
      {"validate " + source + "/validate/measurements/mosaicml_no_anchor.json",
       "cases",
       {"measured", "predicted", "error_percent"}}};
  for (const VerbPage& verb : verbs) check_page(verb, folder);
}

TEST_CASE("the page of a plan that no cluster reaches says so, with the nearest") {
  const Folder folder;
  const std::string page = folder.path() + "/page.html";
  CHECK(run_program("plan " + small_request(folder) + " --set goal.deadline='\"1 s\"' --report " + page)
            .exit_code == 3);
  const OpenedPage opened = open_page(page, folder);
  CHECK(contains(opened.document, "No cluster reaches the goal. The nearest, "));
  for (const std::string& line : opened.console) FAIL_CHECK(line);
}

}  // namespace lockstep::testing::page_in_browser_test
