// Dense blockwise attention: its records, the function.
#include <capibara/kernels/attention.h>

#include <cmath>

#include "kernels/attention/ring.h"
#include "lax/families.h"

namespace capibara::kernels {

namespace {

constexpr const char* name = "flash_attention";

void require(bool fits, const char* expected, const char* argument, double got) {
  if (!fits) throw ValueError(concat(name, ": expected ", expected, " (argument '", argument, "'), got ", got));
}

}  // namespace

Family flash_attention_records() {
  return attention_records(
      name, "softmax(scale query key^T + bias) value by blocks; returns the log-sum-exp of each row too.", false);
}

Array flash_attention(const Array& query, const Array& key, const Array& value, const FlashAttentionOptions& options) {
  static const Primitive& handle = *new Primitive(primitive(name));
  const double rate = options.dropout_rate;
  require(rate >= 0 && rate < 1, "a number in [0, 1)", "dropout_rate", rate);
  if (rate > 0 && !options.dropout_key) {
    throw ValueError(
        concat(name, ": dropout needs a PRNG key (argument 'dropout_key'), got none with dropout_rate=", rate));
  }
  if (options.scale) require(std::isfinite(*options.scale), "a finite number", "scale", *options.scale);
  const auto [left, right] = options.window.value_or(std::pair<int64_t, int64_t>(-1, -1));
  if (options.window) {
    require(left >= 0 && right >= 0, "numbers of keys before and after, 0 or more", "window",
            static_cast<double>(std::min(left, right)));
  }
  require(options.sinks >= 0, "0 or more", "sinks", static_cast<double>(options.sinks));
  const double size = query.ndim() == 4 ? static_cast<double>(query.shape(3)) : 1;
  AttentionOperands operands{
      name, query, key, value, options.attention_mask, options.bias, options.segment_ids, options.key_segment_ids,
      {},   {}};
  if (rate > 0) operands.dropout_key = options.dropout_key;
  const Attrs attrs{{"causal", options.causal},
                    {"scale", options.scale.value_or(1 / std::sqrt(size))},
                    {"dropout_rate", rate},
                    {"window", Ints{left, right}},
                    {"sinks", options.sinks},
                    {"prefix", 0},
                    {"query_offset", options.query_offset},
                    {"block_size", 0}};
  if (!options.sequence_parallel && !options.sequence_axis.empty()) {
    throw ValueError(
        concat(name, ": sequence_axis is of sequence_parallel, which is off, got '", options.sequence_axis, "'"));
  }
  if (options.sequence_parallel) {
    const std::optional<RingPlace> place = ring_place(operands, options.sequence_axis);
    if (place) return ring_attention(*place, operands, attrs);
  }
  return bind_attention(handle, operands, attrs);
}

}  // namespace capibara::kernels
