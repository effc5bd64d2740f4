#pragma once

// What ranks tell all, at rank 0.
//
// Problem:   who asks for a value may come before whoever sets it, and what all give is known when the last has given.
// Idea:      questions are kept until they can be answered; each call returns the answers that it made possible.
// Errors:    ProtocolError for a rank that gives twice what it gives once.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::harness {

class SharedValues {
 public:
  struct Question {
    int rank = 0;
    std::uint32_t number = 0;
  };
  struct Answer {
    Question question;
    std::string value;
  };

  explicit SharedValues(std::size_t ranks) : ranks_(ranks) {}

  std::vector<Answer> set(const std::string& key, const std::string& value);
  std::vector<Answer> get(Question question, const std::string& key);
  std::vector<Answer> gather(Question question, const std::string& key, const std::string& value);

 private:
  struct Gathering {
    std::vector<std::string> values;
    std::vector<Question> questions;
  };

  std::size_t ranks_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<Question>> unanswered_;
  std::map<std::string, Gathering> gatherings_;
};

}  // namespace lockstep::harness
