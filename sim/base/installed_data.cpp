#include "sim/base/installed_data.h"

#include <filesystem>
#include <system_error>

namespace lockstep {

std::string installed_data_directory() {
  std::error_code failure;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure)
    return "";
  return (program.parent_path().parent_path() / "share" / "lockstep").string();
}

}  // namespace lockstep
