#pragma once

// How far a prediction may be wrong: where 80 of 100 measured iterations lie.
//
// Problem:   a collective's error counts where it is exposed and not where computing hides it; errors of
//            computing bring to light, or hide, what was sent beside it; and what is wrong is rarely all
//            wrong at once.
// Idea:      each source of error alone at its low end and at its high end: the same plan run again at the
//            price of computing, of issuing kernels where the GPU waits for its host, and of every message by
//            its own size. What these make of the iteration is added up as independent errors are, low and
//            high ends apart, in logarithms; one factor, fitted so that 80 of 100 measured cases lie within
//            (study/fit/error_fit), stretches the sum.
// Invariant: the band holds the prediction; wider sources never narrow it; there is none where any source
//            is not known. Messages between nodes never exceed the wire.
// Cost:      the steady iterations four times more (two where nothing communicates, two on top where the GPU
//            waits for its host), nothing written again but by strategies that rehearse.

#include "sim/report/report.h"
#include "sim/run/repriced_run.h"

namespace lockstep {

// How often it runs the steady iterations again, at most.
struct BandRuns {
  int computing = 0;
  int host = 0;  // where the GPU waits for it
  int messages = 0;
};
BandRuns expected_band_runs(const Scenario& scenario);

// Gives the report its low and high times and what they come from, or warns why there are none.
// `simulation` is left as it is, or as the options say.
void add_band(Report& report, const Scenario& scenario, Simulation& simulation,
              const RepricedRunOptions& options);

}  // namespace lockstep
