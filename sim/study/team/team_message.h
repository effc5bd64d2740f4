#pragma once

// What the processes of a team say to each other.
//
// Invariant: both ends are one build of the program, which the first message of each makes sure of, so that a
//            message is laid out as the machine has it.

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

enum class TeamWord : std::uint32_t {
  // of workers
  ready,   // has come to a section; number: its threads, text: what it was asked, a newline, its host
  excuse,  // takes no further part; text: why
  bye,     // has heard the goodbye
  // of the manager
  task,          // number: to be run
  section_ends,  // all of its tasks have run
  goodbye,       // there is nothing more to do
  part,          // number: 1 where everybody is still here
  // of both
  outcome,  // number: of the task that has run; text: what it found
  beat,     // lives
};

struct TeamMessage {
  TeamWord word = TeamWord::beat;
  std::uint32_t section = 0;
  std::uint64_t number = 0;
  std::string text = {};
};

std::string to_bytes(const TeamMessage& message);
TeamMessage read_team_message(std::string_view bytes);

}  // namespace lockstep
