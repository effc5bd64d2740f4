// Rings that are laid out at once: which are, and that nobody can tell.

#include "sim/engine/quiet_rings.h"

#include <algorithm>

#include "sim/base/random.h"
#include "sim/plan/plan_writer.h"
#include "tests/support/alike_runs.h"
#include "tests/support/clusters.h"

namespace lockstep::engine_quiet_rings_test {

struct Collective {
  std::int64_t messages = 0;
  std::uint32_t stream = 0;  // of each rank: collectives of one stream follow each other
};

struct Setting {
  std::uint32_t ranks = 5;
  std::uint32_t slots = 1;  // of a stream
  std::vector<Collective> rings = {{.messages = 8}};
  bool has_stranger = false;  // who sends over the first port, too
  std::uint64_t seed = 0;
};

// Each rank has a port out and one in; ring after ring begins at a time of each rank's own, with bytes and
// capacities at random.
class Ranks {
 public:
  explicit Ranks(const Setting& setting)
      : setting_(setting), roles_(unfolded_roles(setting.ranks)), writer_(roles_) {
    writer_.section("rings", Category::communication);
    for (std::uint32_t rank = 0; rank < setting_.ranks; ++rank)
      for (std::uint32_t stream = 0; stream < 2; ++stream)
        streams_.push_back(writer_.lane(
            {.rank = Rank{rank}, .kind = LaneKind::communication, .index = stream, .slots = setting_.slots}));
    for (const Collective& ring : setting_.rings) add_ring(ring);
    if (setting_.has_stranger)
      writer_.transfer(writer_.new_channel_lane(Rank{0}), path_of(0), Bytes{1'000});
    plan_ = std::move(writer_).finish();
    for (const Path& path : plan_.paths) add_route(path);
    for (std::uint32_t link = 0; link < 3 * setting_.ranks; ++link)
      capacities_.push_back(gigabytes_per_second(static_cast<std::int64_t>(1 + draw(3))));
  }

  // Of all relays, in their order.
  std::vector<bool> quiet() const {
    const QuietRings rings(plan_, capacities_, routes_);
    std::vector<bool> held;
    for (std::uint32_t relay = 0; relay < plan_.relays.size(); ++relay) held.push_back(rings.holds(relay));
    return held;
  }
  void check() const { check_alike(plan_, capacities_, routes_); }

 private:
  std::uint64_t draw(std::uint64_t below) {
    return random_below(keyed_random(setting_.seed, 0, drawn_++), below);
  }

  PathId path_of(std::uint32_t rank) {
    return writer_.hop_path({.source = Rank{rank}, .destination = Rank{(rank + 1) % setting_.ranks}});
  }

  void add_ring(const Collective& ring) {
    std::vector<OpId> relays;
    for (std::uint32_t rank = 0; rank < setting_.ranks; ++rank) {
      const OpId begin = writer_.take(stream_of(rank, ring), writer_.held_path(Rank{rank}, {}));
      const OpId launched = writer_.delay(writer_.new_channel_lane(Rank{rank}),
                                          Duration::nanoseconds(static_cast<std::int64_t>(draw(4)) * 700),
                                          std::span(&begin, 1));
      relays.push_back(writer_.relay(writer_.new_channel_lane(Rank{rank}), path_of(rank),
                                     Bytes{static_cast<std::int64_t>(1'000 + 500 * draw(4))}, ring.messages,
                                     std::span(&launched, 1)));
    }
    for (std::uint32_t rank = 0; rank < setting_.ranks; ++rank) {
      const OpId feeder = relays[(rank + setting_.ranks - 1) % setting_.ranks];
      writer_.feed(relays[rank], feeder);
      const OpId results[] = {relays[rank], feeder};
      writer_.give_back(stream_of(rank, ring), writer_.held_path(Rank{rank}, {}), results);
    }
  }

  LaneId stream_of(std::uint32_t rank, const Collective& ring) const {
    return streams_[2 * rank + ring.stream];
  }

  void add_route(const Path& path) {
    const std::uint32_t rank = path.rank.index;
    const LinkUse ports[] = {{LinkId{rank}}, {LinkId{setting_.ranks + (rank + 1) % setting_.ranks}}};
    const LinkUse computing[] = {{LinkId{2 * setting_.ranks + rank}}};
    if (path.kind == PathKind::hop)
      routes_.add(ports, Duration::nanoseconds(static_cast<std::int64_t>(draw(3)) * 500));
    else
      routes_.add(computing, Duration::zero());
  }

  Setting setting_;
  std::uint64_t drawn_ = 0;
  Roles roles_;
  PlanWriter writer_;
  std::vector<LaneId> streams_;  // by rank and stream
  Plan plan_;
  RouteTable routes_;
  std::vector<Bandwidth> capacities_;
};

bool are_all(const std::vector<bool>& values, bool wanted) {
  return !values.empty() && std::find(values.begin(), values.end(), !wanted) == values.end();
}

TEST_CASE("Rings of one stream, one after another, are quiet") {
  CHECK(are_all(Ranks({.rings = {{.messages = 8}, {.messages = 8}, {.messages = 6}}}).quiet(), true));
}

TEST_CASE("A ring is quiet that has as many messages as relays, and not with one fewer") {
  CHECK(are_all(Ranks({.ranks = 5, .rings = {{.messages = 5}}}).quiet(), true));
  CHECK(are_all(Ranks({.ranks = 5, .rings = {{.messages = 4}}}).quiet(), false));
}

TEST_CASE("Rings of two streams, or of one that runs two at once, are not quiet on the same ports") {
  CHECK(are_all(Ranks({.rings = {{.messages = 8}, {.messages = 8, .stream = 1}}}).quiet(), false));
  CHECK(are_all(Ranks({.slots = 2, .rings = {{.messages = 8}, {.messages = 8}}}).quiet(), false));
}

TEST_CASE("One stranger on one port is enough") {
  CHECK(are_all(Ranks({.has_stranger = true}).quiet(), false));
}

TEST_CASE("Whatever is quiet, everything happens as if each message were a transfer") {
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    for (const std::uint32_t ranks : {1, 2, 5})
      for (const std::uint32_t slots : {1, 2})
        for (const bool has_stranger : {false, true}) {
          INFO("seed ", seed, ", ", ranks, " ranks, ", slots, has_stranger ? " slots, a stranger" : " slots");
          Ranks({.ranks = ranks,
                 .slots = slots,
                 .rings = {{.messages = 8}, {.messages = 4}, {.messages = 5, .stream = 1}, {.messages = 9}},
                 .has_stranger = has_stranger,
                 .seed = seed})
              .check();
          Ranks({.ranks = ranks, .rings = {{.messages = 8}, {.messages = 5}}, .seed = seed}).check();
        }
}

}  // namespace lockstep::engine_quiet_rings_test
