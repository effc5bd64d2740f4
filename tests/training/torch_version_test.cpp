#include "sim/training/torch_version.h"

#include <doctest/doctest.h>

namespace lockstep::torch_version_test {

bool is_before_1_11(const char* framework, const char* version) {
  TrainingSpec training;
  training.framework = framework;
  training.framework_version = version;
  return is_torch_before(training, 1, 11);
}

TEST_CASE("Releases are compared by number, not by letter") {
  CHECK(is_before_1_11("pytorch_ddp", "1.9"));
  CHECK(is_before_1_11("pytorch_fsdp", "1.10.2"));
  CHECK_FALSE(is_before_1_11("pytorch_ddp", "1.11"));
  CHECK_FALSE(is_before_1_11("pytorch_ddp", "2.1"));
  CHECK_FALSE(is_before_1_11("pytorch_ddp", "10.0"));
}

TEST_CASE("Another framework's version says nothing of PyTorch's") {
  CHECK_FALSE(is_before_1_11("deepspeed", "0.17"));
  CHECK_FALSE(is_before_1_11("horovod", "0.28"));
}

}  // namespace lockstep::torch_version_test
