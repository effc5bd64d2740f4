// Every shipped scenario's page, opened in a browser: what a person would see is there, and the console is empty.
//
// Chromium writes the console's lines to its log as "...:CONSOLE:LINE] ...", and with --dump-dom the document as
// it stands once it is laid out and its scripts have run. Built where Chromium is found (CMakeLists.txt).

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/shipped_scenarios.h"

namespace lockstep::testing::page_in_browser_test {

struct OpenedPage {
  std::string document;
  std::vector<std::string> console;  // errors of scripts and what failed to load are among it
};

// Without a sandbox, which containers cannot give (the pages are our own); with a profile that nobody shares.
OpenedPage open_page(const std::string& page, const Folder& profile) {
  const Answer browser =
      run_command(std::string(LOCKSTEP_CHROMIUM) +
                  " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --enable-logging=stderr" +
                  " --user-data-dir=" + profile.path() + " --dump-dom file://" + page);
  CHECK(browser.exit_code == 0);
  OpenedPage opened{.document = browser.out, .console = {}};
  std::istringstream log(browser.diagnostics);
  for (std::string line; std::getline(log, line);)
    if (contains(line, ":CONSOLE"))
      opened.console.push_back(line);
  return opened;
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

TEST_CASE("every scenario's page opens in a browser without a word in its console") {
  const Folder folder;
  for (const std::string& file : shipped_scenarios()) {
    CAPTURE(file);
    const std::string page = folder.path() + "/page.html";
    REQUIRE(run_program("predict " + file + " --report " + page).exit_code == 0);
    const OpenedPage opened = open_page(page, folder);
    CHECK(contains(opened.document, "<h1"));
    CHECK(contains(opened.document, "</html>"));
    for (const std::string& line : opened.console) FAIL_CHECK(line);
  }
}

}  // namespace lockstep::testing::page_in_browser_test
