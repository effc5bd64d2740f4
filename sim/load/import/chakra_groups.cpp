#include "sim/load/import/chakra_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/printable.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::uint32_t most_ranks = 1'000'000;

bool is_free(const std::vector<bool>& is_taken, std::uint32_t rank) {
  return rank >= is_taken.size() || !is_taken[rank];
}

std::vector<std::uint32_t> ranks_in(const ordered_json& list, const std::string& name,
                                    const std::string& file) {
  std::vector<std::uint32_t> ranks;
  const auto is_rank = [](const ordered_json& value) {
    return value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
           value.get<std::int64_t>() < most_ranks;
  };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_rank))
    throw ConfigError(
        fmt::format("{}: group \"{}\" is no list of ranks; valid: [0, 1, ...]", file, printable_name(name)));
  for (const ordered_json& value : list) ranks.push_back(value.get<std::uint32_t>());
  return ranks;
}

}  // namespace

void ChakraGroups::add(const std::string& name, std::vector<std::uint32_t> ranks, const std::string& file) {
  std::sort(ranks.begin(), ranks.end());
  if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end())
    throw ConfigError(fmt::format("{}: group \"{}\" has a rank twice", file, printable_name(name)));
  const auto [known, is_new] = named_.try_emplace(name);
  if (!is_new && known->second.ranks != ranks)
    throw ConfigError(fmt::format("{}: group \"{}\" has ranks {} here and {} elsewhere", file,
                                  printable_name(name), fmt::join(ranks, ", "),
                                  fmt::join(known->second.ranks, ", ")));
  if (!is_new)
    return;
  known->second.ranks = ranks;
  if (!ranks.empty() && name != "0")
    known->second.set = place(ranks);
}

std::uint32_t ChakraGroups::place(const std::vector<std::uint32_t>& ranks) {
  const auto fits = [&](const Set& set) {
    return set.groups.front().size() == ranks.size() &&
           std::all_of(ranks.begin(), ranks.end(),
                       [&](std::uint32_t rank) { return is_free(set.is_taken, rank); });
  };
  auto found = std::find_if(sets_.begin(), sets_.end(), fits);
  if (found == sets_.end())
    found = sets_.insert(found, Set{});
  std::vector<Rank>& group = found->groups.emplace_back();
  found->is_taken.resize(std::max<std::size_t>(found->is_taken.size(), ranks.back() + 1));
  for (const std::uint32_t rank : ranks) {
    group.push_back(Rank{rank});
    found->is_taken[rank] = true;
  }
  return static_cast<std::uint32_t>(found - sets_.begin());
}

void ChakraGroups::add_all(const ordered_json& groups, const std::string& file) {
  if (!groups.is_object())
    throw ConfigError(fmt::format("{}: found no groups; valid: {{\"1\": [0, 1], ...}}", file));
  for (const auto& [name, ranks] : groups.items()) add(name, ranks_in(ranks, name, file), file);
}

// The list stands as text within a list: "['[{...}]']".
void ChakraGroups::add_of_pytorch(const std::string& input_values, const std::string& file) {
  const std::size_t first = input_values.find("[{");
  const std::size_t last = input_values.rfind("}]");
  if (first == input_values.npos || last == input_values.npos || last < first)
    return;
  const ordered_json list = ordered_json::parse(input_values.substr(first, last + 2 - first), nullptr, false);
  if (!list.is_array())
    return;
  for (const ordered_json& group : list)
    if (group.is_object() && group.contains("pg_name") && group["pg_name"].is_string() &&
        group.contains("ranks")) {
      const std::string name = group["pg_name"].get<std::string>();
      add(name, ranks_in(group["ranks"], name, file), file);
    }
}

std::optional<ChakraGroups::Membership> ChakraGroups::find(const std::string& name,
                                                           std::uint32_t rank) const {
  const auto found = named_.find(name);
  if (found == named_.end())
    return name.empty() || name == "0" ? std::optional<Membership>(Membership{}) : std::nullopt;
  const Named& group = found->second;
  if (!group.ranks.empty() && !std::binary_search(group.ranks.begin(), group.ranks.end(), rank))
    return std::nullopt;
  return Membership{group.set, group.set == all_ranks ? 0 : static_cast<std::uint32_t>(group.ranks.size())};
}

std::string ChakraGroups::described(const std::string& name) const {
  const auto found = named_.find(name);
  if (found == named_.end())
    return fmt::format("\"{}\", which is told nowhere", printable_name(name));
  return fmt::format("\"{}\", of ranks {}", printable_name(name), fmt::join(found->second.ranks, ", "));
}

std::vector<ListedGroups> ChakraGroups::sets(std::uint32_t ranks, const std::string& file) const {
  std::vector<ListedGroups> listed;
  for (const Set& set : sets_) {
    if (set.is_taken.size() > ranks)
      throw ConfigError(fmt::format("{}: a group has rank {}, but there are {} ranks", file,
                                    set.is_taken.size() - 1, ranks));
    ListedGroups groups{.name = fmt::format("set {}", listed.size() + 1), .groups = set.groups};
    const std::size_t size = set.groups.front().size();
    std::vector<Rank> rest;
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      if (is_free(set.is_taken, rank))
        rest.push_back(Rank{rank});
    if (rest.size() % size != 0)
      throw ConfigError(
          fmt::format("{}: groups of {} ranks leave {} of {} ranks over; expected groups that ranks can be "
                      "dealt into evenly",
                      file, size, rest.size(), ranks));
    for (std::size_t first = 0; first < rest.size(); first += size)
      groups.groups.emplace_back(rest.begin() + static_cast<std::ptrdiff_t>(first),
                                 rest.begin() + static_cast<std::ptrdiff_t>(first + size));
    listed.push_back(std::move(groups));
  }
  return listed;
}

}  // namespace lockstep
