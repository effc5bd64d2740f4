// Which collectives stand around columns and rows: Shoeybi's f and g, Korthikanti's g bar, and Megatron's overlaps.

#include "sim/training/tensor_exchanges.h"

#include <doctest/doctest.h>

namespace lockstep::tensor_exchanges_test {

constexpr std::int64_t elements = 4096;

SlicedLayer product(int block = 0) {
  return {.layer = {.name = "product", .block = block, .backward_input_flops = 1}};
}

void check(const std::vector<Exchange>& list, CollectiveOp op, std::int64_t size, bool is_beside = false) {
  REQUIRE(list.size() == 1);
  CHECK(list[0].op == op);
  CHECK(list[0].elements == size);
  CHECK(list[0].beside_kernel == is_beside);
}

SlicedLayer column_of(const ParallelDegrees& degrees) {
  SlicedLayer column = product();
  TensorExchanges(degrees).read_input(column, elements);
  return column;
}

SlicedLayer row_of(const ParallelDegrees& degrees, int block = 0) {
  SlicedLayer row = product(block);
  TensorExchanges(degrees).sum_output(row, elements);
  return row;
}

TEST_CASE("a group of one exchanges nothing") {
  const ParallelDegrees degrees{.sequence_parallel = true};
  CHECK(column_of(degrees).exchanges.before_forward.empty());
  CHECK(column_of(degrees).exchanges.after_backward_input.empty());
  CHECK(row_of(degrees).exchanges.after_forward.empty());
}

TEST_CASE("columns sum their input's gradient in backward, rows their output in forward, and that is all") {
  const ParallelDegrees degrees{.tensor = 4};
  const SlicedLayer column = column_of(degrees);
  check(column.exchanges.after_backward_input, CollectiveOp::all_reduce, elements, true);
  CHECK(column.exchanges.before_forward.empty());
  CHECK(column.exchanges.before_backward.empty());
  const SlicedLayer row = row_of(degrees);
  check(row.exchanges.after_forward, CollectiveOp::all_reduce, elements);
  CHECK(row.exchanges.before_backward.empty());
}

TEST_CASE("with sequence parallelism each sum is a scatter and a gather, and columns gather once more") {
  const ParallelDegrees degrees{.tensor = 4, .sequence_parallel = true};
  const SlicedLayer column = column_of(degrees);
  check(column.exchanges.before_forward, CollectiveOp::all_gather, elements);
  check(column.exchanges.before_backward, CollectiveOp::all_gather, elements, true);
  check(column.exchanges.after_backward_input, CollectiveOp::reduce_scatter, elements, true);
  const SlicedLayer row = row_of(degrees);
  check(row.exchanges.after_forward, CollectiveOp::reduce_scatter, elements);
  check(row.exchanges.before_backward, CollectiveOp::all_gather, elements);
}

TEST_CASE("who keeps what was gathered does not gather again; who overlaps nothing waits for all") {
  const SlicedLayer kept = column_of({.tensor = 4, .sequence_parallel = true, .keeps_gathered_inputs = true});
  CHECK(kept.exchanges.before_backward.empty());
  const SlicedLayer waiting = column_of({.tensor = 4, .tensor_overlap = TensorOverlap::none});
  check(waiting.exchanges.after_backward_input, CollectiveOp::all_reduce, elements, false);
}

// Three of four pieces beside the product, the last behind it: together what is scattered without pieces.
TEST_CASE("a row that is summed in pieces leaves one rank's part behind its product") {
  const ParallelDegrees degrees{
      .tensor = 4, .sequence_parallel = true, .tensor_overlap = TensorOverlap::pieces};
  const SlicedLayer row = row_of(degrees);
  check(row.exchanges.before_forward, CollectiveOp::reduce_scatter, elements * 3 / 4, true);
  check(row.exchanges.after_forward, CollectiveOp::reduce_scatter, elements / 4);
  const SlicedLayer head = row_of(degrees, -1);
  CHECK(head.exchanges.before_forward.empty());
  check(head.exchanges.after_forward, CollectiveOp::reduce_scatter, elements);
}

TEST_CASE("columns that read one tensor gather it again once, before the first of them in backward") {
  const ParallelDegrees degrees{.tensor = 4, .sequence_parallel = true};
  const TensorExchanges exchanges(degrees);
  SlicedLayer first = product();
  SlicedLayer second = product();
  exchanges.read_input(first, elements);
  exchanges.read_shared_input(second, first, elements);
  CHECK(first.exchanges.before_backward.empty());
  check(second.exchanges.before_backward, CollectiveOp::all_gather, elements, true);
  CHECK(second.exchanges.before_forward.empty());
}

TEST_CASE("words that are added to positions are summed whole") {
  const ParallelDegrees degrees{.tensor = 4, .sequence_parallel = true};
  SlicedLayer embedding = product(-1);
  TensorExchanges(degrees).sum_embeddings(embedding, elements, true);
  check(embedding.exchanges.after_forward, CollectiveOp::all_reduce, elements);
}

TEST_CASE("a loss over divided words takes three sums of a number a token, in fp32") {
  const ParallelDegrees degrees{.tensor = 4};
  SlicedLayer loss = product(-1);
  TensorExchanges(degrees).sum_loss(loss, 128);
  REQUIRE(loss.exchanges.after_forward.size() == 3);
  for (const Exchange& exchange : loss.exchanges.after_forward) {
    CHECK(exchange.op == CollectiveOp::all_reduce);
    CHECK(exchange.elements == 128);
    CHECK(exchange.is_wide);
  }
}

}  // namespace lockstep::tensor_exchanges_test
