#include "sim/study/bench/kernel_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/nearest_name.h"
#include "sim/study/bench/server_sweeps.h"
#include "sim/study/logs/csv_document.h"

namespace lockstep {
namespace {

using Cases = std::vector<KernelCase>;
using Names = std::vector<std::string>;

// Beyond these nothing fits a GPU, and products of them still fit 64 bits.
constexpr std::int64_t longest_side = 1'000'000'000;
constexpr double most_work = 1e17;      // FLOPs of a kernel
constexpr double most_elements = 1e13;  // of a tensor
constexpr double longest_us = 1e12;

struct TablePrecision {
  const char* name;
  Precision multiplied;
  std::int64_t element_bytes;
};

// "fp16_pseudo": DeepBench's name for fp16 in memory and fp32 in registers; "float" and "half": PyTorch's.
constexpr std::array precisions{
    TablePrecision{"fp32", Precision::fp32, 4},         TablePrecision{"tf32", Precision::tf32, 4},
    TablePrecision{"fp16", Precision::fp16, 2},         TablePrecision{"bf16", Precision::bf16, 2},
    TablePrecision{"fp8", Precision::fp8, 1},           TablePrecision{"amp_fp16", Precision::amp_fp16, 2},
    TablePrecision{"amp_bf16", Precision::amp_bf16, 2}, TablePrecision{"fp16_pseudo", Precision::fp32, 2},
    TablePrecision{"float", Precision::fp32, 4},        TablePrecision{"half", Precision::fp16, 2}};

struct TableDirection {
  const char* name;
  KernelDirection direction;
};

constexpr std::array directions{TableDirection{"fwd", KernelDirection::forward},
                                TableDirection{"bwd", KernelDirection::backward},
                                TableDirection{"bwd_data", KernelDirection::by_data},
                                TableDirection{"bwd_weight", KernelDirection::by_weights},
                                TableDirection{"dgrad", KernelDirection::by_data},
                                TableDirection{"wgrad", KernelDirection::by_weights}};

template <class Entry, std::size_t size>
const Entry& find_or_expect(const std::array<Entry, size>& entries, const CsvRow& row,
                            const std::string& column, std::string_view word) {
  Names valid;
  for (const Entry& entry : entries) {
    if (word == entry.name)
      return entry;
    valid.emplace_back(entry.name);
  }
  row.expected(column, "one of its names; " + describe_choices(word, valid));
  return entries.front();
}

// What follows a blank tells of memory's format and of versions: "amp_fp16 nhwc pt1.12".
void read_precision(const CsvRow& row, KernelCase& kernel) {
  const std::string& text = row.text("precision");
  const std::string word = text.substr(0, text.find(' '));
  const TablePrecision& found = find_or_expect(precisions, row, "precision", word);
  kernel.precision = word;
  kernel.multiplied = found.multiplied;
  kernel.element_bytes = found.element_bytes;
}

std::int64_t side(const CsvRow& row, const char* column, std::int64_t least = 1) {
  return row.integer(column, least, longest_side);
}

Duration read_time(const CsvRow& row, const char* column) {
  const double time_us = row.number(column, 1e-6, longest_us, "a time in microseconds, above 0");
  return Duration::picoseconds(std::llround(time_us * 1e6));
}

template <class... Sides>
double product(Sides... sides) {
  return (static_cast<double>(sides) * ... * 1.0);
}

void check_size(const CsvRow& row, const char* column, double value, double most) {
  if (!(value <= most))
    row.expected(column, fmt::format("a shape of at most {:g} in all", most));
}

KernelCase read_common(const CsvRow& row) {
  KernelCase kernel{.line = row.line(), .gpu = row.text("gpu"), .source = row.text("source")};
  read_precision(row, kernel);
  kernel.time = read_time(row, "time_us");
  kernel.is_cold = row.text("cold") == "1";
  if (kernel.gpu.empty())
    row.expected("gpu", "the name of a GPU");
  return kernel;
}

KernelCase read_directed(const CsvRow& row) {
  KernelCase kernel = read_common(row);
  kernel.direction = find_or_expect(directions, row, "direction", row.text("direction")).direction;
  return kernel;
}

// By cuBLAS's letters, whose matrices lie column by column: "T" of the first and "N" of the second lie along
// the depth. Others' letters are of rows, and their directions say as much.
constexpr std::string_view column_by_column = "baidu-research/DeepBench";
constexpr std::array layouts{
    TableDirection{"TN", KernelDirection::forward}, TableDirection{"NN", KernelDirection::by_data},
    TableDirection{"TT", KernelDirection::by_data}, TableDirection{"NT", KernelDirection::by_weights}};

KernelDirection operands_of(const CsvRow& row) {
  const std::string& letters = row.text("layout");
  if (letters.empty() || row.text("source") != column_by_column)
    return KernelDirection::forward;
  return find_or_expect(layouts, row, "layout", letters).direction;
}

void read_gemm(const CsvRow& row, Cases& cases) {
  const GemmShape shape{
      .batch = side(row, "batch"), .m = side(row, "m"), .n = side(row, "n"), .k = side(row, "k")};
  check_size(row, "m", 4 * product(shape.batch, shape.m, shape.n, shape.k), most_work);
  cases.push_back(read_directed(row));
  cases.back().shape = shape;
  cases.back().operands = operands_of(row);
}

// "128", or "192/128" where queries and keys are wider than values.
void read_head(const CsvRow& row, AttentionShape& shape) {
  const std::string& text = row.text("head_dim");
  const std::size_t slash = text.find('/');
  const auto width = [&](const std::string& part) {
    const bool is_number = !part.empty() && part.size() <= 6 &&
                           part.find_first_not_of("0123456789") == std::string::npos && part[0] != '0';
    if (!is_number)
      row.expected("head_dim", "a width such as 128, or 192/128 of keys and of values");
    return is_number ? std::stoll(part) : 1;
  };
  shape.query_width = width(text.substr(0, slash));
  shape.value_width = slash == std::string::npos ? shape.query_width : width(text.substr(slash + 1));
}

// FlashAttention's package, and AOTriton, which is what it is to PyTorch on AMD's GPUs; all others are a maker's own.
bool is_what_frameworks_take_first(std::string_view kernel) {
  return kernel == "flash_attention_2" || kernel == "aotriton";
}

void read_attention(const CsvRow& row, Cases& cases) {
  AttentionShape shape{.batch = side(row, "batch"),
                       .sequence = side(row, "seq"),
                       .heads = side(row, "heads"),
                       .kv_heads = side(row, "kv_heads"),
                       .is_causal = row.integer("causal", 0, 1) == 1};
  read_head(row, shape);
  check_size(row, "seq",
             10 * product(shape.batch, shape.sequence, shape.sequence, shape.heads,
                          shape.query_width + shape.value_width),
             most_work);
  check_size(row, "kv_heads", product(shape.batch, shape.sequence, shape.kv_heads, shape.query_width),
             most_elements);
  // Rows that name no kernel are a server's, whose prefill fills its cache.
  const bool is_of_server = row.text("kernel").empty();
  if (is_what_frameworks_take_first(row.text("kernel")))
    shape.library = AttentionLibrary::flash_attention_2;
  shape.fills_cache = shape.is_causal && is_of_server;
  cases.push_back(read_directed(row));
  cases.back().shape = shape;
  cases.back().is_of_server = is_of_server;
}

void read_convolution(const CsvRow& row, Cases& cases) {
  const ConvolutionShape shape{.batch = side(row, "batch"),
                               .in_channels = side(row, "in_channels"),
                               .height = side(row, "height"),
                               .width = side(row, "width"),
                               .out_channels = side(row, "out_channels"),
                               .filter_height = side(row, "filter_h"),
                               .filter_width = side(row, "filter_w"),
                               .stride_height = side(row, "stride_h"),
                               .stride_width = side(row, "stride_w"),
                               .pad_height = side(row, "pad_h", 0),
                               .pad_width = side(row, "pad_w", 0)};
  if (shape.filter_height > shape.height + 2 * shape.pad_height)
    row.expected("filter_h", "a filter within the padded image");
  if (shape.filter_width > shape.width + 2 * shape.pad_width)
    row.expected("filter_w", "a filter within the padded image");
  const double filters =
      product(shape.out_channels, shape.in_channels, shape.filter_height, shape.filter_width);
  check_size(row, "height", product(shape.batch, shape.in_channels, shape.height, shape.width),
             most_elements);
  check_size(row, "out_channels", filters, most_elements);
  check_size(row, "out_channels", 4 * filters * product(shape.batch, shape.out_height(), shape.out_width()),
             most_work);
  cases.push_back(read_directed(row));
  cases.back().shape = shape;
}

void read_memory_bound(const CsvRow& row, Cases& cases) {
  const std::int64_t rows = side(row, "rows");
  const std::int64_t width = side(row, "hidden");
  const double elements = product(rows, width);
  check_size(row, "rows", elements, most_elements);
  cases.push_back(read_directed(row));
  cases.back().shape =
      MemoryBoundShape{.op = row.text("op"),
                       .elements = elements <= most_elements ? rows * width : 1,
                       .width = width,
                       .is_fused = row.text("kernel") == "cudnn" || row.text("kernel") == "torch_compile"};
}

using Sizes = std::vector<std::int64_t>;

bool is_shape(const nlohmann::json& json) {
  return json.is_array() && !json.empty() && std::all_of(json.begin(), json.end(), [](const auto& side) {
           return side.is_number_integer() && side >= 1 && side <= longest_side;
         });
}

// "[[2, 512, 1024], [1]]".
std::vector<Sizes> read_shapes(const CsvRow& row) {
  const nlohmann::json json = nlohmann::json::parse(row.text("input_shapes"), nullptr, false);
  if (!json.is_array() || json.empty() || !std::all_of(json.begin(), json.end(), is_shape)) {
    row.expected("input_shapes", "shapes of the inputs such as [[2, 512, 1024], [1]]");
    return {Sizes{1}};
  }
  auto shapes = json.get<std::vector<Sizes>>();
  for (const Sizes& sizes : shapes) {
    double elements = 1;
    for (const std::int64_t size : sizes) elements *= static_cast<double>(size);
    check_size(row, "input_shapes", elements, most_elements);
    if (elements > most_elements)
      return {Sizes{1}};
  }
  return shapes;
}

std::int64_t elements_of(const Sizes& sizes) {
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) elements *= size;
  return elements;
}

// "transformer.L.ln_1" is a ln_1, "addmm of type object at 0x1" an addmm, "<function softmax at 0x2" a softmax.
std::string bare_operator(std::string name) {
  constexpr std::string_view function = "<function ";
  if (name.starts_with(function))
    name.erase(0, function.size());
  name = name.substr(0, name.find(' '));
  name = name.substr(name.rfind('.') + 1);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return name;
}

// The last two inputs multiply: (batch...) x m x k by (batch...) x k x n.
std::optional<GemmShape> product_of(const std::string& op, const std::vector<Sizes>& shapes) {
  const bool is_product = op == "matmul" || op == "bmm" || op == "addmm" || op == "mm";
  if (!is_product || shapes.size() < 2)
    return std::nullopt;
  const Sizes& left = shapes[shapes.size() - 2];
  const Sizes& right = shapes.back();
  if (left.size() < 2 || right.size() < 2 || left.back() != right[right.size() - 2])
    return std::nullopt;
  const std::int64_t m = left[left.size() - 2];
  return GemmShape{.batch = elements_of(left) / m / left.back(), .m = m, .n = right.back(), .k = left.back()};
}

KernelShape shape_of_operator(const CsvRow& row) {
  const std::string op = bare_operator(row.text("op"));
  const std::vector<Sizes> shapes = read_shapes(row);
  if (const auto multiplied = product_of(op, shapes)) {
    check_size(row, "input_shapes",
               4 * product(multiplied->batch, multiplied->m, multiplied->n, multiplied->k), most_work);
    return *multiplied;
  }
  const auto largest = std::max_element(shapes.begin(), shapes.end(), [](const Sizes& a, const Sizes& b) {
    return elements_of(a) < elements_of(b);
  });
  return MemoryBoundShape{.op = op, .elements = elements_of(*largest), .width = largest->back()};
}

// A time of nothing: no gradient flows back through this operator.
std::optional<Duration> read_operator_time(const CsvRow& row, const char* column) {
  const double time_us = row.number(column, 0, longest_us, "a time in microseconds, not below 0");
  return time_us > 0 ? std::optional(Duration::picoseconds(std::llround(time_us * 1e6))) : std::nullopt;
}

// Operators on single numbers stay on the host.
void read_operator(const CsvRow& row, Cases& cases) {
  row.integer("count", 1, longest_side);
  KernelCase kernel{.line = row.line(), .gpu = row.text("device"), .source = row.text("source")};
  if (row.text("precision").empty())
    kernel.precision = "fp32";
  else
    read_precision(row, kernel);
  kernel.shape = shape_of_operator(row);
  const auto* bound = std::get_if<MemoryBoundShape>(&kernel.shape);
  const bool is_number = bound != nullptr && bound->elements == 1;
  for (const auto& [column, direction] :
       {std::pair{"fwd_us", KernelDirection::forward}, std::pair{"bwd_us", KernelDirection::backward}}) {
    const auto time = read_operator_time(row, column);
    if (!time || is_number)
      continue;
    cases.push_back(kernel);
    cases.back().direction = direction;
    cases.back().time = *time;
  }
}

// A step's precision may be unsaid: frameworks then compute in fp32.
void read_step(const CsvRow& row, Cases& cases) {
  KernelCase kernel{
      .line = row.line(),
      .gpu = row.text("gpu"),
      .precision = "fp32",
      .direction = KernelDirection::step,
      .shape = StepShape{.model = row.text("model"),
                         .batch = row.integer("batch", 1, 1'000'000),
                         .is_channels_last = row.text("precision").find(" nhwc") != std::string::npos,
                         .is_of_pytorch_1 = row.text("precision").find(" pt1.") != std::string::npos},
      .time = read_time(row, "time_us"),
      .source = row.text("source")};
  if (!row.text("precision").empty())
    read_precision(row, kernel);
  cases.push_back(std::move(kernel));
}

struct TableKind {
  std::string name;
  Names required;
  Names known;
  void (*read)(const CsvRow& row, Cases& cases);
};

// What a benchmark may add to any table: the spread of its repeats, the clock, and whether caches were cold.
const Names additions{"source", "p10", "p90", "clock_mhz", "cold"};

Names with_additions(Names names) {
  names.insert(names.end(), additions.begin(), additions.end());
  return names;
}

const std::vector<TableKind>& kinds() {
  static const std::vector<TableKind> all{
      {"gemm",
       {"gpu", "precision", "batch", "m", "n", "k", "direction", "time_us"},
       with_additions({"layout", "kernel"}),
       read_gemm},
      {"attention",
       {"gpu", "precision", "batch", "seq", "heads", "kv_heads", "head_dim", "causal", "direction",
        "time_us"},
       with_additions({"kernel"}),
       read_attention},
      {"conv2d",
       {"gpu", "precision", "batch", "in_channels", "height", "width", "out_channels", "filter_h", "filter_w",
        "stride_h", "stride_w", "pad_h", "pad_w", "direction", "time_us"},
       with_additions({"algorithm"}),
       read_convolution},
      {"memory_bound",
       {"gpu", "precision", "op", "rows", "hidden", "direction", "time_us"},
       with_additions({"kernel"}),
       read_memory_bound},
      {"operators_in_a_step",
       {"device", "op", "input_shapes", "count", "fwd_us", "bwd_us"},
       with_additions({"precision", "model", "batch", "seq"}),
       read_operator},
      {"step_against_batch",
       {"gpu", "model", "precision", "batch", "time_us"},
       with_additions({}),
       read_step}};
  return all;
}

const TableKind* find_kind(const std::string& name) {
  const auto found =
      std::find_if(kinds().begin(), kinds().end(), [&](const TableKind& kind) { return kind.name == name; });
  return found == kinds().end() ? nullptr : &*found;
}

Names words_of(const std::string& line) {
  Names words;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

bool holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// All columns that the kind needs and none that it does not know: a trace of a product under load has those of
// a product and more, and is no such table.
bool has_columns_of(const TableKind& kind, const Names& columns) {
  return std::all_of(kind.required.begin(), kind.required.end(),
                     [&](const std::string& column) { return holds(columns, column); }) &&
         std::all_of(columns.begin(), columns.end(), [&](const std::string& column) {
           return holds(kind.required, column) || holds(kind.known, column);
         });
}

const TableKind* kind_by_columns(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  line.erase(std::find(line.begin(), line.end(), '\r'), line.end());
  const Names columns = words_of(line);
  const auto found = std::find_if(kinds().begin(), kinds().end(),
                                  [&](const TableKind& kind) { return has_columns_of(kind, columns); });
  return found == kinds().end() ? nullptr : &*found;
}

const TableKind* kind_of(const std::string& file) {
  const std::filesystem::path path(file);
  if (path.extension() != ".csv")
    return nullptr;
  const TableKind* named = find_kind(path.stem().string());
  return named != nullptr ? named : kind_by_columns(file);
}

}  // namespace

std::string kernel_table_kind(const std::string& file) {
  const TableKind* kind = kind_of(file);
  return kind == nullptr ? "" : kind->name;
}

std::vector<KernelCase> read_kernel_table(const std::string& file) {
  CsvDocument document = CsvDocument::from_file(file);
  const TableKind* kind = kind_of(file);
  LOCKSTEP_CHECK(kind != nullptr, "only tables of kernels are read as such");
  document.expect_columns(kind->required, kind->known);
  Cases cases;
  for (std::size_t index = 0; index < document.rows(); ++index) kind->read(document.row(index), cases);
  document.throw_if_problems();
  const std::string table = std::filesystem::path(file).stem().string();
  for (KernelCase& kernel : cases) kernel.table = table;
  tell_servers_apart(cases);
  return cases;
}

}  // namespace lockstep
