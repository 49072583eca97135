// Logits of a panel that conditions change: the bias added, minus infinity where a query does not see a key.
#pragma once

#include "backends/cpu/kernels/attention/call.h"

namespace capibara::cpu::attention {

// Logits of keys [key + first, key + last) by queries [query, query + count): rows of `width`, row 0 is that of `key`.
template <class C>
struct LogitPanel {
  C* logits;
  int64_t width, key, first, last, query, count;
};

// Adds (scaled) rows of a bias of type B to logits.
template <class B, class C>
void add_bias_of(const Plan& plan, const Head& head, const LogitPanel<C>& panel, C scale) {
  const B* bias = reinterpret_cast<const B*>(head.bias);
  for (int64_t i = 0; i < panel.count; ++i) {
    const B* row = bias + (panel.query + i) * plan.bias.step[2] + panel.key * plan.bias.step[3];
    const int64_t step = plan.bias.step[3];
    for (int64_t r = panel.first; r < panel.last; ++r) {
      C& logit = panel.logits[r * panel.width + i];
      logit = logit * scale + static_cast<C>(row[r * step]);
    }
  }
}

template <class C>
void add_bias(const Plan& plan, const Head& head, const LogitPanel<C>& panel, C scale) {
  switch (plan.bias_dtype) {
    case DType::bfloat16:
      return add_bias_of<BFloat16>(plan, head, panel, scale);
    case DType::float16:
      return add_bias_of<Half>(plan, head, panel, scale);
    case DType::float64:
      return add_bias_of<double>(plan, head, panel, scale);
    default:
      return add_bias_of<float>(plan, head, panel, scale);
  }
}

template <class C>
void hide_by_mask(const Plan& plan, const Head& head, const LogitPanel<C>& panel) {
  const int64_t row_step = plan.mask.step[2], key_step = plan.mask.step[3];
  const std::uint8_t* mask = head.mask + panel.key * key_step;
  if (row_step == 0) {  // one row for all queries
    for (int64_t r = panel.first; r < panel.last; ++r) {
      if (!mask[r * key_step]) std::fill_n(panel.logits + r * panel.width, panel.width, minus_infinity<C>);
    }
    return;
  }
  for (int64_t i = 0; i < panel.count; ++i) {
    const std::uint8_t* row = mask + (panel.query + i) * row_step;
    C* column = panel.logits + i;
    int64_t r = panel.first;
    while (r < panel.last) {
      std::uint64_t eight = 0;
      if (key_step == 1 && r + 8 <= panel.last) std::memcpy(&eight, row + r, 8);
      if (eight == 0x0101010101010101u) {
        r += 8;
        continue;
      }
      for (const int64_t end = std::min(r + 8, panel.last); r < end; ++r) {
        if (!row[r * key_step]) column[r * panel.width] = minus_infinity<C>;
      }
    }
  }
}

template <class C>
void hide_by_position(const Plan& plan, const LogitPanel<C>& panel) {
  // Later keys are seen by later queries, but for the first ones, which more queries see: two keys tell of all.
  const int64_t last_key = panel.key + panel.last - 1;
  const int64_t first_key =
      std::clamp(std::max<int64_t>(plan.spec.prefix, plan.spec.sinks), panel.key + panel.first, last_key);
  if (plan.seen_by(last_key).first <= panel.query && plan.seen_by(first_key).second >= panel.query + panel.count)
    return;
  for (int64_t r = panel.first; r < panel.last; ++r) {
    // Neighbouring queries see a key: those before the first of them and behind the last do not.
    const auto [begin, end] = plan.seen_by(panel.key + r);
    const int64_t first = std::clamp<int64_t>(begin - panel.query, 0, panel.count);
    const int64_t last = std::clamp<int64_t>(end - panel.query, first, panel.count);
    C* row = panel.logits + r * panel.width;
    std::fill_n(row, first, minus_infinity<C>);
    std::fill(row + last, row + panel.count, minus_infinity<C>);
  }
}

template <class C>
void hide_by_segment(const Head& head, const LogitPanel<C>& panel) {
  const std::int32_t* own = head.query_segments + panel.query;
  for (int64_t r = panel.first; r < panel.last; ++r) {
    const std::int32_t segment = head.key_segments[panel.key + r];
    C* row = panel.logits + r * panel.width;
    for (int64_t i = 0; i < panel.count; ++i) row[i] = own[i] == segment ? row[i] : minus_infinity<C>;
  }
}

// Whether logits are multiplied by the scale before maxima are taken: where a bias is added, or the scale turns the
// order.
inline bool scaled_logits(const Plan& plan, const Head& head) { return head.bias || !(plan.spec.scale > 0); }

// All of them. Returns the factor by which logits are multiplied in the exponent of 2.
template <class C>
C change_logits(const Plan& plan, const Head& head, const LogitPanel<C>& panel) {
  constexpr double log2e = 1.4426950408889634;
  const C scale = static_cast<C>(plan.spec.scale);
  C factor = static_cast<C>(plan.spec.scale * log2e);
  if (scaled_logits(plan, head)) {
    factor = static_cast<C>(log2e);
    if (head.bias)
      add_bias(plan, head, panel, scale);
    else
      for (int64_t i = panel.first * panel.width; i < panel.last * panel.width; ++i) panel.logits[i] *= scale;
  }
  if (plan.spec.by_position()) hide_by_position(plan, panel);
  if (head.query_segments) hide_by_segment(head, panel);
  if (head.mask) hide_by_mask(plan, head, panel);
  return factor;
}

}  // namespace capibara::cpu::attention
