#include "sim/study/fit/left_out_bands.h"

#include <doctest/doctest.h>

namespace lockstep::left_out_bands_test {

using Residuals = std::vector<LeftOutResidual>;

LeftOutResidual residual(int unit, double ratio, std::vector<std::string> kin = {"kind"}) {
  return {.measured_over_predicted = ratio, .unit = std::to_string(unit), .kin = std::move(kin)};
}

// One a unit, a hundredth apart.
Residuals row_of(int count) {
  Residuals row;
  for (int unit = 0; unit < count; ++unit) row.push_back(residual(unit, 1 + unit / 100.0));
  return row;
}

// Of twenty the k lowest and k highest are not held where the k-th of the other nineteen is the end: 16 of 20 are held at
// k = 2. Who is held then leaves 15 of 19, too few, so that its own ends are the first; the outer four leave 16 of 19.
TEST_CASE("of units in a row, the bands of the others hold the inner four fifths") {
  const Residuals row = row_of(20);
  const auto intervals = LeftOutBands(row).intervals();
  for (std::size_t unit = 0; unit < row.size(); ++unit) {
    REQUIRE(intervals[unit]);
    CAPTURE(unit);
    CHECK(intervals[unit]->holds(row[unit].measured_over_predicted) == (unit >= 2 && unit < 18));
  }
}

TEST_CASE("a unit's own residual has no part in its band") {
  Residuals row = row_of(12);
  const auto before = LeftOutBands(row).intervals();
  row[3].measured_over_predicted = 50;
  const auto after = LeftOutBands(row).intervals();
  CHECK(after[3]->low == before[3]->low);
  CHECK(after[3]->high == before[3]->high);
  CHECK(after[4]->high != before[4]->high);
}

// One of each kind of kin, and all others count as one more: the ends of what was seen on either side.
TEST_CASE("who has several kinds of kin gets the widest of their bands") {
  const Residuals three{residual(0, 0.8, {"slow"}), residual(1, 1.5, {"fast"}),
                        residual(2, 1, {"slow", "fast"})};
  const auto intervals = LeftOutBands(three).intervals();
  REQUIRE(intervals[2]);
  CHECK(intervals[2]->low == 0.8);
  CHECK(intervals[2]->high == 1.5);
}

// Nine others miss by up to a tenth, and the one relative by half: alone it would be both ends of the band. An interval of one
// value holds hardly any of the nine, so that it is wider than that, and half of the weight is theirs.
TEST_CASE("all others together count as one more relative") {
  Residuals residuals{residual(0, 1.5, {"rare"})};
  for (int unit = 1; unit < 10; ++unit) residuals.push_back(residual(unit, 1 + unit / 100.0, {"usual"}));
  residuals.push_back(residual(10, 1.5, {"rare"}));
  const auto intervals = LeftOutBands(residuals).intervals();
  CHECK(intervals[10]->low < 1.1);
  CHECK(intervals[10]->high == 1.5);
}

TEST_CASE("nobody else, no band; and a band a class of sizes") {
  CHECK_FALSE(LeftOutBands({residual(0, 1.2)}).intervals().front());
  Residuals both = row_of(4);
  for (LeftOutResidual& large : row_of(4)) {
    large.size_class = SizeClass::large;
    both.push_back(large);
  }
  const std::vector<ResidualBand> bands = LeftOutBands(both).bands_of("kind");
  REQUIRE(bands.size() == 2);
  CHECK(bands[0].from == Bytes{0});
  CHECK(bands[1].from == first_of(SizeClass::large));
  CHECK(LeftOutBands({}).bands_of("kind").empty());
}

}  // namespace lockstep::left_out_bands_test
