#include "validate/harness/gpu_bench/bench_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <variant>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "sim/base/quantity_text.h"
#include "validate/harness/gpu_bench/collective_log_text.h"

namespace lockstep::harness {
namespace {

constexpr std::int64_t most_collective_bytes = std::int64_t{16} << 30;

void require(std::vector<std::string>& problems, bool holds, const std::string& problem) {
  if (!holds)
    problems.push_back(problem);
}

void require_choice(std::vector<std::string>& problems, const char* option, const std::string& found,
                    const std::vector<std::string>& valid) {
  require(problems, std::find(valid.begin(), valid.end(), found) != valid.end(),
          fmt::format("{}: found \"{}\"; {}", option, found, describe_choices(found, valid)));
}

void read_most_bytes(BenchOptions& options, const std::string& text, std::vector<std::string>& problems) {
  const Parsed<Bytes> parsed = parse_bytes(text);
  if (const auto* failure = std::get_if<ParseFailure>(&parsed))
    return problems.push_back(fmt::format("--up-to: found \"{}\": {}", text, failure->message));
  options.most_bytes = std::get<Bytes>(parsed).count();
  require(problems, options.most_bytes >= 8 && options.most_bytes <= most_collective_bytes,
          "--up-to: is 8 B to 16 GiB");
}

void check(const BenchOptions& options, std::vector<std::string>& problems) {
  require_choice(problems, "PART", options.part, bench_parts());
  require_choice(problems, "--op", options.collective, collective_names());
  require(problems, options.lists || !options.output.empty(), "-o: a file is needed to write to");
  require(problems, std::isfinite(options.seconds) && options.seconds > 0, "--seconds: is above 0");
  require(problems, options.device >= 0, "--device: is 0 or above");
  require(problems, options.gpu.find_first_of(",\"\n") == std::string::npos,
          "--gpu: holds no comma, quote or line end");
}

}  // namespace

const std::vector<std::string>& bench_parts() {
  static const std::vector<std::string> parts = {"machine",     "launches",     "gemm",      "conv2d",
                                                 "attention",   "memory_bound", "sustained", "interference",
                                                 "host_copies", "collective"};
  return parts;
}

std::optional<BenchOptions> read_bench_options(int argument_count, const char* const* arguments) {
  CLI::App app("Times what training steps ask of a GPU, one kernel at a time.", "lockstep_gpu_bench");
  app.set_version_flag("--version", "lockstep_gpu_bench " LOCKSTEP_VERSION);
  BenchOptions options;
  std::string most_bytes = "1 GiB";
  app.add_option("PART", options.part, fmt::format("{}", fmt::join(bench_parts(), ", ")));
  app.add_option("-o,--output", options.output, "the table; written anew every few rows")->type_name("FILE");
  app.add_option("--seconds", options.seconds, "stop after so long, with what there is");
  app.add_flag("--resume", options.resumes, "keep the rows of the file, measure the others");
  app.add_flag("--list", options.lists, "print the cases, in their order, and end");
  app.add_option("--device", options.device, "which GPU")->capture_default_str();
  app.add_option("--gpu", options.gpu, "its name in the table (as the driver calls it)")->type_name("NAME");
  app.add_option("--op", options.collective, "of part collective")->capture_default_str();
  app.add_option("--up-to", most_bytes, "largest collective")->capture_default_str();
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::Success& request) {  // --help or --version
    app.exit(request);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw ConfigError(fmt::format("{}; see --help", error.what()));
  }
  std::vector<std::string> problems;
  check(options, problems);
  read_most_bytes(options, most_bytes, problems);
  if (!problems.empty())
    throw ConfigError(problems);
  return options;
}

}  // namespace lockstep::harness
