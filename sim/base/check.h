#pragma once

// LOCKSTEP_CHECK(condition, "what we believed"): the one way to state an invariant.
//
// It is on in every build, because a simulator that is silently wrong is worth less than one that stops. A
// failure is a bug in Lockstep, never in the user's input: it throws InternalError, and main prints it and
// exits with 1. Cost: one predicted branch; the formatting lives in a cold function that is never inlined.

#include <stdexcept>
#include <string>
#include <string_view>

namespace lockstep {

struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn, gnu::cold, gnu::noinline]] inline void check_failed(std::string_view file, int line,
                                                                std::string_view expression,
                                                                std::string_view belief) {
  // The folder is cut off so that the message is the same wherever the tree was built.
  file.remove_prefix(file.find_last_of('/') + 1);
  std::string message(file);
  message += ":";
  message += std::to_string(line);
  message += ": believed: ";
  message += belief;
  message += " (";
  message += expression;
  throw InternalError(message + ")");
}

}  // namespace lockstep

#define LOCKSTEP_CHECK(condition, belief)            \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::lockstep::check_failed(__FILE__, __LINE__, #condition, belief))
