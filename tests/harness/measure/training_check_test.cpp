#include "validate/harness/measure/training_check.h"

#include <doctest/doctest.h>

#include <cmath>

namespace lockstep::harness::harness_measure_training_check_test {

CheckSettings settings_of(Type activations, const std::string& precision, bool compresses = false) {
  CheckSettings settings;
  settings.precision = precision;
  settings.model.activations = activations;
  settings.reducer.compresses = compresses;
  return settings;
}

// Two factors, each off by one unit in the last place: twice the unit roundoff 2^-(bits + 1).
double two_factors(int fraction_bits) {
  return 2 * 2 * std::ldexp(1.0, -(fraction_bits + 1));
}

TEST_CASE("Gradients may differ by what the formats of their products round") {
  CHECK(allowed_difference(settings_of(Type::fp32, "fp32"), 2) == 1e-5);
  CHECK(allowed_difference(settings_of(Type::fp32, "tf32"), 2) == two_factors(10));
  CHECK(allowed_difference(settings_of(Type::fp16, "fp16"), 2) == two_factors(10));
  CHECK(allowed_difference(settings_of(Type::bf16, "bf16"), 2) == two_factors(7));
}

TEST_CASE("Compressed buckets are rounded once a rank and once more, where that is most") {
  CHECK(allowed_difference(settings_of(Type::fp32, "fp32", true), 2) == 3 * std::ldexp(1.0, -8));
  CHECK(allowed_difference(settings_of(Type::bf16, "bf16", true), 2) == two_factors(7));
}

}  // namespace lockstep::harness::harness_measure_training_check_test
