// The reader of kernel tables: every kind, and each thing it refuses, with its place.

#include "sim/study/bench/kernel_table.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/error.h"
#include "tests/scenario/lab.h"

namespace lockstep::kernel_table_test {

using testing::Folder;

const std::string sample = std::string(LOCKSTEP_SOURCE_DIR) + "/tests/study/kernels/";

const std::string gemm_header = "gpu,precision,batch,m,n,k,layout,direction,time_us,source\n";

std::vector<KernelCase> read(const std::string& name, const std::string& text) {
  const Folder folder;
  return read_kernel_table(folder.write(name, text));
}

std::string problems_of(const std::string& name, const std::string& text) {
  try {
    read(name, text);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

void check_refused(const std::string& name, const std::string& text, const std::string& place_and_reason) {
  const std::string problem = problems_of(name, text);
  CAPTURE(problem);
  CHECK(problem.find(name + ":" + place_and_reason) != std::string::npos);
}

// Column by column "T" of m x k and "N" of k x n lie along k.
TEST_CASE("cuBLAS's letters say how operands lie, and nobody else's") {
  const auto operands = [](const std::string& letters, const std::string& source) {
    return read("gemm.csv", gemm_header + "v100,fp32,1,3,5,7," + letters + ",fwd,1.5," + source + "\n")
        .at(0)
        .operands;
  };
  const std::string bench = "baidu-research/DeepBench";
  CHECK(operands("TN", bench) == KernelDirection::forward);
  CHECK(operands("NN", bench) == KernelDirection::by_data);
  CHECK(operands("NT", bench) == KernelDirection::by_weights);
  CHECK(operands("", bench) == KernelDirection::forward);
  CHECK(operands("NT", "us") == KernelDirection::forward);
}

TEST_CASE("a matrix product is read with its shape, precision, direction, time and source") {
  const KernelCase kernel =
      read("gemm.csv", gemm_header + "l40s,fp16_pseudo,2,3,5,7,NT,bwd_data,1.5,us\n").at(0);
  const auto& shape = std::get<GemmShape>(kernel.shape);
  CHECK(shape.batch == 2);
  CHECK(shape.m == 3);
  CHECK(shape.n == 5);
  CHECK(shape.k == 7);
  CHECK(kernel.table == "gemm");
  CHECK(kernel.line == 2);
  CHECK(kernel.gpu == "l40s");
  CHECK(kernel.precision == "fp16_pseudo");
  CHECK(kernel.multiplied == Precision::fp32);  // half in memory only
  CHECK(kernel.element_bytes == 2);
  CHECK(kernel.direction == KernelDirection::by_data);
  CHECK(kernel.time == Duration::nanoseconds(1'500));
  CHECK(kernel.source == "us");
}

TEST_CASE("every row of the published samples is read, of all six kinds") {
  CHECK(read_kernel_table(sample + "gemm.csv").size() == 12);
  CHECK(read_kernel_table(sample + "attention.csv").size() == 7);
  CHECK(read_kernel_table(sample + "conv2d.csv").size() == 10);
  CHECK(read_kernel_table(sample + "memory_bound.csv").size() == 10);
  CHECK(read_kernel_table(sample + "step_against_batch.csv").size() == 8);
  // Of 16 operators two work on single numbers; eleven are timed forward and backward, three forward alone.
  const std::vector<KernelCase> operators = read_kernel_table(sample + "operators_in_a_step.csv");
  const auto is_back = [](const KernelCase& kernel) { return kernel.direction == KernelDirection::backward; };
  CHECK(operators.size() == 11 * 2 + 3);
  CHECK(std::count_if(operators.begin(), operators.end(), is_back) == 11);
}

TEST_CASE("heads may be wider in queries than in values") {
  const auto cases = read_kernel_table(sample + "attention.csv");
  const auto& shape = std::get<AttentionShape>(cases.at(2).shape);
  CHECK(shape.query_width == 192);
  CHECK(shape.value_width == 128);
  CHECK(shape.is_causal);
  CHECK_FALSE(std::get<AttentionShape>(cases.back().shape).is_causal);
}

TEST_CASE("an operator's shapes tell what it multiplies or how much it reads") {
  const auto cases = read_kernel_table(sample + "operators_in_a_step.csv");
  const auto& added = std::get<MemoryBoundShape>(cases.at(0).shape);
  CHECK(added.op == "add");
  CHECK(added.elements == 2 * 512 * 1024);
  const auto& linear = std::get<GemmShape>(cases.at(2).shape);  // [3840], [1024, 1280], [1280, 3840]
  CHECK(linear.m == 1024);
  CHECK(linear.n == 3840);
  CHECK(linear.k == 1280);
  const auto batched = std::find_if(cases.begin(), cases.end(), [](const KernelCase& kernel) {
    const auto* shape = std::get_if<GemmShape>(&kernel.shape);
    return shape != nullptr && shape->batch > 1;
  });
  REQUIRE(batched != cases.end());
  CHECK(std::get<GemmShape>(batched->shape).batch == 32);
  const bool has_softmax = std::any_of(cases.begin(), cases.end(), [](const KernelCase& kernel) {
    const auto* shape = std::get_if<MemoryBoundShape>(&kernel.shape);
    return shape != nullptr && shape->op == "softmax" && shape->width == 512;
  });
  CHECK(has_softmax);
}

TEST_CASE("a step's memory format follows its precision, versions are a remark, and both may be unsaid") {
  const auto cases = read_kernel_table(sample + "step_against_batch.csv");
  CHECK(cases.at(0).precision == "fp32");
  CHECK(cases.at(3).multiplied == Precision::fp16);
  CHECK(cases.at(4).precision == "amp_fp16");
  CHECK(std::get<StepShape>(cases.at(4).shape).batch == 512);
  CHECK(std::get<StepShape>(cases.at(4).shape).is_channels_last);
  CHECK_FALSE(std::get<StepShape>(cases.at(5).shape).is_channels_last);
}

TEST_CASE("a table is known by its name, else by its columns") {
  const Folder folder;
  CHECK(kernel_table_kind(folder.write("gemm.csv", "wrong\n")) == "gemm");
  CHECK(kernel_table_kind(folder.write("mine.csv", gemm_header)) == "gemm");
  CHECK(kernel_table_kind(sample + "conv2d.csv") == "conv2d");
  CHECK(kernel_table_kind(folder.write("other.csv", "size_bytes,time_us\n")).empty());
  CHECK(kernel_table_kind(folder.write("gemm.json", gemm_header)).empty());
  CHECK(kernel_table_kind(folder.path()).empty());
}

TEST_CASE("what a benchmark adds to a table is accepted, and what nobody knows is not") {
  const std::string row = "l40s,bf16,1,64,64,64,NN,fwd,5,us";
  const std::string header = gemm_header.substr(0, gemm_header.size() - 1);
  CHECK(read("gemm.csv", header + ",p10,p90,clock_mhz,cold\n" + row + ",4.9,5.1,1980,1\n").size() == 1);
  check_refused("gemm.csv", header + ",humidity\n" + row + ",3\n",
                "1:59: found an unknown column \"humidity\"");
  check_refused("gemm.csv", "gpu,precision,batch,m,n,direction,time_us\nl40s,bf16,1,64,64,fwd,5\n",
                "1:1: found no column \"k\"");
}

TEST_CASE("each mistake in a row is told with its line and column") {
  const auto row = [](const std::string& values) {
    return gemm_header + "l40s,bf16,1,8,8,8,NN,fwd,5,us\n" + values;
  };
  check_refused("gemm.csv", row("l40s,bf16,1,8,8,8,NN,fwd,-5,us\n"),
                "3:26: time_us: found \"-5\", expected a time in microseconds, above 0");
  check_refused("gemm.csv", row("l40s,bf16,1,8,8,8,NN,fwd,0,us\n"), "3:26: time_us: found \"0\"");
  check_refused("gemm.csv", row("l40s,bf16,1,8,8,8,NN,fwd,fast,us\n"), "3:26: time_us: found \"fast\"");
  check_refused("gemm.csv", row("l40s,bf61,1,8,8,8,NN,fwd,5,us\n"),
                "3:6: precision: found \"bf61\", expected one of its names; did you mean \"bf16\"?");
  check_refused("gemm.csv", row("l40s,,1,8,8,8,NN,fwd,5,us\n"), "3:6: precision: found \"\"");
  check_refused("gemm.csv", row("l40s,bf16,1,0,8,8,NN,fwd,5,us\n"), "3:13: m: found \"0\"");
  check_refused("gemm.csv", row("l40s,bf16,1,8.5,8,8,NN,fwd,5,us\n"), "3:13: m: found \"8.5\"");
  check_refused("gemm.csv", row("l40s,bf16,1,8,8,8,NN,up,5,us\n"), "3:22: direction: found \"up\"");
  check_refused("gemm.csv", row(",bf16,1,8,8,8,NN,fwd,5,us\n"), "3:1: gpu: found \"\"");
  check_refused("gemm.csv", row("l40s,bf16,1,8,8,8,NN,fwd,5\n"), "3:1: found 9 fields, expected 10");
}

TEST_CASE("shapes beyond any GPU are refused before they overflow") {
  check_refused("gemm.csv", gemm_header + "l40s,bf16,1000000000,1000000000,1000000000,1000000000,,fwd,5,us\n",
                "2:22: m: found \"1000000000\"");
  check_refused("memory_bound.csv",
                "gpu,precision,op,rows,hidden,direction,time_us\nl40s,bf16,add,1000000000,1000000000,fwd,5\n",
                "2:15: rows: found");
  const std::string header = "device,op,input_shapes,count,fwd_us,bwd_us\n";
  check_refused("operators_in_a_step.csv", header + "l40s,add,\"[[1000000000, 1000000000]]\",1,5,5\n",
                "2:10: input_shapes");
  check_refused("operators_in_a_step.csv", header + "l40s,add,[[2,1,5,5\n",
                "2:10: input_shapes: found \"[[2\"");
  check_refused("operators_in_a_step.csv", header + "l40s,add,[[]],1,5,5\n",
                "2:10: input_shapes: found \"[[]]\"");
  check_refused("operators_in_a_step.csv", header + "l40s,add,[[2]],1,-5,5\n", "2:18: fwd_us: found \"-5\"");
}

TEST_CASE("a filter that is larger than its image and a head that is no width are refused") {
  check_refused(
      "conv2d.csv",
      "gpu,precision,batch,in_channels,height,width,out_channels,filter_h,filter_w,stride_h,stride_w,"
      "pad_h,pad_w,direction,time_us\nl40s,fp32,1,3,4,9,8,7,7,1,1,1,1,fwd,5\n",
      "2:21: filter_h: found \"7\"");
  for (const std::string head : {"64/", "a", "-64", "0", "64/32/16"})
    check_refused(
        "attention.csv",
        "gpu,precision,batch,seq,heads,kv_heads,head_dim,causal,direction,time_us\nl40s,bf16,1,64,2,2," +
            head + ",1,fwd,5\n",
        "2:20: head_dim: found \"" + head + "\"");
}

}  // namespace lockstep::kernel_table_test
