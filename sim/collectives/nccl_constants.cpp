#include "sim/collectives/nccl_constants.h"

#include <algorithm>
#include <bit>

#include "sim/base/units.h"

namespace lockstep {
namespace {

constexpr ByProtocol old_tree_base{4'400, 4'400, 0};
constexpr ByProtocol old_ring_base{3'600, 10'000, 8'400};
constexpr ByProtocol ring_base{6'600, 14'000, 8'400};
constexpr ByProtocol ring_pcie{1'000, 2'500, 5'700};

constexpr LinkLatencies old_tree{{520, 1'250, 28'000}, {1'000, 1'900, 28'000}, {5'000, 8'500, 28'000}};
constexpr LinkLatencies slow_tree{{600, 1'250, 28'000}, {1'000, 1'900, 28'000}, {5'000, 8'500, 28'000}};

constexpr LinkLatencies old_ring(std::int64_t simple_network) {
  return {{470, 1'900, 3'400}, ring_pcie, {2'700, 4'000, simple_network}};
}
constexpr LinkLatencies new_ring{{600, 1'900, 3'400}, ring_pcie, {2'700, 4'000, 14'000}};

// Fields in the order of the struct; what a row repeats is said again, so that each can be read alone.
constexpr NcclConstants nccl_2_8{.since = 20'800,
                                 .tree_base = old_tree_base,
                                 .ring_base = old_ring_base,
                                 .tree = old_tree,
                                 .ring = old_ring(9'600),
                                 .nvls = {.is_known = false, .in_node = 0, .tree_network = 0, .ratio = {}},
                                 .ring_ll = Ratio::percent(25),
                                 .ring_ll128_is_less_without_peers = true,
                                 .ll_is_slower_across_nodes = true,
                                 .counts_network_overhead = false,
                                 .simple_ring_plateau = Ratio::percent(190),
                                 .plateau_counts_bytes_per_rank = true,
                                 .one_node_more_in_rings = false,
                                 .has_pat = false};

constexpr NcclConstants nccl_2_12 = [] {
  NcclConstants row = nccl_2_8;
  row.since = 21'200;
  row.ring = old_ring(28'000);
  row.one_node_more_in_rings = true;
  return row;
}();

constexpr NcclConstants nccl_2_14 = [] {
  NcclConstants row = nccl_2_12;
  row.since = 21'400;
  row.ring = old_ring(9'600);
  return row;
}();

constexpr NcclConstants nccl_2_18 = [] {
  NcclConstants row = nccl_2_14;
  row.since = 21'800;
  row.tree_base = {6'800, 14'000, 0};
  row.ring_base = ring_base;
  row.tree = {{600, 1'250, 4'000}, {1'000, 1'900, 6'000}, {5'000, 8'500, 14'000}};
  row.ring = new_ring;
  row.nvls.in_node = 23'000;
  row.nvls.tree_network = 19'000;
  row.ll_is_slower_across_nodes = false;
  row.counts_network_overhead = true;
  row.simple_ring_plateau = Ratio::percent(140);
  row.plateau_counts_bytes_per_rank = false;
  row.nvls.ratio = Ratio::parts_per_million(833'333);
  row.nvls.is_known = true;
  return row;
}();

constexpr NcclConstants nccl_2_20 = [] {
  NcclConstants row = nccl_2_18;
  row.since = 22'000;
  row.tree = slow_tree;
  row.nvls.tree_network = 14'000;
  return row;
}();

constexpr NcclConstants nccl_2_21 = [] {
  NcclConstants row = nccl_2_20;
  row.since = 22'100;
  row.nvls.in_node = 25'000;
  row.ring_ll = Ratio::percent(50);
  return row;
}();

constexpr NcclConstants nccl_2_23 = [] {
  NcclConstants row = nccl_2_21;
  row.since = 22'300;
  row.tree_base = {6'800, 14'000, 8'400};
  row.tree = {{600, 1'250, 4'000}, {1'000, 1'900, 4'000}, {5'000, 8'500, 14'000}};
  row.ring_ll128_is_less_without_peers = false;
  row.one_node_more_in_rings = false;
  row.has_pat = true;
  return row;
}();

constexpr NcclConstants nccl_2_28 = [] {
  NcclConstants row = nccl_2_23;
  row.since = 22'800;
  row.nvls.tree_network = 20'900;
  row.nvls.ratio = Ratio{};
  return row;
}();

constexpr std::array<NcclConstants, 8> rows{nccl_2_8,  nccl_2_12, nccl_2_14, nccl_2_18,
                                            nccl_2_20, nccl_2_21, nccl_2_23, nccl_2_28};

template <class T>
const T& of_generation(const std::array<T, 4>& table, GpuGeneration generation) {
  return table[static_cast<std::size_t>(generation)];
}

// In percent, up to 256 MiB.
using Corrections = std::array<std::int64_t, 23>;
constexpr std::array<Corrections, 3> corrections{
    Corrections{100, 100, 100, 100, 90, 80, 70, 70,  70,  70,  60, 50,
                40,  40,  50,  60,  70, 80, 90, 100, 100, 100, 100},
    Corrections{100, 100, 100, 100, 100, 90, 80, 80, 80, 70,  60, 60,
                60,  60,  60,  60,  80,  90, 90, 90, 90, 100, 100},
    Corrections{90, 90, 90, 90, 90, 90, 90, 80, 70, 60, 60, 50, 50, 50, 50, 60, 70, 80, 70, 70, 80, 90, 90}};

}  // namespace

const NcclConstants& nccl_constants(std::int64_t version_code) {
  const NcclConstants* found = &rows.front();
  for (const NcclConstants& row : rows)
    if (row.since <= version_code)
      found = &row;
  return *found;
}

ByNodes most_ll_bandwidth(GpuGeneration generation, std::int64_t version_code) {
  static constexpr ByNodes volta{39'000, 39'000, 20'400};
  static constexpr ByNodes ampere{87'700, 22'500, 19'000};
  if (generation == GpuGeneration::volta)
    return volta;
  if (generation == GpuGeneration::ampere || version_code < 22'100)
    return ampere;
  if (generation == GpuGeneration::hopper || version_code < 22'500)
    return {141'000, 45'000, 35'000};
  return {282'000, 90'000, 70'000};
}

ByNodes most_ring_ll128_per_channel(GpuGeneration generation) {
  static constexpr std::array<ByNodes, 4> table{ByNodes{20'000, 20'000, 20'000},
                                                {20'000, 20'000, 20'000},
                                                {36'700, 36'700, 36'700},
                                                {73'400, 34'600, 73'400}};
  return of_generation(table, generation);
}

ByNodes most_tree_per_channel(GpuGeneration generation, std::int64_t version_code) {
  static constexpr std::array<ByNodes, 4> table{ByNodes{26'500, 18'500, 10'000},
                                                {24'000, 23'600, 17'800},
                                                {38'700, 41'400, 36'000},
                                                {70'000, 42'800, 24'000}};
  if (generation == GpuGeneration::ampere && version_code < 21'000)
    return {24'000, 22'500, 16'000};
  return of_generation(table, generation);
}

ByNodes most_tree_ll128_per_channel(GpuGeneration generation) {
  static constexpr std::array<ByNodes, 4> table{ByNodes{20'000, 20'000, 20'000},
                                                {20'000, 20'000, 20'000},
                                                {36'700, 36'700, 29'000},
                                                {55'600, 31'670, 20'000}};
  return of_generation(table, generation);
}

ByNodes most_nvls_tree_per_channel(GpuGeneration generation) {
  static constexpr std::array<ByNodes, 4> table{
      ByNodes{26'500, 18'500, 10'000}, {24'000, 23'600, 17'800}, {0, 57'700, 45'500}, {0, 96'000, 43'800}};
  return of_generation(table, generation);
}

Ratio nvls_efficiency(GpuGeneration generation) {
  return generation == GpuGeneration::blackwell ? Ratio::percent(74) : Ratio::percent(85);
}

Ratio tree_correction(NcclProtocol protocol, std::int64_t bytes) {
  const auto units = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes / 64, 1));
  const auto index = static_cast<std::size_t>(std::bit_width(units) - 1);
  const Corrections& table = corrections[static_cast<std::size_t>(protocol)];
  return index < table.size() ? Ratio::percent(table[index]) : Ratio::one();
}

}  // namespace lockstep
