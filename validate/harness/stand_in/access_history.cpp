#include "validate/harness/stand_in/access_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace lockstep::harness::stand_in {

void AccessHistory::cut(std::int64_t at) {
  const auto after = pieces_.upper_bound(at);
  const auto piece = std::prev(after);
  if (piece->first == at || piece->second.end <= at)
    return;
  pieces_.emplace_hint(after, at, piece->second);
  piece->second.end = at;
}

std::optional<std::string> AccessHistory::problem_of(const Piece& piece, const Access& access,
                                                     const VectorClock& clock) {
  const char* const verb = access.writes ? "writes" : "reads";
  if (!piece.write && !access.writes)
    return fmt::format("{} reads what nothing has written", access.name);
  if (piece.write && !clock.has_seen(piece.write->moment))
    return fmt::format("{} {} what {} writes, and nothing orders the two", access.name, verb,
                       piece.write->name);
  if (access.writes)
    for (const Touch& read : piece.reads)
      if (!clock.has_seen(read.moment))
        return fmt::format("{} writes what {} reads, and nothing orders the two", access.name, read.name);
  return std::nullopt;
}

void AccessHistory::remember(Piece& piece, const Access& access) {
  const Touch touch{.name = access.name, .moment = access.moment};
  if (access.writes) {
    piece.write = touch;
    piece.reads.clear();
    return;
  }
  const auto same = std::find_if(piece.reads.begin(), piece.reads.end(),
                                 [&](const Touch& read) { return read.moment.line == access.moment.line; });
  if (same != piece.reads.end())
    *same = touch;
  else
    piece.reads.push_back(touch);
}

std::optional<std::string> AccessHistory::add(const Access& access, const VectorClock& clock) {
  std::optional<std::string> problem;
  if (access.begin >= access.end)
    return problem;
  cut(access.begin);
  cut(access.end);
  for (auto piece = pieces_.find(access.begin); piece != pieces_.end() && piece->first < access.end;
       ++piece) {
    if (!problem)
      problem = problem_of(piece->second, access, clock);
    remember(piece->second, access);
  }
  return problem;
}

}  // namespace lockstep::harness::stand_in
