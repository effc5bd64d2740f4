#include "sim/report/collective_list.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "sim/collectives/collective.h"

namespace lockstep {
namespace {

std::string_view verb_of(const CollectiveReport& collective) {
  return std::string_view(collective.name).substr(0, collective.name.find(' '));
}

bool are_alike(const CollectiveReport& a, const CollectiveReport& b) {
  return a.op == b.op && a.payload == b.payload && a.dimension == b.dimension && a.ranks == b.ranks &&
         a.algorithm == b.algorithm && a.protocol == b.protocol && verb_of(a) == verb_of(b);
}

}  // namespace

Bytes sent_by_rank(const Communication& communication) {
  const BusFactor factor = bus_factor(communication.op, communication.ranks);
  const auto weighted = static_cast<Unsigned128>(communication.bytes_on_wire.count()) *
                        static_cast<Unsigned128>(factor.numerator);
  return Bytes{arithmetic::checked_narrow(weighted / static_cast<Unsigned128>(factor.denominator))};
}

std::vector<CollectiveGroup> grouped_alike(const std::vector<CollectiveReport>& collectives) {
  std::vector<CollectiveGroup> groups;
  std::set<std::pair<std::ptrdiff_t, std::string_view>> seen;  // group and name
  for (const CollectiveReport& collective : collectives) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const CollectiveGroup& known) {
      return are_alike(*known.first, collective);
    });
    if (group == groups.end())
      group = groups.insert(groups.end(), {.first = &collective});
    if (seen.insert({group - groups.begin(), collective.name}).second)
      group->last = &collective;
    group->count += 1;
    group->bytes += collective.bytes;
    group->sent += collective.sent;
    group->active += collective.end - collective.start;
    group->exposed += collective.exposed;
  }
  return groups;
}

std::string name_of(const CollectiveGroup& group) {
  if (group.first->name == group.last->name)
    return group.first->name;
  const std::string_view last = group.last->name;
  return group.first->name + " ... " + std::string(last.substr(last.find(' ') + 1));
}

std::string_view name_of(Payload payload) {
  switch (payload) {
    case Payload::gradients:
      return "gradients";
    case Payload::parameters:
      return "parameters";
    case Payload::activations:
      return "activations";
    case Payload::other:
      return "other";
  }
  return "other";
}

}  // namespace lockstep
