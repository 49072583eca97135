// The ragged dot product: a dot product whose lhs is split into groups along one dimension, each with its own rhs or
// result.
#include "lax/contract/ragged_dot.h"
#include "lax/contract/contract.h"
#include "lax/contract/precision.h"
#include "lax/contract/ragged_blocks.h"
#include "lax/families.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"
#include "lax/shape/shape.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"

#include <algorithm>

namespace capibara {

namespace lax = jax::lax;

namespace {

int64_t index_of(const Ints& values, int64_t value) {
  return std::find(values.begin(), values.end(), value) - values.begin();
}

std::string tuple_text(const Ints& values) {
  std::string text = "(";
  for (std::size_t i = 0; i < values.size(); ++i) text += concat(i ? ", " : "", values[i]);
  return text + (values.size() == 1 ? ",)" : ")");
}

std::shared_ptr<const RaggedDotDimensionNumbers> numbers_of(const Attrs& attrs) {
  return attrs.opaque<RaggedDotDimensionNumbers>("ragged_dot_dimension_numbers");
}

Array ragged_dot(const Array& lhs, const Array& rhs, const Array& sizes, const Attr& numbers, const Attrs& attrs) {
  static const Primitive p = primitive("ragged_dot_general");
  return capibara::bind(p, Arrays{lhs, rhs, sizes}, attrs.with("ragged_dot_dimension_numbers", numbers))[0];
}

TypeResult ragged_dot_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("ragged_dot_general", types, 3);
  const ArrayType &lhs = types[0], &rhs = types[1], &sizes = types[2];
  auto numbers = numbers_of(attrs);
  if (numbers->lhs_ragged_dimensions.size() != 1) {
    throw TypeError("ragged_dot_general expects exactly one lhs ragged dimension.");
  }
  int64_t ragged = numbers->lhs_ragged_dimensions[0];
  if (ragged < 0 || ragged >= lhs.rank()) {
    throw TypeError(
        concat("ragged_dot_general requires lhs ragged dimension numbers to be nonnegative and less than the number of "
               "axes of the lhs value, got ",
               ragged, " for ", to_string(lhs)));
  }
  if (!is_integer(sizes.dtype)) {
    throw TypeError(concat("ragged_dot_general requires group_sizes of an integer dtype, got ", to_string(sizes)));
  }
  if (sizes.rank() == 0) throw TypeError("ragged_dot_general: expected rank of group_sizes to be >=1.");
  RaggedMode mode = ragged_mode(*numbers);
  const DotDimensionNumbers& dot = numbers->dot;
  int64_t groups = sizes.shape.back();
  Ints ignored;
  if (mode == RaggedMode::noncontracting) {
    if (numbers->rhs_group_dimensions.size() != 1) {
      throw TypeError(
          "ragged_dot_general requires exactly one rhs group dimension when lhs ragged dimension is noncontracting.");
    }
    int64_t group = numbers->rhs_group_dimensions[0];
    if (group < 0 || group >= rhs.rank() || contains(dot.rhs_batch, group) || contains(dot.rhs_contracting, group)) {
      throw TypeError(
          concat("ragged_dot_general requires rhs group dimension numbers to be distinct from contracting and batch "
                 "dimensions, and dimensions of ",
                 to_string(rhs), ", got ", group));
    }
    if (rhs.shape[static_cast<std::size_t>(group)] != groups) {
      throw TypeError(concat("ragged_dot_general: expected rhs group dimension size to be ", groups, ", got ",
                             rhs.shape[static_cast<std::size_t>(group)], "."));
    }
    ignored = {group};
  } else if (!numbers->rhs_group_dimensions.empty()) {
    throw TypeError(
        "ragged_dot_general requires zero group dimensions in the rhs when lhs ragged dimension is contracting or "
        "batch.");
  }
  ArrayType out;
  out.shape = dot_shape("ragged_dot_general", lhs, rhs, dot, ignored);
  if (sizes.rank() != 1) {
    Shape expected;
    for (int64_t d : ragged_prefix(mode, lhs.rank(), ragged, dot.lhs_batch, dot.lhs_contracting)) {
      expected.push_back(lhs.shape[static_cast<std::size_t>(d)]);
    }
    expected.push_back(groups);
    if (sizes.shape != expected) {
      throw TypeError(concat("ragged_dot_general: expected group_sizes to have shape ", tuple_text(expected), ", got ",
                             tuple_text(sizes.shape), "."));
    }
  }
  if (mode == RaggedMode::contracting) out.shape.insert(out.shape.begin(), groups);
  out.dtype = dot_dtype("ragged_dot_general", lhs.dtype, rhs.dtype, attrs);
  out.weak_type = lhs.weak_type && rhs.weak_type && sizes.weak_type;
  return Types{out};
}

JvpResult ragged_dot_jvp(const JvpArgs& args) {
  const Array &x = args.primals[0], &y = args.primals[1], &sizes = args.primals[2];
  auto product = [&](const Array& lhs, const Array& rhs) {
    return capibara::bind(args.primitive, Arrays{lhs, rhs, sizes}, args.attrs)[0];
  };
  Array out = product(x, y);
  if (!args.tangents[0].defined() && !args.tangents[1].defined()) return {{out}, {Array()}};
  Array from_x = args.tangents[0].defined() ? product(args.tangents[0], y) : lax::zeros_like(out);
  Array from_y = args.tangents[1].defined() ? product(x, args.tangents[1]) : lax::zeros_like(out);
  return {{out}, {lax::add(from_x, from_y)}};
}

Arrays ragged_dot_transpose(const TransposeArgs& args) {
  const Array& cotangent = args.cotangents[0];
  if (!cotangent.defined()) return {Array(), Array(), Array()};
  auto numbers = numbers_of(args.attrs);
  if (ragged_mode(*numbers) != RaggedMode::noncontracting) {
    throw NotImplementedError(
        "ragged_dot_general: the reverse derivative is defined only where the ragged dimension is noncontracting");
  }
  const DotDimensionNumbers& dot = numbers->dot;
  const Ints& group = numbers->rhs_group_dimensions;
  int64_t ragged = numbers->lhs_ragged_dimensions[0];
  auto batch_count = static_cast<int64_t>(dot.lhs_batch.size());
  Ints x_kept = remaining_dims(args.types[0].rank(), dot.lhs_contracting, dot.lhs_batch);
  Ints y_kept = remaining_dims(args.types[1].rank(), dot.rhs_contracting, dot.rhs_batch, group);
  Ints out_batch = counting(0, dot.lhs_batch.size()), out_x = counting(batch_count, x_kept.size());
  Ints out_y = counting(batch_count + static_cast<int64_t>(x_kept.size()), y_kept.size());
  auto finish = [](const Array& product, const Ints& axes, const ArrayType& like) {
    Array x = lax::transpose(product, argsort(axes));
    return x.dtype() == like.dtype ? x : lax::convert_element_type(x, like.dtype, like.weak_type);
  };
  auto join = [](std::initializer_list<Ints> parts) {
    Ints all;
    for (const Ints& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  Arrays out(3);
  if (args.linear(0)) {
    Attr back = ragged_attr({out_y, y_kept, out_batch, dot.rhs_batch}, {batch_count + index_of(x_kept, ragged)}, group);
    Array product = ragged_dot(cotangent, args.inputs[1], args.inputs[2], back, args.attrs);
    Ints axes = join({dot.lhs_batch, x_kept, taken(dot.lhs_contracting, argsort(dot.rhs_contracting))});
    out[0] = finish(product, axes, args.types[0]);
  } else {
    Attr back = ragged_attr({x_kept, out_x, dot.lhs_batch, out_batch}, {ragged}, {});
    Array product = ragged_dot(args.inputs[0], cotangent, args.inputs[2], back, args.attrs);
    Ints axes = join({group, dot.rhs_batch, taken(dot.rhs_contracting, argsort(dot.lhs_contracting)), y_kept});
    out[1] = finish(product, axes, args.types[1]);
  }
  return out;
}

BatchResult ragged_dot_batch(const BatchArgs& args) {
  auto numbers = numbers_of(args.attrs);
  // All three operands carry the axis in front; it becomes the first batch dimension.
  Arrays inputs;
  for (std::size_t i = 0; i < 3; ++i) inputs.push_back(batch_at(args.inputs[i], args.dims[i], args.axis));
  auto [dot, dim] = batched_dot_numbers(inputs[0].ndim(), inputs[1].ndim(), 0, 0, numbers->dot);
  // Group sizes of shape [g] hold for every prefix; with a leading batch dimension the prefix must be explicit.
  RaggedMode mode = ragged_mode(*numbers);
  if (inputs[2].ndim() == 2) {
    Shape shape = {args.axis.size};
    for (int64_t d : ragged_prefix(mode, inputs[0].ndim() - 1, numbers->lhs_ragged_dimensions[0],
                                   numbers->dot.lhs_batch, numbers->dot.lhs_contracting)) {
      shape.push_back(inputs[0].shape(d + 1));
    }
    shape.push_back(inputs[2].shape(1));
    if (shape.size() > 2)
      inputs[2] = lax::broadcast_in_dim(inputs[2], shape, {0, static_cast<int64_t>(shape.size()) - 1});
  }
  Attr batched =
      ragged_attr(dot, shifted(numbers->lhs_ragged_dimensions, 0), shifted(numbers->rhs_group_dimensions, 0));
  if (mode == RaggedMode::contracting) ++dim;
  return {{ragged_dot(inputs[0], inputs[1], inputs[2], batched, args.attrs)}, {dim}};
}

// x with a leading dimension of groups: zero outside the group's part of dimension `ragged`. `prefix`: the dimensions
// of x that correspond to the leading dimensions of the sizes.
Array spread_groups(const Array& x, int64_t ragged, const Array& sizes, const Ints& prefix) {
  int64_t last = sizes.ndim() - 1, groups = sizes.shape(last);
  Shape shape = x.shape();
  shape.insert(shape.begin(), groups);
  Array spread = lax::broadcast_in_dim(x, shape, counting(1, x.shape().size()));
  Array position = lax::broadcasted_iota(sizes.dtype(), shape, ragged + 1);
  Array ends = lax::cumsum(sizes, {.axis = last});
  Array starts = lax::sub(ends, sizes);
  Ints places = shifted(prefix, 0);
  places.push_back(0);
  Ints order = argsort(places), sorted = taken(places, order);
  auto widen = [&](const Array& a) { return lax::broadcast_in_dim(lax::transpose(a, order), shape, sorted); };
  Array is_at_most = lax::le(widen(starts), position);
  Array inside = lax::bitwise_and(is_at_most, lax::lt(position, widen(ends)));
  return lax::select(inside, spread, lax::zeros_like(spread));
}

// For matrices too large to copy for each group: a loop over blocks of rows. Empty for others.
Array lower_in_blocks(std::span<const Array> inputs, const RaggedDotDimensionNumbers& numbers, const Attrs& attrs) {
  constexpr double few_copies = 1 << 20;  // elements
  const Array &lhs = inputs[0], &rhs = inputs[1], &sizes = inputs[2];
  const double copies = static_cast<double>(lhs.size()) * static_cast<double>(sizes.shape(-1));
  if (lhs.ndim() != 2 || sizes.ndim() != 1 || copies <= few_copies || !is_floating(lhs.dtype())) return {};
  const RaggedProduct product{attrs["precision"], dot_dtype("ragged_dot_general", lhs.dtype(), rhs.dtype(), attrs)};
  auto is = [&](DotDimensionNumbers dot, int64_t ragged, Ints group) {
    return numbers.equals(RaggedDotDimensionNumbers(std::move(dot), {ragged}, std::move(group)));
  };
  if (is({{1}, {1}, {}, {}}, 0, {0})) return multiply_ragged_rows(lhs, rhs, sizes, false, product);
  if (is({{1}, {2}, {}, {}}, 0, {0})) return multiply_ragged_rows(lhs, rhs, sizes, true, product);
  if (is({{0}, {0}, {}, {}}, 0, {})) return multiply_ragged_inner(lhs, rhs, sizes, product);
  return {};
}

Arrays lower_ragged_dot(std::span<const Array> inputs, const Attrs& attrs) {
  static const Primitive dot_general = primitive("dot_general");
  const Array &lhs = inputs[0], &rhs = inputs[1];
  Array sizes = inputs[2];
  auto numbers = numbers_of(attrs);
  const DotDimensionNumbers& dot = numbers->dot;
  RaggedMode mode = ragged_mode(*numbers);
  int64_t ragged = numbers->lhs_ragged_dimensions[0];
  Ints prefix = ragged_prefix(mode, lhs.ndim(), ragged, dot.lhs_batch, dot.lhs_contracting);
  if (sizes.ndim() == 1) {
    Shape shape;
    for (int64_t d : prefix) shape.push_back(lhs.shape(d));
    shape.push_back(sizes.shape(0));
    sizes = lax::broadcast_in_dim(sizes, shape, {static_cast<int64_t>(shape.size()) - 1});
  }
  auto product = [&](const Array& x, const Array& y, DotDimensionNumbers dims) -> Arrays {
    Attrs plain = {{"dimension_numbers", std::move(dims)},
                   {"precision", attrs["precision"]},
                   {"preferred_element_type", attrs["preferred_element_type"]},
                   {"out_sharding", Attr()}};
    return capibara::bind(dot_general, Arrays{x, y}, plain);
  };
  if (mode == RaggedMode::batch) return product(lhs, rhs, dot);
  if (Array blocks = lower_in_blocks(inputs, *numbers, attrs); blocks.defined()) return {blocks};
  Array spread = spread_groups(lhs, ragged, sizes, prefix);
  if (mode == RaggedMode::noncontracting) {
    Ints lhs_contracting = shifted(dot.lhs_contracting, 0), rhs_contracting = dot.rhs_contracting;
    lhs_contracting.push_back(0);
    rhs_contracting.push_back(numbers->rhs_group_dimensions[0]);
    return product(spread, rhs, {lhs_contracting, rhs_contracting, shifted(dot.lhs_batch, 0), dot.rhs_batch});
  }
  int64_t rhs_ragged = dot.rhs_contracting[static_cast<std::size_t>(index_of(dot.lhs_contracting, ragged))];
  Ints rhs_prefix = ragged_prefix(mode, rhs.ndim(), rhs_ragged, dot.rhs_batch, dot.rhs_contracting);
  Ints lhs_batch = shifted(dot.lhs_batch, 0), rhs_batch = shifted(dot.rhs_batch, 0);
  lhs_batch.insert(lhs_batch.begin(), 0);
  rhs_batch.insert(rhs_batch.begin(), 0);
  return product(spread, spread_groups(rhs, rhs_ragged, sizes, rhs_prefix),
                 {shifted(dot.lhs_contracting, 0), shifted(dot.rhs_contracting, 0), lhs_batch, rhs_batch});
}

std::vector<Sample> ragged_dot_samples(DType dtype) {
  std::vector<Sample> samples;
  auto add = [&](Shape lhs, Shape rhs, Shape sizes, Attr numbers) {
    Sample s;
    s.inputs = {scalar_type(dtype).with_shape(std::move(lhs)), scalar_type(dtype).with_shape(std::move(rhs)),
                scalar_type(DType::int32).with_shape(std::move(sizes))};
    s.attrs = {{"ragged_dot_dimension_numbers", std::move(numbers)},
               {"precision", Attr()},
               {"preferred_element_type", Attr()},
               {"group_offset", Attr()},
               {"out_sharding", Attr()}};
    s.low = 0;
    s.integers_are_indices = true;
    samples.push_back(std::move(s));
  };
  add({5, 3}, {2, 3, 4}, {2}, ragged_attr({{1}, {1}, {}, {}}, {0}, {0}));
  add({3, 5}, {5, 4}, {2}, ragged_attr({{1}, {0}, {}, {}}, {1}, {}));
  add({2, 5, 3}, {2, 2, 3, 4}, {2, 2}, ragged_attr({{2}, {2}, {0}, {1}}, {1}, {0}));
  return samples;
}

}  // namespace

bool RaggedDotDimensionNumbers::equals(const Opaque& other) const {
  const auto* that = dynamic_cast<const RaggedDotDimensionNumbers*>(&other);
  return that && dot == that->dot && lhs_ragged_dimensions == that->lhs_ragged_dimensions &&
         rhs_group_dimensions == that->rhs_group_dimensions;
}

std::size_t RaggedDotDimensionNumbers::hash() const { return std::hash<std::string>{}(print()); }

std::string RaggedDotDimensionNumbers::print() const {
  return concat("RaggedDotDimensionNumbers(dot_dimension_numbers=((", tuple_text(dot.lhs_contracting), ", ",
                tuple_text(dot.rhs_contracting), "), (", tuple_text(dot.lhs_batch), ", ", tuple_text(dot.rhs_batch),
                ")), lhs_ragged_dimensions=", tuple_text(lhs_ragged_dimensions),
                ", rhs_group_dimensions=", tuple_text(rhs_group_dimensions), ")");
}

RaggedMode ragged_mode(const RaggedDotDimensionNumbers& numbers) {
  int64_t ragged = numbers.lhs_ragged_dimensions.at(0);
  if (contains(numbers.dot.lhs_contracting, ragged)) return RaggedMode::contracting;
  return contains(numbers.dot.lhs_batch, ragged) ? RaggedMode::batch : RaggedMode::noncontracting;
}

Ints ragged_prefix(RaggedMode mode, int64_t rank, int64_t ragged, const Ints& batch, const Ints& contracting) {
  Ints prefix = batch, kind;
  if (mode == RaggedMode::batch) {
    prefix.clear();
    kind = batch;
  } else {
    kind = mode == RaggedMode::contracting ? contracting : remaining_dims(rank, contracting, batch);
  }
  for (int64_t d : kind) {
    if (d == ragged) break;
    prefix.push_back(d);
  }
  return prefix;
}

Attr ragged_attr(DotDimensionNumbers dot, Ints lhs_ragged, Ints rhs_group) {
  return std::shared_ptr<const Opaque>(
      std::make_shared<RaggedDotDimensionNumbers>(std::move(dot), std::move(lhs_ragged), std::move(rhs_group)));
}

Family ragged_dot_family() {
  PrimitiveRecord record;
  record.name = "ragged_dot_general";
  record.factors = ragged_dot_factors;
  record.splits = ragged_dot_splits;
  record.doc = "A dot product whose lhs is cut into groups along one dimension; each group has its own rhs or result.";
  record.dtypes = {DType::bfloat16, DType::float16, DType::float32, DType::float64, DType::int32, DType::complex64};
  record.type = ragged_dot_type;
  record.jvp = ragged_dot_jvp;
  record.transpose = ragged_dot_transpose;
  record.batch = ragged_dot_batch;
  record.lower = lower_ragged_dot;
  record.samples = ragged_dot_samples;
  record.print_attr = print_precision;
  return {record};
}

}  // namespace capibara

namespace capibara::jax::lax {

Array ragged_dot(const Array& lhs, const Array& rhs, const Array& group_sizes, const DotOptions& options) {
  return ragged_dot_general(lhs, rhs, group_sizes, {{{1}, {1}, {}, {}}, {0}, {0}}, options);
}

Array ragged_dot_general(const Array& lhs, const Array& rhs, const Array& group_sizes,
                         const RaggedDimensions& dimensions, const DotOptions& options) {
  static const Primitive p = primitive("ragged_dot_general");
  Attr numbers = ragged_attr(dimensions.dot, dimensions.lhs_ragged_dimensions, dimensions.rhs_group_dimensions);
  return capibara::bind(p, Arrays{lhs, rhs, group_sizes},
                        {{"ragged_dot_dimension_numbers", std::move(numbers)},
                         {"precision", precision_attr("ragged_dot", options.precision)},
                         {"preferred_element_type", canonical_attr(options.preferred_element_type)},
                         {"group_offset", Attr()},
                         {"out_sharding", Attr()}})[0];
}

}  // namespace capibara::jax::lax
