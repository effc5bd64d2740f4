#pragma once

// What is left of the boost clock while a GPU multiplies.
//
// Problem:   a data sheet's FLOP rate is that of the boost clock. Units that are kept busy draw more than the
//            board may, and the clock falls until they fit: the same chip multiplies slower in a card of half
//            the watts.
// Idea:      power goes as C V^2 f, and voltage with frequency down to a floor: as the cube of the clock, and
//            below the floor as the clock itself. A product needs an energy for each FLOP: with its time at
//            boost, t, and what its energy takes at the board's limit, e, it takes the longest of t, the cube
//            root of t^2 e, and the floor's square of e. So a kernel that waits for memory, or leaves SMs idle,
//            is not slowed. What the board draws in standby is no product's: the limit is what it leaves.
// Invariant: integers; rounded up. Longer at boost, more FLOPs or fewer watts never take less. A GPU that states
//            no limit, and units of which nobody knows what they draw, keep their boost clock.
// Cost:      forty steps of a bisection, where the limit acts.
// Reference: H. He, "Strangely, Matrix Multiplications on GPUs Run Faster When Given 'Predictable' Data" (2024):
//            an A100 of 400 W multiplies zeros at 295 TFLOP/s and random numbers at 257. The floor: an RTX 3090
//            reads prompts at 9,893, 9,326, 8,436, 5,941 and 2,549 tokens/s at 350, 300, 250, 200 and 150 W
//            (llmgarage.ai, power limit sweep, 2026): 90 W of standby and these laws make it so to 3 % down to 200 W.

#include <cstdint>

#include "sim/base/units.h"
#include "sim/compute/kernel_constants.h"

namespace lockstep {

struct PowerLimit {
  Milliwatts board;  // what its units may draw; 0: not stated
  Milliwatts draw;   // for each TFLOP/s; 0: nobody knows
};

// Work that takes `boost` at the boost clock.
Duration within_limit(Duration boost, Flops flops, const PowerLimit& limit);

}  // namespace lockstep
