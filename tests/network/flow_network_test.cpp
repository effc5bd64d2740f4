// Flows in progress: when each ends, derived by hand above each case.

#include "sim/network/flow_network.h"

#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "sim/base/error.h"
#include "sim/engine/event_queue.h"

namespace lockstep::flow_network_test {

constexpr std::int64_t giga = 1'000'000'000;

// A network driven by an event queue, as the executor drives it, with starts given in advance.
class Harness {
 public:
  Harness(std::vector<Bandwidth> capacities, std::vector<std::vector<LinkUse>> routes,
          const Interference& interference = {})
      : capacities_(std::move(capacities)), routes_(interference) {
    for (const auto& uses : routes) routes_.add(uses, Duration::zero());
  }
  // Routes after those given, of kernels on link 0.
  void add_kernels(const std::vector<KernelBound>& bounds) {
    const LinkUse own{.link = LinkId{0}};
    for (const KernelBound& bound : bounds) routes_.add(std::span(&own, 1), Duration::zero(), 1, bound);
  }

  void start_at(Duration time, std::uint32_t route, std::int64_t amount) {
    starts_.push_back({route, amount});
    queue_.push(Time{} + time, static_cast<std::uint32_t>(starts_.size() - 1), start_tag);
  }
  void reserve_at(Duration time, std::uint32_t route, bool takes) {
    queue_.push(Time{} + time, route, takes ? take_tag : return_tag);
  }

  // When each start has moved its amount, in the order of the starts.
  std::vector<Duration> run() {
    FlowNetwork network(capacities_, routes_);
    std::vector<Duration> ends(starts_.size());
    Event event{};
    while (queue_.advance()) {
      while (queue_.next(event)) handle(network, event, ends);
      ++instants_;
      for (const Completion& completion : network.solve(queue_.now())) {
        ++promises_;
        queue_.push(completion.time, completion.slot, completion.ticket + first_ticket);
      }
    }
    return ends;
  }

  std::size_t promises() const { return promises_; }

 private:
  enum : std::uint32_t { start_tag = 0, take_tag = 1, return_tag = 2, first_ticket = 3 };
  struct Start {
    std::uint32_t route;
    std::int64_t amount;
  };

  void handle(FlowNetwork& network, const Event& event, std::vector<Duration>& ends) {
    if (event.tag == start_tag) {
      const Start& start = starts_[event.subject];
      network.start(OpId{event.subject}, RouteId{start.route}, start.amount, queue_.now());
    } else if (event.tag == take_tag || event.tag == return_tag) {
      network.reserve(RouteId{event.subject}, event.tag == take_tag ? 1 : -1);
    } else {
      OpId op;
      if (network.finish(event.subject, event.tag - first_ticket, op))
        ends[op.index] = queue_.now().since_start();
    }
  }

  std::vector<Bandwidth> capacities_;
  RouteTable routes_;
  EventQueue queue_;
  std::vector<Start> starts_;
  std::size_t instants_ = 0;
  std::size_t promises_ = 0;
};

LinkUse crossing(std::uint32_t link, std::uint32_t multiplicity = 1) {
  return {.link = LinkId{link}, .multiplicity = multiplicity};
}

TEST_CASE("A flow alone ends when its bytes have passed its narrowest link") {
  Harness harness({Bandwidth{giga}, Bandwidth{3 * giga}}, {{crossing(0), crossing(1)}});
  harness.start_at(Duration::zero(), 0, 1'000'001);
  CHECK(harness.run()[0] == time_to_move(Bytes{1'000'001}, Bandwidth{giga}));
}

// 1 byte at 3 GB/s lasts 333.3 ps: up to 334.
TEST_CASE("A completion rounds up to the next picosecond") {
  Harness harness({Bandwidth{3 * giga}}, {{crossing(0)}});
  harness.start_at(Duration::zero(), 0, 1);
  CHECK(harness.run()[0] == Duration::picoseconds(334));
}

// Two flows of S bytes on a link of C, the second starting after T = 0.5 S / C.
// Until T the first moves C T = S/2 alone. Then both run at C/2; the first needs S/2 / (C/2) = S/C more and
// ends at T + S/C = 1.5 S/C. The second has moved S/2 by then and the rest takes S/2 / C: it ends at
// 1.5 S/C + 0.5 S/C = 2 S/C, as it must: 2 S bytes passed a link that never rested.
TEST_CASE("A flow that joins half way shares the rest and ends when the link has carried both") {
  const std::int64_t size = 1'000'000;
  const Duration alone = time_to_move(Bytes{size}, Bandwidth{giga});
  Harness harness({Bandwidth{giga}}, {{crossing(0)}, {crossing(0)}});
  harness.start_at(Duration::zero(), 0, size);
  harness.start_at(scaled(alone, 1, 2), 1, size);
  const auto ends = harness.run();
  CHECK(ends[0] == scaled(alone, 3, 2));
  CHECK(ends[1] == alone * 2);
}

// n flows of S bytes start together: each gets C/n, all end at n S / C.
TEST_CASE("Rates are solved once an instant, after the last of its starts") {
  const std::int64_t flows = 4;
  std::vector<std::vector<LinkUse>> routes(static_cast<std::size_t>(flows), {crossing(0)});
  Harness harness({Bandwidth{giga}}, routes);
  for (std::uint32_t flow = 0; flow < flows; ++flow) harness.start_at(Duration::microseconds(1), flow, 1'000);
  const Duration together = time_to_move(Bytes{1'000 * flows}, Bandwidth{giga});
  for (const Duration end : harness.run()) CHECK(end == Duration::microseconds(1) + together);
  // One promise a flow: no flow was ever given a rate that a later start of its instant took away.
  CHECK(harness.promises() == static_cast<std::size_t>(flows));
}

TEST_CASE("A flow whose rate does not change is not promised again") {
  Harness harness({Bandwidth{giga}, Bandwidth{giga}}, {{crossing(0)}, {crossing(1)}});
  harness.start_at(Duration::zero(), 0, 10'000);
  harness.start_at(Duration::microseconds(1), 1, 1'000);
  const auto ends = harness.run();
  CHECK(ends[0] == time_to_move(Bytes{10'000}, Bandwidth{giga}));
  CHECK(ends[1] == Duration::microseconds(1) + time_to_move(Bytes{1'000}, Bandwidth{giga}));
  CHECK(harness.promises() == 2);
}

// A flow of multiplicity m has C/m: m equal transfers were folded into it.
TEST_CASE("A folded flow moves its own bytes at its share of the link") {
  const std::uint32_t m = 8;
  Harness harness({Bandwidth{giga}}, {{crossing(0, m)}});
  harness.start_at(Duration::zero(), 0, 1'000'000);
  CHECK(harness.run()[0] == time_to_move(Bytes{1'000'000}, share(Bandwidth{giga}, m)));
}

// One route used again and again: the slot is taken anew each time.
TEST_CASE("A route may carry several flows at once and again later") {
  Harness harness({Bandwidth{giga}}, {{crossing(0)}});
  harness.start_at(Duration::zero(), 0, 1'000);
  harness.start_at(Duration::zero(), 0, 1'000);
  harness.start_at(Duration::microseconds(5), 0, 1'000);
  const Duration one = time_to_move(Bytes{1'000}, Bandwidth{giga});
  CHECK(harness.run() == std::vector<Duration>{one * 2, one * 2, Duration::microseconds(5) + one});
}

TEST_CASE("A flow of no bytes ends the instant it starts") {
  Harness harness({Bandwidth{giga}}, {{crossing(0)}});
  harness.start_at(Duration::microseconds(3), 0, 0);
  CHECK(harness.run()[0] == Duration::microseconds(3));
}

TEST_CASE("A flow that crosses no link is a mistake of its route, not a wait without end") {
  Harness harness({Bandwidth{giga}}, {{}});
  harness.start_at(Duration::zero(), 0, 1);
  CHECK_THROWS_AS(harness.run(), InternalError);
}

// A kernel of 10^9 units takes 1 ms on a link of 10^12 a second. While collectives hold k of 80 SMs it takes
// 1.5 + 4 k / 80 times as long: the whole slow-down once, that by SMs for all of them together.
constexpr Interference on_80_sms{
    .slowdown = Ratio::percent(150), .sm_interference = Ratio::one() * 4, .sms = 80};

LinkUse reserving(std::uint32_t sms) {
  return {.link = LinkId{0}, .multiplicity = 0, .reserved_sms = sms};
}

// 1.5 + 4 x 10 / 80 = 2.
TEST_CASE("A collective slows the kernel beside it by exactly its factor") {
  Harness harness({Bandwidth{1'000 * giga}}, {{crossing(0)}, {reserving(10)}}, on_80_sms);
  harness.reserve_at(Duration::zero(), 1, true);
  harness.start_at(Duration::zero(), 0, giga);
  CHECK(harness.run()[0] == Duration::milliseconds(2));
}

// 1.5 + 4 x (10 + 40) / 80 = 4 for two, as for one that holds 50 SMs.
TEST_CASE("Two collectives at once slow a kernel as one does that holds the SMs of both") {
  for (const bool is_one : {false, true}) {
    Harness harness({Bandwidth{1'000 * giga}},
                    {{crossing(0)}, {reserving(10)}, {reserving(40)}, {reserving(50)}}, on_80_sms);
    for (const std::uint32_t route :
         is_one ? std::vector<std::uint32_t>{3} : std::vector<std::uint32_t>{1, 2})
      harness.reserve_at(Duration::zero(), route, true);
    harness.start_at(Duration::zero(), 0, giga);
    CHECK(harness.run()[0] == Duration::milliseconds(4));
  }
}

// Of 80 SMs 20 are held, and a quarter of memory: what multiplies takes 80 / 60 = 4 / 3 of its time alone, what
// moves bytes 1 / (3 / 4) = 4 / 3 as well; 40 SMs and half of memory make it twice. A launch takes what it takes.
constexpr Interference by_bound{.sms = 80, .is_by_bound = true, .memory = Bandwidth{million}};
constexpr KernelBound multiplies{.multiplying = KernelBound::parts};
constexpr KernelBound moves{.moving = KernelBound::parts};
constexpr KernelBound launches{};

Duration beside(const LinkUse& held, const KernelBound& bound) {
  Harness harness({Bandwidth{1'000 * giga}}, {{held}}, by_bound);
  harness.add_kernels({bound});
  harness.reserve_at(Duration::zero(), 0, true);
  harness.start_at(Duration::zero(), 1, giga);
  return harness.run()[0];
}

// A millisecond's kernel at the rate that is left, rounded down.
Duration slowed(Ratio slowdown) {
  return time_to_move(Bytes{giga}, divided_down(Bandwidth{1'000 * giga}, slowdown));
}

TEST_CASE("Beside a collective a kernel is slowed by what bounds it") {
  const Duration alone = Duration::milliseconds(1);
  const LinkUse sms{.link = LinkId{0}, .multiplicity = 0, .reserved_sms = 20};
  CHECK(beside(sms, multiplies) == slowed(ratio_down(4, 3)));
  CHECK(beside(sms, moves) == alone);
  CHECK(beside(sms, launches) == alone);
  const LinkUse memory{.link = LinkId{0}, .multiplicity = 0, .reserved_memory = 250'000};
  CHECK(beside(memory, multiplies) == alone);
  CHECK(beside(memory, moves) == slowed(ratio_down(4, 3)));
  CHECK(beside(memory, launches) == alone);
  // Half of it multiplies, a quarter moves bytes: 1 + 1 / 2 + 1 / 4.
  const LinkUse both{.link = LinkId{0}, .multiplicity = 0, .reserved_sms = 40, .reserved_memory = 500'000};
  CHECK(beside(both, {.multiplying = KernelBound::parts / 2, .moving = KernelBound::parts / 4}) ==
        slowed(Ratio::percent(175)));
}

TEST_CASE("However much collectives hold, half is left to a kernel") {
  const LinkUse everything{
      .link = LinkId{0}, .multiplicity = 0, .reserved_sms = 200, .reserved_memory = 1'000'000};
  for (const KernelBound& bound : {multiplies, moves})
    CHECK(beside(everything, bound) == Duration::milliseconds(2));
}

// Each has half of the GPU's time; in it the one does half of what it would alone, the other all.
TEST_CASE("Kernels that share a GPU are slowed each in its own share") {
  Harness harness({Bandwidth{1'000 * giga}}, {{{.link = LinkId{0}, .multiplicity = 0, .reserved_sms = 40}}},
                  by_bound);
  harness.add_kernels({multiplies, moves});
  harness.reserve_at(Duration::zero(), 0, true);
  harness.start_at(Duration::zero(), 1, giga);
  harness.start_at(Duration::zero(), 2, giga);
  const auto ends = harness.run();
  CHECK(ends[1] == Duration::milliseconds(2));
  // By then the first has done a half, and does the other at half its pace.
  CHECK(ends[0] == Duration::milliseconds(3));
}

TEST_CASE("What a collective does to its kernels whatever its size counts once however many run") {
  const Interference whole{.slowdown = Ratio::percent(125), .sms = 80};
  Harness harness({Bandwidth{1'000 * giga}}, {{crossing(0)}, {reserving(24)}}, whole);
  for (int collective = 0; collective < 3; ++collective) harness.reserve_at(Duration::zero(), 1, true);
  harness.start_at(Duration::zero(), 0, giga);
  CHECK(harness.run()[0] == scaled(Duration::milliseconds(1), 5, 4));
}

// One collective of 10 SMs runs from 0.2 to 0.6 ms, another from 0.4 to 0.8 ms: the factor is 2, 2.5 while
// both run, and 2 again. Of 1 ms of work 0.2 + 0.2 / 2 + 0.2 / 2.5 + 0.2 / 2 = 0.48 ms are done by then.
TEST_CASE("Collectives that come and go slow only what runs beside them") {
  Harness harness({Bandwidth{1'000 * giga}}, {{crossing(0)}, {reserving(10)}, {reserving(10)}}, on_80_sms);
  harness.start_at(Duration::zero(), 0, giga);
  harness.reserve_at(Duration::microseconds(200), 1, true);
  harness.reserve_at(Duration::microseconds(400), 2, true);
  harness.reserve_at(Duration::microseconds(600), 1, false);
  harness.reserve_at(Duration::microseconds(800), 2, false);
  CHECK(harness.run()[0] == Duration::microseconds(800 + 520));
}

// The collective runs from 0.2 to 0.7 ms with factor 2: 0.2 ms of work is done before it, 0.25 ms beside it,
// and 0.55 ms is left: the end is at 0.7 + 0.55 = 1.25 ms.
TEST_CASE("A reservation that is given back slows only what ran beside it") {
  Harness harness({Bandwidth{1'000 * giga}}, {{crossing(0)}, {reserving(10)}}, on_80_sms);
  harness.start_at(Duration::zero(), 0, giga);
  harness.reserve_at(Duration::microseconds(200), 1, true);
  harness.reserve_at(Duration::microseconds(700), 1, false);
  CHECK(harness.run()[0] == Duration::microseconds(1'250));
}

// 1.5 + 4 at the most: three times 60 SMs are still 80.
TEST_CASE("Collectives hold no more SMs than there are") {
  Harness harness({Bandwidth{1'000 * giga}}, {{crossing(0)}, {reserving(60)}}, on_80_sms);
  for (int collective = 0; collective < 3; ++collective) harness.reserve_at(Duration::zero(), 1, true);
  harness.start_at(Duration::zero(), 0, giga);
  const Bandwidth kept{1'000 * giga / 5'500'000 * 1'000'000};
  CHECK(harness.run()[0] == time_to_move(Bytes{giga}, kept));
}

// Nothing was reserved, so nobody is promised another end.
TEST_CASE("A collective that disturbs nobody changes no promise") {
  Harness harness({Bandwidth{1'000 * giga}}, {{crossing(0)}, {reserving(10)}});
  harness.start_at(Duration::zero(), 0, giga);
  harness.reserve_at(Duration::microseconds(200), 1, true);
  harness.reserve_at(Duration::microseconds(400), 1, false);
  CHECK(harness.run()[0] == Duration::milliseconds(1));
  CHECK(harness.promises() == 1);
}

// Whatever the starts, a link that never rests is done when all its bytes have passed; each change of rate
// rounds a flow's rest up by less than a byte and its end by less than a picosecond.
TEST_CASE("A busy link finishes when it has carried every byte") {
  const std::int64_t size = 1'000'000;
  const int flows = 5;
  Harness harness({Bandwidth{giga}}, std::vector<std::vector<LinkUse>>(flows, {crossing(0)}));
  for (std::uint32_t flow = 0; flow < flows; ++flow)
    harness.start_at(Duration::microseconds(100) * flow, flow, size);
  Duration last;
  for (const Duration end : harness.run()) last = std::max(last, end);
  const Duration all = time_to_move(Bytes{size * flows}, Bandwidth{giga});
  const Duration byte = time_to_move(Bytes{1}, Bandwidth{giga});
  CHECK(last >= all);
  CHECK(last <= all + byte * (2 * flows * flows));
}

// Two at once on 1 B/s, or one that counts twice, would have half a byte per second each.
TEST_CASE("A link too narrow for what crosses it at once is refused as the user's mistake") {
  Harness two({Bandwidth{1}}, {{{.link = LinkId{0}}}});
  two.start_at(Duration::zero(), 0, 10);
  two.start_at(Duration::zero(), 0, 10);
  CHECK_THROWS_AS(two.run(), ConfigError);
  Harness one({Bandwidth{1}}, {{{.link = LinkId{0}, .multiplicity = 2}}});
  one.start_at(Duration::zero(), 0, 10);
  CHECK_THROWS_AS(one.run(), ConfigError);
}

// Both cross a link of C: each has C / 2. At t = 1 s the first has moved its C / 2 and one on its route takes
// its place, so that the other goes on at C / 2 and ends with its C at 2 s, as was promised when it began: a
// promise a flow.
TEST_CASE(
    "A flow that takes the place of one on its route gets its share, and the others are promised nothing "
    "anew") {
  Harness network({Bandwidth{giga}}, {{{LinkId{0}}}, {{LinkId{0}}}});
  network.start_at(Duration::zero(), 0, giga / 2);
  network.start_at(Duration::zero(), 1, giga);
  network.start_at(Duration::seconds(1), 0, giga / 2);
  const auto ends = network.run();
  CHECK(ends == std::vector<Duration>{Duration::seconds(1), Duration::seconds(2), Duration::seconds(2)});
  CHECK(network.promises() == 3);
}

// As above, but the newcomer's route crosses the link twice over: of 3 shares it takes 2 and is moved at C /
// 3, and so is the other, which has C / 2 left at 1 s.
TEST_CASE("A flow that comes as one on another route leaves changes everybody's share") {
  Harness network({Bandwidth{3 * giga}}, {{{LinkId{0}}}, {{LinkId{0}}}, {{LinkId{0}, 2}}});
  network.start_at(Duration::zero(), 0, 3 * giga / 2);
  network.start_at(Duration::zero(), 1, 3 * giga);
  network.start_at(Duration::seconds(1), 2, giga);
  const auto ends = network.run();
  CHECK(ends[0] == Duration::seconds(1));
  CHECK(ends[2] == Duration::seconds(2));
  // 3/2 giga by 1 s, giga more by 2 s, and the last half giga alone at 3 giga/s.
  CHECK(ends[1] == Duration::seconds(2) + time_to_move(Bytes{giga / 2}, Bandwidth{3 * giga}));
}

// The link is held by a collective from the instant of the change on: what reserves half of it halves both
// rates.
TEST_CASE("A flow that takes another's place as the link narrows gets a share of what is left") {
  constexpr Interference half{.slowdown = Ratio::one(), .sm_interference = Ratio::one(), .sms = 2};
  Harness network({Bandwidth{giga}}, {{{LinkId{0}}}, {{LinkId{0}}}, {{LinkId{0}, 0, 1}}}, half);
  network.start_at(Duration::zero(), 0, giga / 2);
  network.start_at(Duration::zero(), 1, giga);
  network.start_at(Duration::seconds(1), 0, giga / 2);
  network.reserve_at(Duration::seconds(1), 2, true);
  const auto ends = network.run();
  const std::int64_t narrowed = divided_in_millions(Bandwidth{giga}, half.slowdown_beside(1)).count();
  CHECK(narrowed < giga);
  CHECK(ends[1] == Duration::seconds(1) + time_to_move(Bytes{giga / 2}, Bandwidth{narrowed / 2}));
  CHECK(ends[2] == ends[1]);
}

}  // namespace lockstep::flow_network_test
