#include "validate/harness/communication/shared_values.h"

#include <algorithm>
#include <utility>

#include "validate/harness/communication/message.h"

namespace lockstep::harness {
namespace {

std::vector<SharedValues::Answer> answer_all(const std::vector<SharedValues::Question>& questions,
                                             const std::string& value) {
  std::vector<SharedValues::Answer> answers;
  for (const SharedValues::Question& question : questions) answers.push_back({question, value});
  return answers;
}

}  // namespace

std::vector<SharedValues::Answer> SharedValues::set(const std::string& key, const std::string& value) {
  values_[key] = value;
  const auto asked = unanswered_.extract(key);
  return asked ? answer_all(asked.mapped(), value) : std::vector<Answer>{};
}

std::vector<SharedValues::Answer> SharedValues::get(Question question, const std::string& key) {
  if (const auto found = values_.find(key); found != values_.end())
    return {{question, found->second}};
  unanswered_[key].push_back(question);
  return {};
}

std::vector<SharedValues::Answer> SharedValues::gather(Question question, const std::string& key,
                                                       const std::string& value) {
  Gathering& gathering = gatherings_[key];
  const bool has_given = std::any_of(gathering.questions.begin(), gathering.questions.end(),
                                     [&](const Question& given) { return given.rank == question.rank; });
  if (has_given)
    throw ProtocolError("a value that was given before");
  gathering.values.resize(ranks_);
  gathering.values[static_cast<std::size_t>(question.rank)] = value;
  gathering.questions.push_back(question);
  if (gathering.questions.size() < ranks_)
    return {};
  const Gathering whole = std::move(gathering);
  gatherings_.erase(key);
  return answer_all(whole.questions, join_values(whole.values));
}

}  // namespace lockstep::harness
