// Tangents that may be zero, and moving or adding a mapped axis.
#include "program/derive/values.h"

#include <capibara/lax.h>

#include <algorithm>

#include "core/sharding/explicit.h"
#include "program/derive/spmd.h"
#include "program/ir/explicit_types.h"
#include "program/ir/handles.h"
#include "program/ir/varying.h"

namespace capibara {

namespace lax = jax::lax;

ArrayType tangent_type(const ArrayType& primal) {
  ArrayType type = primal;

  if (!is_inexact(primal.dtype)) type.dtype = DType::float0;
  return type;
}

ArrayType cotangent_type(const ArrayType& primal) {
  ArrayType type = tangent_type(primal);
  type.sharding = cotangent_sharding(primal.sharding);
  return type;
}

Array instantiate(const Array& tangent, const ArrayType& primal) {
  return tangent.defined() ? tangent : lax::zeros(tangent_type(primal));
}

Array add_tangents(const Array& x, const Array& y) {
  if (!x.defined()) return y;
  if (!y.defined()) return x;
  return lax::add_any(x, y);
}

Array move_axis(const Array& x, int64_t from, int64_t to) {
  const int64_t rank = x.ndim();
  if (from < 0) from += rank;
  if (to < 0) to += rank;
  if (from == to) return x;
  Ints permutation;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != from) permutation.push_back(i);
  }
  permutation.insert(permutation.begin() + to, from);
  return lax::transpose(x, permutation);
}

Array batch_at(const Array& x, int64_t dim, int64_t size, int64_t to) {
  return batch_at(x, dim, MappedAxis{"", size}, to);
}

const AxisList& spmd_axes(const MappedAxis& axis) {
  static const AxisList none;
  return axis.split.single_device() || axis.split.is_explicit() ? none : axis.split.spec().dims[0];
}

std::string axis_tuple(const AxisList& axes) {
  std::string text;
  for (const std::string& axis : axes) text += concat(text.empty() ? "'" : ", '", axis, "'");
  return concat("(", text, axes.size() == 1 ? ",)" : ")");
}

namespace {

AxisList& spmd_axes_in_use() {
  thread_local AxisList axes;
  return axes;
}

}  // namespace

SpmdScope::SpmdScope(const AxisList& axes) : before_(spmd_axes_in_use().size()) {
  spmd_axes_in_use().insert(spmd_axes_in_use().end(), axes.begin(), axes.end());
}

SpmdScope::~SpmdScope() { spmd_axes_in_use().resize(before_); }

bool SpmdScope::covers(const std::string& axis) {
  const AxisList& axes = spmd_axes_in_use();
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

namespace {

// Inside shard_map: the mesh axes along which members of the mapped axis differ.
Sharding spmd_varying(const MappedAxis& axis) {
  const AxisList& axes = spmd_axes(axis);
  return axes.empty() || axis.split.mesh().axis_names.empty() ? Sharding()
                                                              : Sharding::varying_over(axis.split.mesh(), axes);
}

// True if types say what splits a mapped axis: not if its mesh axes are left to the compiler.
bool splits_types(const MappedAxis& axis) {
  if (!axis.split.is_explicit()) return false;
  const std::shared_ptr<const NamedSharding>& around = context_mesh();
  const AxisList& axes = axis.split.spec().dims[0];
  return !around || std::none_of(axes.begin(), axes.end(), [&](const std::string& name) {
    return around->mesh.has(name) && around->mesh.type_of(name) == AxisType::Auto;
  });
}

}  // namespace

ArrayType batched_type(const ArrayType& type, int64_t dim, const MappedAxis& axis) {
  if (!splits_types(axis)) {
    ArrayType batched = with_dimension(type, dim, axis.size);
    batched.sharding = joined_varying(batched.sharding, spmd_varying(axis));
    return batched;
  }
  ArrayType explicit_type = type;
  if (!type.sharding.is_explicit())
    explicit_type.sharding = type_sharding(axis.split.mesh(), {}, type.shape.size(), type.sharding.varying());
  return with_dimension(std::move(explicit_type), dim, axis.size, axis.split.spec().dims[0]);
}

Array batch_at(const Array& x, int64_t dim, const MappedAxis& axis, int64_t to) {
  if (dim != not_mapped) return move_axis(x, dim, to);
  const ArrayType type = batched_type(x.type(), to, axis);
  Ints dims;
  for (int64_t i = 0; i < type.rank(); ++i) {
    if (i != to) dims.push_back(i);
  }
  const Array spread = lax::broadcast_in_dim(x, type.shape, dims, splits_types(axis) ? type.sharding : Sharding());
  const AxisList missing = missing_axes(spread.type(), spmd_varying(axis).varying());
  if (missing.empty()) return spread;
  return bind1(prim::pvary(), {spread}, {{"axes", Attr(Attr::List(missing.begin(), missing.end()))}});
}

}  // namespace capibara
