#include "sim/compute/attention_time.h"

#include <algorithm>
#include <array>
#include <span>

namespace lockstep {
namespace {

// The widths of a head that libraries have kernels for (FlashAttention, csrc/flash_attn/src/static_switch.h,
// HEADDIM_SWITCH; TensorRT-LLM's go by powers of two); any other is multiplied as the next of them.
constexpr std::array<std::int64_t, 7> flash_widths{32, 64, 96, 128, 160, 192, 256};
constexpr std::array<std::int64_t, 4> tensorrt_widths{32, 64, 128, 256};

std::int64_t next_of(std::span<const std::int64_t> widths, std::int64_t width) {
  const auto next = std::ranges::lower_bound(widths, width);
  return next == widths.end() ? width : *next;
}

std::int64_t multiplied_width(AttentionLibrary library, std::int64_t width) {
  return library == AttentionLibrary::tensorrt_llm ? next_of(tensorrt_widths, width)
                                                   : next_of(flash_widths, width);
}

constexpr std::int64_t keys_of_step = 64;
constexpr std::int64_t most_narrow_width = 128;

// FlashAttention-2 has blocks of 128 queries forward, of 128 keys backward (csrc/flash_attn/src,
// flash_fwd_launch_template.h and flash_bwd_launch_template.h).
std::int64_t queries_of_block(AttentionLibrary library) {
  return library == AttentionLibrary::flash_attention_2 ? 128 : 64;
}

// Threads of a block that writes one token to the cache, one for each element of its keys (vLLM,
// csrc/cache_kernels.cu, reshape_and_cache_flash), and of an SM of a data centre's GPU (CUDA C++ Programming Guide,
// compute capabilities 7.0, 8.0, 9.0).
constexpr std::int64_t most_threads_of_token = 512;
constexpr std::int64_t threads_of_sm = 2'048;

// One call's sizes, and the rates it meets.
class AttentionTimer {
 public:
  AttentionTimer(const ProductUnit& unit, const AttentionConstants& constants, const AttentionShape& shape,
                 bool is_backward)
      : unit_(unit),
        constants_(constants),
        shape_(shape),
        is_backward_(is_backward),
        queries_of_block_(queries_of_block(shape.library)) {}

  Duration time() const {
    return constants_.start + std::max(computing(), moving(elements())) + before() + filling();
  }

 private:
  std::int64_t blocks_of_head() const { return divided_up(shape_.sequence, queries_of_block_); }
  std::int64_t all_keys() const { return divided_up(shape_.keys_of_query(), keys_of_step) * keys_of_step; }

  // Seen by all blocks of one head: block i of a causal one walks over i blocks, the half-masked one with
  // them; in the mean over half of all and half a block.
  std::int64_t keys_of_head() const {
    const std::int64_t blocks = blocks_of_head();
    const std::int64_t all = blocks * all_keys();
    return shape_.is_causal ? std::min(blocks * (all_keys() + queries_of_block_) / 2, all) : all;
  }

  Ratio narrow_efficiency() const {
    return is_backward_ ? constants_.backward_efficiency : constants_.efficiency;
  }
  Ratio share_of_width() const {
    return std::max(shape_.query_width, shape_.value_width) > most_narrow_width ? constants_.wide
                                                                                : Ratio::one();
  }

  // So many keys for a block of queries: their products, and on the vector lanes their softmax, both at that share of
  // their peaks.
  Duration walk(std::int64_t keys, Ratio share) const {
    const Ratio efficiency = scaled_down(scaled_down(narrow_efficiency(), share_of_width()), share);
    const std::int64_t scores = queries_of_block_ * keys;
    const std::int64_t widths = multiplied_width(shape_.library, shape_.query_width) +
                                multiplied_width(shape_.library, shape_.value_width);
    const Duration products =
        time_to_compute(Flops{scores * (is_backward_ ? 5 : 2) * widths}, unit_.of_sm(efficiency));
    return is_backward_ ? products
                        : products + time_to_compute(Flops{scaled_up(scores, constants_.softmax)},
                                                     unit_.lanes_of_sm(efficiency));
  }

  Duration block() const { return is_backward_ ? constants_.backward_block : constants_.block; }

  // A lone query's heads that share keys are the rows of one block (FlashAttention, seqlenq_ngroups_swapped).
  std::int64_t heads_of_blocks() const {
    return shape_.sequence == 1 ? std::min(shape_.heads, shape_.kv_heads) : shape_.heads;
  }

  Duration computing() const {
    constexpr std::int64_t part = 1'024;
    const std::int64_t blocks = shape_.batch * heads_of_blocks() * blocks_of_head();
    const std::int64_t spread = arithmetic::product_divided_up(blocks, part, unit_.sms);
    const std::int64_t begun = divided_up(blocks, unit_.sms) * part;
    const std::int64_t waves = spread + scaled_up(begun - spread, constants_.whole_waves);
    const Duration mean = walk(divided_up(keys_of_head(), blocks_of_head()), Ratio::one()) + block();
    const Duration longest = walk(all_keys(), constants_.alone) + block();
    const Duration left = shape_.is_causal ? scaled(longest, constants_.last) : Duration::zero();
    return std::max(scaled(mean, waves, part) + left, longest);
  }

  std::int64_t tokens() const { return shape_.batch * shape_.sequence; }
  std::int64_t queries() const { return tokens() * shape_.heads * shape_.query_width; }
  std::int64_t keys_and_values() const {
    return shape_.batch * shape_.keys_of_query() * shape_.kv_heads *
           (shape_.query_width + shape_.value_width);
  }

  std::int64_t elements() const {
    const std::int64_t once = queries() + tokens() * shape_.heads * shape_.value_width + keys_and_values();
    return is_backward_ ? 2 * (once + queries()) : once;
  }

  // A server turns queries by their places.
  std::int64_t elements_before() const {
    return shape_.fills_cache ? scaled_up(queries(), constants_.rotation) : 0;
  }
  Duration before() const { return moving(elements_before()); }

  // It writes keys and values to its cache, a block of threads for each token: as memory allows, or as many at once
  // as fit the SMs.
  std::int64_t elements_to_cache() const { return shape_.fills_cache ? 2 * keys_and_values() : 0; }
  Duration filling() const {
    if (!shape_.fills_cache)
      return Duration::zero();
    const std::int64_t threads =
        std::min(shape_.kv_heads * std::max(shape_.query_width, shape_.value_width), most_threads_of_token);
    return std::max(moving(elements_to_cache()),
                    scaled(constants_.fill, tokens() * threads, unit_.sms * threads_of_sm));
  }

  // Called again, all of what the cache holds is still there, and none of what is half as much again.
  Ratio share_in_cache() const {
    const std::int64_t all = (elements() + elements_before() + elements_to_cache()) * unit_.element_bytes;
    const std::int64_t cache = unit_.cache.count();
    const std::int64_t beyond = std::clamp<std::int64_t>(all - cache, 0, cache / 2);
    return ratio_down(cache - 2 * beyond, std::max<std::int64_t>(cache, 1));
  }

  Duration moving(std::int64_t elements) const {
    const std::int64_t bytes = elements * unit_.element_bytes;
    const std::int64_t cached = scaled_down(bytes, share_in_cache());
    return time_to_move(Bytes{bytes - cached}, unit_.memory_at(constants_.memory_efficiency)) +
           time_to_move(Bytes{cached}, unit_.memory_at(constants_.cached));
  }

  const ProductUnit& unit_;
  const AttentionConstants& constants_;
  const AttentionShape& shape_;
  bool is_backward_;
  std::int64_t queries_of_block_;
};

}  // namespace

Duration attention_time(const ProductUnit& unit, const AttentionConstants& constants,
                        const AttentionShape& shape, bool is_backward) {
  return AttentionTimer(unit, constants, shape, is_backward).time();
}

}  // namespace lockstep
