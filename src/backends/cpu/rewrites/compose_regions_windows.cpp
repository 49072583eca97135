// Windows by a region: one element of the window after another, at all positions of the window at once.
#include <capibara/control.h>

#include <algorithm>
#include <numeric>

#include "backends/cpu/rewrites/compose_regions.h"
#include "program/ir/window_shape.h"

namespace capibara::cpu::regions {

namespace lax = jax::lax;

namespace {

// An array as the window sees it, padded and dilated, and its elements at a given offset within every window.
struct Taps {
  Window window;
  Shape out;

  Array padded(const Array& x, const Array& value) const {
    std::vector<lax::PadDim> config;
    for (std::size_t d = 0; d < window.dimensions.size(); ++d) {
      config.push_back({window.padding[d].first, window.padding[d].second, window.base_dilation[d] - 1});
    }
    return lax::pad(x, value, config);
  }
  // `offset`: int32[rank], in elements of the padded array.
  Array at(const Array& padded, const Array& offset) const {
    Arrays starts;
    Ints sizes, zeros(out.size(), 0);
    for (std::size_t d = 0; d < out.size(); ++d) {
      starts.push_back(lax::index_in_dim(offset, static_cast<int64_t>(d), 0, false));
      sizes.push_back((out[d] - 1) * window.strides[d] + 1);
    }
    return lax::slice(lax::dynamic_slice(padded, starts, sizes, false), zeros, sizes, window.strides);
  }
  // int32[elements of the window, rank], in row-major order.
  Array offsets() const {
    Arrays columns;
    for (std::size_t d = 0; d < window.dimensions.size(); ++d) {
      const Array element = lax::broadcasted_iota(DType::int32, window.dimensions, static_cast<int64_t>(d));
      columns.push_back(
          lax::reshape(lax::mul(element, exact_scalar(DType::int32, window.window_dilation[d])), {element.size()}));
    }
    return lax::stack(columns, 1);
  }
};

// A dimension along which each result folds all elements up to its own; other dimensions are not folded.
struct Prefix {
  int64_t axis;
  bool reverse;
};
std::optional<Prefix> as_prefix(const Shape& in, const Window& window) {
  std::optional<Prefix> found;
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (window.strides[d] != 1 || window.base_dilation[d] != 1 || window.window_dilation[d] != 1) return std::nullopt;
    const std::pair<int64_t, int64_t> none{0, 0}, before{in[d] - 1, 0}, after{0, in[d] - 1};
    if (window.dimensions[d] == 1 && window.padding[d] == none) continue;
    const bool whole = window.dimensions[d] == in[d] && (window.padding[d] == before || window.padding[d] == after);
    if (!whole || found) return std::nullopt;
    found = Prefix{static_cast<int64_t>(d), window.padding[d] == after};
  }
  return found;
}

// One scan along the dimension. Suffixes fold from the end, with the element as the first argument.
Arrays fold_prefixes(const Program& region, const Arrays& operands, const Arrays& init, Prefix prefix) {
  const std::size_t count = operands.size();
  Ints swapped(static_cast<std::size_t>(operands[0].ndim()));
  std::iota(swapped.begin(), swapped.end(), int64_t{0});
  std::swap(swapped[0], swapped[static_cast<std::size_t>(prefix.axis)]);
  Arrays rows, totals, first;
  const int64_t length = operands[0].shape(prefix.axis), begin = prefix.reverse ? length - 1 : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Array moved = lax::transpose(operands[i], swapped);
    first.push_back(lax::index_in_dim(moved, begin, 0, false));
    rows.push_back(lax::slice_in_dim(moved, prefix.reverse ? 0 : 1, prefix.reverse ? length - 1 : length));
    totals.push_back(lax::broadcast(init[i], first[i].shape()));
  }
  Arrays arguments = totals;
  arguments.insert(arguments.end(), first.begin(), first.end());
  totals = apply_each(region, arguments);
  const auto step = [&](std::span<const Array> both) {
    Arrays pair(both.begin(), both.end());
    if (prefix.reverse) std::rotate(pair.begin(), pair.begin() + static_cast<std::ptrdiff_t>(count), pair.end());
    Arrays next = apply_each(region, pair), result = next;
    result.insert(result.end(), next.begin(), next.end());
    return result;
  };
  const Arrays last = lax::detail::scan_flat(step, totals, rows, std::nullopt, prefix.reverse, 1);
  Arrays results;
  for (std::size_t i = 0; i < count; ++i) {
    const Array end = lax::expand_dims(totals[i], {0});
    const Arrays parts = prefix.reverse ? Arrays{last[count + i], end} : Arrays{end, last[count + i]};
    results.push_back(lax::transpose(lax::concatenate(parts, 0), swapped));
  }
  return results;
}

Arrays fold_windows(const Program& region, const Arrays& operands, const Arrays& init, const Window& window) {
  const std::size_t count = operands.size();
  const Taps taps{window, window_output_shape("reduce_window", operands[0].type(), window)};
  Arrays totals;
  for (const Array& value : init) totals.push_back(lax::broadcast(value, taps.out));
  if (element_count(taps.out) == 0 || operands[0].size() == 0) return totals;
  if (taps.out.empty()) {
    totals.insert(totals.end(), operands.begin(), operands.end());
    return apply_each(region, totals);
  }
  if (const std::optional<Prefix> prefix = as_prefix(operands[0].shape(), window))
    return fold_prefixes(region, operands, init, *prefix);
  Arrays padded;
  for (std::size_t i = 0; i < count; ++i) padded.push_back(taps.padded(operands[i], init[i]));
  const Array is_element = taps.padded(lax::broadcast(Array(true), operands[0].shape()), Array(false));
  const auto step = [&](std::span<const Array> both) {
    const Array &offset = both[count], is_inside = taps.at(is_element, offset);
    Arrays held(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(count)), arguments = held;
    // Outside the array the region gets values that it has seen before, and its result is discarded.
    for (std::size_t i = 0; i < count; ++i)
      arguments.push_back(lax::select(is_inside, taps.at(padded[i], offset), held[i]));
    Arrays next = apply_each(region, arguments);
    for (std::size_t i = 0; i < count; ++i) next[i] = lax::select(is_inside, next[i], held[i]);
    return next;
  };
  return lax::detail::scan_flat(step, totals, {taps.offsets()}, std::nullopt, false, 1);
}

}  // namespace

Arrays reduce_window(std::span<const Array> inputs, const Attrs& attrs) {
  const auto middle = inputs.begin() + static_cast<std::ptrdiff_t>(inputs.size() / 2);
  return fold_windows(attrs.program("jaxpr"), Arrays(inputs.begin(), middle), Arrays(middle, inputs.end()),
                      Window::of(attrs));
}

LowerRule named_window(Monoid monoid) {
  return [monoid](std::span<const Array> inputs, const Attrs& attrs) {
    const DType dtype = inputs[0].dtype();
    return fold_windows(monoid_region(monoid, dtype), {inputs[0]}, {identity_element(monoid, dtype)},
                        Window::of(attrs));
  };
}

// The position that each window selects, then a scatter by the other region.
Arrays select_and_scatter(std::span<const Array> inputs, const Attrs& attrs) {
  const Array &operand = inputs[0], &source = inputs[1], &init = inputs[2];
  const Array filled = lax::broadcast(init, operand.shape());
  if (operand.size() == 0 || source.size() == 0) return {filled};
  const Program select = attrs.program("select_jaxpr");
  const Taps taps{Window::of(attrs), source.shape()};
  const Array none = exact_scalar(DType::int32, -1), zero = exact_scalar(DType::int32, 0);
  const Array places = taps.padded(lax::reshape(lax::iota(DType::int32, operand.size()), operand.shape()), none);
  const Array some = lax::index_in_dim(lax::reshape(operand, {operand.size()}), 0, 0, false);
  const Array padded = taps.padded(operand, some);
  const auto step = [&](std::span<const Array> both) {
    const Array &held = both[0], &place = both[1], &offset = both[2];
    const Array offered = taps.at(padded, offset), there = taps.at(places, offset);
    const Array replaces =
        lax::bitwise_or(lax::lt(place, zero), lax::bitwise_not(apply_each(select, {held, offered})[0]));
    const Array takes = lax::bitwise_and(lax::ge(there, zero), replaces);
    const Array value = lax::select(takes, offered, held);
    return Arrays{value, lax::select(takes, there, place)};
  };
  const Arrays start = {lax::broadcast(some, source.shape()), lax::broadcast(none, source.shape())};
  const Array selected = lax::detail::scan_flat(step, start, {taps.offsets()}, std::nullopt, false, 1)[1];
  static const Primitive scatter = primitive("scatter");
  const Array flat =
      capibara::bind(scatter,
                     Arrays{lax::reshape(filled, {operand.size()}), lax::reshape(selected, {source.size(), 1}),
                            lax::reshape(source, {source.size()})},
                     {{"dimension_numbers", ScatterDimensionNumbers{{}, {0}, {0}, {}, {}}},
                      {"indices_are_sorted", false},
                      {"unique_indices", false},
                      {"mode", "fill_or_drop"},
                      {"update_jaxpr", attrs["scatter_jaxpr"]},
                      {"update_consts", Attr::List{}}})[0];
  return {lax::reshape(flat, operand.shape())};
}

}  // namespace capibara::cpu::regions
