#include "validate/harness/gpu_bench/measurement_table.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tests/support/program.h"
#include "validate/harness/gpu_bench/attention_cases.h"
#include "validate/harness/gpu_bench/convolution_cases.h"
#include "validate/harness/gpu_bench/gemm_cases.h"
#include "validate/harness/gpu_bench/memory_cases.h"

namespace lockstep::harness::measurement_table_test {

const TableLayout small_layout = {.columns = {"gpu", "size", "time_us"}, .key = {"size"}};

class TableFile {
 public:
  std::string path() const { return folder_.path() + "/table.csv"; }
  MeasurementTable open(bool resumes) const {
    return MeasurementTable({.path = path(), .layout = small_layout, .resumes = resumes});
  }
  std::string text() const { return testing::text_of(path()); }
  void write(const std::string& text) const { std::ofstream(path()) << text; }

 private:
  testing::Folder folder_;
};

std::string problem_of(const TableFile& file) {
  try {
    file.open(true);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string joined(const Cells& cells) {
  std::string text;
  for (const std::string& cell : cells) text += (text.empty() ? "" : ",") + cell;
  return text;
}

TEST_CASE("a table that is opened leaves no file until it is saved") {
  const TableFile file;
  MeasurementTable table = file.open(false);
  CHECK(file.text().empty());
  table.save();
  CHECK(file.text() == "gpu,size,time_us\n");
}

TEST_CASE("rows reach the disk while measuring goes on: sixteen at a time") {
  const TableFile file;
  MeasurementTable table = file.open(false);
  for (int size = 0; size < 15; ++size) table.add({"h100", std::to_string(size), "1.5"});
  CHECK(file.text().empty());
  table.add({"h100", "15", "1.5"});
  CHECK(file.text().ends_with("h100,14,1.5\nh100,15,1.5\n"));
}

TEST_CASE("a table that goes on keeps its rows and knows what was measured") {
  const TableFile file;
  {
    MeasurementTable table = file.open(false);
    table.add({"h100", "8", "1.5"});
    table.save();
  }
  MeasurementTable table = file.open(true);
  CHECK(table.has({"8"}));
  CHECK_FALSE(table.has({"16"}));
  table.add({"h100", "16", "2.5"});
  table.save();
  CHECK(file.text() == "gpu,size,time_us\nh100,8,1.5\nh100,16,2.5\n");
}

TEST_CASE("a table that begins anew forgets what was there") {
  const TableFile file;
  file.write("gpu,size,time_us\nh100,8,1.5\n");
  MeasurementTable table = file.open(false);
  CHECK_FALSE(table.has({"8"}));
  table.save();
  CHECK(file.text() == "gpu,size,time_us\n");
}

TEST_CASE("another table, half a row or a row that stands twice is refused with its line") {
  const TableFile file;
  file.write("gpu,bytes,time_us\n");
  CHECK(problem_of(file).find("table.csv:1: found the columns \"gpu,bytes,time_us\"") != std::string::npos);
  file.write("gpu,size,time_us\nh100,8,1.5\nh100,16\n");
  CHECK(problem_of(file).find("table.csv:3: found 2 cells; a row has 3") != std::string::npos);
  file.write("gpu,size,time_us\nh100,8,1.5\nh100,8,1.6\n");
  CHECK(problem_of(file).find("table.csv:3: this was measured further up") != std::string::npos);
}

TEST_CASE("a table in a folder that is not there is refused before anything is measured") {
  CHECK_THROWS_AS(MeasurementTable({.path = "/nowhere/at/all.csv", .layout = small_layout}), ConfigError);
}

// What published tables of kernels have; four more columns say how far to trust a row.
TEST_CASE("tables of kernels have the columns of published ones, and how a time came about") {
  const std::string more = ",p10,p90,clock_mhz,cold";
  CHECK(joined(gemm_layout().columns) == "gpu,precision,batch,m,n,k,layout,direction,time_us,source" + more);
  CHECK(joined(attention_layout().columns) ==
        "gpu,precision,batch,seq,heads,kv_heads,head_dim,causal,direction,kernel,time_us,source" + more);
  CHECK(joined(convolution_table_layout().columns) ==
        "gpu,precision,batch,in_channels,height,width,out_channels,filter_h,filter_w,stride_h,stride_w,pad_h,"
        "pad_w,direction,algorithm,time_us,source" +
            more);
  CHECK(joined(memory_layout().columns) ==
        "gpu,precision,op,rows,hidden,direction,kernel,time_us,source" + more);
}

}  // namespace lockstep::harness::measurement_table_test
