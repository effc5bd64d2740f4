#pragma once

// Properties that must hold for every generated input, with a fixed seed: a failure comes back on every run.
//
// rapidcheck draws the inputs and shrinks what fails; its default seed is the clock's, which tests never
// read.

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <sstream>
#include <string>
#include <utility>

namespace lockstep {

template <class Testable>
void check_for_all(int cases, const std::string& description, Testable&& testable) {
  rc::detail::TestMetadata metadata;
  metadata.description = description;
  rc::detail::TestParams params;
  params.seed = 2026;
  params.maxSuccess = cases;
  const auto result = rc::detail::checkTestable(std::forward<Testable>(testable), metadata, params);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  INFO(description, ": ", message.str());
  CHECK(result.template is<rc::detail::SuccessResult>());
}

}  // namespace lockstep
