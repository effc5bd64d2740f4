#pragma once

// Predict the next token: mostly factor * token + offset modulo the vocabulary, now and then any token.
//
// Idea:      a rule that a word's embedding and the output projection can hold; one token in eight breaks it,
//            so the loss has a floor above 0 and each sequence visits many words.
// Invariant: the factor shares no divisor with the vocabulary: the rule maps words one to one, and no
//            sequence collapses to a few of them.

#include "validate/harness/models/task.h"

namespace lockstep::harness {

class TokenTask : public Task {
 public:
  TokenTask(std::uint64_t seed, std::int64_t sequence, std::int64_t vocabulary);

  TaskShape shape() const override;
  void write(std::int64_t sample, const HostSample& to) const override;
  // What follows where the rule holds.
  std::int64_t rule(std::int64_t token) const { return (factor_ * token + offset_) % vocabulary_; }

 private:
  std::uint64_t seed_;
  std::int64_t sequence_;
  std::int64_t vocabulary_;
  std::int64_t factor_;
  std::int64_t offset_;
};

}  // namespace lockstep::harness
