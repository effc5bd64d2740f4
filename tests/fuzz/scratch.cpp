#include "tests/fuzz/scratch.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sim/base/check.h"

namespace lockstep::fuzz {
namespace {

namespace fs = std::filesystem;

class Scratch {
 public:
  Scratch() : owner_(::getpid()) {
    const fs::path memory = "/dev/shm";
    const fs::path parent = fs::is_directory(memory) ? memory : fs::temp_directory_path();
    path_ = (parent / "lockstep_fuzz_XXXXXX").string();
    LOCKSTEP_CHECK(::mkdtemp(path_.data()) != nullptr, "a folder can be made for what readers read");
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (::getpid() == owner_)  // a child of it has the folder on loan
      fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  pid_t owner_;
  std::string path_;
};

}  // namespace

const std::string& scratch_folder() {
  static const Scratch scratch;
  return scratch.path();
}

std::string scratch_file(const std::string& name, const std::string& bytes) {
  const fs::path path = fs::path(scratch_folder()) / name;
  if (!fs::exists(path))
    fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path.string();
}

}  // namespace lockstep::fuzz
