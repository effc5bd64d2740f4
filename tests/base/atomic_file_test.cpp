#include "sim/base/atomic_file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sim/base/error.h"

namespace lockstep::atomic_file_test {

namespace fs = std::filesystem;

// An empty folder for one test, removed with it.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "lockstep-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  auto count() const { return std::distance(fs::directory_iterator(path_), fs::directory_iterator()); }

 private:
  fs::path path_;
};

std::string content(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

TEST_CASE("A committed file holds everything that was written, and no temporary stays") {
  const Folder folder;
  const std::string large(1 << 20, 'x');
  AtomicFile file(folder.file("out"));
  file.write("head ");
  file.write(large);
  file.commit();
  CHECK(content(folder.file("out")) == "head " + large);
  CHECK(folder.count() == 1);
}

TEST_CASE("A file that is not committed leaves the target as it was") {
  const Folder folder;
  write_file_atomically(folder.file("out"), "old");
  {
    AtomicFile file(folder.file("out"));
    file.write("new");
    CHECK(folder.count() <= 2);  // with a name of its own, or without any
  }
  CHECK(content(folder.file("out")) == "old");
  CHECK(folder.count() == 1);
}

TEST_CASE("The target changes at commit and not before") {
  const Folder folder;
  write_file_atomically(folder.file("out"), "old");
  AtomicFile file(folder.file("out"));
  file.write(std::string(1 << 20, 'n'));
  CHECK(content(folder.file("out")) == "old");
  file.commit();
  CHECK(content(folder.file("out")) == std::string(1 << 20, 'n'));
}

// Its file has no name where the file system knows files without one.
TEST_CASE("The signal handler's function removes what is being written, and only that") {
  const Folder folder;
  write_file_atomically(folder.file("done"), "done");
  AtomicFile first(folder.file("a"));
  AtomicFile second(folder.file("b"));
  CHECK((folder.count() == 1 || folder.count() == 3));
  remove_temporary_files();
  CHECK(folder.count() == 1);
  CHECK(content(folder.file("done")) == "done");
}

TEST_CASE("A path that cannot be written is the user's mistake, and named") {
  const Folder folder;
  const std::string missing = folder.file("no/such/folder/out");
  CHECK_THROWS_WITH_AS(AtomicFile{missing}, doctest::Contains(missing.c_str()), ConfigError);
  CHECK_THROWS_AS(AtomicFile{folder.file("")}, ConfigError);
  CHECK_THROWS_AS(AtomicFile{folder.file(".")}, ConfigError);
  CHECK_THROWS_AS(AtomicFile{""}, ConfigError);
  write_file_atomically(folder.file("plain"), "");
  CHECK_THROWS_AS(AtomicFile{folder.file("plain/out")}, ConfigError);
  CHECK_THROWS_AS(AtomicFile{folder.file(std::string(300, 'n'))}, ConfigError);
}

TEST_CASE("A full disk is the environment's failure") {
  if (!fs::exists("/dev/full")) {
    return;
  }
  AtomicFile file("/dev/full");
  file.write("x");
  CHECK_THROWS_WITH_AS(file.commit(), "/dev/full: writing failed: No space left on device", EnvironmentError);
}

TEST_CASE("A device is written in place and not replaced") {
  write_file_atomically("/dev/null", "gone");
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("Writing through a symbolic link replaces the file it points to") {
  const Folder folder;
  write_file_atomically(folder.file("real"), "old");
  fs::create_symlink("real", folder.file("link"));
  write_file_atomically(folder.file("link"), "new");
  CHECK(fs::is_symlink(folder.file("link")));
  CHECK(content(folder.file("real")) == "new");
}

TEST_CASE("A replaced file keeps its permissions") {
  const Folder folder;
  write_file_atomically(folder.file("out"), "old");
  constexpr auto mode = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(folder.file("out"), mode);
  write_file_atomically(folder.file("out"), "new");
  CHECK(fs::status(folder.file("out")).permissions() == mode);
}

}  // namespace lockstep::atomic_file_test
