#include "validate/harness/measure/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace lockstep::harness {
namespace {

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// The values of all lines "key : value".
std::vector<std::string> values_in(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  std::vector<std::string> values;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon != line.npos && trimmed(line.substr(0, colon)) == key)
      values.push_back(trimmed(line.substr(colon + 1)));
  }
  return values;
}

std::string architecture() {
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "unknown";
}

// Of the cores this process may use: a launcher may have given each rank one.
std::int64_t usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

std::optional<double> load_average() {
  std::ifstream file("/proc/loadavg");
  double load = 0;
  return file >> load ? std::optional<double>(load) : std::nullopt;
}

}  // namespace

std::string value_in_cpuinfo(const std::string& text, const std::string& key) {
  const std::vector<std::string> values = values_in(text, key);
  return values.empty() ? "" : values.front();
}

std::optional<double> mean_in_cpuinfo(const std::string& text, const std::string& key) {
  const std::vector<std::string> values = values_in(text, key);
  double sum = 0;
  for (const std::string& value : values) sum += std::strtod(value.c_str(), nullptr);
  return sum > 0 ? std::optional<double>(sum / static_cast<double>(values.size())) : std::nullopt;
}

MachineState look_at_state(const Device& device) {
  const bool is_processor = device.name() == "cpu";
  return {
      .clock_mhz = is_processor ? mean_in_cpuinfo(text_of_file("/proc/cpuinfo"), "cpu MHz") : std::nullopt,
      .load_average = load_average()};
}

std::map<std::string, std::string> nccl_variables(const char* const* environment) {
  std::map<std::string, std::string> variables;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string line = *environment;
    const std::size_t equals = line.find('=');
    const std::string name = line.substr(0, equals);
    if (!name.starts_with("NCCL_") || equals == line.npos)
      continue;
    const bool names_a_host = name == "NCCL_HOSTID" || name == "NCCL_COMM_ID";
    variables[name] = names_a_host ? "set" : line.substr(equals + 1);
  }
  return variables;
}

Machine look_at_machine(const Device& device) {
  Machine machine{.processor = value_in_cpuinfo(text_of_file("/proc/cpuinfo"), "model name"),
                  .cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency()),
                  .cores_per_rank = usable_cores(),
                  .before = look_at_state(device),
                  .environment = nccl_variables(environ)};
  machine.name = fmt::format("{}-core {} machine{}{}", machine.cores, architecture(),
                             machine.processor.empty() ? "" : ", ", machine.processor);
  return machine;
}

}  // namespace lockstep::harness
