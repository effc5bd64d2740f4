#include "sim/base/nearest_name.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep::nearest_name_test {

const std::vector<std::string> strategies{"ddp", "dp", "fsdp", "horovod", "local_sgd", "zero1", "zero2"};

std::vector<std::string> numbered_names(int count) {
  std::vector<std::string> names;
  for (int number = 0; number < count; ++number) {
    names.push_back("machine_" + std::to_string(number));
  }
  return names;
}

TEST_CASE("A name with a letter wrong, missing, added or swapped finds its neighbour") {
  CHECK(nearest_name("horovot", strategies) == "horovod");
  CHECK(nearest_name("horvod", strategies) == "horovod");
  CHECK(nearest_name("horovodd", strategies) == "horovod");
  CHECK(nearest_name("hroovod", strategies) == "horovod");
  CHECK(nearest_name("local-sgd", strategies) == "local_sgd");
}

TEST_CASE("Case is no distance") {
  CHECK(nearest_name("FSDP", strategies) == "fsdp");
  CHECK(nearest_name("HoroVod", strategies) == "horovod");
}

TEST_CASE("A swap of neighbours is one edit, so it beats two substitutions") {
  const std::vector<std::string> names{"xy__", "ba__"};
  CHECK(nearest_name("ab__", names) == "ba__");
}

TEST_CASE("A word cut short, or left out, is nearer than a wrong letter") {
  const std::vector<std::string> keys{"name", "source", "heads", "vocabulary", "hidden"};
  CHECK(nearest_name("vocab", keys) == "vocabulary");
  const std::vector<std::string> options{"strategy", "framework", "first_bucket_mb", "bucket_cap_mb"};
  CHECK(nearest_name("bucket_mb", {options.begin() + 1, options.end()}) == "first_bucket_mb");
  CHECK(nearest_name("cap_mb", options) == "bucket_cap_mb");
  CHECK(nearest_name("dgx_a10", std::vector<std::string>{"dgx_h100", "dgx_a100_40gb"}) == "dgx_a100_40gb");
}

TEST_CASE("Separators are no distance, and words may stand in another order") {
  CHECK(nearest_name("LocalSGD", strategies) == "local_sgd");
  CHECK(nearest_name("sgd.local", strategies) == "local_sgd");
}

TEST_CASE("Names that share nothing are not suggested") {
  CHECK_FALSE(nearest_name("pipeline", strategies).has_value());
  CHECK_FALSE(nearest_name("", strategies).has_value());
  CHECK_FALSE(nearest_name("q", strategies).has_value());
  CHECK_FALSE(nearest_name("ddp", {}).has_value());
}

TEST_CASE("Of equally near names the first is suggested") {
  CHECK(nearest_name("zero", strategies) == "zero1");
}

TEST_CASE("Of many the nearest are listed, nearest first, equally near ones in their order") {
  std::vector<std::string> names = numbered_names(11);
  names.insert(names.begin(), {"engine", "machine"});  // by far more than an edit, and by two
  const std::string nearest = describe_choices("machine_1", names);
  CHECK(nearest.starts_with(
      "did you mean \"machine_1\"? nearest of 13 valid names: machine_1, machine_0, machine_2, "));
  CHECK(nearest.ends_with(", machine_10, machine"));
  CHECK(describe_choices("", names).starts_with("nearest of 13 valid names: engine, machine, machine_0, "));
}

TEST_CASE("The bound grows with the length: a third of the letters may be wrong") {
  const std::vector<std::string> names{"gradient_accumulation"};
  CHECK(nearest_name("gradent_acumulatoin", names) == names[0]);
  // 21 letters allow 21 / 3 = 7 edits: seven foreign letters at the end are near, eight are not.
  CHECK(nearest_name("gradient_accumxxxxxxx", names) == names[0]);
  CHECK_FALSE(nearest_name("gradient_accuxxxxxxxx", names).has_value());
}

TEST_CASE("A megabyte of name is answered at once, because its length alone rules every name out") {
  CHECK_FALSE(nearest_name(std::string(1'000'000, 'd'), strategies).has_value());
  CHECK_FALSE(describe_choices(std::string(1'000'000, 'd'), numbered_names(20)).empty());
}

TEST_CASE("A dozen choices are listed, more are counted") {
  CHECK(describe_choices("FSPD", strategies) ==
        "did you mean \"fsdp\"? valid: ddp, dp, fsdp, horovod, local_sgd, zero1, zero2");
  CHECK(describe_choices("", strategies) == "valid: ddp, dp, fsdp, horovod, local_sgd, zero1, zero2");
  CHECK(describe_choices("x", {}) == "nothing is valid here");
  const std::string many = describe_choices("machin_12", numbered_names(13));
  CHECK(many.starts_with("did you mean \"machine_12\"? nearest of 13 valid names: machine_12, "));
  CHECK(std::count(many.begin(), many.end(), ',') == 12 - 1);
}

}  // namespace lockstep::nearest_name_test
