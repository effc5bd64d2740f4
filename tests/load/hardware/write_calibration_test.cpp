#include "sim/load/hardware/write_calibration.h"

#include <doctest/doctest.h>

#include "sim/load/hardware/read_calibration.h"
#include "tests/support/scenarios.h"

namespace lockstep::write_calibration_test {

Calibration read_back(const nlohmann::ordered_json& json) {
  JsonDocument document = JsonDocument::from_value(json, "calibration");
  LoadContext context{.store = shipped_profiles(), .folder = ""};
  Calibration calibration = read_calibration(document.root(), {.context = context, .pointer = ""});
  document.throw_if_problems();
  return calibration;
}

TEST_CASE("every shipped calibration is written as it was read") {
  for (const std::string& name : shipped_profiles().names(ProfileKind::calibration)) {
    CAPTURE(name);
    const Calibration calibration =
        read_back(*shipped_profiles().open(ProfileKind::calibration, name)->value);
    const nlohmann::ordered_json written = write_calibration(calibration);
    CHECK(write_calibration(read_back(written)) == written);
  }
}

TEST_CASE("what is not known is left out, and what is known costs its unit") {
  Calibration calibration;
  calibration.name = "mine";
  calibration.protocols.emplace_back().name = "simple";
  calibration.collective_launch = Duration::nanoseconds(5250);
  const nlohmann::ordered_json written = write_calibration(calibration);
  for (const char* key : {"algorithms", "library_version", "residuals", "fitted"})
    CHECK_FALSE(written.contains(key));
  CHECK(written["collective_launch"] == "5.25 us");
}

}  // namespace lockstep::write_calibration_test
