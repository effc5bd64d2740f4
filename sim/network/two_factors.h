#pragma once

// Hamilton cycles pieced together from smaller ones.
//
// Problem:   on a torus a depth-first search closes its first cycles in ways that leave none for the last.
// Idea:      begin with sets of cycles that pass every GPU once (two-factors), as many as links allow: walk
//            the links as Euler's tours, so that each becomes an arc and a GPU has as many in as out, and take
//            perfect matchings of senders to receivers. Where two links of one factor and two of another, or
//            of none, are the sides of a square in turn, an exchange of these can join two cycles; exchanges
//            that leave as many cycles as there were are taken, too, so that the search moves on.
// Invariant: a link is in one factor or in none; what is drawn by lot is a function of the step's number.
// Cost:      a fixed number of draws; a draw that finds a square walks a cycle.
// Reference: Petersen, "Die Theorie der regulaeren graphs", Acta Math. 15 (1891); Kotzig 1973 for two cycles
//            on every torus of two dimensions, by such squares.

#include "sim/network/hamilton.h"

namespace lockstep {

// At most `wanted` Hamilton cycles that share no link, of three GPUs or more.
std::vector<GpuOrder> merge_two_factors(const LinkMatrix& matrix, std::size_t wanted);

}  // namespace lockstep
