#include "validate/harness/measure/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "sim/base/check.h"
#include "validate/harness/measure/statistics.h"

namespace lockstep::harness {
namespace {

std::string text_of(const std::vector<double>& row) {
  return fmt::format("{}", fmt::join(row, " "));  // the shortest text that reads back as the same number
}

std::vector<double> row_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<double> row;
  for (double value = 0; stream >> value;) row.push_back(value);
  return row;
}

template <class Combine>
std::vector<double> combined(const std::vector<std::vector<double>>& rows, Combine combine) {
  std::vector<double> result;
  for (std::size_t column = 0; column < rows.front().size(); ++column) {
    std::vector<double> values;
    for (const std::vector<double>& row : rows) {
      LOCKSTEP_CHECK(row.size() == rows.front().size(), "ranks measured the same number of things");
      values.push_back(row[column]);
    }
    result.push_back(combine(values));
  }
  return result;
}

}  // namespace

std::string Ranks::next_name() {
  return fmt::format("measure/{}", calls_++);
}

void Ranks::barrier() {
  rendezvous_.barrier(next_name());
}

std::vector<std::string> Ranks::exchange(const std::string& text) {
  return rendezvous_.exchange(next_name(), text);
}

std::vector<std::vector<double>> Ranks::gather(const std::vector<double>& row) {
  std::vector<std::vector<double>> rows;
  for (const std::string& text : exchange(text_of(row))) rows.push_back(row_of(text));
  return rows;
}

std::vector<double> Ranks::slowest(const std::vector<double>& row) {
  return combined(gather(row), [](const std::vector<double>& values) {
    return *std::max_element(values.begin(), values.end());
  });
}

std::vector<double> Ranks::medians(const std::vector<double>& row) {
  return combined(gather(row), [](const std::vector<double>& values) { return median(values); });
}

}  // namespace lockstep::harness
