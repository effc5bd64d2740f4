#pragma once

// What was found wrong in a run, and that it is over.
//
// Problem:   a rank that fails leaves others waiting for what never comes.
// Idea:      whatever ends the run early breaks it off, once and for a reason; whoever waits asks for that too.
// Invariant: the first reason stays. A finding breaks the run off; it is told once where it comes again at once.

#include <string>
#include <vector>

namespace lockstep::harness::stand_in {

class Verdict {
 public:
  void report(const std::string& finding) {
    if (findings_.empty() || findings_.back() != finding)
      findings_.push_back(finding);
    break_off(finding);
  }
  void break_off(const std::string& why) {
    if (!is_broken_)
      why_broken_ = why;
    is_broken_ = true;
  }

  // In the order in which they were found.
  const std::vector<std::string>& findings() const { return findings_; }
  bool is_broken() const { return is_broken_; }
  const std::string& why_broken() const { return why_broken_; }

 private:
  std::vector<std::string> findings_;
  bool is_broken_ = false;
  std::string why_broken_;
};

}  // namespace lockstep::harness::stand_in
