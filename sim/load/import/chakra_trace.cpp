#include "sim/load/import/chakra_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "sim/base/error.h"
#include "sim/base/printable.h"

namespace lockstep {

std::optional<std::int64_t> integer_of(const ChakraValue* value) {
  if (value == nullptr)
    return std::nullopt;
  if (const auto* integer = std::get_if<ChakraInteger>(value))
    return integer->value;
  if (const auto* number = std::get_if<double>(value);
      number != nullptr && *number >= 0 && *number < static_cast<double>(most_chakra_bytes))
    return static_cast<std::int64_t>(*number);
  return std::nullopt;
}

std::string text_of(const ChakraValue* value) {
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? "" : *text;
}

std::span<const std::int64_t> list_of(const ChakraValue* value) {
  const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(value);
  return list == nullptr ? std::span<const std::int64_t>{} : std::span(*list);
}

bool is_cpu_op(const ChakraNode& node) {
  const ChakraValue* value = node.find("is_cpu_op");
  if (value == nullptr)
    return false;
  if (const auto* flag = std::get_if<bool>(value))
    return *flag;
  return integer_of(value).value_or(0) != 0;
}

void ChakraProblems::add(const std::string& what) {
  if (problems_.size() < most_chakra_problems)
    problems_.push_back(fmt::format("{}: {}", file_, what));
}

void ChakraProblems::add(const ChakraNode& node, const std::string& what) {
  add(fmt::format("node {} ({}): {}", node.id, printable_name(node.name), what));
}

void ChakraProblems::throw_if_any() const {
  if (!problems_.empty())
    throw ConfigError(problems_);
}

ChakraTrace::ChakraTrace(std::string_view bytes, ChakraProblems& problems, ChakraGroups& groups) {
  const ChakraMetadata metadata = read_chakra(bytes, problems.file(), [&](ChakraNode node) {
    if (node.type == static_cast<std::uint32_t>(ChakraNodeType::metadata))
      groups.add_of_pytorch(node.input_values, problems.file());
    nodes_.push_back(std::move(node));
  });
  find_steps(metadata);
  place_nodes(problems);
}

const ChakraTrace::Position* ChakraTrace::find(std::uint64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second;
}

void ChakraTrace::find_steps(const ChakraMetadata& metadata) {
  constexpr std::int64_t most_steps = 100'000;
  for (const ChakraAttribute& attribute : metadata.attributes)
    if (attribute.name == chakra_key::steps) {
      is_exact_ = true;
      steps_ = std::clamp<std::int64_t>(integer_of(&attribute.value).value_or(1), 1, most_steps);
    }
}

void ChakraTrace::place_nodes(ChakraProblems& problems) {
  std::int64_t step = 0;
  std::uint32_t in_step = 0;
  for (const ChakraNode& node : nodes_) {
    const std::int64_t own = is_exact_ ? integer_of(node.find(chakra_key::step)).value_or(step) : 0;
    if (own < step || own >= steps_)
      problems.add(node, fmt::format("{} is {}, expected {} to {}", chakra_key::step, own, step, steps_ - 1));
    else if (own > step)
      in_step = 0;
    step = std::clamp<std::int64_t>(own, step, steps_ - 1);
    positions_.push_back({static_cast<std::uint32_t>(step), in_step++});
    if (!by_id_.try_emplace(node.id, positions_.back()).second)
      problems.add(node, "another node has this id");
  }
}

}  // namespace lockstep
