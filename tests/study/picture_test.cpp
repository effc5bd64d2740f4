// What is said when a picture cannot be drawn. That one can is for the eye.

#include "sim/study/picture.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "sim/base/error.h"

namespace lockstep::picture_test {

namespace fs = std::filesystem;

// A data directory whose plots/sweep.py does as told instead of drawing.
class ScriptFolder {
 public:
  explicit ScriptFolder(const std::string& script) {
    std::string name = (fs::temp_directory_path() / "lockstep-picture-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
    fs::create_directory(path_ / "plots");
    std::ofstream(path_ / "plots" / "sweep.py") << script;
  }
  ScriptFolder(const ScriptFolder&) = delete;
  ScriptFolder& operator=(const ScriptFolder&) = delete;
  ~ScriptFolder() { fs::remove_all(path_); }

  Picture picture() const {
    return {.script = "sweep",
            .document = "a,b\n1,2\n",
            .output = file("out.svg"),
            .data_directory = path_.string()};
  }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

TEST_CASE("The script reads the document on its standard input and is told where to write") {
  const ScriptFolder folder("import sys\nopen(sys.argv[2], 'w').write(sys.argv[1] + sys.stdin.read())\n");
  draw(folder.picture());
  std::ifstream file(folder.file("out.svg"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK(text == "-a,b\n1,2\n");
}

TEST_CASE("An interpreter without matplotlib is said so, once none is left to try") {
  const ScriptFolder folder("import sys\nsys.exit(69)\n");
  CHECK_THROWS_WITH_AS(draw(folder.picture()), doctest::Contains("needs python3 with matplotlib"),
                       EnvironmentError);
}

TEST_CASE("A script that fails is named with its exit status") {
  const ScriptFolder folder("import sys\nsys.exit(5)\n");
  CHECK_THROWS_WITH_AS(draw(folder.picture()), doctest::Contains("plots/sweep.py failed (exit 5)"),
                       EnvironmentError);
}

TEST_CASE("A picture is .svg or .png, in a folder that is there") {
  CHECK_THROWS_WITH_AS(check_picture_file("out.jpg"), doctest::Contains("ends in .svg or .png"), ConfigError);
  CHECK_THROWS_WITH_AS(check_picture_file("/nonexistent/out.svg"), doctest::Contains("cannot be written"),
                       ConfigError);
}

}  // namespace lockstep::picture_test
