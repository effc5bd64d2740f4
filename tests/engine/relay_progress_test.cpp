// A relay is nothing but its messages: run as one, or written out as transfers, everything happens at the
// same time.

#include "sim/engine/relay_progress.h"

#include <doctest/doctest.h>

#include <set>

#include "sim/base/random.h"
#include "tests/support/alike_runs.h"
#include "tests/support/clusters.h"
#include "tests/support/collective_run.h"

namespace lockstep::engine_relay_progress_test {

const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(100), Duration::nanoseconds(700));
const LinkSpec nic = wire(LinkClass::network, gigabytes_per_second(10), Duration::microseconds(3));

MachineSpec machine_of(std::int64_t gpus, std::int64_t nics) {
  MachineSpec machine = switch_machine(gpus, nvlink);
  for (std::int64_t i = 0; i < nics; ++i) machine.nics.push_back({nic, {i}});
  return machine;
}

TEST_CASE("A ring's relays take as long as its steps written out, within a node, between nodes and folded") {
  for (const std::int64_t nodes : {1, 2, 5})
    for (const std::int64_t nics : {1, 4})
      for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::all_gather})
        for (const bool fold : {false, true}) {
          const TestCluster cluster(machine_of(4, nics), nodes);
          const CollectiveRun run = run_collective(cluster.topology(), cluster.world(), cluster.calibration(),
                                                   {.op = op, .bytes = Bytes{1'234'567}, .fold = fold});
          INFO(nodes, " nodes of ", nics, " NICs", fold ? ", folded" : "");
          REQUIRE(!run.plan.relays.empty());
          check_alike(run.plan, cluster.topology().capacities(), run.routes);
        }
}

// Relays of different bytes, beginnings and lengths round a random ring or two, on links that they share at
// random.
class RandomRelays {
 public:
  explicit RandomRelays(std::uint64_t seed) : seed_(seed), roles_(unfolded_roles(ranks)), writer_(roles_) {
    writer_.section("relays", Category::communication);
    for (std::uint32_t i = 0; i < ranks; ++i) add_relay(i);
    for (std::uint32_t i = 0; i < ranks; ++i) writer_.feed(relays_[i], relays_[draw(ranks)]);
    writer_.join(writer_.new_channel_lane(Rank{0}), relays_);
    plan_ = std::move(writer_).finish();
    for (std::size_t path = 0; path < plan_.paths.size(); ++path) add_route();
  }

  void check() const { check_alike(plan_, capacities(), routes_); }

 private:
  static constexpr std::uint32_t ranks = 7;
  static constexpr std::uint32_t links = 6;

  std::uint64_t draw(std::uint64_t below) { return random_below(keyed_random(seed_, 0, drawn_++), below); }

  void add_relay(std::uint32_t rank) {
    const OpId begin = writer_.delay(writer_.new_channel_lane(Rank{rank}),
                                     Duration::picoseconds(static_cast<std::int64_t>(draw(3)) * 1'000));
    const PathId path = writer_.hop_path({.source = Rank{rank}, .destination = Rank{(rank + 1) % ranks}});
    relays_.push_back(writer_.relay(writer_.new_channel_lane(Rank{rank}), path,
                                    Bytes{static_cast<std::int64_t>(1'000 + 500 * draw(4))}, messages_,
                                    std::span(&begin, 1)));
  }

  void add_route() {
    std::set<std::uint32_t> crossed;
    while (crossed.size() < 2) crossed.insert(static_cast<std::uint32_t>(draw(links)));
    std::vector<LinkUse> uses;
    for (const std::uint32_t link : crossed) uses.push_back({.link = LinkId{link}});
    routes_.add(uses, Duration::nanoseconds(static_cast<std::int64_t>(draw(3)) * 500));
  }

  static std::vector<Bandwidth> capacities() {
    std::vector<Bandwidth> all;
    for (std::uint32_t link = 0; link < links; ++link) all.push_back(gigabytes_per_second(1 + link % 3));
    return all;
  }

  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  Roles roles_;
  PlanWriter writer_;
  std::int64_t messages_ = static_cast<std::int64_t>(1 + seed_ % 9);
  std::vector<OpId> relays_;
  Plan plan_;
  RouteTable routes_;
};

TEST_CASE(
    "Any relays that feed each other, on links that they share, take as long as their messages written out") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed ", seed);
    RandomRelays(seed).check();
  }
}

// Alone on a link of 1 GB/s, without latency: m messages of S bytes leave back to back.
TEST_CASE("A relay that feeds itself sends without a pause where nothing takes time on the way") {
  const Roles roles = unfolded_roles(1);
  PlanWriter writer(roles);
  writer.section("relay", Category::communication);
  const OpId op =
      writer.relay(writer.new_channel_lane(Rank{0}), writer.hop_path({Rank{0}, Rank{0}}), Bytes{1'000}, 5);
  writer.feed(op, op);
  const Plan plan = std::move(writer).finish();
  RouteTable routes;
  const LinkUse use{.link = LinkId{0}};
  routes.add(std::span(&use, 1), Duration::zero());
  const Timeline timeline = run(plan, std::vector<Bandwidth>{gigabytes_per_second(1)}, routes);
  CHECK(timeline.finish().since_start() == time_to_move(Bytes{1'000}, gigabytes_per_second(1)) * 5);
  CHECK(timeline.events == 2 * 5);
}

TEST_CASE("A relay that nobody feeds, or too short a one, is a mistake of its writer") {
  const Roles roles = unfolded_roles(1);
  PlanWriter alone(roles);
  const PathId path = alone.hop_path({Rank{0}, Rank{0}});
  alone.relay(alone.new_channel_lane(Rank{0}), path, Bytes{1}, 3);
  CHECK_THROWS_AS(std::move(alone).finish(), InternalError);

  PlanWriter starved(roles);
  const PathId same = starved.hop_path({Rank{0}, Rank{0}});
  const OpId long_one = starved.relay(starved.new_channel_lane(Rank{0}), same, Bytes{1}, 3);
  const OpId short_one = starved.relay(starved.new_channel_lane(Rank{0}), same, Bytes{1}, 1);
  starved.feed(long_one, short_one);
  starved.feed(short_one, short_one);
  CHECK_THROWS_AS(std::move(starved).finish(), InternalError);
}

}  // namespace lockstep::engine_relay_progress_test
