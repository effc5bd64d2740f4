#include "sim/load/import/chakra_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/printable.h"
#include "sim/base/registry.h"
#include "sim/collectives/collective.h"

namespace lockstep {
namespace {

constexpr std::int64_t longest_time = std::int64_t{1} << 58;  // ps of all nodes of a rank: three days
constexpr std::int64_t picoseconds_per_microsecond = 1'000'000;

// What a collective of Chakra's is here; a barrier is an all-reduce of one number, as torch.distributed makes it.
std::optional<CollectiveOp> collective_of(std::int64_t type) {
  constexpr CollectiveOp ops[] = {CollectiveOp::all_reduce,     CollectiveOp::reduce,
                                  CollectiveOp::all_gather,     CollectiveOp::gather,
                                  CollectiveOp::scatter,        CollectiveOp::broadcast,
                                  CollectiveOp::all_to_all,     CollectiveOp::reduce_scatter,
                                  CollectiveOp::reduce_scatter, CollectiveOp::all_reduce};
  if (type < 0 || type >= static_cast<std::int64_t>(std::size(ops)))
    return std::nullopt;
  return ops[type];
}

bool counts_all_parts(CollectiveOp op) {
  return op == CollectiveOp::all_gather || op == CollectiveOp::gather;
}

Category category_of_node(const ChakraNode& node) {
  const std::string name = text_of(node.find(chakra_key::category));
  const auto found = std::find(std::begin(chakra_categories), std::end(chakra_categories), name);
  if (found != std::end(chakra_categories))
    return static_cast<Category>(found - std::begin(chakra_categories));
  const auto type = static_cast<ChakraNodeType>(node.type);
  if (type == ChakraNodeType::checkpoint)
    return Category::checkpoint;
  if (type == ChakraNodeType::batch)
    return Category::input_stall;
  const bool is_message =
      type == ChakraNodeType::collective || type == ChakraNodeType::send || type == ChakraNodeType::receive;
  return is_message ? Category::communication : is_cpu_op(node) ? Category::host_overhead : Category::other;
}

// Synthetic traces state what a kernel does, and leave its time to who runs them.
void price_by_operations(const ChakraNode& node, std::int64_t operations, ProgramNode& made) {
  constexpr std::int64_t most_operations = std::int64_t{1} << 58;
  made.work.work_class = WorkClass::matmul;
  made.work.flops = std::min(operations, most_operations);
  made.work.bytes =
      std::clamp<std::int64_t>(integer_of(node.find("tensor_size")).value_or(0), 0, most_chakra_bytes);
}

}  // namespace

ProgramNode ChakraNodeReader::read(const ChakraNode& node) {
  ProgramNode made{.name = tables_.text(node.name)};
  made.category = category_of_node(node);
  make(node, made);
  return made;
}

void ChakraNodeReader::check_time() const {
  if (longest_ > longest_time)
    problems_.add(
        fmt::format("its nodes take more than {} s together", longest_time / picoseconds_per_second));
}

void ChakraNodeReader::make(const ChakraNode& node, ProgramNode& made) {
  switch (static_cast<ChakraNodeType>(node.type)) {
    case ChakraNodeType::compute:
      return make_compute(node, made);
    case ChakraNodeType::collective:
      return is_cpu_op(node) ? make_delay(node, made) : make_collective(node, made);
    case ChakraNodeType::send:
    case ChakraNodeType::receive:
      return is_cpu_op(node) ? make_delay(node, made) : make_message(node, made);
    case ChakraNodeType::invalid:
    case ChakraNodeType::metadata:
      made.kind = ProgramNodeKind::join;
      return;
    case ChakraNodeType::memory_load:
    case ChakraNodeType::memory_store:
    case ChakraNodeType::storage:
    case ChakraNodeType::batch:
    case ChakraNodeType::checkpoint:
      if (node.duration_micros == 0)
        ++tables_.left_aside[std::string(chakra_node_types[node.type])];
      return make_delay(node, made);
  }
  problems_.add(node, fmt::format("found type {}, expected one of Chakra's: 0 to {}", node.type,
                                  std::size(chakra_node_types) - 1));
}

Duration ChakraNodeReader::duration_of(const ChakraNode& node) {
  const auto exact = integer_of(node.find(chakra_key::picoseconds));
  constexpr auto most_micros = static_cast<std::uint64_t>(longest_time / picoseconds_per_microsecond);
  if (node.duration_micros > most_micros || exact.value_or(0) < 0 || exact.value_or(0) > longest_time) {
    problems_.add(node, fmt::format("takes longer than {} s, or less than nothing",
                                    longest_time / picoseconds_per_second));
    return Duration::zero();
  }
  const Duration duration = Duration::picoseconds(
      exact.value_or(static_cast<std::int64_t>(node.duration_micros) * picoseconds_per_microsecond));
  longest_ = std::min(longest_ + duration.picoseconds(), longest_time + 1);
  return duration;
}

void ChakraNodeReader::make_delay(const ChakraNode& node, ProgramNode& made) {
  made.kind = ProgramNodeKind::delay;
  made.work.duration = duration_of(node);
}

void ChakraNodeReader::make_compute(const ChakraNode& node, ProgramNode& made) {
  const std::string kind = text_of(node.find(chakra_key::kind));
  made.work.duration = duration_of(node);
  made.work.is_model_work = false;
  made.kind = kind == "join"                       ? ProgramNodeKind::join
              : kind == "delay" || is_cpu_op(node) ? ProgramNodeKind::delay
                                                   : ProgramNodeKind::kernel;
  if (made.kind != ProgramNodeKind::kernel)
    return;
  if (const auto bound = list_of(node.find(chakra_key::bound)); bound.size() == 2)
    made.work.bound = KernelBound{.multiplying = static_cast<std::uint8_t>(bound[0]),
                                  .moving = static_cast<std::uint8_t>(bound[1])};
  const std::int64_t operations = integer_of(node.find("num_ops")).value_or(0);
  if (made.work.duration == Duration::zero() && operations > 0 && !is_exact_)
    price_by_operations(node, operations, made);
}

std::int64_t ChakraNodeReader::size_of(const ChakraNode& node) const {
  const auto size = integer_of(node.find("comm_size"));
  if (!size || *size < 0 || *size > most_chakra_bytes)
    problems_.add(
        node, size ? fmt::format("comm_size is {}, expected 0 to 2^50 bytes", *size) : "states no comm_size");
  return std::clamp<std::int64_t>(size.value_or(0), 0, most_chakra_bytes);
}

// Of the group that the node names; all ranks where it names none, or one that nobody may be left out of.
ChakraGroups::Membership ChakraNodeReader::group_of(const ChakraNode& node) const {
  const std::string name = text_of(node.find("pg_name"));
  const auto membership = tables_.groups.find(name, rank_);
  if (!membership) {
    problems_.add(node, fmt::format("rank {} is not in its group {}", rank_, tables_.groups.described(name)));
    return {};
  }
  const auto dimensions = list_of(node.find("involved_dim"));
  if (name.empty() && std::find(dimensions.begin(), dimensions.end(), 0) != dimensions.end())
    problems_.add(
        node,
        "involves only some dimensions of a network that the trace does not tell; expected pg_name, "
        "the name of a "
        "group");
  return *membership;
}

void ChakraNodeReader::make_collective(const ChakraNode& node, ProgramNode& made) {
  made.kind = ProgramNodeKind::collective;
  const auto type = integer_of(node.find("comm_type"));
  const auto op = collective_of(type.value_or(-1));
  if (!op) {
    problems_.add(node, type ? fmt::format("found comm_type {}, expected 0 to {}", *type,
                                           std::size(chakra_collectives) - 1)
                             : "states no comm_type");
    return;
  }
  constexpr std::int64_t barrier = 9;
  const ChakraGroups::Membership group = group_of(node);
  const std::int64_t members = group.size > 0 ? group.size : tables_.ranks;
  made.op = *op;
  if (const CollectiveOp* exact = find_collective_op(text_of(node.find(chakra_key::collective))))
    made.op = *exact;
  made.set = group.set;
  const std::int64_t size = *type == barrier ? 4 : size_of(node);
  made.bytes =
      Bytes{integer_of(node.find(chakra_key::bytes)).value_or(counts_all_parts(*op) ? size * members : size)};
  if (made.bytes < Bytes{0} || made.bytes > Bytes{most_chakra_bytes})
    problems_.add(node, "moves more than 2^50 bytes");
  find_algorithm(node, made);
  made.occurrence = occurrences_[{made.set, 0, 0}]++;
}

void ChakraNodeReader::find_algorithm(const ChakraNode& node, ProgramNode& made) {
  if (const ChakraValue* algorithm = node.find(chakra_key::algorithm))
    made.algorithm = tables_.text(text_of(algorithm));
  if (made.algorithm == no_text)
    return;
  const Collective* known = Registry<Collective>::find(tables_.program.texts[made.algorithm]);
  if (known == nullptr || !known->supports(made.op))
    problems_.add(node, fmt::format("found algorithm \"{}\", which does not know {}",
                                    printable_name(tables_.program.texts[made.algorithm]),
                                    collective_op_name(made.op)));
}

void ChakraNodeReader::make_message(const ChakraNode& node, ProgramNode& made) {
  const bool is_sent = node.type == static_cast<std::uint32_t>(ChakraNodeType::send);
  made.kind = is_sent ? ProgramNodeKind::send : ProgramNodeKind::receive;
  const std::string_view own_end = is_sent ? "comm_src" : "comm_dst";
  const std::string_view other_end = is_sent ? "comm_dst" : "comm_src";
  const auto own = integer_of(node.find(own_end));
  const auto other = integer_of(node.find(other_end));
  if (own && *own != rank_)
    problems_.add(node, fmt::format("{} is {}, but the file is of rank {}", own_end, *own, rank_));
  if (!other || *other < 0 || *other >= tables_.ranks || *other == rank_) {
    problems_.add(node, fmt::format("{} names no other of the {} ranks", other_end, tables_.ranks));
    return;
  }
  made.op = CollectiveOp::send_recv;
  made.peer = static_cast<std::uint32_t>(*other);
  made.tag = static_cast<std::uint32_t>(integer_of(node.find("comm_tag")).value_or(0));
  made.bytes = Bytes{size_of(node)};
  made.set = group_of(node).set;
  made.occurrence = occurrences_[{is_sent ? 1u : 2u, made.peer + 1, made.tag}]++;
}

}  // namespace lockstep
