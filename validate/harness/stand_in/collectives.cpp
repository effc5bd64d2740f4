#include "validate/harness/stand_in/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "validate/harness/device/half.h"
#include "validate/harness/stand_in/streams.h"

namespace lockstep::harness::stand_in {
namespace {

std::int64_t bytes_of(ncclDataType_t type) {
  return type == ncclFloat32 || type == ncclInt32 ? 4 : 2;
}

std::string described(const CollectiveCall& call) {
  return fmt::format("{} of {} elements of type {}{}", call.name, call.count, static_cast<int>(call.type),
                     call.root < 0 ? "" : fmt::format(" from rank {}", call.root));
}

bool match(const CollectiveCall& a, const CollectiveCall& b) {
  return std::strcmp(a.name, b.name) == 0 && a.count == b.count && a.type == b.type && a.root == b.root;
}

template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_arithmetic_v<T>)
    return a + b;
  else
    return stored<T>(load(a) + load(b));
}

template <class T>
void sum(const std::vector<CollectiveCall>& parts) {
  std::vector<T> total(parts.front().count);
  std::memcpy(total.data(), parts.front().from, total.size() * sizeof(T));
  for (std::size_t rank = 1; rank < parts.size(); ++rank) {
    const auto* const values = static_cast<const T*>(parts[rank].from);
    for (std::size_t index = 0; index < total.size(); ++index)
      total[index] = sum_of(total[index], values[index]);
  }
  for (const CollectiveCall& part : parts) std::memcpy(part.to, total.data(), total.size() * sizeof(T));
}

void broadcast(const std::vector<CollectiveCall>& parts) {
  const CollectiveCall& root = parts[static_cast<std::size_t>(parts.front().root)];
  const std::vector<char> values(static_cast<const char*>(root.from),
                                 static_cast<const char*>(root.from) + root.bytes());
  for (const CollectiveCall& part : parts) std::memcpy(part.to, values.data(), values.size());
}

}  // namespace

std::int64_t CollectiveCall::bytes() const {
  return static_cast<std::int64_t>(count) * bytes_of(type);
}

bool CollectiveGroup::is_whole() const {
  return std::none_of(members.begin(), members.end(), [](ncclComm_t member) { return member == nullptr; });
}

bool CollectiveGroup::has_aborted_member() const {
  return std::any_of(members.begin(), members.end(),
                     [](ncclComm_t member) { return member != nullptr && member->is_aborted; });
}

ncclUniqueId Collectives::new_id() {
  ncclUniqueId id{};
  std::snprintf(id.internal, sizeof id.internal, "group %d", ++ids_);
  return id;
}

ncclComm_t Collectives::join(const ncclUniqueId& id, int size, int rank) {
  auto group = std::find_if(groups_.begin(), groups_.end(),
                            [&](const auto& candidate) { return candidate->id == id.internal; });
  if (group == groups_.end()) {
    groups_.push_back(std::make_unique<CollectiveGroup>());
    group = std::prev(groups_.end());
    (*group)->id = id.internal;
    (*group)->members.resize(static_cast<std::size_t>(size));
  }
  const auto place = static_cast<std::size_t>(rank);
  if (place >= (*group)->members.size() || static_cast<int>((*group)->members.size()) != size ||
      (*group)->members[place] != nullptr)
    return nullptr;
  communicators_.push_back(std::make_unique<ncclComm>());
  communicators_.back()->group = group->get();
  communicators_.back()->rank = rank;
  return (*group)->members[place] = communicators_.back().get();
}

std::optional<std::string> Collectives::add(CollectiveCall& call) {
  CollectiveGroup& group = *call.communicator->group;
  const auto rank = static_cast<std::size_t>(call.communicator->rank);
  call.number = call.communicator->calls++;
  if (group.calls.size() <= call.number)
    group.calls.resize(call.number + 1);
  auto& parts = group.calls[call.number];
  parts.resize(group.members.size());
  parts[rank] = call;
  for (std::size_t other = 0; other < parts.size(); ++other)
    if (parts[other] && !match(*parts[other], call))
      return fmt::format("rank {} calls {} where rank {} calls {}: a GPU would wait for ever", rank,
                         described(call), other, described(*parts[other]));
  return std::nullopt;
}

bool Collectives::is_first_on_every_rank(const CollectiveCall& call) const {
  const CollectiveGroup& group = *call.communicator->group;
  if (group.done != call.number)
    return false;
  const auto& parts = group.calls[call.number];
  return std::all_of(parts.begin(), parts.end(), [&](const std::optional<CollectiveCall>& part) {
    if (!part || part->communicator->is_aborted || part->stream->items.empty())
      return false;
    const Item& first = part->stream->items.front();
    return first.kind == Item::Kind::collective && first.collective.communicator == part->communicator &&
           first.collective.number == call.number;
  });
}

std::vector<CollectiveCall> Collectives::parts_of(const CollectiveCall& call) const {
  std::vector<CollectiveCall> parts;
  for (const auto& part : call.communicator->group->calls[call.number]) parts.push_back(*part);
  return parts;
}

void Collectives::compute(const std::vector<CollectiveCall>& parts) {
  if (parts.front().root >= 0)
    return broadcast(parts);
  switch (parts.front().type) {
    case ncclFloat32:
      return sum<float>(parts);
    case ncclFloat16:
      return sum<Half>(parts);
    case ncclBfloat16:
      return sum<Bfloat16>(parts);
    case ncclInt32:
      return sum<std::int32_t>(parts);
  }
}

void Collectives::finish(const CollectiveCall& call) {
  CollectiveGroup& group = *call.communicator->group;
  group.calls[call.number].clear();
  group.done = call.number + 1;
}

}  // namespace lockstep::harness::stand_in
