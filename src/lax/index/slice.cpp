// The window of an array at static positions: slice.
#include "lax/shape/shape.h"
#include "lax/sharding/splits.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

const Ints* strides_of(const Attrs& attrs) { return attrs["strides"].get_if<Ints>(); }

TypeResult slice_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("slice", types, 1);
  const ArrayType& x = types[0];
  const Ints& start = attrs.ints("start_indices");
  const Ints& limit = attrs.ints("limit_indices");
  const Ints* strides = strides_of(attrs);
  if (start.size() != x.shape.size() || limit.size() != x.shape.size() ||
      (strides && strides->size() != x.shape.size())) {
    throw TypeError(concat(
        "slice: start_indices, limit_indices and strides must have one entry per operand dimension, got ", tuple(start),
        ", ", tuple(limit), ", ", strides ? tuple(*strides) : "None", " for shape ", tuple(x.shape)));
  }
  Shape shape;
  for (std::size_t i = 0; i < start.size(); ++i) {
    if (start[i] < 0) throw TypeError(concat("slice: start_indices must not be negative, got ", tuple(start)));
    if (limit[i] > x.shape[i]) {
      throw TypeError(concat("slice: limit_indices must be less than or equal to the operand shape, got ", tuple(limit),
                             " for shape ", tuple(x.shape)));
    }
    if (limit[i] < start[i]) {
      throw TypeError(concat("slice: limit_indices must be greater than or equal to start_indices, got start_indices ",
                             tuple(start), " and limit_indices ", tuple(limit)));
    }
    int64_t stride = strides ? (*strides)[i] : 1;
    if (stride <= 0) throw TypeError(concat("slice: strides must be positive, got ", tuple(*strides)));
    shape.push_back((limit[i] - start[i] + stride - 1) / stride);
  }
  return Types{x.with_shape(shape)};
}

Arrays slice_transpose(const TransposeArgs& args) {
  const Array& ct = args.cotangents[0];
  if (!ct.defined()) return {Array()};
  const Ints& start = args.attrs.ints("start_indices");
  const Ints& limit = args.attrs.ints("limit_indices");
  const Ints* strides = strides_of(args.attrs);
  bool strided = strides && std::any_of(strides->begin(), strides->end(), [](int64_t s) { return s != 1; });
  std::vector<lax::PadDim> config;
  for (std::size_t i = 0; i < start.size(); ++i) {
    int64_t stride = strided ? (*strides)[i] : 1;
    int64_t count = ct.shape()[i];
    int64_t end = strided ? start[i] + (count == 0 ? 0 : 1 + (count - 1) * stride) : limit[i];
    config.push_back({start[i], args.types[0].shape[i] - end, stride - 1});
  }
  return {lax::pad(ct, scalar_of(ct.dtype(), 0), config)};
}

PrimitiveRecord slice_record() {
  PrimitiveRecord r;
  r.name = "slice";
  r.factors = slice_factors;
  r.splits = resized_splits("slicing");
  r.localise = localise_slice;
  r.traits.moves = Moves::index;
  r.traits.free_to_recompute = true;
  r.doc = "The elements from start to limit (exclusive) by stride in each dimension.";
  r.dtypes = array_dtypes();
  r.type = slice_type;
  r.jvp = linear_jvp();
  r.transpose = slice_transpose;
  r.batch = [](const BatchArgs& args) -> BatchResult {
    int64_t dim = args.dims[0];
    const Ints* strides = strides_of(args.attrs);
    return {{lax::slice(args.inputs[0], inserted(args.attrs.ints("start_indices"), dim, 0),
                        inserted(args.attrs.ints("limit_indices"), dim, args.axis.size),
                        strides ? inserted(*strides, dim, 1) : Ints{})},
            {dim}};
  };
  r.stablehlo = "stablehlo.slice";
  // In the subset a slice without steps has no strides.
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    const Ints* strides = strides_of(attrs);
    if (!strides || std::any_of(strides->begin(), strides->end(), [](int64_t s) { return s != 1; })) return {};
    static const Primitive self = primitive("slice");
    return {bind1(self, {in[0]}, attrs.with("strides", Attr()))};
  };
  r.samples = [](DType d) {
    auto attrs = [](Ints start, Ints limit, Attr strides = Attr()) {
      return Attrs{{"start_indices", start}, {"limit_indices", limit}, {"strides", strides}};
    };
    return std::vector<Sample>{{{sample_type(d, {5})}, attrs({1}, {4})},
                               {{sample_type(d, {7})}, attrs({1}, {7}, Ints{3})},
                               {{sample_type(d, {3, 4})}, attrs({0, 1}, {2, 4}, Ints{1, 2})},
                               {{sample_type(d, {2, 3, 4})}, attrs({1, 0, 2}, {2, 3, 3})},
                               {{sample_type(d, {})}, attrs({}, {})},
                               {{sample_type(d, {3, 2})}, attrs({2, 0}, {2, 2})}};
  };
  return r;
}

}  // namespace

Family slice_records() {
  Family family;
  family.push_back(slice_record());
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

Array slice(const Array& x, const Ints& start_indices, const Ints& limit_indices, const Ints& strides) {
  static const Primitive p = primitive("slice");
  return bind1(p, {x},
               {{"start_indices", start_indices},
                {"limit_indices", limit_indices},
                {"strides", strides.empty() ? Attr() : Attr(strides)}});
}

Array slice_in_dim(const Array& x, std::optional<int64_t> start, std::optional<int64_t> limit, int64_t stride,
                   int64_t axis) {
  auto d = static_cast<std::size_t>(checked_axis("slice_in_dim", axis, x.type()));
  Ints starts(x.shape().size(), 0), limits = x.shape(), strides(x.shape().size(), 1);
  int64_t size = limits[d];
  auto from_end = [&](int64_t i) { return i < 0 ? i + size : i; };
  starts[d] = from_end(start.value_or(0));
  limits[d] = from_end(limit.value_or(size));
  strides[d] = stride;
  return slice(x, starts, limits, strides);
}

Array index_in_dim(const Array& x, int64_t index, int64_t axis, bool keepdims) {
  axis = checked_axis("index_in_dim", axis, x.type());
  int64_t size = x.shape(axis);
  int64_t position = index < 0 ? index + size : index;
  if (position < 0 || position >= size) {
    throw IndexError(concat("index_in_dim: index ", index, " is out of bounds for axis ", axis, " with size ", size));
  }
  Array window = slice_in_dim(x, position, position + 1, 1, axis);
  return keepdims ? window : squeeze(window, {axis});
}

}  // namespace capibara::jax::lax
