// Indexing with NumPy's rules, lowered as JAX does: to slice, else to dynamic_slice, else to gather; and functional
// updates.
#include <capibara/config.h>
#include <capibara/indexing.h>
#include <capibara/lax.h>

#include <algorithm>

#include "core/array/promotion.h"
#include "core/runtime/warning.h"
#include "core/sharding/explicit.h"
#include "lax/index/index_expression.h"
#include "lax/operators/plain_number.h"
#include "lax/operators/promotion_scope.h"
#include "lax/shape/shape.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

// ---- reads -------------------------------------------------------------------------------------------------------

// The common tail of the slicing paths: reversal, removed and added dimensions.
struct SliceTail {
  Ints rev_axes, squeeze_axes, new_axes;

  Array apply(Array x) const {
    if (!rev_axes.empty()) x = lax::rev(x, rev_axes);
    if (!squeeze_axes.empty()) x = lax::squeeze(x, squeeze_axes);
    if (!new_axes.empty()) x = lax::expand_dims(x, new_axes);
    return x;
  }
  void add_new_axis(std::size_t dimensions_so_far) {
    new_axes.push_back(static_cast<int64_t>(dimensions_so_far - squeeze_axes.size() + new_axes.size()));
  }
};

// Only integers and static slices: slice. Nothing if that does not suffice.
std::optional<Array> static_slice(const Array& x, const IndexExpression& parsed, const GetOptions& options) {
  bool clip = options.mode == "clip";
  if (!clip && !options.mode.empty() && options.mode != "promise_in_bounds") return std::nullopt;
  if (parsed.any_array || parsed.any_mask) return std::nullopt;
  Ints starts, limits, strides;
  SliceTail tail;
  for (const IndexEntry& entry : parsed.entries) {
    if (entry.kind == IndexEntry::new_axis) {
      tail.add_new_axis(starts.size());
      continue;
    }
    int64_t size = at(parsed.shape, entry.axis);
    if (entry.kind == IndexEntry::integer) {
      int64_t position = entry.position + (options.wrap_negative_indices && entry.position < 0 ? size : 0);
      if (size == 0 || (!clip && (position < 0 || position >= size))) return std::nullopt;
      position = std::clamp<int64_t>(position, 0, size - 1);
      starts.push_back(position);
      limits.push_back(position + 1);
      strides.push_back(1);
      tail.squeeze_axes.push_back(entry.axis);
    } else {
      ResolvedSlice s = resolve_slice(entry.range, size);
      if (s.step > 0) {
        starts.push_back(s.start);
        limits.push_back(std::max(s.start, s.stop));
      } else {  // the same elements from the other end, then reversed
        int64_t first = std::min(size, s.stop + 1 + std::abs(s.start - s.stop - 1) % -s.step);
        starts.push_back(first);
        limits.push_back(std::max(first, s.start + 1));
        tail.rev_axes.push_back(entry.axis);
      }
      strides.push_back(s.step > 0 ? s.step : -s.step);
    }
  }
  bool unit = std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 1; });
  bool whole =
      unit && limits == parsed.shape && std::all_of(starts.begin(), starts.end(), [](int64_t s) { return s == 0; });
  return tail.apply(whole ? x : lax::slice(x, starts, limits, unit ? Ints{} : strides));
}

// Scalar positions and slices without steps: dynamic_slice. Nothing if that does not suffice.
std::optional<Array> dynamic_slice(const Array& x, const IndexExpression& parsed, const GetOptions& options) {
  if (!options.mode.empty() && options.mode != "clip" && options.mode != "promise_in_bounds") return std::nullopt;
  if (parsed.any_mask) return std::nullopt;
  for (const IndexEntry& entry : parsed.entries) {
    if (entry.kind == IndexEntry::array && entry.indices.ndim() != 0) return std::nullopt;
    if (entry.kind == IndexEntry::slice && entry.range.step && *entry.range.step != 1 && *entry.range.step != -1) {
      return std::nullopt;
    }
    bool position = entry.kind == IndexEntry::array || entry.kind == IndexEntry::integer;
    if (position && at(parsed.shape, entry.axis) == 0) return std::nullopt;
  }
  DType dtype = index_dtype_for(parsed.shape);
  Arrays starts;
  Ints sizes;
  SliceTail tail;
  bool several = parsed.shape.size() > 1;
  for (const IndexEntry& entry : parsed.entries) {
    if (entry.kind == IndexEntry::new_axis) {
      tail.add_new_axis(starts.size());
    } else if (entry.kind == IndexEntry::slice) {
      ResolvedSlice s = resolve_slice(entry.range, at(parsed.shape, entry.axis));
      starts.push_back(index_constant(s.step > 0 ? s.start : s.stop + 1, dtype));
      sizes.push_back(s.size);
      if (s.step < 0) tail.rev_axes.push_back(entry.axis);
    } else {
      if (entry.kind == IndexEntry::integer)
        starts.push_back(index_constant(entry.position, dtype));
      else
        starts.push_back(several ? lax::convert_element_type(entry.indices, dtype, false) : entry.indices);
      sizes.push_back(1);
      tail.squeeze_axes.push_back(entry.axis);
    }
  }
  // Constants too are wrapped by operations, as in jax's text.
  for (std::size_t i = 0; options.wrap_negative_indices && i < starts.size(); ++i) {
    const DType own = starts[i].dtype();
    if (is_unsigned(own)) continue;
    Array is_negative = lax::lt(starts[i], index_constant(0, own));
    Array from_end = lax::add(starts[i], index_constant(x.shape()[i], own));
    starts[i] = lax::select(is_negative, from_end, starts[i]);
  }
  return tail.apply(lax::dynamic_slice(x, starts, sizes, false));
}

std::optional<lax::GatherScatterMode> parse_mode(const std::string& mode) {
  if (mode.empty()) return std::nullopt;
  if (mode == "clip") return lax::GatherScatterMode::clip;
  if (mode == "fill" || mode == "drop" || mode == "fill_or_drop") return lax::GatherScatterMode::fill_or_drop;
  if (mode == "promise_in_bounds") return lax::GatherScatterMode::promise_in_bounds;
  throw ValueError(concat("index: unknown mode '", mode, "', expected clip, fill, drop or promise_in_bounds"));
}

Array gather_at(const Array& x, const IndexExpression& parsed, const GetOptions& options) {
  GatherIndexer indexer = to_gather(parsed, options.wrap_negative_indices);
  Array y = x;
  if (!indexer.scalar_mask_dims.empty()) y = lax::expand_dims(y, indexer.scalar_mask_dims);
  if (element_count(indexer.slice_shape) == 0) return lax::zeros(x.type().with_shape(indexer.slice_shape));
  if (indexer.indices.size() != 0) {
    y = lax::gather(y, indexer.indices, indexer.dims, indexer.window,
                    {.unique_indices = options.unique_indices || !indexer.advanced,
                     .indices_are_sorted = options.indices_are_sorted || !indexer.advanced,
                     .mode = parse_mode(options.mode),
                     .fill_value = options.fill_value});
  }
  if (!indexer.reversed_dims.empty()) y = lax::rev(y, indexer.reversed_dims);
  return lax::expand_dims(y, indexer.new_axes);
}

}  // namespace

Array index(const Array& array, const std::vector<Index>& indices, const GetOptions& options) {
  parse_mode(options.mode);
  IndexExpression parsed = parse_index(array.shape(), indices);
  if (std::optional<Array> out = static_slice(array, parsed, options)) return *out;
  if (std::optional<Array> out = dynamic_slice(array, parsed, options)) return *out;
  return gather_at(array, parsed, options);
}

Array Array::operator[](const Index& i) const { return index(*this, {i}); }

// ---- updates -----------------------------------------------------------------------------------------------------

namespace {

using Scatter = Array (*)(const Array&, const Array&, const Array&, const ScatterDimensionNumbers&,
                          const lax::ScatterOptions&);

// The sharding of what an index selects: dimensions taken whole keep the array's, others are unsplit.
Sharding selected_split(const Array& x, const GatherIndexer& indexer) {
  const Sharding& own = x.type().sharding;
  if (!own.is_explicit() || !indexer.scalar_mask_dims.empty()) return {};
  const Ints& collapsed = indexer.dims.collapsed_slice_dims;
  PartitionSpec spec;
  spec.dims.resize(indexer.slice_shape.size() - indexer.new_axes.size());
  auto to = indexer.dims.offset_dims.begin();
  for (std::size_t d = 0; d < x.shape().size(); ++d) {
    if (std::find(collapsed.begin(), collapsed.end(), static_cast<int64_t>(d)) != collapsed.end()) continue;
    const auto dim = static_cast<std::size_t>(*to++);
    if (indexer.window[d] == x.shape()[d]) spec.dims[dim] = split_axes(x.type(), d);
  }
  for (int64_t d : indexer.new_axes) spec.dims.insert(spec.dims.begin() + d, AxisList{});
  return Sharding::explicit_over(own.mesh(), std::move(spec));
}

Array update(const Array& array, const std::vector<Index>& indices, const Array& values, Scatter scatter,
             const UpdateOptions& options) {
  std::optional<lax::GatherScatterMode> mode = parse_mode(options.mode);
  GatherIndexer indexer = to_gather(parse_index(array.shape(), indices), options.wrap_negative_indices);
  if (element_count(indexer.slice_shape) == 0) return array;
  Array x = array, y = values;
  if (is_plain_number(y) && is_integer(y.dtype()) && is_integer(x.dtype())) y = number_as(y, x.dtype(), false);
  ScalarType common =
      promote_types({x.dtype(), x.weak_type()}, {y.dtype(), y.weak_type()}, config().enable_x64, promotion_mode());
  if (common.dtype != array.dtype()) {
    warn(concat("scatter inputs have incompatible types: cannot safely cast value from dtype=", dtype_name(y.dtype()),
                " to dtype=", dtype_name(array.dtype()), " with jax_numpy_dtype_promotion=",
                config().numpy_dtype_promotion, "; cast the values explicitly, later versions of JAX refuse them."),
         WarningKind::future);
  }
  x = array_as(x, common.dtype, common.weak);
  y = array_as(y, common.dtype, common.weak);

  const Shape& target = indexer.slice_shape;
  bool fits = y.ndim() <= static_cast<int64_t>(target.size());
  auto lead = static_cast<int64_t>(target.size()) - y.ndim();
  for (int64_t i = 0; fits && i < y.ndim(); ++i) fits = y.shape(i) == 1 || y.shape(i) == at(target, lead + i);
  if (!fits) {
    throw ValueError(
        concat("at: values of shape ", tuple(y.shape()), " do not broadcast to the indexed shape ", tuple(target)));
  }
  if (y.shape() != target)
    y = lax::broadcast_in_dim(y, target, range(lead + y.ndim(), lead), selected_split(array, indexer));
  y = lax::squeeze(y, indexer.new_axes);
  if (!indexer.reversed_dims.empty()) y = lax::rev(y, indexer.reversed_dims);
  if (!indexer.scalar_mask_dims.empty()) x = lax::expand_dims(x, indexer.scalar_mask_dims);
  const GatherDimensionNumbers& dims = indexer.dims;
  Array out =
      scatter(x, indexer.indices, y, {dims.offset_dims, dims.collapsed_slice_dims, dims.start_index_map, {}, {}},
              {.indices_are_sorted = options.indices_are_sorted || !indexer.advanced,
               .unique_indices = options.unique_indices || !indexer.advanced,
               .mode = mode});
  if (!indexer.scalar_mask_dims.empty()) out = lax::squeeze(out, indexer.scalar_mask_dims);
  return array_as(out, array.dtype(), array.weak_type());
}

// Integer powers by repeated squaring, as jnp.power on two integer arrays.
Array integer_power(Array base, Array exponent) {
  DType dtype = exponent.dtype();
  auto constant = [&](int64_t value) { return index_constant(value, dtype); };
  Array zero_base = lax::eq(base, constant(0));
  Array vanishes = lax::bitwise_and(zero_base, lax::ne(exponent, constant(0)));
  Array filled = lax::full(base.shape(), constant(0));
  Array power = lax::select(vanishes, filled, lax::full(base.shape(), constant(1)));
  for (int bit = 0; bit < 6; ++bit) {
    Array odd = lax::ne(lax::bitwise_and(exponent, constant(1)), constant(0));
    power = lax::select(odd, lax::mul(power, base), power);
    base = lax::mul(base, base);
    exponent = lax::shift_right_logical(exponent, constant(1));
  }
  return power;
}

}  // namespace

Array apply_at(const Array& array, const std::vector<Index>& indices,
               const std::function<Array(const Array&)>& function, const UpdateOptions& options) {
  GatherIndexer indexer = to_gather(parse_index(array.shape(), indices), options.wrap_negative_indices);
  if (element_count(indexer.slice_shape) == 0) return array;
  Array x = array;
  if (!indexer.scalar_mask_dims.empty()) x = lax::expand_dims(x, indexer.scalar_mask_dims);
  // The writes of scatter_apply depend only on the number of updates, not on their values.
  Shape updates;
  for (std::size_t i = 0; i < indexer.slice_shape.size(); ++i) {
    bool is_new =
        std::find(indexer.new_axes.begin(), indexer.new_axes.end(), static_cast<int64_t>(i)) != indexer.new_axes.end();
    if (!is_new) updates.push_back(indexer.slice_shape[i]);
  }
  const GatherDimensionNumbers& dims = indexer.dims;
  Array out = lax::scatter_apply(x, indexer.indices, function,
                                 {dims.offset_dims, dims.collapsed_slice_dims, dims.start_index_map, {}, {}}, updates,
                                 {.indices_are_sorted = options.indices_are_sorted || !indexer.advanced,
                                  .unique_indices = options.unique_indices || !indexer.advanced,
                                  .mode = parse_mode(options.mode)});
  return indexer.scalar_mask_dims.empty() ? out : lax::squeeze(out, indexer.scalar_mask_dims);
}

Array IndexUpdate::get(const GetOptions& options) const { return index(array_, indices_, options); }
Array IndexUpdate::set(const Array& values, const UpdateOptions& options) const {
  return update(array_, indices_, values, lax::scatter, options);
}
Array IndexUpdate::add(const Array& values, const UpdateOptions& options) const {
  return update(array_, indices_, values, lax::scatter_add, options);
}
Array IndexUpdate::subtract(const Array& values, const UpdateOptions& options) const {
  return update(array_, indices_, values, lax::scatter_sub, options);
}
Array IndexUpdate::multiply(const Array& values, const UpdateOptions& options) const {
  return update(array_, indices_, values, lax::scatter_mul, options);
}
Array IndexUpdate::min(const Array& values, const UpdateOptions& options) const {
  return update(array_, indices_, values, lax::scatter_min, options);
}
Array IndexUpdate::max(const Array& values, const UpdateOptions& options) const {
  return update(array_, indices_, values, lax::scatter_max, options);
}

// Divisors and exponents are multiplied into ones: repeated indices combine, untouched elements are unchanged.
Array IndexUpdate::divide(const Array& values, const UpdateOptions& options) const {
  return array_ / update(lax::ones(array_.type().strong()), indices_, values, lax::scatter_mul, options);
}
Array IndexUpdate::power(const Array& values, const UpdateOptions& options) const {
  Array exponents = update(lax::ones(array_.type().strong()), indices_, values, lax::scatter_mul, options);
  return is_integer(array_.dtype()) ? integer_power(array_, exponents) : lax::pow(array_, exponents);
}

// ---- shape methods -----------------------------------------------------------------------------------------------

Array Array::reshape(Shape shape) const {
  int64_t known = 1, unknown = -1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != -1) {
      known *= shape[i];
    } else if (unknown >= 0) {
      throw TypeError(concat("reshape: can only specify one unknown axis size with a -1 value, got ", tuple(shape)));
    } else {
      unknown = static_cast<int64_t>(i);
    }
  }
  if (unknown >= 0) {
    if (known == 0 || size() % known != 0) {
      throw TypeError(concat("reshape: cannot reshape array of shape ", tuple(this->shape()), " (size ", size(),
                             ") into shape ", tuple(shape), ": the known sizes do not divide it"));
    }
    shape[static_cast<std::size_t>(unknown)] = size() / known;
  } else if (known != size()) {
    throw TypeError(concat("reshape: cannot reshape array of shape ", tuple(this->shape()), " (size ", size(),
                           ") into shape ", tuple(shape), " (size ", known, ")"));
  }
  return lax::reshape(*this, shape);
}

Array Array::transpose(std::vector<int64_t> axes) const {
  if (axes.empty()) {
    axes = range(ndim());
    std::reverse(axes.begin(), axes.end());
  }
  for (int64_t& axis : axes) axis = checked_axis("transpose", axis, type(), "axes");
  return lax::transpose(*this, axes);
}

}  // namespace capibara
