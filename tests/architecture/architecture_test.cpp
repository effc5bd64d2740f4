// The house keeps its floors: no include goes up or sideways, and the absences stay absent.
//
// The layers are those of sim/ARCHITECTURE.md: base < plan < writers (collectives < training) and runners
// (network < engine, compute) < scenario < run < load < report < study < cli; load and study have rooms with
// floors of their own. Models write plans' models and see base and plan alone. The two columns, writers and
// runners, never include each other. The harness of validate/ shares base and the rule of buckets with the
// simulator, nothing else; the simulator knows nothing of it.

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep::architecture_test {

namespace fs = std::filesystem;

using Rooms = std::set<std::string>;

Rooms operator+(Rooms rooms, const Rooms& more) {
  rooms.insert(more.begin(), more.end());
  return rooms;
}

// What each room may include besides itself.
const std::map<std::string, Rooms>& allowed_includes() {
  static const std::map<std::string, Rooms> allowed = [] {
    const Rooms plan{"base", "plan"};
    const Rooms columns =
        plan + Rooms{"collectives", "training", "training/schedules", "compute", "network", "engine"};
    const Rooms run = columns + Rooms{"scenario"};
    const Rooms reading = run + Rooms{"run", "load/reading", "load/import"};
    const Rooms report = reading + Rooms{"load", "load/hardware", "load/training"};
    const Rooms study = report + Rooms{"report", "report/text", "report/page"};
    const Rooms bench = study + Rooms{"study", "study/logs"};
    const Rooms fit = bench + Rooms{"study/bench", "study/harness"};
    std::map<std::string, Rooms> table;
    table["base"] = {};
    table["plan"] = {"base"};
    table["models"] = plan;
    table["collectives"] = plan;
    table["training"] = plan + Rooms{"collectives"};
    table["training/schedules"] = plan + Rooms{"collectives", "training"};
    table["training/strategies"] = plan + Rooms{"collectives", "training"};
    table["compute"] = plan;
    table["network"] = plan;
    table["network/topologies"] = plan + Rooms{"network"};
    table["engine"] = plan + Rooms{"network"};
    table["scenario"] = columns;
    table["run"] = run;
    table["load/import"] = run;
    table["load/reading"] = run + Rooms{"load/import"};
    table["load/hardware"] = reading;
    table["load/training"] = reading;
    table["load"] = report;
    table["report/page"] = {"base"};
    table["report"] = report + Rooms{"report/text", "report/page"};
    table["report/text"] = report + Rooms{"report"};
    table["study"] = study;
    table["study/solver"] = Rooms{"study"};
    table["study/team"] = Rooms{"base", "study"};
    table["study/mpi"] = Rooms{"study/team"};
    table["study/logs"] = study + Rooms{"study"};
    table["study/harness"] = study + Rooms{"study"};
    table["study/bench"] = bench;
    table["study/fit"] = fit;
    table["study/validation"] = fit + Rooms{"study/fit"};
    table["study/answers"] = study + Rooms{"study", "study/team"};
    table["study/capacity"] = study + Rooms{"study", "study/answers", "study/team"};
    table["cli"] =
        fit + Rooms{"study/fit", "study/validation", "study/answers", "study/capacity", "study/team"};
    return table;
  }();
  return allowed;
}

fs::path source_root() {
  return LOCKSTEP_SOURCE_DIR;
}

bool is_source(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh";
}

std::vector<fs::path> sources_below(const std::vector<std::string>& folders) {
  std::vector<fs::path> found;
  for (const std::string& folder : folders) {
    if (!fs::exists(source_root() / folder))
      continue;
    for (const auto& entry : fs::recursive_directory_iterator(source_root() / folder))
      if (entry.is_regular_file() && is_source(entry.path()))
        found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string shown(const fs::path& path) {
  return fs::relative(path, source_root()).string();
}

// "load/reading" of sim/load/reading/fields.h, "models" of models/resnet.cpp.
std::string room_of(const std::string& path) {
  const std::string room = fs::path(path).parent_path().string();
  return room.starts_with("sim/") ? room.substr(std::string("sim/").size()) : room;
}

// Past the closing quote of what opens at `begin`.
std::size_t end_of_literal(const std::string& code, std::size_t begin) {
  std::size_t end = begin + 1;
  while (end < code.size() && code[end] != code[begin]) end += code[end] == '\\' ? 2 : 1;
  return std::min(end + 1, code.size());
}

bool is_in_word(char symbol) {
  return symbol == '_' || std::isalnum(static_cast<unsigned char>(symbol)) != 0;
}

// Past the end of R"delimiter(...)delimiter" whose quote is at `quote`.
std::size_t end_of_raw_string(const std::string& code, std::size_t quote) {
  const std::size_t opens = std::min(code.find('(', quote), code.size());
  const std::string closing = ")" + code.substr(quote + 1, opens - quote - 1) + "\"";
  const std::size_t end = code.find(closing, opens);
  return end == code.npos ? code.size() : end + closing.size();
}

// The next comment or literal, of which no digit's separator is one; past the end: none.
struct Words {
  std::size_t begin;
  std::size_t end;
};
Words next_words(const std::string& text, std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (text.compare(at, 2, "//") == 0)
      return {at, std::min(text.find('\n', at), text.size())};
    if (text.compare(at, 2, "/*") == 0)
      return {at, std::min(text.find("*/", at + 2), text.size() - 2) + 2};
    if (text.compare(at, 2, "R\"") == 0)
      return {at, end_of_raw_string(text, at + 1)};
    if (text[at] == '"' || (text[at] == '\'' && !(at > 0 && is_in_word(text[at - 1]))))
      return {at, end_of_literal(text, at)};
  }
  return {text.size(), text.size()};
}

// Code without comments, strings and character literals, so that words in them do not count; their lines stay.
std::string without_words(const fs::path& path) {
  std::ostringstream file;
  file << std::ifstream(path).rdbuf();
  const std::string text = file.str();
  std::string code;
  for (std::size_t at = 0; at < text.size();) {
    const Words words = next_words(text, at);
    code.append(text, at, words.begin - at);
    for (std::size_t i = words.begin; i < words.end; ++i) code += text[i] == '\n' ? '\n' : ' ';
    at = words.end;
  }
  return code;
}

// The same, each file once: half of these tests ask for all of them.
const std::string& code_of(const fs::path& path) {
  static std::map<fs::path, std::string> known;
  const auto [code, is_new] = known.try_emplace(path);
  if (is_new)
    code->second = without_words(path);
  return code->second;
}

// "exit(" of "exit (", so that no blank hides a call.
std::string without_blanks_at_brackets(const std::string& line) {
  const auto is_bracket = [](char symbol) { return symbol == '(' || symbol == ')'; };
  std::string code;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const std::size_t next = std::min(line.find_first_not_of(' ', at), line.size());
    const bool is_beside =
        (!code.empty() && is_bracket(code.back())) || (next < line.size() && is_bracket(line[next]));
    if (line[at] != ' ' || !is_beside)
      code += line[at];
  }
  return code;
}

// Whether code says `word`, which is no part of a longer one unless it ends with "_".
bool says(const std::string& code, const std::string& word) {
  for (std::size_t at = code.find(word); at != code.npos; at = code.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool goes_on =
        word.back() != '_' && is_in_word(word.back()) && end < code.size() && is_in_word(code[end]);
    if (!goes_on && !(at > 0 && is_in_word(code[at - 1])))
      return true;
  }
  return false;
}

bool says_any(const std::string& code, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return says(code, word); });
}

// Every line of code in `folders` that says one of `words`.
std::vector<std::string> uses_of(const std::vector<std::string>& words,
                                 const std::vector<std::string>& folders) {
  std::vector<std::string> found;
  for (const fs::path& path : sources_below(folders)) {
    std::istringstream code(code_of(path));
    int number = 0;
    for (std::string line; std::getline(code, line);) {
      ++number;
      if (says_any(without_blanks_at_brackets(line), words))
        found.push_back(shown(path) + ":" + std::to_string(number) + ": " + line);
    }
  }
  return found;
}

void check_absent(const std::vector<std::string>& words, const std::vector<std::string>& folders,
                  const std::set<std::string>& exceptions = {}) {
  for (const std::string& use : uses_of(words, folders)) {
    INFO(use);
    CHECK(exceptions.contains(use.substr(0, use.find(':'))));
  }
}

TEST_CASE("A word is found in code, whole, and neither in comments nor in literals") {
  CHECK(says("x = rand();", "rand("));
  CHECK(!says("operand(x)", "rand("));
  CHECK(says("float x;", "float"));
  CHECK(!says("floating x;", "float"));
  CHECK(says("std::uniform_int_distribution<int> d;", "std::uniform_"));
  CHECK(without_blanks_at_brackets("if (x) time  ( 0 );") == "if(x)time(0);");
  CHECK(end_of_raw_string("R\"x(a \" b)\" c)x\";", 1) == std::string("R\"x(a \" b)\" c)x\"").size());
  const fs::path path = source_root() / "tests/architecture/architecture_test.cpp";
  const std::string here = without_words(path);
  CHECK(!says(here, "operand"));
  CHECK(says(here, "without_words"));
  CHECK(std::count(here.begin(), here.end(), '\n') == static_cast<std::ptrdiff_t>(lines_of(path).size()));
}

TEST_CASE("Every folder of sim has its floor") {
  for (const fs::path& path : sources_below({"sim", "models"})) {
    INFO(shown(path));
    CHECK(allowed_includes().contains(room_of(shown(path))));
  }
}

TEST_CASE("No include goes up or sideways") {
  const std::regex include(R"re(^\s*#\s*include\s+"((sim|models)/[^"]+)")re");
  for (const fs::path& path : sources_below({"sim", "models"})) {
    const std::string from = room_of(shown(path));
    for (const std::string& line : lines_of(path)) {
      std::smatch match;
      if (!std::regex_search(line, match, include))
        continue;
      const std::string to = room_of(match[1]);
      INFO(shown(path), " includes ", match[1].str());
      CHECK((to == from || allowed_includes().at(from).contains(to)));
    }
  }
}

// "device" of validate/harness/device/kernels.h; the programs' own files see every room.
std::string harness_room_of(const std::string& path) {
  const std::string below = path.substr(std::string("validate/harness/").size());
  const std::size_t end = below.find('/');
  return end == std::string::npos ? "" : below.substr(0, end);
}

const std::map<std::string, std::set<std::string>>& allowed_harness_includes() {
  static const std::map<std::string, std::set<std::string>> allowed{
      {"gpu_bench", {"device", "layers", "models", "communication", "training", "measure"}},
      {"device", {}},
      {"layers", {"device"}},
      {"models", {"device", "layers"}},
      {"communication", {"device"}},
      {"training", {"device", "layers", "models", "communication"}},
      {"measure", {"device", "layers", "models", "communication", "training"}},
      {"stand_in", {"device", "communication"}}};
  return allowed;
}

bool harness_may_include(const std::string& from, const std::string& header) {
  if (header.starts_with("sim/") || header.starts_with("models/"))
    return room_of(header) == "base" || header == "sim/training/bucketing.h";
  const std::string to = harness_room_of(header);
  if (to == from)
    return true;
  if (from.empty())
    return to != "stand_in";  // which is for tests alone
  return allowed_harness_includes().at(from).contains(to);
}

TEST_CASE("The harness shares base and the rule of buckets with the simulator, and has floors of its own") {
  const std::regex include(R"re(^\s*#\s*include\s+"((sim|models|validate/harness)/[^"]+)")re");
  for (const fs::path& path : sources_below({"validate/harness"}))
    for (const std::string& line : lines_of(path)) {
      std::smatch match;
      if (!std::regex_search(line, match, include))
        continue;
      INFO(shown(path), " includes ", match[1].str());
      CHECK(harness_may_include(harness_room_of(shown(path)), match[1]));
    }
}

TEST_CASE("The simulator knows nothing of the harness") {
  const std::regex include(R"re(^\s*#\s*include\s+"validate/)re");
  for (const fs::path& path : sources_below({"sim", "models"}))
    for (const std::string& line : lines_of(path)) {
      INFO(shown(path), ": ", line);
      CHECK_FALSE(std::regex_search(line, include));
    }
}

TEST_CASE("Every include of the project is written from its root") {
  const std::regex include(R"re(^\s*#\s*include\s+"([^"]+)")re");
  for (const fs::path& path : sources_below({"sim", "models", "validate/harness"}))
    for (const std::string& line : lines_of(path)) {
      std::smatch match;
      if (!std::regex_search(line, match, include))
        continue;
      INFO(shown(path), " includes ", match[1].str());
      CHECK(fs::exists(source_root() / match[1].str()));
    }
}

TEST_CASE("The engine and the network own no heap objects by hand and call nothing through pointers") {
  const std::vector<std::string> hot{"sim/engine", "sim/network"};
  check_absent({"new", "delete", "shared_ptr", "make_shared", "std::function", "virtual"}, hot);
}

// machine.h states a fabric's oversubscription as the profile does, and leaf_spine.cpp makes it a Ratio.
TEST_CASE("Nothing that is simulated is a floating-point number") {
  check_absent({"double", "float"}, {"sim/engine", "sim/network", "sim/plan", "sim/collectives"},
               {"sim/network/machine.h"});
}

TEST_CASE("Nothing but main ends the program, and nothing reads the clock or draws from std") {
  const std::vector<std::string> below_cli{"sim/base",    "sim/plan",    "sim/collectives", "sim/training",
                                           "sim/compute", "sim/network", "sim/engine",      "sim/scenario",
                                           "sim/run",     "sim/load",    "sim/report",      "models"};
  check_absent({"exit(", "abort(", "_Exit(", "quick_exit("}, below_cli);
  check_absent({"std::chrono", "clock_gettime", "gettimeofday", "time(NULL)", "time(nullptr)", "time(0)"},
               below_cli);
  check_absent({"rand(", "std::mt19937", "std::mt19937_64", "std::random_device", "std::uniform_",
                "std::normal_distribution"},
               below_cli);
}

// What std::ranges returns as a subrange, and views: with libstdc++ 12 no constraint of theirs holds there.
TEST_CASE("Nothing is used that clang 14 cannot read") {
  check_absent(
      {"std::views", "std::ranges::subrange", "std::ranges::partition", "std::ranges::stable_partition",
       "std::ranges::unique", "std::ranges::remove", "std::ranges::remove_if", "std::ranges::rotate",
       "std::ranges::search", "std::ranges::find_end", "std::ranges::equal_range"},
      {"sim", "models", "validate", "tests"});
}

TEST_CASE("Every header opens with a comment of at least three lines") {
  for (const fs::path& path : sources_below({"sim", "models", "validate/harness"})) {
    if (path.extension() != ".h")
      continue;
    int comment = 0;
    for (const std::string& line : lines_of(path)) {
      if (line.starts_with("//"))
        ++comment;
      else if (!line.empty() && line != "#pragma once")
        break;
    }
    INFO(shown(path));
    CHECK(comment >= 3);
  }
}

TEST_CASE("Every header guards itself with pragma once") {
  for (const fs::path& path : sources_below({"sim", "models", "validate/harness"})) {
    if (path.extension() != ".h")
      continue;
    const auto lines = lines_of(path);
    INFO(shown(path));
    CHECK(std::count(lines.begin(), lines.end(), "#pragma once") == 1);
  }
}

// What a header says at the margin: "struct Group", or "exponential(double )" less the parameters' names; nothing for
// a line that defines or declares neither.
std::string defined_by(const std::string& line) {
  static const std::regex type(R"(^(?:struct|class|enum class) (\w+)[^;]*\{)");
  static const std::regex function(
      R"(^(?!using|return|template|namespace)[A-Za-z][\w:<>, *&]*[ *&](\w+\([^()]*\)))");
  static const std::regex parameter_name(R"(\b\w+(?=[,)]))");
  std::smatch found;
  if (std::regex_search(line, found, type))
    return "type " + found[1].str();
  if (std::regex_search(line, found, function))
    return std::regex_replace(found[1].str(), parameter_name, "");
  return "";
}

// Of one name and parameters in one namespace a program keeps one definition, and which is the linker's choice.
TEST_CASE("No two headers define a type or a function of one name in one namespace") {
  std::map<std::string, std::string> header_of;
  for (const fs::path& path : sources_below({"sim", "models", "validate/harness", "tests"})) {
    if (path.extension() != ".h")
      continue;
    std::string scope;
    for (const std::string& line : lines_of(path)) {
      if (line.starts_with("namespace "))
        scope = line;
      const std::string name = defined_by(line);
      if (name.empty())
        continue;
      INFO(name, " in ", scope);
      CHECK(header_of.try_emplace(scope + name, shown(path)).first->second == shown(path));
    }
  }
}

TEST_CASE("Nothing is left to do") {
  for (const fs::path& path : sources_below({"sim", "models", "validate/harness"}))
    for (const std::string& line : lines_of(path)) {
      INFO(shown(path), ": ", line);
      CHECK_FALSE(says_any(line, {"TODO", "FIXME", "XXX", "HACK"}));
    }
}

}  // namespace lockstep::architecture_test
