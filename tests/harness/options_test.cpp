#include "validate/harness/options.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"

namespace lockstep::harness::options_test {

Options read(std::vector<const char*> words) {
  words.insert(words.begin(), "program");
  return read_options("program", static_cast<int>(words.size()), words.data()).value();
}

// The message of what is refused.
std::string refusal(const std::vector<const char*>& words) {
  try {
    read(words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("nothing asked for measures an MLP at three caps with overlap") {
  const Options options = read({});
  CHECK(options.model.name == "mlp");
  CHECK(options.iterations.bucket_caps_mb == std::vector<double>{1, 5, 25});
  CHECK(options.iterations.overlaps == std::vector<bool>{true});
  CHECK(options.most_curve_bytes == 64 << 20);
  CHECK(options.chosen.interference);
  CHECK(options.losses == 0);
}

TEST_CASE("sizes, lists and quantities are read with their units") {
  const Options options = read({"--model", "gpt", "--size", "hidden=64", "--size", "layers=2",
                                "--bucket-cap-mb", "0.5,100", "--link-rate", "200 Mbit/s", "--curve-up-to",
                                "1 MiB", "--only", "step,curve", "--precision", "bf16"});
  CHECK(options.model.sizes.at("hidden") == 64);
  CHECK(options.model.sizes.at("layers") == 2);
  CHECK(options.iterations.bucket_caps_mb == std::vector<double>{0.5, 100});
  CHECK(options.link_bits_per_second == 200'000'000);
  CHECK(options.most_curve_bytes == 1 << 20);
  CHECK(options.chosen.curve);
  CHECK_FALSE(options.chosen.iterations);
  CHECK(options.model.activations == Type::bf16);
}

TEST_CASE("a preset gives sizes, batch and curve, and what is said besides wins") {
  const Options options = read({"--preset", "h100", "--model", "gpt"});
  CHECK(options.model.sizes.at("vocabulary") == 50257);
  CHECK(options.model.batch > 0);
  CHECK(options.most_curve_bytes == std::int64_t{1} << 30);
  const Options own = read({"--preset", "h100", "--model", "gpt", "--size", "sequence=64", "--batch", "2",
                            "--curve-up-to", "1 MiB"});
  CHECK(own.model.sizes.at("sequence") == 64);
  CHECK(own.model.sizes.at("vocabulary") == 50257);
  CHECK(own.model.batch == 2);
  CHECK(own.most_curve_bytes == 1 << 20);
  CHECK(says(refusal({"--preset", "h10"}), "did you mean \"h100\""));
  CHECK(says(refusal({"--curve-up-to", ""}), "--curve-up-to"));
}

TEST_CASE("overlap is on, off or both") {
  CHECK(read({"--no-overlap"}).iterations.overlaps == std::vector<bool>{false});
  CHECK(read({"--overlap", "both"}).iterations.overlaps == std::vector<bool>{true, false});
}

TEST_CASE("what is wrong is said with what is valid, all of it at once") {
  const std::string message = refusal({"--precision", "fp31", "--batch", "0", "--size", "hidden"});
  CHECK(says(message, "did you mean \"fp32\""));
  CHECK(says(message, "--batch"));
  CHECK(says(message, "NAME=N"));
  CHECK(says(refusal({"--bucket-cap-bm", "1"}), "did you mean \"--bucket-cap-mb\""));
  CHECK(says(refusal({"--link-rate", "200"}), "--link-rate"));
  CHECK(says(refusal({"--only", "curves"}), "did you mean \"curve\""));
  CHECK(says(refusal({"--bucket-cap-mb", "-1"}), "--bucket-cap-mb"));
  CHECK(says(refusal({"--ranks", "0"}), "--ranks"));
  CHECK(says(refusal({"--iterations", "many"}), "--iterations"));
}

TEST_CASE(
    "ranks that would reduce other things have other identities; where results go is each rank's own "
    "affair") {
  CHECK(read({"--batch", "8"}).identity != read({"--batch", "16"}).identity);
  CHECK(read({"--only", "step"}).identity != read({"--only", "curve"}).identity);
  CHECK(read({"--share-gpus"}).identity != read({}).identity);
  CHECK(read({"--bucket-cap-mb", "1"}).identity != read({"--bucket-cap-mb", "2"}).identity);
  CHECK(read({"--output", "a.json"}).identity == read({"--quiet"}).identity);
}

}  // namespace lockstep::harness::options_test
