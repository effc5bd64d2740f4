// Walks as servers' collectors make them, and what their order tells.

#include "sim/study/bench/server_sweeps.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace lockstep::server_sweeps_test {

using Table = std::vector<KernelCase>;
using Sizes = std::vector<std::int64_t>;

// Sixteen lengths, and seventeen with the lone token.
const Sizes lengths{16384, 12288, 10240, 8192, 6144, 4096, 3072, 2048, 1536, 1024, 512, 256, 128, 64, 32, 16};
const Sizes lengths_to_one = [] {
  Sizes all = lengths;
  all.push_back(1);
  return all;
}();
const Sizes heads_to_96{96, 64, 48, 32, 16, 8};
const Sizes heads_to_64{64, 48, 32, 16, 8, 4};

KernelCase row(std::int64_t heads, std::int64_t sequence, bool is_causal = true) {
  return {.gpu = "a100",
          .shape = AttentionShape{.sequence = sequence, .heads = heads, .is_causal = is_causal},
          .time = Duration::microseconds(9),
          .is_of_server = true};
}

Table walk(const Sizes& heads, const Sizes& sequences, bool is_causal = true) {
  Table rows;
  for (const std::int64_t of_heads : heads)
    for (const std::int64_t sequence : sequences) rows.push_back(row(of_heads, sequence, is_causal));
  return rows;
}

Table operator+(Table first, const Table& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

const Table tensorrt = walk(heads_to_96, lengths);
const Table vllm = walk(heads_to_64, lengths_to_one);
const Table full = [] {
  Table rows = walk(heads_to_64, lengths_to_one, false);
  std::ranges::reverse(rows);
  return rows;
}();

// As long as three sweeps, which ask for no shape twice.
const Sizes many_heads = [] {
  Sizes heads(18);
  std::iota(heads.begin(), heads.end(), 1);
  return heads;
}();
const Table lone = [] {
  Table rows = walk(many_heads, lengths_to_one, false);
  std::ranges::stable_sort(rows, {}, [](const KernelCase& kernel) {
    const auto& shape = std::get<AttentionShape>(kernel.shape);
    return std::pair(shape.heads, shape.sequence);
  });
  return rows;
}();

struct Told {
  std::ptrdiff_t tensorrt_llm = 0, flash_attention = 0, unknown = 0;
  auto operator<=>(const Told&) const = default;
};

Told told(std::span<const KernelCase> rows) {
  Told count;
  for (const KernelCase& kernel : rows)
    ++(kernel.has_unknown_library ? count.unknown
       : std::get<AttentionShape>(kernel.shape).library == AttentionLibrary::tensorrt_llm
           ? count.tensorrt_llm
           : count.flash_attention);
  return count;
}

Told told_apart(Table rows) {
  tell_servers_apart(rows);
  return told(rows);
}

std::ptrdiff_t count(const Table& rows) {
  return static_cast<std::ptrdiff_t>(rows.size());
}

TEST_CASE("where heads rise the next sweep begins, and its sizes tell the server") {
  Table both = tensorrt + vllm;
  tell_servers_apart(both);
  CHECK(told(std::span(both).first(tensorrt.size())) == Told{.tensorrt_llm = count(tensorrt)});
  CHECK(told(std::span(both).subspan(tensorrt.size())) == Told{.flash_attention = count(vllm)});
}

TEST_CASE("a sweep tells its server whatever stands before it") {
  CHECK(told_apart(tensorrt) == Told{.tensorrt_llm = count(tensorrt)});
  CHECK(told_apart(vllm) == Told{.flash_attention = count(vllm)});
  CHECK(told_apart(vllm + tensorrt) == Told{.tensorrt_llm = count(tensorrt), .flash_attention = count(vllm)});
}

// Of 96 rows 48 are too few to tell that a sweep has no lone tokens: two sweeps of different widths are thinned.
TEST_CASE("every second row of a sweep tells as much as all, where they are enough") {
  Table thinned;
  const Table longer = walk({96, 80, 64, 56, 48, 40, 32, 24, 16}, lengths) + vllm;
  for (std::size_t i = 0; i < longer.size(); i += 2) thinned.push_back(longer[i]);
  CHECK(told_apart(thinned) == Told{.tensorrt_llm = 9 * 16 / 2, .flash_attention = count(vllm) / 2});
}

// Read from its end, vLLM's sweep ends with 64 heads where TensorRT-LLM's begins with 8.
TEST_CASE("sweeps that are read from their ends are of an unknown library") {
  for (Table reversed : {tensorrt, vllm, tensorrt + vllm, lone, full + full}) {
    std::ranges::reverse(reversed);
    CHECK(told_apart(reversed) == Told{.unknown = count(reversed)});
  }
}

// Lengths that rise at each number of heads, while these fall, and the reverse.
TEST_CASE("of a sweep both heads and lengths go the way in which its server walks them") {
  Sizes rising = lengths;
  std::ranges::reverse(rising);
  CHECK(told_apart(walk(heads_to_96, rising)) == Told{.unknown = 6 * 16});
  CHECK(told_apart(walk(many_heads, lengths_to_one, false)) == Told{.unknown = count(lone)});
}

// One way back in seventeen steps is within the one in five, one in three is not.
TEST_CASE("a sweep may begin its lengths anew at each number of keys' heads") {
  Sizes again = lengths_to_one;
  again.insert(again.end(), lengths_to_one.begin(), lengths_to_one.end());
  Table sweep = walk({64, 32}, again);
  for (std::size_t i = 0; i < sweep.size(); ++i)
    std::get<AttentionShape>(sweep[i].shape).kv_heads = i / lengths_to_one.size() % 2 == 0 ? 8 : 4;
  CHECK(told_apart(sweep) == Told{.flash_attention = count(sweep)});
  const Sizes short_again{512, 256, 1, 512, 256, 1, 512, 256, 1};
  CHECK(told_apart(walk({64, 32}, short_again)) == Told{.unknown = 2 * 9});
}

// By a linear congruential generator (Numerical Recipes), the same on every machine.
TEST_CASE("shuffled rows are of an unknown library") {
  for (Table rows : {tensorrt + vllm, full + full, lone}) {
    std::uint32_t state = 1;
    for (std::size_t i = rows.size(); i-- > 1;) {
      state = state * 1664525U + 1013904223U;
      std::swap(rows[i], rows[(state >> 8U) % (i + 1)]);
    }
    CHECK(told_apart(rows) == Told{.unknown = count(rows)});
  }
}

TEST_CASE("rows in no order of a sweep are of an unknown library") {
  Table rising = tensorrt + vllm;
  std::ranges::reverse(rising);
  std::ranges::stable_sort(
      rising, {}, [](const KernelCase& kernel) { return std::get<AttentionShape>(kernel.shape).sequence; });
  CHECK(told_apart(rising).tensorrt_llm == 0);
  CHECK(told_apart(rising).unknown == count(rising));
}

// 64 heads to 8 stand in both, with the lengths from 16 up.
TEST_CASE("sweeps that were sorted into one are of an unknown library") {
  Table sorted = tensorrt + vllm;
  std::ranges::stable_sort(sorted, std::greater(), [](const KernelCase& kernel) {
    return std::get<AttentionShape>(kernel.shape).heads;
  });
  CHECK(told_apart(sorted) == Told{.unknown = count(sorted)});
}

TEST_CASE("a few rows without a lone token are of an unknown library, and a few with one of FlashAttention") {
  CHECK(told_apart({row(96, 512), row(96, 256)}) == Told{.unknown = 2});
  CHECK(told_apart(walk({20, 10}, lengths_to_one)) == Told{.flash_attention = 2 * 17});
  CHECK(told_apart(walk({96, 48}, lengths_to_one)) == Told{.unknown = 2 * 17});
  CHECK(told_apart(walk({20}, lengths_to_one)) == Told{.unknown = 17});
  CHECK(told_apart({}) == Told{});
}

// Thinned to every twelfth row, two sweeps may ask for no shape twice.
TEST_CASE("of two sweeps that are not causal the first is TensorRT-LLM's, a lone long one FlashAttention's") {
  CHECK(told_apart(lone) == Told{.flash_attention = count(lone)});
  CHECK(told_apart(full) == Told{.unknown = count(full)});
  CHECK(told_apart(full + full) == Told{.tensorrt_llm = count(full), .flash_attention = count(full)});
  CHECK(told_apart(full + full + full) ==
        Told{.tensorrt_llm = count(full), .flash_attention = 2 * count(full)});
  CHECK(told_apart(full + full + full + full) == Told{.unknown = 4 * count(full)});
}

TEST_CASE("each GPU's, precision's and source's rows are walks of their own") {
  Table interleaved;
  for (std::size_t i = 0; i < tensorrt.size(); ++i) {
    interleaved.push_back(tensorrt[i]);
    interleaved.push_back(vllm[i]);
    interleaved.back().gpu = "h100";
  }
  CHECK(told_apart(interleaved) == Told{.tensorrt_llm = count(tensorrt), .flash_attention = count(tensorrt)});
}

TEST_CASE("times and rows that name their kernel are left alone") {
  Table slow = tensorrt;
  for (KernelCase& kernel : slow) kernel.time = Duration::seconds(1);
  CHECK(told_apart(slow) == told_apart(tensorrt));
  Table named = tensorrt;
  for (KernelCase& kernel : named) kernel.is_of_server = false;
  CHECK(told_apart(named) == Told{.flash_attention = count(named)});
}

}  // namespace lockstep::server_sweeps_test
