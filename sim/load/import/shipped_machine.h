#pragma once

// Shipped profiles, as far as an importer compares a machine with them.
//
// Problem:   a dump says neither what a NIC's wire is called here nor how its host's sockets are joined; a shipped machine
//            that is built alike says both.
// Idea:      machines are compared by what a dump shows: the GPU, how GPUs are joined, who is below which PCIe switch,
//            where NICs are.
// Invariant: a machine is recognised only if it agrees with all that was said, and no shipped one does that is built in
//            another way. Of those that are built alike the one that was measured comes first.
// Cost:      a pass over the shipped machines, each read once by its store.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/load/import/profile_shelf.h"

namespace lockstep {

struct NicPlace {
  std::string link;  // empty: not said
  std::vector<std::int64_t> gpus;
};

// {"count", "link"}: GPU i is close to NIC i * count / gpus, or NIC j to GPU j * gpus / count.
std::vector<NicPlace> spread_evenly(const std::string& link, std::int64_t count, std::int64_t gpus);

// What is said of a machine; empty: not said.
struct MachineClaims {
  std::string gpu;
  std::int64_t gpus = 0;
  nlohmann::ordered_json gpu_links = {};
  std::vector<std::vector<std::int64_t>> pcie_switches = {};
  std::optional<std::vector<NicPlace>> nics = {};
  std::int64_t sockets = 0;
  std::string socket_link = {};
  std::string pcie = {};
};

// What a shipped machine's profile says of itself.
MachineClaims claims_of(const nlohmann::ordered_json& machine);

// "4 GPUs instead of 8": what both say and disagree in.
std::vector<std::string> find_disagreements(const MachineClaims& said, const MachineClaims& shipped);

// Names of the shipped machines that agree with all that is said, those with a calibration of their own first.
std::vector<std::string> find_alike(const MachineClaims& said, const ProfileShelf& shelf);

// The shipped name of what a driver calls so; empty: there is none.
std::string find_gpu(std::string_view printed, const ProfileShelf& shelf);

// The link that shipped machines have between GPUs of this model, or of its compute capability; empty: none has.
std::string peer_link_of(const std::string& gpu, const ProfileShelf& shelf);

// Shipped GPUs with so many links each in some shipped machine.
std::vector<std::string> gpus_with_links(std::int64_t links, const ProfileShelf& shelf);

}  // namespace lockstep
