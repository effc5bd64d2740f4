#include "sim/study/team/team_message.h"

#include <cstring>

#include "sim/base/check.h"

namespace lockstep {
namespace {

struct Head {
  TeamWord word;
  std::uint32_t section;
  std::uint64_t number;
};

}  // namespace

std::string to_bytes(const TeamMessage& message) {
  const Head head{message.word, message.section, message.number};
  std::string bytes(sizeof head, '\0');
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes + message.text;
}

TeamMessage read_team_message(std::string_view bytes) {
  Head head{};
  LOCKSTEP_CHECK(bytes.size() >= sizeof head, "a message of a team has a head");
  std::memcpy(&head, bytes.data(), sizeof head);
  return {head.word, head.section, head.number, std::string(bytes.substr(sizeof head))};
}

}  // namespace lockstep
