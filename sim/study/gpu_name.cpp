#include "sim/study/gpu_name.h"

namespace lockstep {

std::string find_gpu_named(std::string_view printed, const ProfileStore& store) {
  for (const std::string& name : store.names(ProfileKind::gpu)) {
    const auto profile = store.open(ProfileKind::gpu, name);
    if (profile && is_gpu_named(printed, *profile->value))
      return name;
  }
  return "";
}

}  // namespace lockstep
