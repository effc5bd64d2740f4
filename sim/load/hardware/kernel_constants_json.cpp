#include "sim/load/hardware/kernel_constants_json.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sim/load/reading/exact_text.h"
#include "sim/load/reading/fields.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr RatioRange any_ratio{0, 1000};
// Rates are divided by: none may vanish.
constexpr RatioRange rate_ratio{0.001, 100};
constexpr Bandwidth slowest{1'000'000};
constexpr Bandwidth fastest{1'000'000'000'000'000};
constexpr Duration longest = Duration::seconds(1);
constexpr std::int64_t most_draw = million;  // milliwatts

std::int64_t count_of(Ratio value) {
  return value.parts_per_million();
}
std::int64_t count_of(Duration value) {
  return value.picoseconds();
}
std::int64_t count_of(Bandwidth value) {
  return value.count();
}
std::int64_t count_of(Milliwatts value) {
  return value.count;
}

void assign(Ratio& place, std::int64_t count) {
  place = Ratio::parts_per_million(count);
}
void assign(Duration& place, std::int64_t count) {
  place = Duration::picoseconds(count);
}
void assign(Bandwidth& place, std::int64_t count) {
  place = Bandwidth{count};
}
void assign(Milliwatts& place, std::int64_t count) {
  place = Milliwatts{count};
}

constexpr ConstantUnit unit_of(const Ratio*) {
  return ConstantUnit::ratio;
}
constexpr ConstantUnit unit_of(const Duration*) {
  return ConstantUnit::time;
}
constexpr ConstantUnit unit_of(const Bandwidth*) {
  return ConstantUnit::bandwidth;
}
constexpr ConstantUnit unit_of(const Milliwatts*) {
  return ConstantUnit::power;
}

template <auto part, auto member>
constexpr KernelConstantField field(std::string_view section, std::string_view key) {
  using Value = std::remove_reference_t<decltype(std::declval<KernelConstants>().*part.*member)>;
  return {section, key, unit_of(static_cast<const Value*>(nullptr)),
          [](const KernelConstants& constants) { return count_of(constants.*part.*member); },
          [](KernelConstants& constants, std::int64_t count) { assign(constants.*part.*member, count); }};
}

template <auto part>
constexpr auto product_fields(std::string_view section) {
  using P = ProductConstants;
  return std::array{field<part, &P::efficiency>(section, "efficiency"),
                    field<part, &P::operands>(section, "operands"),
                    field<part, &P::operand_loss>(section, "operand_loss"),
                    field<part, &P::tile>(section, "tile"),
                    field<part, &P::whole_waves>(section, "whole_waves"),
                    field<part, &P::memory_efficiency>(section, "memory_efficiency"),
                    field<part, &P::memory_of_sm>(section, "memory_of_sm"),
                    field<part, &P::overlap_loss>(section, "overlap_loss"),
                    field<part, &P::split_traffic>(section, "split_traffic"),
                    field<part, &P::split>(section, "split"),
                    field<part, &P::start>(section, "start"),
                    field<part, &P::across>(section, "across"),
                    field<part, &P::across_wide>(section, "across_wide"),
                    field<part, &P::draw>(section, "draw")};
}

constexpr auto alignment_fields(std::string_view section) {
  constexpr auto part = &KernelConstants::alignment;
  using A = AlignmentConstants;
  return std::array{field<part, &A::depth_by_2>(section, "depth_by_2_bytes"),
                    field<part, &A::depth_by_4>(section, "depth_by_4_bytes"),
                    field<part, &A::depth_by_16>(section, "depth_by_16_bytes"),
                    field<part, &A::width_by_2>(section, "width_by_2_bytes"),
                    field<part, &A::width_by_4>(section, "width_by_4_bytes")};
}

template <auto part>
constexpr auto convolution_fields(std::string_view section) {
  using C = ConvolutionConstants;
  return std::array{field<part, &C::forward>(section, "forward"),
                    field<part, &C::by_data>(section, "by_data"),
                    field<part, &C::by_weights>(section, "by_weights"),
                    field<part, &C::winograd>(section, "winograd"),
                    field<part, &C::large_winograd>(section, "large_winograd"),
                    field<part, &C::transform>(section, "transform")};
}

template <auto part>
constexpr auto attention_fields(std::string_view section) {
  using A = AttentionConstants;
  return std::array{field<part, &A::efficiency>(section, "efficiency"),
                    field<part, &A::backward_efficiency>(section, "backward_efficiency"),
                    field<part, &A::softmax>(section, "softmax"),
                    field<part, &A::block>(section, "block"),
                    field<part, &A::backward_block>(section, "backward_block"),
                    field<part, &A::whole_waves>(section, "whole_waves"),
                    field<part, &A::alone>(section, "alone"),
                    field<part, &A::wide>(section, "wide"),
                    field<part, &A::last>(section, "last"),
                    field<part, &A::memory_efficiency>(section, "memory_efficiency"),
                    field<part, &A::cached>(section, "cached"),
                    field<part, &A::rotation>(section, "rotation"),
                    field<part, &A::fill>(section, "fill"),
                    field<part, &A::start>(section, "start"),
                    field<part, &A::draw>(section, "draw")};
}

constexpr auto memory_fields() {
  constexpr auto part = &KernelConstants::memory;
  return std::array{field<part, &MemoryConstants::efficiency>("memory", "efficiency"),
                    field<part, &MemoryConstants::start>("memory", "start"),
                    field<part, &MemoryConstants::standby>("memory", "standby")};
}

template <class... Arrays>
constexpr auto joined(const Arrays&... arrays) {
  std::array<KernelConstantField, (std::tuple_size_v<Arrays> + ...)> all{};
  std::size_t at = 0;
  const auto append = [&](const auto& fields) {
    for (const KernelConstantField& one : fields) all[at++] = one;
  };
  (append(arrays), ...);
  return all;
}

constexpr auto fields =
    joined(product_fields<&KernelConstants::tensor>("tensor"), alignment_fields("tensor"),
           product_fields<&KernelConstants::vector>("vector"),
           attention_fields<&KernelConstants::attention>("attention"),
           attention_fields<own_attentions[0].constants>(own_attentions[0].section),
           attention_fields<own_attentions[1].constants>(own_attentions[1].section),
           convolution_fields<&KernelConstants::tensor_convolution>("tensor_convolution"),
           convolution_fields<&KernelConstants::vector_convolution>("vector_convolution"), memory_fields());

bool divides(const KernelConstantField& field) {
  return field.key.ends_with("efficiency") || field.key.starts_with("across") || field.key == "forward" ||
         field.key == "alone" || field.key == "wide" || field.key == "transform" ||
         field.key.starts_with("by_");
}

const OwnAttention* own_attention_of(const KernelConstantField& field) {
  const auto own = std::ranges::find(own_attentions, field.section, &OwnAttention::section);
  return own == own_attentions.end() ? nullptr : own;
}

std::int64_t read_time(const JsonReader& json) {
  const Duration time = json.duration();
  if (time > longest)
    json.expected("at most a second");
  return time.picoseconds();
}

std::int64_t read_rate(const JsonReader& json) {
  const Bandwidth rate = json.bandwidth();
  if (is_readable(json, parse_bandwidth) && (rate < slowest || rate > fastest))
    json.expected("a bandwidth from 1 MB/s to 1 PB/s");
  return rate.count();
}

std::int64_t read_power(const JsonReader& json) {
  const std::int64_t power = json.milliwatts();
  if (power > most_draw)
    json.expected("at most 1 kW");
  return power;
}

std::int64_t read_constant(const KernelConstantField& field, const JsonReader& json) {
  switch (field.unit) {
    case ConstantUnit::ratio:
      return ratio(json, divides(field) ? rate_ratio : any_ratio, "a ratio").parts_per_million();
    case ConstantUnit::time:
      return read_time(json);
    case ConstantUnit::bandwidth:
      return read_rate(json);
    case ConstantUnit::power:
      return read_power(json);
  }
  return 0;
}

std::optional<JsonReader> value_of(const KernelConstantField& field, const JsonReader& section) {
  if (shows_in_few_tables(field))
    return section.optional(field.key);
  const JsonReader value = section.required(field.key);
  return value.is_missing() ? std::nullopt : std::optional(value);
}

Json text_of(const KernelConstantField& field, std::int64_t count) {
  switch (field.unit) {
    case ConstantUnit::ratio:
      return Ratio::parts_per_million(count).in_real();
    case ConstantUnit::time:
      return exact_text(Duration::picoseconds(count));
    case ConstantUnit::bandwidth:
      return exact_text(Bandwidth{count});
    case ConstantUnit::power:
      return exact_power_text(count);
  }
  return {};
}

// Constants that were fitted have their residuals beside them, in the file that they stand in.
void say_if_never_compared(const JsonReader& json, KernelConstants& constants, const Place& place) {
  const bool is_file = json.pointer().empty();
  if (json.optional("residuals") || !is_file)
    return;
  constants.are_compared = false;
  place.note_stand_in(fmt::format("kernels of {}: never compared with timed ones{}{}", constants.name,
                                  constants.source.empty() ? "" : ": ", constants.source));
}

}  // namespace

std::span<const KernelConstantField> kernel_constant_fields() {
  return fields;
}

bool shows_in_few_tables(const KernelConstantField& field) {
  return field.unit == ConstantUnit::power || field.key.starts_with("across") || field.key == "cached" ||
         field.key == "fill" || field.key == "wide" || field.key == "last" || is_of_alignment(field);
}

bool is_of_alignment(const KernelConstantField& field) {
  return field.key.ends_with("_bytes");
}

KernelConstants read_kernel_constants(const JsonReader& json, const Place& place) {
  KernelConstants constants;
  constants.name = json.required("name").text();
  constants.source = text_or(json, "source", "");
  json.optional("sources");
  say_if_never_compared(json, constants, place);
  const auto read = [&](const KernelConstantField& field, const JsonReader& section) {
    if (const auto value = value_of(field, section))
      field.set(constants, read_constant(field, *value));
  };
  for (const KernelConstantField& field : fields)
    if (own_attention_of(field) == nullptr)
      read(field, json.required(field.section));
  if (const auto attention = json.optional("attention"); attention && !attention->optional("draw"))
    constants.attention.draw = constants.tensor.draw;
  for (const OwnAttention& own : own_attentions) constants.*own.constants = constants.attention;
  for (const KernelConstantField& field : fields)
    if (own_attention_of(field) != nullptr)
      if (const auto section = json.optional(field.section))
        read(field, *section);
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (i == 0 || fields[i].section != fields[i - 1].section)
      if (const auto section = json.optional(fields[i].section))
        section->finish();
  json.finish();
  return constants;
}

namespace {

// What a file may leave out of any attention, as it is where it does. What libraries have of their own is whole.
bool is_left_out(const KernelConstantField& field, const KernelConstants& constants) {
  if (field.section != "attention")
    return false;
  if (field.key == "draw")
    return constants.attention.draw == constants.tensor.draw;
  return (field.key == "wide" || field.key == "last") && field.get(constants) == field.get(KernelConstants{});
}

}  // namespace

Json write_kernel_constants(const KernelConstants& constants) {
  Json json{{"name", constants.name}, {"source", constants.source}};
  for (const KernelConstantField& field : fields) {
    const OwnAttention* own = own_attention_of(field);
    const bool is_any = own != nullptr && constants.*own->constants == constants.attention;
    if (!is_any && !is_left_out(field, constants))
      json[std::string(field.section)][std::string(field.key)] = text_of(field, field.get(constants));
  }
  return json;
}

ArchitectureChoice architecture_of(std::int64_t compute_capability, std::string_view vendor) {
  struct Known {
    std::int64_t from;
    const char* name;
    bool is_own;
  };
  // By compute capability, from the newest. What was never timed takes its nearest relative's. Blackwell's and Ampere's
  // chips of workstations and consumers have an SM of their own each (GB20x without the data centre's tensor memory,
  // GA10x with twice the lanes); so do Pascal's GP100, of 64 lanes, and its others, of 128.
  constexpr std::array known{Known{120, "blackwell_gb20x", true},
                             Known{100, "blackwell", true},
                             Known{90, "hopper", true},
                             Known{89, "ada", true},
                             Known{86, "ampere_ga10x", true},
                             Known{80, "ampere", true},
                             Known{75, "turing", true},
                             Known{70, "volta", true},
                             Known{61, "pascal_gp10x", true},
                             Known{60, "pascal", true},
                             Known{50, "maxwell", true},
                             Known{1, "maxwell", false}};
  for (const Known& one : known)
    if (compute_capability >= one.from)
      return {one.name, one.is_own};
  return {vendor == "amd" ? "cdna" : "", vendor == "amd"};
}

}  // namespace lockstep
