// Attention in closed form, one constant at a time, on a unit of 128 SMs that multiply 10^12 FLOPs a second
// each.

#include "sim/compute/attention_time.h"

#include <doctest/doctest.h>

namespace lockstep::attention_time_test {

constexpr std::int64_t tera = 1'000'000'000'000;
constexpr Duration start = Duration::microseconds(8);
// A block of 64 queries past 4096 keys, in two products of heads of 128: 2 x 2 x 64 x 4096 x 128 FLOPs.
constexpr Duration walk = Duration::picoseconds(2 * 2 * 64 * 4096 * 128);

AttentionConstants only_flops() {
  return {.efficiency = Ratio::one(),
          .backward_efficiency = Ratio::one(),
          .softmax = Ratio{},
          .block = Duration::zero(),
          .backward_block = Duration::zero(),
          .whole_waves = Ratio{},
          .alone = Ratio::one(),
          .wide = Ratio::one(),
          .last = Ratio{},
          .memory_efficiency = Ratio::one(),
          .cached = Ratio::one() * 4,
          .rotation = Ratio{},
          .fill = Duration::zero(),
          .start = start,
          .draw = {}};
}

// 2 samples, 64 heads: 128 heads of 64 blocks each, 64 waves.
AttentionShape full() {
  return {.batch = 2,
          .sequence = 4096,
          .heads = 64,
          .kv_heads = 8,
          .query_width = 128,
          .value_width = 128,
          .is_causal = false};
}

Duration time_of(const AttentionConstants& constants, const AttentionShape& shape, bool is_backward = false,
                 Bandwidth memory = Bandwidth{1000 * tera}, Bytes cache = {}) {
  static const ProductConstants unused;
  return attention_time({.peak = FlopRate{128 * tera},
                         .sms = 128,
                         .memory = memory,
                         .element_bytes = 2,
                         .constants = unused,
                         .lanes = FlopRate{16 * tera},
                         .cache = cache},
                        constants, shape, is_backward);
}

TEST_CASE("attention takes its two products of the full square, and its backward five") {
  CHECK(time_of(only_flops(), full()) == start + walk * 64);
  CHECK(time_of(only_flops(), full(), true) == start + scaled(walk * 64, 5, 2));
}

// There are kernels for heads of 64, 96 and 128: 80 are 3/4 of 128 to multiply, and 5/8 to read. Of 2 x 4096 tokens
// queries and outputs are of 64 heads, keys and values of 8.
TEST_CASE("a head between two kernels' widths is multiplied at the wider one and read as it is") {
  AttentionShape narrow = full();
  narrow.query_width = narrow.value_width = 80;
  CHECK(time_of(only_flops(), narrow) == start + scaled(walk * 64, 3, 4));
  const Bandwidth memory{1'000'000'000};
  const Bytes read{std::int64_t{2} * 4096 * (64 + 8) * 2 * 80 * 2};
  CHECK(time_of(only_flops(), narrow, false, memory) == start + time_to_move(read, memory));
}

// Block i of 64 walks over i blocks of keys: 65/2 of 64 on average.
TEST_CASE("causal attention walks over half of the square and half of its diagonal") {
  AttentionShape causal = full();
  causal.is_causal = true;
  CHECK(time_of(only_flops(), causal) == start + scaled(walk * 64, 65, 2 * 64));
}

// A step of a ring: half of the keys, none of them masked. A part of the queries past all keys, causal and
// balanced: half of them in the mean, and half a block.
TEST_CASE("queries walk over as many keys as they meet") {
  AttentionShape step = full();
  step.keys = 2048;
  CHECK(time_of(only_flops(), step) == start + walk * 32);
  AttentionShape part = full();
  part.keys = 16384;
  part.is_causal = true;
  CHECK(time_of(only_flops(), part) == start + scaled(walk * 4 * 64, 16384 + 64, 2 * 16384));
}

// Lanes that are an eighth as fast take 16 FLOPs a score, which would be 64 elements of two FLOPs more beside the 256 of a
// head's two products; backward has none of it.
TEST_CASE("softmax costs a narrow head more a FLOP") {
  AttentionConstants constants = only_flops();
  constants.softmax = Ratio::one() * 16;
  CHECK(time_of(constants, full()) == start + scaled(walk * 64, 256 + 64, 256));
  CHECK(time_of(constants, full(), true) == time_of(only_flops(), full(), true));
}

TEST_CASE("each block costs its beginning and its end") {
  AttentionConstants constants = only_flops();
  constants.block = Duration::microseconds(3);
  constants.backward_block = Duration::microseconds(7);
  CHECK(time_of(constants, full()) == start + (walk + Duration::microseconds(3)) * 64);
  CHECK(time_of(constants, full(), true) == start + scaled(walk, 5, 2) * 64 + Duration::microseconds(7) * 64);
}

// One head of one sample: 64 blocks on 128 SMs, half a wave, and the other half of it in whole waves.
TEST_CASE("nothing ends before its longest block, and a lone block does not fill its SM") {
  AttentionShape one = full();
  one.batch = 1;
  one.heads = 1;
  one.kv_heads = 1;
  AttentionConstants constants = only_flops();
  CHECK(time_of(constants, one) == start + walk);
  constants.alone = Ratio::percent(25);
  CHECK(time_of(constants, one) == start + walk * 4);
}

// 192 heads' blocks are 1.5 waves of 128.
TEST_CASE("a wave that is begun costs its part, and a share of what it lacks") {
  AttentionShape shape = full();
  shape.batch = 1;
  shape.heads = 3;
  shape.kv_heads = 3;
  AttentionConstants constants = only_flops();
  CHECK(time_of(constants, shape) == start + scaled(walk, 3, 2));
  constants.whole_waves = Ratio::one();
  CHECK(time_of(constants, shape) == start + walk * 2);
}

// Queries and outputs of 64 heads, keys and values of 8: 2 x 4096 x 128 x (2 x 64 + 2 x 8) elements of 2 B.
// Backward reads these and the output's gradient, and writes the gradients of queries, keys and values.
TEST_CASE("where memory is slow, attention takes its tensors' way") {
  const std::int64_t tokens = 2 * 4096;
  const std::int64_t once = tokens * 128 * (2 * 64 + 2 * 8) * 2;
  const std::int64_t queries = tokens * 128 * 64 * 2;
  const Bandwidth slow{1'000'000'000};
  CHECK(time_of(only_flops(), full(), false, slow) == start + time_to_move(Bytes{once}, slow));
  CHECK(time_of(only_flops(), full(), true, slow) == start + time_to_move(Bytes{2 * (once + queries)}, slow));
}

// Keys and values are read and written once more, and queries 3/2 times.
TEST_CASE("a server that fills its cache moves keys and values before, and turns queries") {
  AttentionConstants constants = only_flops();
  constants.rotation = Ratio::percent(150);
  AttentionShape serving = full();
  serving.fills_cache = true;
  const std::int64_t tokens = 2 * 4096;
  const std::int64_t bytes = tokens * 128 * (64 * 3 / 2 + 2 * 2 * 8) * 2;
  const Bandwidth memory{1000 * tera};
  CHECK(time_of(constants, serving) == time_of(constants, full()) + time_to_move(Bytes{bytes}, memory));
}

// Of 128 SMs with 2048 threads each: a token has a thread for each element of its keys, 512 at most.
TEST_CASE("a token with few heads takes its place on an SM, however little it writes") {
  AttentionConstants constants = only_flops();
  constants.fill = Duration::milliseconds(1);
  const auto filling = [&](std::int64_t kv_heads) {
    AttentionShape shape = full();
    shape.kv_heads = kv_heads;
    AttentionShape serving = shape;
    serving.fills_cache = true;
    return time_of(constants, serving) - time_of(constants, shape);
  };
  const Duration of_all = scaled(constants.fill, 2 * 4096, 128 * 2048);
  CHECK(filling(1) == of_all * 128);
  CHECK(filling(2) == of_all * 256);
  CHECK(filling(4) == of_all * 512);
  CHECK(filling(8) == filling(4));
}

// 96 is a width of FlashAttention's, and 3/4 of the next of TensorRT-LLM's.
TEST_CASE("TensorRT-LLM's kernels have widths of powers of two") {
  AttentionShape shape = full();
  shape.query_width = shape.value_width = 96;
  CHECK(time_of(only_flops(), shape) == start + scaled(walk * 64, 3, 4));
  shape.library = AttentionLibrary::tensorrt_llm;
  CHECK(time_of(only_flops(), shape) == start + walk * 64);
}

TEST_CASE("heads wider than 128 leave a share of the efficiency, forward and backward") {
  AttentionConstants half = only_flops();
  half.wide = Ratio::percent(50);
  CHECK(time_of(half, full()) == time_of(only_flops(), full()));
  AttentionShape shape = full();
  shape.query_width = shape.value_width = 256;
  CHECK(time_of(half, shape) == start + walk * 64 * 2 * 2);
  CHECK(time_of(half, shape, true) == start + scaled(walk * 64 * 2 * 2, 5, 2));
}

// The longest block meets all keys: a walk.
TEST_CASE("of a causal kernel's longest block a part is left when all else is done") {
  AttentionConstants constants = only_flops();
  constants.last = Ratio::percent(50);
  CHECK(time_of(constants, full()) == time_of(only_flops(), full()));
  AttentionShape causal = full();
  causal.is_causal = true;
  CHECK(time_of(constants, causal) == time_of(only_flops(), causal) + scaled(walk, 1, 2));
}

// Half-masked blocks of 64 and of 128 queries: 4096 + 64 and 4096 + 128 keys for two of them.
TEST_CASE("FlashAttention-2's blocks are twice as long, and so is what they multiply beyond the diagonal") {
  AttentionShape causal = full();
  causal.is_causal = true;
  CHECK(time_of(only_flops(), causal) == start + scaled(walk, 65, 2));
  causal.library = AttentionLibrary::flash_attention_2;
  CHECK(time_of(only_flops(), causal) == start + walk * 33);
}

// 128 samples with a query each, on 128 SMs, past a step of 64 keys: walk is 4096 / 64 = 64 steps.
TEST_CASE("heads of a lone query that share keys are one block") {
  AttentionShape lone = full();
  lone.batch = 128;
  lone.sequence = 1;
  CHECK(time_of(only_flops(), lone) == start + scaled(walk, lone.kv_heads, 64));
  lone.kv_heads = 64;
  CHECK(time_of(only_flops(), lone) == start + walk);
}

// Queries, keys, values and outputs of 2 x 4096 tokens: 64 + 64 + 2 x 8 heads of 128, in two bytes.
TEST_CASE("called again, attention finds what fits into a cache there") {
  const Bandwidth memory{1'000'000'000};
  const Bytes all{std::int64_t{2} * 4096 * (64 + 64 + 2 * 8) * 128 * 2};
  const auto time_with = [&](std::int64_t cache) {
    return time_of(only_flops(), full(), false, memory, Bytes{cache});
  };
  CHECK(time_with(0) == start + time_to_move(all, memory));
  CHECK(time_with(all.count()) == start + time_to_move(all, Bandwidth{4'000'000'000}));
  CHECK(time_with(all.count() * 2 / 3) == time_with(0));
  CHECK(time_with(all.count() * 4 / 5) < time_with(0));
  CHECK(time_with(all.count() * 4 / 5) > time_with(all.count()));
}

}  // namespace lockstep::attention_time_test
