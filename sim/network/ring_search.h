#pragma once

// Rings on the links between the GPUs of a node.
//
// Problem:   a ring is as fast as its slowest hop, so on a mesh such as the DGX-1's cube it must follow
//            NVLinks, and several rings must not lean on the same ones.
// Idea:      find as many Hamiltonian cycles as share no link, by depth-first search with backtracking; each
//            gives two rings, one for each direction of its (full-duplex) links.
// Invariant: no cycle uses a link more often than the matrix has it.
// Cost:      exponential in GPUs in principle; a node's mesh has at most 16 and the search stops at the
//            bound that degrees allow, reached at once on the known machines.

#include <cstdint>
#include <vector>

namespace lockstep {

using LinkMatrix = std::vector<std::vector<std::int64_t>>;

// The largest set found of link-disjoint Hamiltonian cycles over GPUs 0..n-1, each starting at GPU 0. Two
// GPUs: one cycle per link. No cycle exists: empty.
std::vector<std::vector<std::uint32_t>> find_disjoint_cycles(const LinkMatrix& matrix);

}  // namespace lockstep
