#include "sim/study/bench/collective_of_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace lockstep {
namespace {

constexpr std::array all_ops{CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                             CollectiveOp::broadcast,  CollectiveOp::reduce,     CollectiveOp::all_to_all,
                             CollectiveOp::send_recv,  CollectiveOp::gather,     CollectiveOp::scatter};

double factor_of(CollectiveOp op, std::int64_t ranks) {
  const BusFactor factor = bus_factor(op, ranks);
  return static_cast<double>(factor.numerator) / static_cast<double>(factor.denominator);
}

// By how much a row misses a factor, beyond what was rounded away when both figures were printed.
double miss_of(const CollectiveLogRow& row, double factor) {
  if (!row.algbw_gbs || !row.busbw_gbs) {
    return 0;
  }
  const double rounded = row.bandwidth_rounding * (1 + factor) * (1 + 1e-9) + 1e-9 * *row.busbw_gbs;
  return std::max(0.0, std::abs(*row.busbw_gbs - *row.algbw_gbs * factor) - rounded);
}

// The row that tells it most plainly; null: none does.
const CollectiveLogRow* plainest_contradiction(const CollectiveLog& log, double factor) {
  const auto found = std::max_element(
      log.rows.begin(), log.rows.end(),
      [&](const auto& left, const auto& right) { return miss_of(left, factor) < miss_of(right, factor); });
  return found == log.rows.end() || miss_of(*found, factor) == 0 ? nullptr : &*found;
}

bool reduces(CollectiveOp op) {
  return op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter || op == CollectiveOp::reduce;
}

bool has_root(CollectiveOp op) {
  return op == CollectiveOp::broadcast || op == CollectiveOp::reduce || op == CollectiveOp::gather ||
         op == CollectiveOp::scatter;
}

// Old versions leave both columns blank where they mean nothing: then they say nothing.
bool fits_words(const CollectiveLogRow& row, CollectiveOp op) {
  const bool fits_reduction = row.reduction.empty() || (row.reduction != "none") == reduces(op);
  const bool fits_root = !row.root || (*row.root >= 0) == has_root(op);
  return fits_reduction && fits_root;
}

std::vector<CollectiveOp> narrowed_by_words(const std::vector<CollectiveOp>& ops, const CollectiveLog& log) {
  std::vector<CollectiveOp> narrowed;
  std::copy_if(ops.begin(), ops.end(), std::back_inserter(narrowed), [&](CollectiveOp op) {
    return std::all_of(log.rows.begin(), log.rows.end(),
                       [&](const CollectiveLogRow& row) { return fits_words(row, op); });
  });
  return narrowed.empty() ? ops : narrowed;
}

// "all_reduce 1.75, all_gather 0.875, ..." of so many ranks.
std::string known_factors(std::int64_t ranks) {
  std::string text;
  for (const CollectiveOp op : all_ops) {
    text +=
        fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", collective_op_name(op), factor_of(op, ranks));
  }
  return text;
}

// Whose figures these are, as far as anything of so many ranks has them.
std::string owners_of(const CollectiveLog& log, std::int64_t ranks) {
  const std::vector<CollectiveOp> possible = possible_collectives(log, ranks);
  return possible.empty() ? fmt::format("as nothing of {} ranks prints ({})", ranks, known_factors(ranks))
                          : fmt::format("as {} of {} ranks prints", names_of(possible), ranks);
}

}  // namespace

std::vector<CollectiveOp> possible_collectives(const CollectiveLog& log, std::int64_t ranks) {
  std::vector<CollectiveOp> possible;
  std::copy_if(all_ops.begin(), all_ops.end(), std::back_inserter(possible),
               [&](CollectiveOp op) { return plainest_contradiction(log, factor_of(op, ranks)) == nullptr; });
  return possible.size() == all_ops.size() ? std::vector<CollectiveOp>{} : narrowed_by_words(possible, log);
}

std::optional<std::string> describe_other_collective(const CollectiveLog& log, CollectiveOp op,
                                                     std::int64_t ranks) {
  const CollectiveLogRow* row = plainest_contradiction(log, factor_of(op, ranks));
  if (row == nullptr) {
    return std::nullopt;
  }
  const std::string times =
      *row->algbw_gbs > 0 ? fmt::format(" ({:.4g} times)", *row->busbw_gbs / *row->algbw_gbs) : "";
  return fmt::format(
      "{}:{}: found a busbw of {} GB/s beside an algbw of {} GB/s{}, {}; expected {:.4g} times for {}",
      log.file, row->line, *row->busbw_gbs, *row->algbw_gbs, times, owners_of(log, ranks),
      factor_of(op, ranks), collective_op_name(op));
}

std::string names_of(const std::vector<CollectiveOp>& ops) {
  std::string text;
  for (const CollectiveOp op : ops) {
    text += (text.empty() ? "" : ", ") + std::string(collective_op_name(op));
  }
  return text;
}

}  // namespace lockstep
