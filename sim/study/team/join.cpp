#include "sim/study/team/join.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "sim/base/error.h"
#include "sim/study/module.h"

namespace lockstep {
namespace {

using OpenTransport = void(std::unique_ptr<Transport>&);

struct Place {
  int rank = 0;
  int size = 1;
};

std::optional<Place> place_told_by(const char* rank, const char* size) {
  const char* const told_rank = std::getenv(rank);
  const char* const told_size = std::getenv(size);
  if (told_rank == nullptr || told_size == nullptr)
    return std::nullopt;
  return Place{std::atoi(told_rank), std::atoi(told_size)};
}

Place place_among_processes() {
  if (const auto place = place_told_by("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
    return *place;
  return place_told_by("PMI_RANK", "PMI_SIZE").value_or(Place{});
}

}  // namespace

std::unique_ptr<Team> join_team(std::function<void(const std::string&)> warn) {
  const Place place = place_among_processes();
  if (place.size < 2)
    return nullptr;
  const ModuleFunction open = find_in_module("lockstep_mpi.so", "lockstep_open_transport");
  if (open.address == nullptr && place.rank > 0)
    throw TeamDissolved();
  if (open.address == nullptr)
    throw EnvironmentError(
        fmt::format("started as one of {} processes, which share work by the module lockstep_mpi.so; it "
                    "cannot be loaded: {}; "
                    "build with -DLOCKSTEP_MPI=ON, or give each process a --shard of its own",
                    place.size, open.problem));
  std::unique_ptr<Transport> transport;
  reinterpret_cast<OpenTransport*>(open.address)(transport);
  return make_team(std::move(transport), std::move(warn));
}

}  // namespace lockstep
