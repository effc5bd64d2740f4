#include "sim/load/reading/store_shelf.h"

#include <array>

#include "sim/base/error.h"

namespace lockstep {
namespace {

ProfileKind kind_of(ShelfKind kind) {
  constexpr std::array kinds{ProfileKind::gpu, ProfileKind::link, ProfileKind::machine,
                             ProfileKind::calibration};
  return kinds[static_cast<std::size_t>(kind)];
}

}  // namespace

std::vector<std::string> StoreShelf::names(ShelfKind kind) const {
  return store_.names(kind_of(kind));
}

const nlohmann::ordered_json* StoreShelf::find(ShelfKind kind, const std::string& name) const {
  try {
    const std::optional<Profile> profile = store_.open(kind_of(kind), name);
    return profile ? profile->value : nullptr;
  } catch (const ConfigError&) {
    return nullptr;
  }
}

}  // namespace lockstep
