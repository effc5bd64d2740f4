// The parts that any device can run, run on a CPU with small cases: what does not fit together shows here.

#include "validate/harness/gpu_bench/kernel_parts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "tests/harness/device/device_numbers.h"
#include "tests/support/program.h"

namespace lockstep::harness::kernel_parts_test {

// Nothing holds a CPU back, and nothing needs to: a call has ended when it returns.
class CpuStage final : public Stage {
 public:
  Device& device() override { return *device_; }
  void hold(double /*seconds*/) override {}
  bool has_passed(Mark /*mark*/) override { return false; }
  std::optional<double> clock_mhz() override { return std::nullopt; }

 private:
  std::unique_ptr<Device> device_ = make_cpu_device();
};

class SmallBench {
 public:
  explicit SmallBench(const TableLayout& layout)
      : table_({.path = folder_.path() + "/table.csv", .layout = layout}) {}

  KernelBench bench() {
    return {.gpu = "some_gpu",
            .source = "test",
            .exact = stage_,
            .rounding = stage_,
            .arena = arena_,
            .table = table_,
            .time_is_up = [this] { return questions_++ >= most_cases; },
            .tell = [this](const std::string& line) { told.push_back(line); }};
  }
  const std::vector<Cells>& rows() const { return table_.rows(); }
  std::string file() const { return testing::text_of(folder_.path() + "/table.csv"); }
  Arena& arena() { return arena_; }
  Device& device() { return stage_.device(); }

  int most_cases = 1000;
  std::vector<std::string> told;

 private:
  testing::Folder folder_;
  CpuStage stage_;
  Arena arena_{stage_.device(), {.bytes = 8 << 20, .cache_bytes = 1 << 10}};
  MeasurementTable table_;
  int questions_ = 0;
};

std::string cell(const SmallBench& bench, std::size_t row, const TableLayout& layout,
                 const std::string& name) {
  const auto place = std::find(layout.columns.begin(), layout.columns.end(), name) - layout.columns.begin();
  return bench.rows().at(row).at(static_cast<std::size_t>(place));
}

GemmCase small_gemm(const std::string& layout) {
  return {.precision = "fp32", .batch = 2, .m = 3, .n = 5, .k = 4, .layout = layout, .direction = "fwd"};
}

// Element (row, column) of a factor [height, width] that is stored as it is, or the other way round.
double element(const Numbers& numbers, std::int64_t first, bool is_transposed, std::int64_t height,
               std::int64_t width, std::int64_t row, std::int64_t column) {
  const std::int64_t index = is_transposed ? column * height + row : row * width + column;
  return numbers[static_cast<std::size_t>(first + index)];
}

Numbers product(const GemmCase& gemm, const Numbers& a, const Numbers& b) {
  Numbers output;
  for (std::int64_t one = 0; one < gemm.batch; ++one)
    for (std::int64_t row = 0; row < gemm.m; ++row)
      for (std::int64_t column = 0; column < gemm.n; ++column) {
        double sum = 0;
        for (std::int64_t k = 0; k < gemm.k; ++k)
          sum += element(a, one * gemm.m * gemm.k, gemm.layout[0] == 'T', gemm.m, gemm.k, row, k) *
                 element(b, one * gemm.k * gemm.n, gemm.layout[1] == 'T', gemm.k, gemm.n, k, column);
        output.push_back(sum);
      }
  return output;
}

// As the device's own fallback computes it.
class ProductConvolver final : public Convolver {
 public:
  explicit ProductConvolver(Device& device) : device_(device) {}
  bool run(const ConvolutionCase& one, Tensor output, Tensor input, Tensor weight) override {
    if (is_broken)
      throw EnvironmentError("the GPU is gone");
    if (!has_algorithm)
      return false;
    if (one.pass == ConvolutionPass::forward)
      device_.convolution(one.shape, output, input, weight);
    else if (one.pass == ConvolutionPass::by_data)
      device_.convolution_input_gradient(one.shape, input, output, weight);
    else
      device_.convolution_weight_gradient(one.shape, weight, output, input, false);
    return true;
  }
  std::string algorithm(const ConvolutionCase& /*convolution*/) override { return "PRODUCTS"; }
  bool has_algorithm = true;
  bool is_broken = false;

 private:
  Device& device_;
};

ConvolutionCase small_convolution(ConvolutionPass pass) {
  return {
      .precision = "fp32",
      .shape = {.batch = 2, .height = 6, .width = 6, .inputs = 4, .outputs = 8, .kernel = 3, .padding = 1},
      .pass = pass};
}

TEST_CASE("a case's product is that of its layout, for each of a batch") {
  SmallBench small(gemm_layout());
  for (const std::string layout : {"NN", "NT", "TN"}) {
    const GemmCase gemm = small_gemm(layout);
    REQUIRE(small.arena().prepare(small.device(), operands_of(gemm), Type::fp32));
    const Matmul matmul = matmul_of(gemm, small.arena(), 1);
    const Numbers expected = product(gemm, numbers_of(small.device(), matmul.a.tensor),
                                     numbers_of(small.device(), matmul.b.tensor));
    small.device().matmul(matmul);
    const Numbers found = numbers_of(small.device(), matmul.output.tensor);
    CHECK(largest_difference(found, expected) <= tolerance(expected, Type::fp32, 4));
  }
}

TEST_CASE("products are timed in every precision and become rows") {
  SmallBench small(gemm_layout());
  std::vector<GemmCase> cases;
  for (const std::string precision : {"bf16", "fp16", "tf32", "fp32"}) {
    cases.push_back(small_gemm("NT"));
    cases.back().precision = precision;
  }
  const PartResult result = measure_gemms(small.bench(), cases);
  CHECK(result.measured == 4);
  CHECK(result.is_complete());
  REQUIRE(small.rows().size() == 4);
  CHECK(cell(small, 0, gemm_layout(), "gpu") == "some_gpu");
  CHECK(cell(small, 0, gemm_layout(), "layout") == "NT");
  CHECK(cell(small, 0, gemm_layout(), "cold") == "1");
  CHECK(cell(small, 2, gemm_layout(), "precision") == "tf32");
  CHECK(std::stod(cell(small, 0, gemm_layout(), "p10")) <= std::stod(cell(small, 0, gemm_layout(), "p90")));
}

TEST_CASE("when the time is up the rest is to go, and what was measured is not measured again") {
  SmallBench small(gemm_layout());
  const std::vector<GemmCase> cases = {small_gemm("NN"), small_gemm("NT"), small_gemm("TN")};
  small.most_cases = 2;
  const PartResult first = measure_gemms(small.bench(), cases);
  CHECK(first.measured == 2);
  CHECK_FALSE(first.is_complete());
  small.most_cases = 1000;
  const PartResult second = measure_gemms(small.bench(), cases);
  CHECK(second.measured == 3);
  CHECK(second.is_complete());
  CHECK(small.rows().size() == 3);
}

TEST_CASE("a case that does not fit the memory is left out and told by name") {
  SmallBench small(gemm_layout());
  GemmCase large = small_gemm("NN");
  large.m = 1 << 20;
  const PartResult result = measure_gemms(small.bench(), {large, small_gemm("NN")});
  CHECK(result.left_out == 1);
  CHECK(result.measured == 1);
  REQUIRE(small.told.size() == 1);
  CHECK(small.told[0] == "gemm fp32 2 1048576 5 4 NN fwd: left out, it does not fit the memory at hand");
}

TEST_CASE("convolutions are timed in all three passes, and name their algorithm") {
  SmallBench small(convolution_table_layout());
  ProductConvolver convolver(small.device());
  std::vector<ConvolutionCase> cases;
  for (const ConvolutionPass pass :
       {ConvolutionPass::forward, ConvolutionPass::by_data, ConvolutionPass::by_weight})
    cases.push_back(small_convolution(pass));
  CHECK(measure_convolutions(small.bench(), convolver, convolver, cases).measured == 3);
  CHECK(cell(small, 0, convolution_table_layout(), "algorithm") == "PRODUCTS");
  CHECK(cell(small, 1, convolution_table_layout(), "direction") == "bwd_data");
  CHECK(cell(small, 2, convolution_table_layout(), "pad_w") == "1");
}

TEST_CASE(
    "two cases that fail are left out; the third in a row is the end, and what there was is in the table") {
  SmallBench small(convolution_table_layout());
  ProductConvolver works(small.device());
  ProductConvolver fails(small.device());
  fails.is_broken = true;
  std::vector<ConvolutionCase> cases(3, small_convolution(ConvolutionPass::forward));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].precision = i < 2 ? "tf32" : "fp32";  // the first two go to the one that fails
    cases[i].shape.batch += static_cast<std::int64_t>(i);
  }
  const PartResult result = measure_convolutions(small.bench(), works, fails, cases);
  CHECK(result.left_out == 2);
  CHECK(result.measured == 1);
  cases.push_back(small_convolution(ConvolutionPass::by_data));
  std::rotate(cases.begin(), cases.end() - 1, cases.end());  // one that works, then three that do not
  cases[3].precision = "tf32";
  CHECK_THROWS_AS(measure_convolutions(small.bench(), works, fails, cases), EnvironmentError);
  CHECK(small.file().find(",bwd_data,PRODUCTS,") != std::string::npos);
}

TEST_CASE(
    "convolutions that a library has no algorithm for are left out, however many, and the rest is timed") {
  SmallBench small(convolution_table_layout());
  ProductConvolver works(small.device());
  ProductConvolver unable(small.device());
  unable.has_algorithm = false;
  std::vector<ConvolutionCase> cases(4, small_convolution(ConvolutionPass::forward));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].precision = i < 3 ? "tf32" : "fp32";  // the first three go to the one that has none
    cases[i].shape.batch += static_cast<std::int64_t>(i);
  }
  const PartResult result = measure_convolutions(small.bench(), works, unable, cases);
  CHECK(result.left_out == 3);
  CHECK(result.measured == 1);
}

TEST_CASE("attention is timed forward and backward") {
  SmallBench small(attention_layout());
  AttentionCase attention{
      .precision = "fp32", .batch = 2, .sequence = 8, .heads = 2, .head_width = 4, .is_backward = false};
  AttentionCase backward = attention;
  backward.is_backward = true;
  CHECK(measure_attentions(small.bench(), {attention, backward}).measured == 2);
  CHECK(cell(small, 0, attention_layout(), "kernel") == "unfused");
  CHECK(cell(small, 1, attention_layout(), "direction") == "bwd");
}

// 32 rows of 64 columns and one more each time, so that no two are alike; an embedding's table has 50,257 rows,
// which fit with a few columns alone.
TEST_CASE("every class of kernels that memory bounds runs in every precision, cold and from the cache") {
  SmallBench small(memory_layout());
  std::vector<MemoryCase> cases;
  for (const MemoryOp& op : memory_ops())
    for (const std::string precision : {"bf16", "fp16", "fp32"})
      for (const bool is_backward : {false, true})
        if ((precision == "fp32" || !op.is_fp32_only) && (op.has_backward || !is_backward))
          cases.push_back({.precision = precision,
                           .op = op.name,
                           .rows = 32,
                           .hidden = op.name == "embedding" ? 8 : 64 + std::ssize(cases),
                           .is_backward = is_backward,
                           .is_cold = cases.size() % 2 == 0});
  const PartResult result = measure_memory_bound(small.bench(), cases);
  CHECK(result.measured == std::ssize(cases));
  CHECK(cell(small, 0, memory_layout(), "kernel") == "lockstep");
  CHECK(cell(small, 1, memory_layout(), "cold") == "0");
}

}  // namespace lockstep::harness::kernel_parts_test
