// One line at a time: what launchers put in front, every header that was ever printed, and rows cut anywhere.

#include "sim/study/logs/collective_log_row.h"

#include <doctest/doctest.h>

#include <string>
#include <variant>

namespace lockstep::collective_log_row_test {

LogLayout layout_of(std::string_view header) {
  const auto layout = read_log_header(7, header);
  REQUIRE(layout.has_value());
  return *layout;
}

CollectiveLogRow row_of(std::string_view text, const LogLayout& layout) {
  CHECK(looks_like_row(text, layout));
  const auto parsed = read_log_row(text, layout);
  const auto* row = std::get_if<CollectiveLogRow>(&parsed);
  const std::string why = row == nullptr ? std::get<ParseFailure>(parsed).message : "";
  INFO(why);
  REQUIRE(row != nullptr);
  return *row;
}

std::string why_not(std::string_view text, const LogLayout& layout) {
  CHECK(looks_like_row(text, layout));
  const auto parsed = read_log_row(text, layout);
  const auto* failure = std::get_if<ParseFailure>(&parsed);
  return failure == nullptr ? "a row" : failure->message;
}

constexpr std::string_view today =
    "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong";

// Time in picoseconds of a row that prints `text` for it.
std::int64_t time_of(const std::string& text) {
  return row_of("64 16 float sum -1 " + text + " 1.00 1.00 0", layout_of(today)).time.picoseconds();
}

TEST_CASE("What launchers put in front of a line is taken off") {
  for (const std::string_view prefix :
       {"", "[1,0]<stdout>:", "[1,0]<stdout>: ", "[prterun-node1-77@1,0]<stdout>: ",
        "Mon Jun  1 10:00:00 2026[1,0]<stdout>:", "0: ", " 3: ", "worker-0: ", "worker-0  | ",
        "[pod/bench/main] ", "(head, rank=0, pid=3808) [1,0]<stdout>:", "2026-05-01T10:00:00.123456Z ",
        "[2026-05-01 10:00:00] ", "2026-05-01 10:00:00 0: "}) {
    CAPTURE(prefix);
    CHECK(without_launcher_prefix(std::string(prefix) + "  1048576  262144  float \r") ==
          "1048576  262144  float");
    CHECK(without_launcher_prefix(std::string(prefix) + "#  Rank  0") == "#  Rank  0");
  }
  CHECK(without_launcher_prefix("0:").empty());
  CHECK(without_launcher_prefix("[open").starts_with("[open"));
  CHECK(without_launcher_prefix("").empty());
}

TEST_CASE("Only what names size, time, algbw and busbw is a header") {
  CHECK(read_log_header(1, today));
  CHECK(read_log_header(1, "size count time algbw busbw"));
  CHECK(read_log_header(1, "size_bytes,time_us"));
  CHECK_FALSE(read_log_header(1, "# (B) (elements) (us) (GB/s) (GB/s)"));
  CHECK_FALSE(read_log_header(1, "# Avg bus bandwidth    : 179.465"));
  CHECK_FALSE(read_log_header(1, "the busbw at that size and time was above the algbw"));
  CHECK_FALSE(read_log_header(1, "size_bytes,busbw_gbs"));
  CHECK_FALSE(read_log_header(1, ""));
}

TEST_CASE("Columns are those of the header, in place after the second time") {
  const CollectiveLogRow row =
      row_of("1048576 262144 half sum -1 76.26 13.75 25.78 2 76.43 13.72 25.72 1e+01", layout_of(today));
  CHECK(row.size == Bytes{1048576});
  CHECK(row.count == 262144);
  CHECK(row.data_type == "half");
  CHECK(row.time == Duration::nanoseconds(76'260));
  CHECK(row.in_place_time == Duration::nanoseconds(76'430));
  CHECK(row.algbw_gbs == 13.75);
  CHECK(row.busbw_gbs == 25.78);
  CHECK(row.in_place_algbw_gbs == 13.72);
  CHECK(row.wrong == 2 + 10);
}

TEST_CASE("Versions without root, redop or in-place columns are read by their own headers") {
  struct Version {
    std::string_view header;
    std::string_view row;
    bool is_in_place = true;
  };
  for (const Version& version : {
           Version{"# size count type redop time algbw busbw error time algbw busbw error",
                   "4096 1024 float sum 10.24 0.40 0.60 1e-06 10.50 0.39 0.59 1e-06"},
           Version{"# size count type redop time algbw busbw error time algbw busbw error",
                   "4096 1024 float 10.24 0.40 0.60 0e+00 10.50 0.39 0.59 N/A"},  // redop printed blank
           Version{"# size count type root time algbw busbw error time algbw busbw error",
                   "4096 1024 float 0 10.24 0.40 0.60 N/A 10.50 0.39 0.59 N/A"},
           Version{"# bytes N type op time algbw busbw res time algbw busbw res",
                   "4096 1024 float sum 10.24 0.40 0.60 2e-07 10.50 0.39 0.59 2e-07"},
           Version{"# size count type redop root cputime algbw busbw #wrong cputime algbw busbw #wrong",
                   "4096 1024 float sum -1 10.24 0.40 0.60 0 10.50 0.39 0.59 0"},
           Version{"# size count type redop root time algbw busbw #wrong time algbw busbw #wrong timestamp",
                   "4096 1024 float sum -1 10.24 0.40 0.60 0 10.50 0.39 0.59 0 2026-05-01 10:00:00"},
           Version{"# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw "
                   "busbw "
                   "#wrong i_min i_max i_p99 i_cv%",
                   "4096 1024 float sum -1 10.24 0.40 0.60 0 9.1 11.2 11.1 3.2 10.50 0.39 0.59 0 9 12 12 3"},
           Version{"size count type redop root time algbw busbw #wrong",
                   "4096 1024 float sum -1 10.24 0.40 0.60 0", false},
           Version{"size count time algbw busbw", "4096 1024 10.24 0.40 0.60", false},
       }) {
    CAPTURE(version.row);
    const CollectiveLogRow row = row_of(version.row, layout_of(version.header));
    CHECK(row.size == Bytes{4096});
    CHECK(row.time == Duration::nanoseconds(10'240));
    CHECK(row.busbw_gbs == 0.60);
    CHECK(row.wrong == 0);
    CHECK(row.in_place_time ==
          (version.is_in_place ? std::optional(Duration::nanoseconds(10'500)) : std::nullopt));
  }
}

TEST_CASE("Rows without a header are today's, and those before root was printed") {
  const LogLayout layout = layout_without_header();
  CHECK(row_of("64 16 float sum -1 12.19 0.01 0.01 0 12.15 0.01 0.01 0", layout).in_place_time ==
        Duration::nanoseconds(12'150));
  CHECK(row_of("64 16 float sum 12345 0.01 0.01 N/A", layout).time == Duration::microseconds(12'345));
  CHECK(row_of("64 16 float 12.19 0.01 0.01 2e-07 12.15 0.01 0.01 2e-07", layout).wrong == 0);
  CHECK(why_not("64 16 float sum -1 12.19 0.01 0.01 0 9.1 11.2 11.1 3.2 12.15 0.01 0.01 0", layout) ==
        "it has 17 columns, expected 13 where no header is seen");
}

TEST_CASE("Without a header only what names its data type looks like a row") {
  const LogLayout layout = layout_without_header();
  for (const std::string_view text :
       {"", "12 files changed, 3 insertions", "0 1 2 3 4 5 6 7", "1048576",
        "76.26 13.75 25.78 0 76.43 13.72 25.72 0", "# 64 16 float sum", "64 x float sum -1 12.19",
        "host:12:34 [0] NCCL INFO Channel 00/24 : 0 1 2 3"}) {
    CAPTURE(text);
    CHECK_FALSE(looks_like_row(text, layout));
  }
  CHECK(looks_like_row("1048576", layout_of(today)));
  CHECK_FALSE(looks_like_row("76.26 13.75 25.78 0 76.43 13.72 25.72 0", layout_of(today)));
}

// A row cut after any column but the last of a group is refused; so is one cut inside a number.
TEST_CASE("A cut row is refused, and says where it ends") {
  const LogLayout layout = layout_of(today);
  const std::string row = "1048576 262144 float sum -1 76.26 13.75 25.78 0 76.43 13.72 25.72 0";
  std::size_t columns = 0;
  for (std::size_t end = row.find(' '); end != row.npos; end = row.find(' ', end + 1)) {
    ++columns;
    CAPTURE(columns);
    const std::string expected =
        "it has " + std::to_string(columns) + " columns, the header on line 7 names 13";
    CHECK(why_not(row.substr(0, end), layout) == (columns == 9 ? "a row" : expected));
  }
  CHECK(columns == 12);
  CHECK(why_not("1048576 262144 float sum -1 76.", layout) == "its column time holds \"76.\"");
  CHECK(why_not("1048576 262144 float sum -1 76.26 13.75 25. 0", layout) == "its column busbw holds \"25.\"");
  CHECK(why_not("1048576 262144 float sum -1 76.26 13.75 25.78 0host:1:2 [0]", layout) ==
        "its column #wrong holds \"0host:1:2\"");
  CHECK(why_not("1048576 262144 float sum -1host:1:2 [0] NCCL INFO", layout) ==
        "its column time holds \"-1host:1:2\"");
  CHECK(why_not("99999999999999999999 262144 float sum -1 76.26 13.75 25.78 0", layout) ==
        "its column size holds \"99999999999999999999\"");
}

TEST_CASE("Microseconds become exact picoseconds") {
  CHECK(time_of("179.1") == 179'100'000);
  CHECK(time_of("0.01") == 10'000);
  CHECK(time_of("0.000001") == 1);
  CHECK(time_of("0.1000001") == 100'001);  // finer than a picosecond: up
  CHECK(time_of("94752") == 94'752'000'000);
  CHECK(time_of("1.2e+07") == 12'000'000'000'000);
  CHECK(time_of("1.25E-2") == 12'500);
  CHECK(time_of("12e0") == 12'000'000);
  CHECK(time_of("0.00") == 0);
  CHECK(time_of("-3.50") == -3'500'000);
  for (const std::string text :
       {"1.2.3", "1.2e", "1.2e+", "1e99", "1.2.3e3", "nan", "--1", "0x1p3", "e3", "-", "9999999999999999"}) {
    CAPTURE(text);
    CHECK(why_not("64 16 float sum -1 " + text + " 1.00 1.00 0", layout_of(today))
              .starts_with("its column time"));
  }
}

TEST_CASE("Bandwidths that a broken run prints are no reason to lose its row") {
  for (const std::string text : {"inf", "-inf", "nan", "-nan", "N/A"}) {
    CAPTURE(text);
    const CollectiveLogRow row =
        row_of("64 16 float sum -1 0.00 " + text + " " + text + " N/A", layout_of(today));
    CHECK_FALSE(row.algbw_gbs);
    CHECK_FALSE(row.busbw_gbs);
  }
}

TEST_CASE("Wrong elements are counted, and an older version's deviations only when it marks them") {
  const LogLayout older = layout_of("# size count type redop time algbw busbw error time algbw busbw error");
  CHECK(row_of("64 16 float sum 12.19 0.01 0.01 1e+00 12.15 0.01 0.01 7e-03", older).wrong == 0);
  CHECK(row_of("64 16 float sum 12.19 0.01 0.01 1e+00* 12.15 0.01 0.01 7e-03", older).wrong == 1);
  CHECK(row_of("64 16 float sum -1 12.19 0.01 0.01 3e+06", layout_of(today)).wrong == 3'000'000);
}

TEST_CASE("An in-place time may not be there") {
  const CollectiveLogRow row =
      row_of("64 16 float none -1 12.19 0.01 0.01 0 N/A N/A N/A N/A", layout_of(today));
  CHECK_FALSE(row.in_place_time);
  CHECK(row.time == Duration::nanoseconds(12'190));
}

constexpr std::string_view csv_header =
    "size_bytes,time_us,algbw_gbs,busbw_gbs,inplace_time_us,inplace_algbw_gbs,inplace_busbw_gbs";

TEST_CASE("CSV is read by the names of its header, and an empty field was not printed") {
  const LogLayout layout = layout_of(csv_header);
  const CollectiveLogRow whole = row_of("1048576,83.97,12.49,18.73,84.35,12.43,18.65", layout);
  CHECK(whole.size == Bytes{1048576});
  CHECK(whole.time == Duration::nanoseconds(83'970));
  CHECK(whole.in_place_time == Duration::nanoseconds(84'350));
  CHECK(whole.busbw_gbs == 18.73);
  const CollectiveLogRow out_of_place = row_of("1048576,83.97,12.49,18.73,,,", layout);
  CHECK_FALSE(out_of_place.in_place_time);
  const CollectiveLogRow in_place = row_of("1048576,,,,84.35,12.43,18.65", layout);
  CHECK(in_place.time == Duration::nanoseconds(84'350));
  CHECK_FALSE(in_place.busbw_gbs);
  const LogLayout other_order = layout_of(R"("size_bytes";"busbw_gbs";"host";"time_us")");
  CHECK(row_of(R"("64" ; 0.5;"a";12.5)", other_order).time == Duration::nanoseconds(12'500));
}

TEST_CASE("CSV rows that are cut or hold no time are refused") {
  const LogLayout layout = layout_of(csv_header);
  CHECK(why_not("1048576,83.97,12.49", layout) == "it has 3 fields, the header on line 7 names 7");
  CHECK(why_not("1048576,,,,,,", layout) == "it holds no time");
  CHECK(why_not(",83.97,12.49,18.73,84.35,12.43,18.65", layout) == "its column size holds \"\"");
  CHECK(why_not("1048576,83.97,12.49,18.73,84.,12.43,18.65", layout) ==
        "its column in-place time holds \"84.\"");
}

TEST_CASE("Decimal commas are recognised in tables and in CSV of either separator") {
  CHECK(has_decimal_comma("64 16 float sum -1 12,19 0,01 0,01 0", layout_of(today)));
  CHECK(has_decimal_comma("1,048,576 262,144 float sum -1 76.26 13.75 25.78 0", layout_of(today)));
  CHECK_FALSE(has_decimal_comma("64 16 float sum -1 12.19 0.01 0.01 0", layout_of(today)));
  CHECK(has_decimal_comma("64,12,19,0,01,0,01,12,15,0,01,0,01", layout_of(csv_header)));
  CHECK_FALSE(has_decimal_comma("64,12.19,0.01,0.01,12.15,0.01,0.01", layout_of(csv_header)));
  CHECK(has_decimal_comma("64;12,19;0,01", layout_of("size_bytes;time_us;busbw_gbs")));
  CHECK(looks_like_row("64,0 16,0 float sum -1 12,19", layout_without_header()));
}

}  // namespace lockstep::collective_log_row_test
