// Explicit types of results: by the rule of the primitive's record, else by factors, so that
//
//   (b m k) (b k n) -> (b m n), k: sum       f32[8@x,4,2] f32[8@x,2,6@y] -> f32[8@x,4,6@y]
//
// each dimension of a result takes the axes of its factors, on which the operands must agree.
#include "program/ir/explicit_types.h"

#include <capibara/factors.h>

#include <algorithm>

#include "core/array/format.h"
#include "program/ir/handles.h"
#include "program/ir/manual_axes.h"
#include "program/ir/nested.h"
#include "program/ir/varying.h"

namespace capibara {

namespace {

std::string types_text(std::span<const ArrayType> types) {
  std::string text;
  for (const ArrayType& type : types) text += concat(text.empty() ? "" : ", ", short_string(type));
  return text;
}

// The axes that split each factor of an equation.
class FactorAxes {
 public:
  FactorAxes(const SplitArgs& args, const Factors& factors)
      : args_(args), factors_(factors), axes_(factors.factors.size()) {
    for (std::size_t v = 0; v < args.operands.size(); ++v) {
      for (std::size_t d = 0; d < args.operands[v].shape.size(); ++d) assign(v, d);
    }
  }

  std::vector<PartitionSpec> results() const {
    std::vector<PartitionSpec> specs;
    for (const ValueFactors& value : factors_.results) {
      PartitionSpec spec;
      for (const DimensionFactors& dimension : value) {
        AxisList axes;
        for (int id : dimension) {
          const AxisList& own = axes_[static_cast<std::size_t>(id)];
          axes.insert(axes.end(), own.begin(), own.end());
        }
        spec.dims.push_back(std::move(axes));
      }
      specs.push_back(std::move(spec));
    }
    return specs;
  }

 private:
  // Assigns the axes of a dimension to its factors, the outermost first.
  void assign(std::size_t operand, std::size_t dim) {
    const AxisList& axes = split_axes(args_.operands[operand], dim);
    const DimensionFactors& dimension = factors_.operands[operand][dim];
    std::size_t next = 0;
    for (int id : dimension) {
      const Factor& factor = factors_.factors[static_cast<std::size_t>(id)];
      AxisList own;
      int64_t rest = factor.size;
      while (next < axes.size() && rest > 1 && rest % args_.mesh.axis_size(axes[next]) == 0) {
        rest /= args_.mesh.axis_size(axes[next]);
        own.push_back(axes[next++]);
      }
      if (own.empty()) continue;
      if (factor.use == FactorUse::whole) refuse_split(operand, dim);
      AxisList& known = axes_[static_cast<std::size_t>(id)];
      if (!known.empty() && known != own) refuse_difference();
      known = std::move(own);
    }
    if (next < axes.size()) refuse_split(operand, dim);
  }

  [[noreturn]] void refuse_split(std::size_t operand, std::size_t dim) const {
    throw ShardingTypeError(concat(args_.primitive.name(), ": dimension ", dim, " of operand ", operand,
                                   " must not be sharded, got ", to_string(args_.operands[operand]),
                                   ".\nHint: reshard it first by `jax.sharding.reshard`, or leave the operation to the "
                                   "compiler by `jax.sharding.auto_axes(fun, out_sharding=...)`."));
  }

  [[noreturn]] void refuse_difference() const {
    std::string text;
    for (const ArrayType& type : args_.operands) {
      if (type.shape.empty()) continue;
      PartitionSpec spec;
      for (std::size_t d = 0; d < type.shape.size(); ++d) spec.dims.push_back(split_axes(type, d));
      text += concat(text.empty() ? "" : ", ", partitions_text(spec));
    }
    throw ShardingTypeError(
        concat(args_.primitive.name(), " got incompatible shardings for broadcasting: ", text, "."));
  }

  const SplitArgs& args_;
  const Factors& factors_;
  std::vector<AxisList> axes_;
};

void refuse_sums(const SplitArgs& args) {
  for (const ArrayType& type : args.operands) {
    if (!type.sharding.is_explicit()) continue;
    const PartitionSpec& spec = type.sharding.spec();
    if (spec.unreduced.empty() && spec.reduced.empty()) continue;
    throw NotImplementedError(
        concat("unreduced/reduced rule for ", args.primitive.name(), " is not implemented: got ", to_string(type)));
  }
}

std::vector<PartitionSpec> splits_by_factors(const SplitArgs& args) {
  refuse_sums(args);
  Types plain;
  for (const ArrayType& type : args.operands) plain.push_back(without_splits(type));
  const Factors factors = factors_of({args.primitive, plain, args.results, args.attrs});
  return FactorAxes(args, factors).results();
}

const Mesh& mesh_of(const Primitive& primitive, std::span<const ArrayType> operands, const Attrs& attrs) {
  const Mesh* mesh = nullptr;
  const auto& around = context_mesh();
  for (const ArrayType& type : operands) {
    if (!type.sharding.is_explicit()) continue;
    const Mesh& own = type.sharding.mesh();
    if (mesh && !(*mesh == own)) {
      throw ValueError(concat("Mesh for all inputs should be equal. Got one mesh: ", abstract_mesh_text(*mesh),
                              " and another mesh: ", abstract_mesh_text(own)));
    }
    // Maps derived from a shard_map are traced outside its context.
    if (around && !own.any_is(AxisType::Manual) && !(around->mesh == own)) {
      throw ValueError(concat("For primitive ", primitive.name(), ", context mesh ", abstract_mesh_text(around->mesh),
                              " should match the aval mesh ", abstract_mesh_text(own), " for shape ", to_string(type)));
    }
    mesh = &own;
  }
  if (!mesh) mesh = &requested_sharding(attrs)->sharding.mesh();
  return *mesh;
}

void check_axes_once(const SplitArgs& args, const ArrayType& result) {
  AxisList seen;
  auto see = [&](const AxisList& axes) {
    for (const std::string& axis : axes) {
      if (lists_axis(seen, axis)) {
        throw ShardingTypeError(concat(args.primitive.name(), " operation with inputs: ", types_text(args.operands),
                                       " produces an illegally sharded result: ", short_string(result)));
      }
      seen.push_back(axis);
    }
  };
  const PartitionSpec& spec = result.sharding.spec();
  for (const AxisList& axes : spec.dims) see(axes);
  see(spec.unreduced);
  see(spec.reduced);
}

}  // namespace

void check_divides(const ArrayType& result) {
  const Sharding& sharding = result.sharding;
  for (std::size_t d = 0; d < result.shape.size(); ++d) {
    const AxisList& axes = sharding.spec().dims[d];
    int64_t parts = 1;
    for (const std::string& axis : axes) parts *= sharding.mesh().axis_size(axis);
    if (result.shape[d] % parts == 0) continue;
    std::string names;
    for (const std::string& axis : axes) names += concat(names.empty() ? "'" : ", '", axis, "'");
    throw ValueError(concat("Sharding spec (", names, axes.size() == 1 ? ",)" : ")", " implies that array axis ", d,
                            " is partitioned ", parts, " times, but does not evenly divide the dimension size ",
                            result.shape[d], ". Got shape: ", shape_tuple(result.shape), " and sharding ",
                            sharding_text(sharding)));
  }
}

void split_results(const Primitive& primitive, std::span<const ArrayType> operands, const Attrs& attrs,
                   Types& results) {
  const Mesh& mesh = mesh_of(primitive, operands, attrs);
  const Types plain = results;
  const SplitArgs args{primitive, operands, plain, attrs, mesh};
  const std::vector<PartitionSpec> specs = primitive->splits ? primitive->splits(args) : splits_by_factors(args);
  for (std::size_t i = 0; i < results.size(); ++i) {
    ArrayType& result = results[i];
    if (result.ref || result.dtype == DType::token) continue;
    PartitionSpec spec = specs[i];
    spec.dims.resize(result.shape.size());
    const bool says_nothing = spec.unreduced.empty() && spec.reduced.empty() && !mesh.any_is(AxisType::Explicit);
    if (says_nothing) continue;  // inside shard_map
    result.sharding = Sharding::explicit_over(mesh, std::move(spec), result.sharding.varying());
    check_axes_once(args, result);
    check_divides(result);
  }
}

TypeResult explicit_types(const Primitive& primitive, Types operands, const Attrs& attrs) {
  const bool runs_programs =
      primitive->traits.control != Control::none || (holds_programs(attrs) && !primitive->traits.region);
  if (runs_programs || primitive == prim::reshard() || is_collective(primitive) || is_cast(primitive))
    return primitive->type(operands, attrs);
  const Types given = operands;
  for (ArrayType& type : operands) type = without_splits(std::move(type));
  TypeResult result = primitive->type(operands, attrs);
  split_results(primitive, given, attrs, result.types);
  return result;
}

ArrayType with_dimension(ArrayType type, int64_t dim, int64_t size, const AxisList& axes) {
  type.shape.insert(type.shape.begin() + dim, size);
  if (!type.sharding.is_explicit()) return type;
  PartitionSpec spec = type.sharding.spec();
  spec.dims.insert(spec.dims.begin() + dim, axes);
  type.sharding = Sharding::explicit_over(type.sharding.mesh(), std::move(spec), type.sharding.varying());
  return type;
}

ArrayType without_dimension(ArrayType type, int64_t dim) {
  type.shape.erase(type.shape.begin() + dim);
  if (!type.sharding.is_explicit()) return type;
  PartitionSpec spec = type.sharding.spec();
  spec.dims.erase(spec.dims.begin() + dim);
  type.sharding = Sharding::explicit_over(type.sharding.mesh(), std::move(spec), type.sharding.varying());
  return type;
}

Sharding cotangent_sharding(const Sharding& primal) {
  if (!primal.is_explicit() || (primal.spec().unreduced.empty() && primal.spec().reduced.empty())) return primal;
  PartitionSpec spec = primal.spec();
  std::swap(spec.unreduced, spec.reduced);
  return Sharding::explicit_over(primal.mesh(), std::move(spec), primal.varying());
}

}  // namespace capibara
