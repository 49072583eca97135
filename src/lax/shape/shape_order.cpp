// Reordering and repeating the elements of one array: transpose, rev, tile.
#include "lax/shape/shape.h"
#include "lax/sharding/splits.h"
#include "program/ir/explicit_types.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

// ---- transpose ---------------------------------------------------------------------------------------------------

TypeResult transpose_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("transpose", types, 1);
  const Ints& permutation = attrs.ints("permutation");
  Ints sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != range(types[0].rank())) {
    throw TypeError(concat("transpose: permutation must be a permutation of the operand's dimensions, got ",
                           tuple(permutation), " for shape ", tuple(types[0].shape)));
  }
  Shape shape;
  for (int64_t dim : permutation) shape.push_back(at(types[0].shape, dim));
  return Types{types[0].with_shape(shape)};
}

PrimitiveRecord transpose_record() {
  PrimitiveRecord r;
  r.name = "transpose";
  r.factors = transpose_factors;
  r.splits = transpose_splits;
  r.traits.moves = Moves::index;
  r.doc = "Permutes the dimensions: output dimension i is operand dimension permutation[i].";
  r.dtypes = array_dtypes();
  r.type = transpose_type;
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) -> Arrays {
    if (!args.cotangents[0].defined()) return {Array()};
    return {lax::transpose(args.cotangents[0], inverse_permutation(args.attrs.ints("permutation")))};
  };
  r.batch = [](const BatchArgs& args) -> BatchResult {
    int64_t dim = args.dims[0];
    return {{lax::transpose(args.inputs[0], prepended(dim, shifted(args.attrs.ints("permutation"), dim)))}, {0}};
  };
  r.stablehlo = "stablehlo.transpose";
  r.samples = [](DType d) {
    return std::vector<Sample>{{{sample_type(d, {2, 3})}, {{"permutation", Ints{1, 0}}}},
                               {{sample_type(d, {2, 3, 4})}, {{"permutation", Ints{2, 0, 1}}}},
                               {{sample_type(d, {})}, {{"permutation", Ints{}}}},
                               {{sample_type(d, {3, 0})}, {{"permutation", Ints{1, 0}}}}};
  };
  return r;
}

// ---- rev ---------------------------------------------------------------------------------------------------------

TypeResult rev_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("rev", types, 1);
  const Ints& dims = attrs.ints("dimensions");
  if (has_duplicates(dims)) throw TypeError(concat("rev: dimensions must be unique, got ", tuple(dims)));
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= types[0].rank()) {
      throw TypeError(concat("rev: dimensions must be in [0, ", types[0].rank(), "), got ", tuple(dims), " for shape ",
                             tuple(types[0].shape)));
    }
  }
  return Types{types[0]};
}

PrimitiveRecord rev_record() {
  PrimitiveRecord r;
  r.name = "rev";
  r.factors = rev_factors;
  r.splits = same_splits;
  r.traits.moves = Moves::index;
  r.traits.free_to_recompute = true;
  r.doc = "Reverses the order of elements along dimensions.";
  r.dtypes = array_dtypes();
  r.type = rev_type;
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) -> Arrays {
    if (!args.cotangents[0].defined()) return {Array()};
    return {lax::rev(args.cotangents[0], args.attrs.ints("dimensions"))};
  };
  r.batch = [](const BatchArgs& args) -> BatchResult {
    int64_t dim = args.dims[0];
    return {{lax::rev(args.inputs[0], shifted(args.attrs.ints("dimensions"), dim))}, {dim}};
  };
  r.stablehlo = "stablehlo.reverse";
  r.samples = [](DType d) {
    return std::vector<Sample>{{{sample_type(d, {4})}, {{"dimensions", Ints{0}}}},
                               {{sample_type(d, {2, 3})}, {{"dimensions", Ints{1, 0}}}},
                               {{sample_type(d, {2, 3, 2})}, {{"dimensions", Ints{1}}}},
                               {{sample_type(d, {})}, {{"dimensions", Ints{}}}},
                               {{sample_type(d, {0, 2})}, {{"dimensions", Ints{0}}}}};
  };
  return r;
}

// ---- tile --------------------------------------------------------------------------------------------------------

// reps and sizes interleaved: the shape in which each repetition has its own dimension.
Shape interleaved(const Ints& reps, const Shape& shape) {
  Shape out;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    out.push_back(reps[i]);
    out.push_back(shape[i]);
  }
  return out;
}

TypeResult tile_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("tile", types, 1);
  const Ints& reps = attrs.ints("reps");
  if (static_cast<int64_t>(reps.size()) != types[0].rank()) {
    throw TypeError(concat("tile: reps must have one entry per operand dimension, got ", tuple(reps), " for shape ",
                           tuple(types[0].shape)));
  }
  require_sizes("tile", "reps", reps);
  Shape shape = types[0].shape;
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] *= reps[i];
  return Types{types[0].with_shape(shape)};
}

PrimitiveRecord tile_record() {
  PrimitiveRecord r;
  r.name = "tile";
  r.factors = tile_factors;
  r.splits = tile_splits;
  r.localise = localise_tile;
  r.traits.moves = Moves::several;
  r.doc = "Repeats a whole array along each dimension.";
  r.dtypes = array_dtypes();
  r.type = tile_type;
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) -> Arrays {
    if (!args.cotangents[0].defined() || !args.linear(0)) return {Array()};
    Sharding wanted = cotangent_sharding(args.types[0].sharding);
    if (wanted.is_explicit()) {
      PartitionSpec spec = wanted.spec();
      spec.dims.clear();
      for (const AxisList& own : wanted.spec().dims) spec.dims.insert(spec.dims.end(), {AxisList{}, own});
      wanted = Sharding::explicit_over(wanted.mesh(), std::move(spec), wanted.varying());
    }
    Array split =
        lax::reshape(args.cotangents[0], interleaved(args.attrs.ints("reps"), args.types[0].shape), {}, wanted);
    Ints axes;
    for (int64_t i = 0; i < args.types[0].rank(); ++i) axes.push_back(2 * i);
    return {lax::reduce_sum(split, {.axes = axes})};
  };
  r.batch = [](const BatchArgs& args) -> BatchResult {
    int64_t dim = args.dims[0];
    return {{lax::tile(args.inputs[0], inserted(args.attrs.ints("reps"), dim, 1))}, {dim}};
  };
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    const Ints& reps = attrs.ints("reps");
    const Shape& shape = in[0].shape();
    Array split = lax::reshape(in[0], interleaved(Ints(shape.size(), 1), shape));
    Array repeated = lax::broadcast_in_dim(split, interleaved(reps, shape), range(split.ndim()));
    Shape out = shape;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] *= reps[i];
    return {lax::reshape(repeated, out)};
  };
  r.samples = [](DType d) {
    return std::vector<Sample>{{{sample_type(d, {3})}, {{"reps", Ints{2}}}},
                               {{sample_type(d, {2, 3})}, {{"reps", Ints{2, 3}}}},
                               {{sample_type(d, {2, 1, 2})}, {{"reps", Ints{1, 3, 0}}}},
                               {{sample_type(d, {})}, {{"reps", Ints{}}}}};
  };
  return r;
}

}  // namespace

Family order_records() {
  Family family;
  family.push_back(transpose_record());
  family.push_back(rev_record());
  family.push_back(tile_record());
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

Array transpose(const Array& x, const Ints& permutation) {
  static const Primitive p = primitive("transpose");
  if (permutation == range(x.ndim())) return x;
  return bind1(p, {x}, {{"permutation", permutation}});
}

Array rev(const Array& x, const Ints& dimensions) {
  static const Primitive p = primitive("rev");
  return bind1(p, {x}, {{"dimensions", dimensions}});
}

Array tile(const Array& x, const Ints& reps) {
  static const Primitive p = primitive("tile");
  return bind1(p, {x}, {{"reps", reps}});
}

}  // namespace capibara::jax::lax
