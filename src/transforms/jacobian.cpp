// Jacobians of functions on leaves: jvp or vjp over the rows of an identity matrix, with JAX's checks.
#include <capibara/lax.h>
#include <capibara/transforms.h>

#include "core/array/element.h"
#include "core/array/format.h"
#include "lax/rules.h"
#include "lax/shape/shape.h"
#include "program/ir/explicit_types.h"
#include "transforms/linear_map.h"

#include <cstring>

namespace capibara::detail {

namespace lax = jax::lax;

namespace {

void check_forward_input(const ArrayType& type, const jax::GradOptions& options) {
  if (options.holomorphic) {
    if (is_complex(type.dtype)) return;
    throw TypeError(concat("jacfwd with holomorphic=True requires inputs with complex dtype, but got ",
                           dtype_name(type.dtype), "."));
  }
  if (is_inexact(type.dtype) && !is_complex(type.dtype)) return;
  throw TypeError(
      concat("jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got ",
             dtype_name(type.dtype),
             ". For holomorphic differentiation, pass holomorphic=True. For "
             "differentiation of non-holomorphic functions involving complex inputs or integer inputs, use "
             "jax.jvp directly."));
}

// Rows of the identity for a group of arrays: entry i has shape [total, *shape of array i].
Arrays standard_basis(const Types& types) {
  int64_t total = 0;
  for (const ArrayType& type : types) total += type.size();
  Arrays basis;
  int64_t begin = 0;
  for (const ArrayType& type : types) {
    ArrayType wide = type.strong();
    const Sharding split = with_dimension(wide, 0, total, {}).sharding;
    wide.shape.insert(wide.shape.begin(), total);
    if (split.is_explicit()) wide.sharding = Sharding();
    std::size_t bytes = static_cast<std::size_t>(wide.size() * storage_size(wide.dtype));
    Buffer buffer = Buffer::allocate(bytes);
    if (bytes) std::memset(buffer.mutable_data(), 0, bytes);
    int64_t columns = type.size();
    for (int64_t i = 0; i < columns; ++i) {
      if (is_complex(wide.dtype))
        store_as<std::complex<double>>(wide.dtype, buffer.mutable_data(), (begin + i) * columns + i, 1.0);
      else
        store_as<double>(wide.dtype, buffer.mutable_data(), (begin + i) * columns + i, 1.0);
    }
    Array rows = Array::from_buffer(std::move(wide), std::move(buffer));
    basis.push_back(split.is_explicit() ? lax::broadcast_in_dim(rows, rows.shape(), range(rows.ndim()), split) : rows);
    begin += columns;
  }
  return basis;
}

// x with its dimension `at` reshaped to dimensions of these sizes, which are not sharded.
Array unraveled(const Array& x, std::size_t at, const Shape& sizes) {
  Shape shape = x.shape();
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), sizes.begin(), sizes.end());
  const Sharding& own = x.type().sharding;
  if (!own.is_explicit()) return lax::reshape(x, shape);
  PartitionSpec spec = own.spec();
  const auto cut = spec.dims.erase(spec.dims.begin() + static_cast<std::ptrdiff_t>(at));
  spec.dims.insert(cut, sizes.size(), AxisList{});
  return lax::reshape(x, shape, {}, Sharding::explicit_over(own.mesh(), std::move(spec), own.varying()));
}

// A Jacobian has the dtype of its example; complex parts that a real example cannot have are dropped.
Array cast_like(Array x, const ArrayType& example) {
  if (is_complex(x.dtype()) && !is_complex(example.dtype)) x = lax::real(x);
  if (x.dtype() == example.dtype && x.weak_type() == example.weak_type) return x;
  return lax::convert_element_type(x, example.dtype, example.weak_type);
}

}  // namespace

JacobianCall jacfwd_leaves(const FlatFunction& function, std::span<const Array> leaves,
                           const std::vector<bool>& differentiated, const jax::JacobianOptions& options,
                           const std::size_t& main) {
  Types wrt;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!differentiated[i]) continue;
    check_forward_input(leaves[i].type(), options);
    wrt.push_back(leaves[i].type());
  }
  Arrays basis = standard_basis(wrt);
  int64_t total = basis.empty() ? 0 : basis[0].shape(0);
  JacobianCall call;
  std::vector<int64_t> out_dims;
  Arrays all = vmap_flat(
      [&](std::span<const Array> directions) {
        Arrays tangents(leaves.size());
        std::size_t next = 0;
        for (std::size_t i = 0; i < leaves.size(); ++i) {
          if (differentiated[i]) tangents[i] = directions[next++];
        }
        JvpResult jvp = jvp_flat(function, leaves, tangents);
        Arrays results = jvp.primals;
        out_dims.assign(results.size(), not_mapped);
        for (std::size_t i = 0; i < main; ++i) {
          results.push_back(instantiate(jvp.tangents[i], jvp.primals[i].type()));
          out_dims.push_back(results.back().ndim());
        }
        return results;
      },
      basis, std::vector<int64_t>(basis.size(), 0), out_dims, MappedAxis{"", total});
  std::size_t outputs = all.size() - main;
  call.outputs.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(outputs));
  for (std::size_t i = 0; i < main; ++i) {
    const Array& jacobian = all[outputs + i];  // [*output shape, total]
    const ArrayType& output = call.outputs[i].type();
    if (options.holomorphic && !is_complex(output.dtype)) {
      throw TypeError(concat("jacfwd with holomorphic=True requires outputs with complex dtype, but got ",
                             dtype_name(output.dtype), "."));
    }
    int64_t begin = 0;
    for (const ArrayType& type : wrt) {
      Array part = lax::slice_in_dim(jacobian, begin, begin + type.size(), 1, output.rank());
      call.entries.push_back(cast_like(unraveled(part, output.shape.size(), type.shape), output));
      begin += type.size();
    }
  }
  return call;
}

JacobianCall jacrev_leaves(const FlatFunction& function, std::span<const Array> leaves,
                           const std::vector<bool>& differentiated, const jax::JacobianOptions& options,
                           const std::size_t& main) {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (differentiated[i]) check_reverse_input("jacrev", leaves[i].type(), options);
  }
  LinearizedCall linearized = linearize_leaves(function, leaves, differentiated, main);
  const LinearMap& map = *linearized.map;
  for (const ArrayType& type : map.out_types) check_reverse_output("jacrev", type, options);
  Arrays basis = standard_basis(map.out_types);
  int64_t total = basis.empty() ? 0 : basis[0].shape(0);
  Arrays rows = vmap_flat(
      [&](std::span<const Array> cotangents) {
        Arrays results = pull_back_raw(map, cotangents), wanted;
        for (std::size_t i = 0; i < results.size(); ++i)
          if (differentiated[i]) wanted.push_back(or_zeros(results[i], map.in_types[i]));
        return wanted;
      },
      basis, std::vector<int64_t>(basis.size(), 0), {}, MappedAxis{"", total});
  JacobianCall call{std::move(linearized.outputs), {}};
  int64_t begin = 0;
  for (const ArrayType& output : map.out_types) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (!differentiated[i]) continue;
      const ArrayType& input = map.in_types[i];
      Array part = lax::slice_in_dim(rows[next++], begin, begin + output.size(), 1, 0);
      part = unraveled(part, 0, output.shape);
      call.entries.push_back(is_inexact(input.dtype) ? cast_like(part, input) : part);
    }
    begin += output.size();
  }
  return call;
}

}  // namespace capibara::detail
