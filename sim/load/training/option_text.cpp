#include "sim/load/training/option_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

constexpr std::int64_t highest_rank = 1024;
constexpr auto parts_per_percent = static_cast<double>(Ratio::percent(1).parts_per_million());

// The number behind `prefix`; nothing when there is anything else.
template <class Number>
std::optional<Number> number_after(std::string_view prefix, std::string_view text) {
  if (!text.starts_with(prefix)) {
    return std::nullopt;
  }
  const char* end = text.data() + text.size();
  Number number{};
  const auto [rest, error] = std::from_chars(text.data() + prefix.size(), end, number);
  return error == std::errc{} && rest == end ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> count_after(std::string_view prefix, std::string_view text,
                                        std::int64_t maximum = std::numeric_limits<std::int64_t>::max()) {
  const auto count = number_after<std::int64_t>(prefix, text);
  return count && *count >= 1 && *count <= maximum ? count : std::nullopt;
}

}  // namespace

std::optional<Compression> parse_compression(std::string_view text) {
  for (const CompressionKind kind : {CompressionKind::none, CompressionKind::fp16, CompressionKind::bf16}) {
    if (text == form_of(kind)) {
      return Compression{.kind = kind};
    }
  }
  if (const auto rank = count_after("powersgd_", text, highest_rank)) {
    return Compression{.kind = CompressionKind::powersgd, .rank = *rank};
  }
  const double percent = number_after<double>("topk_", text).value_or(0);
  if (!(percent > 0 && percent <= 100)) {
    return std::nullopt;
  }
  const auto kept =
      Ratio::parts_per_million(static_cast<std::int64_t>(std::floor(percent * parts_per_percent + 0.5)));
  return kept > Ratio{} ? std::optional(Compression{.kind = CompressionKind::topk, .kept = kept})
                        : std::nullopt;
}

std::optional<Recompute> parse_recompute(std::string_view text) {
  if (text == "none") {
    return Recompute{};
  }
  if (text == "selective") {
    return Recompute{.kind = RecomputeKind::selective};
  }
  if (text == "selective_op") {
    return Recompute{.kind = RecomputeKind::selective_op};
  }
  if (text == "full") {
    return Recompute{.kind = RecomputeKind::full};
  }
  if (const auto blocks = count_after("every_", text))
    return Recompute{.kind = RecomputeKind::every, .blocks = *blocks};
  if (const auto blocks = count_after("one_in_", text))
    return Recompute{.kind = RecomputeKind::one_in, .blocks = *blocks};
  return std::nullopt;
}

std::optional<AutoWrap> parse_auto_wrap(std::string_view text) {
  if (text == "block") {
    return AutoWrap{};
  }
  if (text == "none") {
    return AutoWrap{.kind = WrapKind::none};
  }
  const auto elements = count_after("size_", text);
  return elements ? std::optional(AutoWrap{.kind = WrapKind::size, .elements = *elements}) : std::nullopt;
}

std::string form_of(CompressionKind kind) {
  switch (kind) {
    case CompressionKind::none:
      return "none";
    case CompressionKind::fp16:
      return "fp16";
    case CompressionKind::bf16:
      return "bf16";
    case CompressionKind::powersgd:
      return "powersgd_R";
    case CompressionKind::topk:
      return "topk_PERCENT";
  }
  return "none";
}

std::string text_of(const Compression& compression) {
  switch (compression.kind) {
    case CompressionKind::powersgd:
      return fmt::format("powersgd_{}", compression.rank);
    case CompressionKind::topk:
      return fmt::format("topk_{}",
                         static_cast<double>(compression.kept.parts_per_million()) / parts_per_percent);
    default:
      return form_of(compression.kind);
  }
}

std::string text_of(const Recompute& recompute) {
  switch (recompute.kind) {
    case RecomputeKind::none:
      return "none";
    case RecomputeKind::selective:
      return "selective";
    case RecomputeKind::selective_op:
      return "selective_op";
    case RecomputeKind::full:
      return "full";
    case RecomputeKind::every:
      return fmt::format("every_{}", recompute.blocks);
    case RecomputeKind::one_in:
      return fmt::format("one_in_{}", recompute.blocks);
  }
  return "none";
}

std::string text_of(const AutoWrap& wrap) {
  switch (wrap.kind) {
    case WrapKind::block:
      return "block";
    case WrapKind::size:
      return fmt::format("size_{}", wrap.elements);
    case WrapKind::none:
      return "none";
  }
  return "block";
}

}  // namespace lockstep
