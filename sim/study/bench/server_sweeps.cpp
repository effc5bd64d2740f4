#include "sim/study/bench/server_sweeps.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace lockstep {
namespace {

using Sweep = std::vector<KernelCase*>;
using Shape = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

// One in seventeen of a sweep's lengths is a single token, and one in ten of its rows has 96 heads: of so many rows
// fewer than three in a hundred sweeps would show none.
constexpr std::size_t telling_rows = 64;
// Of rows in no order every second is longer than the one before: eight steps go one way in one order of 256.
constexpr std::size_t fewest_steps = 8;
// Where keys' heads are walked before lengths, these begin anew at each of them: every seventh step goes back.
constexpr std::size_t steps_for_one_back = 4;
constexpr std::int64_t most_heads_of_vllm = 64;
// Two sweeps of half as many rows each would ask for one of their 3,000 shapes twice (but for one table in a thousand).
constexpr std::size_t rows_of_lone = 300;
// Of servers whose kernels there are: TensorRT-LLM, vLLM, SGLang.
constexpr std::size_t most_servers = 3;

enum class Library { flash_attention, tensorrt_llm, unknown };

const AttentionShape& shape_of(const KernelCase* kernel) {
  return std::get<AttentionShape>(kernel->shape);
}

Shape sizes_of(const KernelCase* kernel) {
  const AttentionShape& shape = shape_of(kernel);
  return {shape.batch, shape.sequence, shape.heads, shape.kv_heads, shape.query_width};
}

void say(const Sweep& sweep, Library library) {
  for (KernelCase* kernel : sweep) {
    kernel->has_unknown_library = library == Library::unknown;
    if (library == Library::tensorrt_llm)
      std::get<AttentionShape>(kernel->shape).library = AttentionLibrary::tensorrt_llm;
  }
}

// A walk names keys' heads twice where there are as many as queries'.
bool asks_twice(const Sweep& sweep) {
  std::set<Shape> asked;
  return std::ranges::any_of(sweep, [&](const KernelCase* kernel) {
    return shape_of(kernel).kv_heads != shape_of(kernel).heads && !asked.insert(sizes_of(kernel)).second;
  });
}

// Rows that were sorted the other way are as many walks as there are numbers of heads.
bool stands_still(const Sweep& sweep) {
  return shape_of(sweep.front()).heads == shape_of(sweep.back()).heads;
}

// How often lengths get shorter, and how often longer, from a row to the next of the same heads.
struct Steps {
  std::size_t shorter = 0, longer = 0;
};

Steps steps_of(const Sweep& sweep) {
  Steps steps;
  for (std::size_t i = 1; i < sweep.size(); ++i) {
    const AttentionShape& before = shape_of(sweep[i - 1]);
    const AttentionShape& now = shape_of(sweep[i]);
    if (now.heads != before.heads || now.query_width != before.query_width)
      continue;
    steps.shorter += now.sequence < before.sequence ? 1 : 0;
    steps.longer += now.sequence > before.sequence ? 1 : 0;
  }
  return steps;
}

bool are_one_way(std::size_t there, std::size_t back) {
  return there >= fewest_steps && there >= steps_for_one_back * back;
}

bool gets_shorter(const Sweep& sweep) {
  const Steps steps = steps_of(sweep);
  return are_one_way(steps.shorter, steps.longer);
}

bool gets_longer(const Sweep& sweep) {
  const Steps steps = steps_of(sweep);
  return are_one_way(steps.longer, steps.shorter);
}

Library library_of_causal(const Sweep& sweep) {
  if (stands_still(sweep) || !gets_shorter(sweep) || asks_twice(sweep))
    return Library::unknown;
  const bool has_lone_tokens =
      std::ranges::any_of(sweep, [](const KernelCase* kernel) { return shape_of(kernel).sequence == 1; });
  const bool has_many_heads = std::ranges::any_of(
      sweep, [](const KernelCase* kernel) { return shape_of(kernel).heads > most_heads_of_vllm; });
  if (has_lone_tokens)
    return has_many_heads ? Library::unknown : Library::flash_attention;
  if (sweep.size() < telling_rows)
    return Library::unknown;
  return has_many_heads ? Library::tensorrt_llm : Library::flash_attention;
}

bool is_next_walk(const KernelCase* before, const KernelCase* kernel) {
  return shape_of(kernel).heads > shape_of(before).heads ||
         shape_of(kernel).query_width != shape_of(before).query_width;
}

void tell_causal(const Sweep& rows) {
  Sweep sweep;
  for (KernelCase* kernel : rows) {
    if (!sweep.empty() && is_next_walk(sweep.back(), kernel)) {
      say(sweep, library_of_causal(sweep));
      sweep.clear();
    }
    sweep.push_back(kernel);
  }
  say(sweep, library_of_causal(sweep));
}

std::vector<Sweep> walks_of_full(const Sweep& rows) {
  std::vector<Sweep> walks(1);
  std::set<Shape> asked;
  for (KernelCase* kernel : rows) {
    if (!asked.insert(sizes_of(kernel)).second) {
      walks.emplace_back();
      asked = {sizes_of(kernel)};
    }
    walks.back().push_back(kernel);
  }
  return walks;
}

bool is_whole(const Sweep& walk) {
  return walk.size() >= telling_rows && gets_longer(walk);
}

Library library_of_full(const std::vector<Sweep>& walks, std::size_t i) {
  if (walks.size() > most_servers || !std::ranges::all_of(walks, is_whole))
    return Library::unknown;
  if (walks.size() == 1)
    return walks[i].size() < rows_of_lone ? Library::unknown : Library::flash_attention;
  return i == 0 ? Library::tensorrt_llm : Library::flash_attention;
}

void tell_full(const Sweep& rows) {
  const std::vector<Sweep> walks = walks_of_full(rows);
  for (std::size_t i = 0; i < walks.size(); ++i) say(walks[i], library_of_full(walks, i));
}

}  // namespace

void tell_servers_apart(std::span<KernelCase> kernels) {
  using Bench = std::tuple<std::string, std::string, std::string, KernelDirection, bool>;
  std::map<Bench, Sweep> benches;
  for (KernelCase& kernel : kernels)
    if (kernel.is_of_server)
      benches[{kernel.gpu, kernel.precision, kernel.source, kernel.direction, shape_of(&kernel).is_causal}]
          .push_back(&kernel);
  for (const auto& [bench, rows] : benches) std::get<bool>(bench) ? tell_causal(rows) : tell_full(rows);
}

}  // namespace lockstep
