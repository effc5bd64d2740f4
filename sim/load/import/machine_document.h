#pragma once

// A machine's profile from what a dump says of it, what its user states, and a shipped machine that is built alike.
//
// Problem:   a dump shows how GPUs, switches and NICs hang together, and leaves out what they are.
// Idea:      what it says stands; what its user states is laid over that by the caller. What decides a prediction and is
//            said by neither (the GPU, the NICs' link, what joins the sockets) is asked for. A shipped machine that
//            alone agrees with all that is said, or that its user names (--set machine=dgx_h100), lends the rest.
// Invariant: nothing is guessed; what is lent is told in a warning and in `sources`.

#include <vector>

#include "sim/load/import/importer.h"
#include "sim/load/import/machine_facts.h"

namespace lockstep {

// `keys`: the fate of what was read so far; those of NICs are added.
Imported write_machine(const MachineFacts& facts, const ImportRequest& request, std::vector<KeyUse> keys);

// The outermost keys of `stated` that change what it makes.
std::vector<std::string> machine_questions();

}  // namespace lockstep
