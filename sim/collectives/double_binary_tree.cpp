#include "sim/collectives/double_binary_tree.h"

#include "sim/base/check.h"

namespace lockstep {
namespace {

std::uint32_t lowest_set_bit(std::uint32_t node) {
  return node & (~node + 1);
}

std::uint32_t largest_power_below(std::uint32_t nodes) {
  std::uint32_t power = 1;
  while (power * 2 < nodes) power *= 2;
  return power;
}

std::uint32_t parent_in_first(std::uint32_t nodes, std::uint32_t node) {
  const std::uint32_t bit = lowest_set_bit(node);
  const std::uint32_t without = node ^ bit;
  const std::uint32_t above = without | (bit * 2);
  return above < nodes ? above : without;
}

TreeLinks links_in_first(std::uint32_t nodes, std::uint32_t node) {
  TreeLinks links;
  if (node == 0) {
    if (nodes > 1)
      links.children.push_back(largest_power_below(nodes));
    return links;
  }
  links.parent = parent_in_first(nodes, node);
  std::uint32_t reach = lowest_set_bit(node) / 2;
  if (reach == 0)
    return links;
  links.children.push_back(node - reach);
  while (reach > 0 && node + reach >= nodes) reach /= 2;
  if (reach > 0)
    links.children.push_back(node + reach);
  return links;
}

// The second tree is the first with other names. The mirror is its own inverse; the shift is not.
std::uint32_t name_in_first(std::uint32_t nodes, std::uint32_t node) {
  return nodes % 2 == 0 ? nodes - 1 - node : (node + nodes - 1) % nodes;
}

std::uint32_t name_in_second(std::uint32_t nodes, std::uint32_t node) {
  return nodes % 2 == 0 ? nodes - 1 - node : (node + 1) % nodes;
}

}  // namespace

std::uint32_t tree_count(std::uint32_t nodes) {
  return nodes > 1 ? 2 : 1;
}

TreeLinks tree_links(std::uint32_t nodes, std::uint32_t node, std::uint32_t tree) {
  LOCKSTEP_CHECK(node < nodes && tree < 2, "a node of the tree is asked for, in one of two trees");
  if (tree == 0)
    return links_in_first(nodes, node);
  TreeLinks links = links_in_first(nodes, name_in_first(nodes, node));
  if (links.parent)
    links.parent = name_in_second(nodes, *links.parent);
  for (std::uint32_t& child : links.children) child = name_in_second(nodes, child);
  return links;
}

// From node 1 of the first tree the way up goes over all powers of two under the number of nodes.
std::vector<std::uint32_t> deepest_path(std::uint32_t nodes, std::uint32_t tree) {
  const std::uint32_t leaf = nodes > 1 ? 1 : 0;
  std::vector<std::uint32_t> path{tree == 0 ? leaf : name_in_second(nodes, leaf)};
  while (const auto parent = tree_links(nodes, path.back(), tree).parent) path.push_back(*parent);
  return path;
}

}  // namespace lockstep
