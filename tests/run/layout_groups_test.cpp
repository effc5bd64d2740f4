// Who talks to whom in a layout, against how Megatron-LM numbers its ranks.

#include "sim/run/layout_groups.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/training/layout.h"

namespace lockstep::layout_groups_test {

// Of the only stage; nothing where experts are not dealt evenly.
std::optional<Scenario> mixture(std::int64_t tensor, std::int64_t context, std::int64_t data,
                                std::int64_t expert, std::int64_t expert_tensor) {
  Scenario scenario;
  Layout& layout = scenario.training.layout;
  layout.degrees = {.tensor = tensor, .context = context, .expert = expert, .expert_tensor = expert_tensor};
  layout.data = data;
  scenario.training.strategy = "ddp";
  return expert_spread(layout) ? std::optional(scenario) : std::nullopt;
}

std::vector<std::vector<Rank>> groups_of(const MeshGroups& wanted, std::string_view name) {
  const auto set = std::find_if(wanted.sets.begin(), wanted.sets.end(),
                                [&](const GroupAxes& axes) { return axes.name == name; });
  return set == wanted.sets.end() ? std::vector<std::vector<Rank>>{} : wanted.mesh.lines(set->along);
}

// All ranks that agree with the first of each group in what `same` tells of a rank.
template <class Same>
void check_groups(const std::vector<std::vector<Rank>>& groups, std::uint32_t ranks, const Same& same) {
  std::size_t members = 0;
  for (const std::vector<Rank>& group : groups) {
    std::vector<Rank> expected;
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      if (same(rank) == same(group.front().index))
        expected.push_back(Rank{rank});
    CHECK(group == expected);
    members += group.size();
  }
  CHECK(members == ranks);
}

// RankGenerator of megatron/core/parallel_state.py for experts: the same ranks, numbered by expert-tensor, expert and
// expert-data degree from the inside out.
TEST_CASE("groups of experts are those that a mesh of their own over the same ranks has") {
  for (const std::uint32_t tensor : {1U, 2U, 4U, 6U})
    for (const std::uint32_t context : {1U, 2U, 3U})
      for (const std::uint32_t data : {1U, 2U, 4U})
        for (std::uint32_t sharers = 1; sharers <= tensor; ++sharers)
          for (std::uint32_t expert = 1; expert <= tensor * context * data; ++expert) {
            const std::uint32_t ranks = tensor * context * data;
            if (tensor % sharers != 0 || tensor * context == 1)
              continue;
            const auto scenario = mixture(tensor, context, data, expert, sharers);
            if (!scenario)
              continue;
            INFO(tensor, " x ", context, " x ", data, ", experts ", expert, ", sharers ", sharers);
            const MeshGroups wanted = groups_wanted(*scenario);
            REQUIRE(wanted.mesh.ranks() == ranks);
            if (expert > 1)
              check_groups(groups_of(wanted, "expert"), ranks, [&](std::uint32_t rank) {
                return std::pair(rank % sharers, rank / (sharers * expert));
              });
            if (expert > 1 || sharers < tensor)
              check_groups(groups_of(wanted, "expert data"), ranks,
                           [&](std::uint32_t rank) { return rank % (sharers * expert); });
            if (sharers > 1 && sharers < tensor)
              check_groups(groups_of(wanted, "expert tensor"), ranks,
                           [&](std::uint32_t rank) { return rank / sharers; });
            if (tensor > 1)
              check_groups(groups_of(wanted, "tensor"), ranks,
                           [&](std::uint32_t rank) { return rank / tensor; });
            check_groups(groups_of(wanted, "data"), ranks, [&](std::uint32_t rank) { return rank % tensor; });
            CHECK(copies_of_expert(scenario->training.layout) * sharers * expert == ranks);
          }
}

TEST_CASE("experts are dealt evenly over whole dimensions and an even part of the next") {
  const auto spread = [](std::int64_t expert, std::int64_t sharers) {
    const auto scenario = mixture(4, 2, 6, expert, sharers);
    return scenario ? expert_spread(scenario->training.layout) : std::nullopt;
  };
  const auto check = [](const std::optional<ExpertSpread>& found, std::int64_t tensor, std::int64_t context,
                        std::int64_t data) {
    REQUIRE(found.has_value());
    CHECK(found->tensor == tensor);
    CHECK(found->context == context);
    CHECK(found->data == data);
  };
  check(spread(2, 0), 1, 2, 1);
  check(spread(6, 0), 1, 2, 3);
  check(spread(2, 1), 2, 1, 1);
  check(spread(4, 2), 2, 2, 1);
  check(spread(24, 1), 4, 2, 3);
  CHECK(!spread(3, 0));   // no whole context group
  CHECK(!spread(12, 1));  // one and a half of them
  CHECK(!spread(24, 0));  // more than there are ranks
  CHECK(!spread(1, 3));   // a tensor group of 4 has no thirds
  CHECK(!spread(1, 8));   // nor are there so many in it
}

}  // namespace lockstep::layout_groups_test
