#include "validate/harness/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <variant>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "sim/base/quantity_text.h"
#include "validate/harness/presets.h"

namespace lockstep::harness {
namespace {

constexpr int most_ranks = 64;  // that one machine starts

// What the command line says, before it is believed.
struct Words {
  std::vector<std::string> sizes;
  std::string precision = "fp32";
  std::string overlap = "on";
  bool no_overlap = false;
  std::string compress = "none";
  std::vector<std::string> only;
  std::string preset;
  std::optional<std::string> curve_up_to;
  std::string link_rate;
  std::optional<std::int64_t> batch;
  std::optional<float> learning_rate;
  std::optional<int> ranks;
  std::optional<int> port;
};

class Problems {
 public:
  void require(bool holds, const std::string& problem) {
    if (!holds)
      problems_.push_back(problem);
  }
  void require_choice(const std::string& option, const std::string& found,
                      const std::vector<std::string>& valid) {
    require(std::find(valid.begin(), valid.end(), found) != valid.end(),
            fmt::format("{}: found \"{}\"; {}", option, found, describe_choices(found, valid)));
  }
  template <class T>
  T parsed(const std::string& option, const std::string& text, const Parsed<T>& value) {
    if (const auto* failure = std::get_if<ParseFailure>(&value)) {
      require(false, fmt::format("{}: found \"{}\": {}", option, text, failure->message));
      return T{};
    }
    return std::get<T>(value);
  }
  void throw_if_any() const {
    if (!problems_.empty())
      throw ConfigError(problems_);
  }

 private:
  std::vector<std::string> problems_;
};

void add_model_options(CLI::App& app, Options& options, Words& words) {
  app.add_option("--model", options.model.name, "mlp, gpt or resnet50")->capture_default_str();
  app.add_option("--preset", words.preset, "h100, a100 or small: sizes, batch and curve as listed below");
  app.add_option("--size", words.sizes, "a size of the model, as hidden=1024 (repeatable)")
      ->type_name("NAME=N");
  app.add_option("--batch", words.batch, "samples of a rank's micro-batch (the model's default)");
  app.add_option("--precision", words.precision, "fp32, tf32, bf16 or fp16")->capture_default_str();
  app.add_option("--optimizer", options.optimizer.name, "sgd, momentum, adamw or none")
      ->capture_default_str();
  app.add_option("--learning-rate", words.learning_rate,
                 "0.1 for sgd, 0.02 for momentum, 0.002 for adamw; resnet50: a tenth");
  app.add_option("--seed", options.model.seed, "of parameters and samples")->capture_default_str();
}

void add_ddp_options(CLI::App& app, Options& options, Words& words) {
  app.add_option("--bucket-cap-mb", options.iterations.bucket_caps_mb, "caps to measure, as 1,5,25 (MiB)")
      ->delimiter(',');
  app.add_option("--overlap", words.overlap, "on, off or both")->capture_default_str();
  app.add_flag("--no-overlap", words.no_overlap, "the same as --overlap off");
  app.add_option("--accumulate", options.gradient_accumulation, "micro-batches of an iteration")
      ->capture_default_str();
  app.add_option("--compress", words.compress, "none, or bf16: buckets travel in half")
      ->capture_default_str();
}

void add_measurement_options(CLI::App& app, Options& options, Words& words) {
  app.add_option("--warmup", options.iterations.counts.warm_up, "iterations before any is timed")
      ->capture_default_str();
  app.add_option("--iterations", options.iterations.counts.measured, "timed, of each setting")
      ->capture_default_str();
  app.add_option("--most-seconds", options.iterations.counts.most_seconds, "of each setting")
      ->capture_default_str();
  app.add_option("--curve-up-to", words.curve_up_to, "largest all-reduce of the curve (64 MiB)");
  app.add_option("--only", words.only, "of step, curve, copies, interference, kernels, iterations")
      ->delimiter(',');
  app.add_option(
         "--losses", options.losses,
         "iterations on new samples whose loss is read, before any is timed (the first cap's buckets)")
      ->type_name("N");
  app.add_flag("--check", options.checks, "is it training? gradients, loss and parameters instead of times");
  app.add_flag("--share-gpus", options.shares_gpus, "time more ranks than GPUs; the file says so");
}

void add_run_options(CLI::App& app, Options& options, Words& words) {
  app.add_option("--ranks", words.ranks, "start so many ranks on this machine");
  app.add_option("--port", words.port, "at which ranks meet (a free one; MASTER_PORT)");
  app.add_option("--nodes", options.nodes, "machines, or namespaces, for the measurement file");
  app.add_option("--link-rate", words.link_rate, "of each rank's shaped link, as \"200 Mbit/s\"");
  app.add_option("--mtu", options.mtu_bytes, "of that link, in bytes");
  app.add_option("--machine-class", options.machine_class, "what kind of machine this is")->type_name("TEXT");
  app.add_option("--name", options.name, "of the measurement");
  app.add_option("-o,--output", options.output, "measurement file (a table on standard output)")
      ->type_name("FILE");
  app.add_flag("--quiet", options.is_quiet, "no progress");
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  std::sort(flags.begin(), flags.end());
  return flags;
}

// Unknown options are said with the nearest valid one; the rest in CLI11's words.
[[noreturn]] void throw_config_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> flags = flags_of(app);
  std::vector<std::string> problems;
  for (const std::string& word : app.remaining()) {
    const std::string flag = word.substr(0, word.find('='));
    problems.push_back(fmt::format("{}: no such option; {}", flag, describe_choices(flag, flags)));
  }
  if (problems.empty())
    problems.push_back(fmt::format("{}; see --help", error.what()));
  throw ConfigError(problems);
}

void read_sizes(Options& options, const Words& words, Problems& problems) {
  for (const std::string& word : words.sizes) {
    const std::size_t equals = word.find('=');
    char* end = nullptr;
    const std::string value = equals == word.npos ? "" : word.substr(equals + 1);
    const std::int64_t number = std::strtoll(value.c_str(), &end, 10);
    const bool is_read = !value.empty() && *end == 0 && number > 0 && number < (std::int64_t{1} << 40);
    problems.require(is_read, fmt::format("--size: found \"{}\", expected NAME=N with N above 0", word));
    if (is_read)
      options.model.sizes[word.substr(0, equals)] = number;
  }
}

// Of steps on a few samples, which BatchNorm makes steep.
float usual_learning_rate(const std::string& optimizer, const std::string& model) {
  const float share = model == "resnet50" ? 0.1F : 1.0F;
  if (optimizer == "momentum")
    return share * 0.02F;
  return share * (optimizer == "adamw" ? 0.002F : 0.1F);
}

void read_model(Options& options, const Words& words, Problems& problems) {
  read_sizes(options, words, problems);
  problems.require(!words.batch || *words.batch > 0, "--batch: is above 0");
  options.model.batch = words.batch.value_or(0);
  problems.require_choice("--precision", words.precision, {"fp32", "tf32", "bf16", "fp16"});
  problems.require_choice("--optimizer", options.optimizer.name, {"sgd", "momentum", "adamw", "none"});
  options.optimizer.learning_rate =
      words.learning_rate.value_or(usual_learning_rate(options.optimizer.name, options.model.name));
  problems.require(std::isfinite(options.optimizer.learning_rate) && options.optimizer.learning_rate > 0,
                   "--learning-rate: is above 0");
  options.precision = words.precision;
  options.model.activations = words.precision == "bf16"   ? Type::bf16
                              : words.precision == "fp16" ? Type::fp16
                                                          : Type::fp32;
}

void read_ddp(Options& options, const Words& words, Problems& problems) {
  IterationSettings& settings = options.iterations;
  for (const double cap : settings.bucket_caps_mb)
    problems.require(std::isfinite(cap) && cap > 0 && cap <= 1e6, "--bucket-cap-mb: is above 0, at most 1e6");
  problems.require_choice("--overlap", words.overlap, {"on", "off", "both"});
  problems.require_choice("--compress", words.compress, {"none", "bf16"});
  problems.require(options.gradient_accumulation > 0 && options.gradient_accumulation <= 1000,
                   "--accumulate: is 1 to 1000");
  const std::string overlap = words.no_overlap ? "off" : words.overlap;
  if (overlap != "off")
    settings.overlaps.push_back(true);
  if (overlap != "on")
    settings.overlaps.push_back(false);
  settings.compresses = words.compress == "bf16";
}

Chosen read_chosen(const std::vector<std::string>& only, Problems& problems) {
  const std::vector<std::string> valid = {"step", "curve", "copies", "interference", "kernels", "iterations"};
  for (const std::string& word : only) problems.require_choice("--only", word, valid);
  const auto is_chosen = [&](const std::string& word) {
    return only.empty() || std::find(only.begin(), only.end(), word) != only.end();
  };
  return {.step = is_chosen("step"),
          .curve = is_chosen("curve"),
          .copies = is_chosen("copies"),
          .interference = is_chosen("interference"),
          .kernels = is_chosen("kernels"),
          .iterations = is_chosen("iterations")};
}

void read_measurements(Options& options, const Words& words, Problems& problems) {
  const IterationCounts& counts = options.iterations.counts;
  problems.require(counts.warm_up >= 1 && counts.warm_up <= 1000, "--warmup: is 1 to 1000");
  problems.require(counts.measured >= 1 && counts.measured <= 100'000, "--iterations: is 1 to 100000");
  problems.require(std::isfinite(counts.most_seconds) && counts.most_seconds > 0,
                   "--most-seconds: is above 0");
  problems.require(options.losses >= 0 && options.losses <= 1'000'000, "--losses: is 0 to 1000000");
  options.chosen = read_chosen(words.only, problems);
  if (words.curve_up_to)
    options.most_curve_bytes =
        problems.parsed("--curve-up-to", *words.curve_up_to, parse_bytes(*words.curve_up_to)).count();
}

void read_run(Options& options, const Words& words, Problems& problems) {
  problems.require(!words.ranks || (*words.ranks >= 1 && *words.ranks <= most_ranks),
                   fmt::format("--ranks: is 1 to {}", most_ranks));
  problems.require(!words.port || (*words.port >= 1 && *words.port <= 65535), "--port: is 1 to 65535");
  problems.require(!options.nodes || *options.nodes >= 1, "--nodes: is at least 1");
  problems.require(!options.mtu_bytes || (*options.mtu_bytes >= 576 && *options.mtu_bytes <= 65536),
                   "--mtu: is 576 to 65536");
  options.ranks = words.ranks.value_or(0);
  options.port = words.port.value_or(0);
  if (!words.link_rate.empty())
    options.link_bits_per_second =
        8 * problems.parsed("--link-rate", words.link_rate, parse_bandwidth(words.link_rate)).count();
}

std::string identity_of(const Options& options, const Words& words) {
  const IterationSettings& settings = options.iterations;
  const Chosen& chosen = options.chosen;
  std::string sizes;
  for (const auto& [name, size] : options.model.sizes) sizes += fmt::format(" --size {}={}", name, size);
  return fmt::format(
      "--model {}{} --batch {} --precision {} --optimizer {} --learning-rate {} --seed {} --bucket-cap-mb {} "
      "--overlap {} --accumulate {} --compress {} --warmup {} --iterations {} --most-seconds {} "
      "--curve-up-to {} --only {:d}{:d}{:d}{:d}{:d}{:d} --losses {} --check {:d} --share-gpus {:d}",
      options.model.name, sizes, options.model.batch, options.precision, options.optimizer.name,
      options.optimizer.learning_rate, options.model.seed, fmt::join(settings.bucket_caps_mb, ","),
      words.no_overlap ? "off" : words.overlap, options.gradient_accumulation, words.compress,
      settings.counts.warm_up, settings.counts.measured, settings.counts.most_seconds,
      options.most_curve_bytes, chosen.step, chosen.curve, chosen.copies, chosen.interference, chosen.kernels,
      chosen.iterations, options.losses, options.checks, options.shares_gpus);
}

// After what the user said of the model, before what he said of the curve: that wins.
void read_preset(Options& options, const Words& words, Problems& problems) {
  if (words.preset.empty())
    return;
  problems.require_choice("--preset", words.preset, preset_names());
  for (const Preset& preset : presets())
    if (preset.name == words.preset) {
      apply_preset(preset, options.model);
      options.most_curve_bytes = preset.most_curve_bytes;
    }
}

Options checked(Options options, const Words& words) {
  Problems problems;
  read_model(options, words, problems);
  read_preset(options, words, problems);
  read_ddp(options, words, problems);
  read_measurements(options, words, problems);
  read_run(options, words, problems);
  problems.throw_if_any();
  options.identity = identity_of(options, words);
  return options;
}

}  // namespace

std::optional<Options> read_options(const std::string& program, int argument_count,
                                    const char* const* arguments) {
  CLI::App app("Runs and times data-parallel training: the step that Lockstep predicts.", program);
  app.footer(describe_presets());
  app.set_version_flag("--version", program + " " LOCKSTEP_VERSION);
  Options options;
  options.iterations.bucket_caps_mb = {1, 5, 25};
  Words words;
  add_model_options(app, options, words);
  add_ddp_options(app, options, words);
  add_measurement_options(app, options, words);
  add_run_options(app, options, words);
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::Success& request) {  // --help or --version
    app.exit(request);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw_config_error(app, error);
  }
  return checked(std::move(options), words);
}

}  // namespace lockstep::harness
