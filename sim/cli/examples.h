#pragma once

// What to try first with each verb.
//
// Invariant: every line that begins with "lockstep" runs as it stands in the repository; a test runs them all.

#include <string>

namespace lockstep {

// Under the verb's help; a verb without any is a mistake that a test finds.
std::string examples_of(const std::string& verb);

}  // namespace lockstep
