#include "sim/study/logs/collective_log_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "sim/study/logs/collective_log_row.h"

namespace lockstep {
namespace {

constexpr auto test_names = std::to_array<std::string_view>(
    {"all_reduce", "all_reduce_bias", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall",
     "alltoallv", "sendrecv", "gather", "scatter", "hypercube"});
constexpr std::size_t most_gpu_names = 8;

std::string version_behind_its_name(std::string_view line) {
  constexpr std::string_view name = "CCL version";
  const std::size_t place = line.find(name);
  if (place == line.npos) {
    return {};
  }
  std::string_view rest = line.substr(place + name.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" :"), rest.size()));
  const std::string_view version = rest.substr(0, rest.find_first_not_of("0123456789."));
  return version.find('.') == version.npos ? std::string() : std::string(version);
}

// NCCL_VERSION_CODE: 22907 is 2.29.7, and 2804 was 2.8.4.
std::string version_of_code(std::string_view line) {
  constexpr std::string_view name = "nccl-library=";
  const std::size_t place = line.find(name);
  int code = 0;
  if (place != line.npos) {
    std::from_chars(line.data() + place + name.size(), line.data() + line.size(), code);
  }
  const int major = code >= 10'000 ? 10'000 : 1'000;
  return code <= 0 ? std::string() : fmt::format("{}.{}.{}", code / major, code % major / 100, code % 100);
}

bool is_name_letter(char letter) {
  return letter == '_' || (letter >= 'a' && letter <= 'z');
}

// "all_reduce" of ".../build/all_reduce_perf_mpi -b 8".
std::vector<std::string_view> tests_named_in(std::string_view line) {
  constexpr std::string_view suffix = "_perf";
  constexpr std::string_view with_mpi = "_mpi";
  std::vector<std::string_view> found;
  for (std::size_t end = line.find(suffix); end != line.npos; end = line.find(suffix, end + 1)) {
    std::size_t begin = end;
    while (begin > 0 && is_name_letter(line[begin - 1])) {
      --begin;
    }
    std::string_view rest = line.substr(end + suffix.size());
    rest.remove_prefix(rest.starts_with(with_mpi) ? with_mpi.size() : 0);
    const std::string_view name = line.substr(begin, end - begin);
    const bool is_whole = rest.empty() || !is_name_letter(rest.front());
    if (is_whole && std::find(test_names.begin(), test_names.end(), name) != test_names.end()) {
      found.push_back(name);
    }
  }
  return found;
}

}  // namespace

std::string library_version_in(std::string_view line) {
  std::string version = version_behind_its_name(line);
  return version.empty() ? version_of_code(line) : version;
}

void TestNames::read(std::int64_t number, std::string_view line) {
  const std::vector<std::string_view> names = tests_named_in(line);
  if (names.empty()) {
    return;
  }
  const bool announces = line.find("Collective test starting") != line.npos;
  if (announces) {
    candidates_.clear();
  } else if (is_announced_) {
    return;
  }
  is_announced_ = announces;
  for (const std::string_view name : names) {
    const auto is_same = [&](const NamedTest& test) { return test.name == name; };
    if (std::none_of(candidates_.begin(), candidates_.end(), is_same)) {
      candidates_.push_back({.name = std::string(name), .line = number});
    }
  }
}

// A run that ends often names itself once more before the next one is started: of two names that one is over.
std::optional<NamedTest> TestNames::take(std::string_view current) {
  std::vector<NamedTest> candidates;
  candidates.swap(candidates_);
  is_announced_ = false;
  if (candidates.size() > 1) {
    std::erase_if(candidates, [&](const NamedTest& test) { return test.name == current; });
  }
  return candidates.size() == 1 ? std::optional(std::move(candidates.front())) : std::nullopt;
}

std::optional<NamedTest> concluded_test_in(std::int64_t number, std::string_view line) {
  if (line.find("Collective test concluded") == line.npos) {
    return std::nullopt;
  }
  const std::vector<std::string_view> names = tests_named_in(line);
  return names.size() == 1 ? std::optional(NamedTest{.name = std::string(names.front()), .line = number})
                           : std::nullopt;
}

// "#  Rank  3 Group  0 Pid   1890 on   worker-1 device  3 [0x99] NVIDIA H100 80GB HBM3"; older versions print
// no group.
bool DeviceList::read(std::int64_t number, std::string_view text) {
  constexpr std::string_view name = "Rank ";
  text.remove_prefix(std::min(text.find_first_not_of("# \t"), text.size()));
  const std::size_t on = text.find(" on ");
  const std::size_t bracket = text.find("] ");
  const bool is_listed =
      text.starts_with(name) && on != text.npos && bracket != text.npos && name.size() <= on && on < bracket;
  if (!is_listed) {
    return false;
  }
  const std::string_view digits = trimmed(text.substr(name.size(), on - name.size()));
  std::int64_t rank = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), rank).ec != std::errc{}) {
    return false;
  }
  add(number, rank, trimmed(text.substr(on + 4)), trimmed(text.substr(bracket + 2)));
  return true;
}

void DeviceList::add(std::int64_t number, std::int64_t rank, std::string_view host, std::string_view gpu) {
  if (hosts_.empty()) {
    line_ = number;
  }
  hosts_.emplace(rank, host.substr(0, host.find_first_of(" \t")));
  if (gpus_.size() < most_gpu_names && std::find(gpus_.begin(), gpus_.end(), gpu) == gpus_.end()) {
    gpus_.emplace_back(gpu);
  }
}

std::optional<RankPlacement> DeviceList::take() {
  std::map<std::int64_t, std::string> hosts;
  hosts.swap(hosts_);
  const auto count = static_cast<std::int64_t>(hosts.size());
  if (count == 0 || hosts.begin()->first != 0 || hosts.rbegin()->first != count - 1) {
    return std::nullopt;
  }
  std::map<std::string, std::int64_t> ranks_by_host;
  for (const auto& [rank, host] : hosts) {
    ++ranks_by_host[host];
  }
  const std::int64_t first = ranks_by_host.begin()->second;
  const bool is_even = std::all_of(ranks_by_host.begin(), ranks_by_host.end(),
                                   [&](const auto& host) { return host.second == first; });
  return RankPlacement{.line = line_,
                       .ranks = count,
                       .nodes = static_cast<std::int64_t>(ranks_by_host.size()),
                       .ranks_per_node = is_even ? std::optional(first) : std::nullopt};
}

std::string DeviceList::gpus() const {
  return fmt::format("{}", fmt::join(gpus_, ", "));
}

}  // namespace lockstep
