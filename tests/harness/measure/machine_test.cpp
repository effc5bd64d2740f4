#include "validate/harness/measure/machine.h"

#include <doctest/doctest.h>

namespace lockstep::harness::harness_measure_machine_test {

const std::string cpuinfo =
    "processor\t: 0\nmodel name\t: A Processor\ncpu MHz\t\t: 2000.0\n\n"
    "processor\t: 1\nmodel name\t: A Processor\ncpu MHz\t\t: 3000.0\n";

TEST_CASE("the processor's name and the mean clock of its cores are read from cpuinfo") {
  CHECK(value_in_cpuinfo(cpuinfo, "model name") == "A Processor");
  CHECK(mean_in_cpuinfo(cpuinfo, "cpu MHz").value() == doctest::Approx((2000.0 + 3000.0) / 2));
}

TEST_CASE("what cpuinfo does not say is not made up") {
  CHECK(value_in_cpuinfo(cpuinfo, "Hardware").empty());
  CHECK_FALSE(mean_in_cpuinfo("", "cpu MHz").has_value());
}

TEST_CASE("variables of NCCL are kept, of names of hosts only that they are set") {
  const char* const environment[] = {"HOME=/root", "NCCL_ALGO=Ring", "NCCL_HOSTID=box-rank1", "NCCL_DEBUG",
                                     nullptr};
  CHECK(nccl_variables(environment) ==
        std::map<std::string, std::string>{{"NCCL_ALGO", "Ring"}, {"NCCL_HOSTID", "set"}});
}

}  // namespace lockstep::harness::harness_measure_machine_test
