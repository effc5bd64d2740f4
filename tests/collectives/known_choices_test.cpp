#include "sim/collectives/known_choices.h"

#include <doctest/doctest.h>

namespace lockstep::known_choices_test {

TEST_CASE("What is remembered is what would be chosen, for each communicator, operation and algorithm") {
  Communicator small;
  small.gpus_per_node = 2;
  small.rings = {ring_pattern({0, 1}, 1)};
  Communicator large = small;
  large.nodes = 4;
  KnownChoices choices;
  for (int time = 0; time < 2; ++time)
    for (const Communicator* world : {&small, &large})
      for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::send_recv})
        for (const char* algorithm : {"auto", "halving_doubling"}) {
          const ChoiceRequest request{.world = *world,
                                      .op = op,
                                      .bytes = Bytes{mebi},
                                      .library = LibraryKind::gloo,
                                      .algorithm = op == CollectiveOp::all_reduce ? algorithm : "auto"};
          const Choice expected = choose_collective(request);
          const Choice& known = choices.of(request);
          CHECK(known.collective == expected.collective);
          CHECK(known.algorithm == expected.algorithm);
          CHECK(known.protocol_name == expected.protocol_name);
          CHECK(known.channels == expected.channels);
        }
}

}  // namespace lockstep::known_choices_test
