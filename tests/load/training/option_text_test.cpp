#include "sim/load/training/option_text.h"

#include <doctest/doctest.h>

#include <string>

namespace lockstep::option_text_test {

TEST_CASE("every form of compression reads back to itself") {
  for (const char* text :
       {"none", "fp16", "bf16", "powersgd_1", "powersgd_1024", "topk_0.1", "topk_25", "topk_100"}) {
    CAPTURE(text);
    REQUIRE(parse_compression(text));
    CHECK(text_of(*parse_compression(text)) == text);
  }
}

TEST_CASE("the number behind a compression is its rank or its share of the elements") {
  CHECK(parse_compression("powersgd_4") == Compression{.kind = CompressionKind::powersgd, .rank = 4});
  // 0.1 percent of a million.
  CHECK(parse_compression("topk_0.1") ==
        Compression{.kind = CompressionKind::topk, .kept = Ratio::parts_per_million(1'000)});
}

TEST_CASE("a compression that keeps nothing, or more than there is, is none") {
  for (const char* text :
       {"powersgd_0", "powersgd_-1", "powersgd_1025", "powersgd_", "powersgd_2x", "powersgd_1.5", "topk_0",
        "topk_-1", "topk_100.1", "topk_", "topk_nan", "topk_0.000001", "fp15", ""}) {
    CAPTURE(text);
    CHECK_FALSE(parse_compression(text));
  }
}

TEST_CASE("every form of recomputation reads back to itself, and K counts blocks") {
  for (const char* text : {"none", "selective", "selective_op", "full", "every_1", "every_12", "one_in_2"}) {
    CAPTURE(text);
    REQUIRE(parse_recompute(text));
    CHECK(text_of(*parse_recompute(text)) == text);
  }
  CHECK(parse_recompute("every_3")->blocks == 3);
  CHECK(parse_recompute("one_in_4")->blocks == 4);
  for (const char* text : {"every_0", "every_", "every_K", "one_in_0", "one_in_", "all"}) {
    CHECK_FALSE(parse_recompute(text));
  }
}

TEST_CASE("every way of wrapping reads back to itself, and N counts elements") {
  for (const char* text : {"block", "none", "size_100000000"}) {
    CAPTURE(text);
    REQUIRE(parse_auto_wrap(text));
    CHECK(text_of(*parse_auto_wrap(text)) == text);
  }
  CHECK(parse_auto_wrap("size_7")->elements == 7);
  CHECK_FALSE(parse_auto_wrap("size_0"));
  CHECK_FALSE(parse_auto_wrap("layer"));
}

}  // namespace lockstep::option_text_test
