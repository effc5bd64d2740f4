#pragma once

// Two binary trees over the nodes in which nearly every node is a leaf of one.
//
// Problem:   in one binary tree the leaves only send once while inner nodes send three times: half the
//            bandwidth of half the nodes is idle.
// Idea:      two trees, half the bytes on each, so built that who is inside the first is a leaf of the
// second.
//            In the first a node's lowest set bit says how high it stands: odd nodes are leaves. The second
//            is the first seen in a mirror (an even number of nodes) or shifted by one node (an odd number).
// Invariant: each tree spans all nodes, no node has more than two children, and no node but node 0 of an odd
//            number is inside both; the depth is the logarithm of the nodes, rounded up.
// Cost:      a few operations on bits a node.
// Reference: Sanders, Speck and Traff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan"
//            (2009); as NVIDIA/nccl builds them, src/graph/trees.cc.

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

// A node's neighbours in one tree.
struct TreeLinks {
  std::optional<std::uint32_t> parent;  // empty: the root
  std::vector<std::uint32_t> children;
};

// How many trees share the bytes: one node needs none between nodes.
std::uint32_t tree_count(std::uint32_t nodes);

// Of `node` in tree 0 or 1.
TreeLinks tree_links(std::uint32_t nodes, std::uint32_t node, std::uint32_t tree);

// The nodes from a leaf that is no less deep than any other up to the root.
std::vector<std::uint32_t> deepest_path(std::uint32_t nodes, std::uint32_t tree);

}  // namespace lockstep
