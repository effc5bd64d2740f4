#include "sim/load/read_input.h"

#include <fmt/format.h>

#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"

namespace lockstep {
namespace {

constexpr std::int64_t most_workers = 1'024;
constexpr std::int64_t most_samples_of_a_dataset = 1'000'000'000'000;
constexpr Duration longest_sample = Duration::seconds(3'600);
constexpr Bytes largest_sample{1'000'000'000'000};

void read_workers(const JsonReader& json, const Place& place, InputSpec& input) {
  input.workers = integer_or(json, "workers", 0, {0, most_workers});
  if (!json.optional("workers")) {
    (place / "workers").note("default (DataLoader's num_workers: the training loop loads)");
  }
  const auto prefetch = json.optional("prefetch_factor");
  if (!prefetch) {
    (place / "prefetch_factor").note("default (DataLoader's)");
    return;
  }
  input.prefetch_factor = prefetch->integer(1, most_workers);
  if (input.workers == 0) {
    prefetch->problem("found with workers 0, where nothing is prefetched; expected workers of at least 1");
  }
}

void read_sample_time(const JsonReader& json, InputSpec& input) {
  if (const auto time = json.optional("sample_time")) {
    input.sample_time = time->duration();
    if (input.sample_time > longest_sample) {
      time->expected("at most 1 h a sample");
    }
  }
  if (const auto cores = json.optional("cores")) {
    input.cores = cores->integer(1, million);
  }
}

Bytes read_bytes(const JsonReader& json) {
  const Bytes bytes = json.bytes();
  if (bytes > largest_sample) {
    json.expected("at most 1 TB a sample");
    return Bytes{0};
  }
  return bytes;
}

// Bytes and bandwidth mean nothing without each other.
void read_storage(const JsonReader& json, InputSpec& input) {
  const auto bytes = json.optional("sample_bytes");
  const auto bandwidth = json.optional("storage_bandwidth");
  if (bytes) {
    input.sample_bytes = read_bytes(*bytes);
  }
  if (bandwidth) {
    input.storage_bandwidth = bandwidth->bandwidth();
  }
  if (bytes && !bandwidth) {
    bytes->problem("found without storage_bandwidth, which says how fast a node reads them");
  }
  if (bandwidth && !bytes) {
    bandwidth->problem("found without sample_bytes, which says how much a sample is");
  }
}

void read_copy(const JsonReader& json, const Place& place, const InputFacts& facts, InputSpec& input) {
  const auto bytes = json.optional("tensor_bytes");
  if (bytes) {
    input.tensor_bytes = read_bytes(*bytes);
  }
  input.copy = spelled_or(json, "copy", bytes ? BatchCopy::pageable : BatchCopy::none, batch_copy_spellings);
  if (!json.optional("copy")) {
    (place / "copy").note(bytes ? "default (DataLoader's pin_memory is false)" : "default (no tensor_bytes)");
  }
  const JsonReader said = json.optional("copy").value_or(json);
  if (input.copy != BatchCopy::none && !bytes) {
    said.problem("found without tensor_bytes, which says how much of a sample is copied");
  }
  if (input.copy == BatchCopy::overlapped && input.workers == 0) {
    said.problem(
        "found \"overlapped\" with workers 0, where nothing is ahead; expected workers of at least 1");
  }
  if (input.copy != BatchCopy::none && !facts.machine.name.empty() && !facts.machine.host.pcie) {
    said.problem(
        fmt::format("found copies to the device, but machine {} states no host.pcie; expected "
                    "\"copy\": \"none\"",
                    facts.machine.name));
  }
}

LengthSpec read_lengths(const JsonReader& json, const InputFacts& facts) {
  LengthSpec lengths;
  if (facts.sequence_length == 0) {
    json.problem("found with a model that has no sequence_length; expected a language model");
  }
  const std::int64_t longest = std::max<std::int64_t>(facts.sequence_length, 1);
  lengths.distribution = name_or(json, "distribution", "lognormal", {"lognormal", "gamma"});
  lengths.maximum = integer_or(json, "maximum", longest, {1, longest});
  lengths.mean = json.required("mean").integer(1, lengths.maximum);
  lengths.coefficient_of_variation =
      ratio(json.required("coefficient_of_variation"), {0, 1}, "standard deviation over mean");
  json.finish();
  return lengths;
}

void read_all_lengths(const JsonReader& json, const InputFacts& facts, InputSpec& input) {
  const auto lengths = json.optional("lengths");
  const auto grouped = json.optional("group_by_length");
  if (lengths) {
    input.lengths = read_lengths(*lengths, facts);
    input.lengths->is_grouped = grouped && grouped->boolean();
  } else if (grouped && grouped->boolean()) {
    grouped->problem("found without lengths, by which to group");
  }
}

}  // namespace

InputSpec read_input(const JsonReader& json, const Place& place, const InputFacts& facts) {
  InputSpec input;
  read_workers(json, place, input);
  read_sample_time(json, input);
  read_storage(json, input);
  read_copy(json, place, facts, input);
  const auto samples = json.optional("dataset_samples");
  if (samples) {
    input.dataset_samples = samples->integer(1, most_samples_of_a_dataset);
  }
  input.drop_last = boolean_or(json, "drop_last", false);
  if (json.optional("drop_last") && !samples) {
    json.required("drop_last").problem("found without dataset_samples, which says what is left over");
  }
  read_all_lengths(json, facts, input);
  json.finish();
  return input;
}

}  // namespace lockstep
