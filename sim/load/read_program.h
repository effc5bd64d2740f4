#pragma once

// The section `plan`: what every rank does, stated by traces instead of a model and how it is trained.
//
// Idea:      {"chakra": NAME} names the files NAME.0.et, NAME.1.et, ..., one a rank, from the working directory or beside
//            the scenario; the rest of a scenario is its cluster, its communication and its simulation.
// Invariant: a program that is read fits the cluster: a file a rank, and groups that sit at the same GPUs of every node.
//            A model of no layers that takes no time stands in the place of a model.

#include "sim/load/reading/load_context.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// Into `scenario`, whose cluster is read.
void read_program(const JsonReader& json, const Place& place, Scenario& scenario);

}  // namespace lockstep
