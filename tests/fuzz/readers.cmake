# What the fuzzer and the law suite have in common. The harness's messages stand alone: no part of it is built for them.
set(LOCKSTEP_FUZZ_READERS
  ${PROJECT_SOURCE_DIR}/tests/fuzz/entries.cpp
  ${PROJECT_SOURCE_DIR}/tests/fuzz/entry.cpp
  ${PROJECT_SOURCE_DIR}/tests/fuzz/mutation.cpp
  ${PROJECT_SOURCE_DIR}/tests/fuzz/scratch.cpp
  ${PROJECT_SOURCE_DIR}/validate/harness/communication/message.cpp)
