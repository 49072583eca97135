// The promotion lattice as bit sets of upper bounds, and the search for the least of them.
#include "core/array/promotion.h"

#include <array>
#include <string>
#include <vector>

#include <capibara/error.h>

namespace capibara {
namespace {

// A node of the lattice: a numeric dtype's value, or one of the three weak kinds after them.
using Node = int;
using NodeSet = std::uint64_t;

constexpr Node node_of(DType dtype) { return static_cast<Node>(dtype); }
constexpr Node weak_int = node_of(DType::complex128) + 1;
constexpr Node weak_float = weak_int + 1;
constexpr Node weak_complex = weak_float + 1;
constexpr Node node_count = weak_complex + 1;
constexpr NodeSet set_of(Node node) { return NodeSet{1} << node; }

using UpperBounds = std::array<NodeSet, node_count>;  // of each node, itself included

struct Edge {
  Node from;
  Node to;
};

// Closes the edges over reachability; there are few enough nodes to repeat until nothing changes.
UpperBounds close(const std::vector<Edge>& edges) {
  UpperBounds bounds{};
  for (Node node = 0; node < node_count; ++node) bounds[node] = set_of(node);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Edge& edge : edges) {
      const NodeSet grown = bounds[edge.from] | bounds[edge.to];
      changed |= grown != bounds[edge.from];
      bounds[edge.from] = grown;
    }
  }
  return bounds;
}

// Floats that promote from weak scalars and integers only, never to one another.
bool is_isolated_float(DType dtype) { return is_floating(dtype) && bits(dtype) <= 8; }

UpperBounds standard_bounds(bool x64) {
  const auto node = node_of;
  std::vector<Edge> edges = {
      {node(DType::bool_), weak_int},
      {weak_int, node(DType::uint8)},
      {weak_int, node(DType::int8)},
      {node(DType::uint8), node(DType::int16)},
      {node(DType::uint8), node(DType::uint16)},
      {node(DType::uint16), node(DType::int32)},
      {node(DType::uint16), node(DType::uint32)},
      // Without x64, uint32 with a signed integer stays in 32 bits.
      {node(DType::uint32), node(x64 ? DType::int64 : DType::int32)},
      {node(DType::uint32), node(DType::uint64)},
      {node(DType::int8), node(DType::int16)},
      {node(DType::int16), node(DType::int32)},
      {node(DType::int32), node(DType::int64)},
      {node(DType::uint64), weak_float},
      {node(DType::int64), weak_float},
      {weak_float, node(DType::bfloat16)},
      {weak_float, node(DType::float16)},
      {weak_float, weak_complex},
      {node(DType::bfloat16), node(DType::float32)},
      {node(DType::float16), node(DType::float32)},
      {node(DType::float32), node(DType::float64)},
      {node(DType::float32), node(DType::complex64)},
      {node(DType::float64), node(DType::complex128)},
      {weak_complex, node(DType::complex64)},
      {node(DType::complex64), node(DType::complex128)},
  };
  for (const DTypeRow& row : dtype_table) {
    if (is_integer(row.dtype) && row.bits < 8) edges.push_back({weak_int, node(row.dtype)});
    if (is_isolated_float(row.dtype)) edges.push_back({weak_float, node(row.dtype)});
  }
  return close(edges);
}

UpperBounds strict_bounds() {
  std::vector<Edge> edges = {{weak_int, weak_float}, {weak_float, weak_complex}};
  for (const DTypeRow& row : dtype_table) {
    if (is_integer(row.dtype)) edges.push_back({weak_int, node_of(row.dtype)});
    if (is_floating(row.dtype)) edges.push_back({weak_float, node_of(row.dtype)});
    if (is_complex(row.dtype)) edges.push_back({weak_complex, node_of(row.dtype)});
  }
  return close(edges);
}

const UpperBounds& upper_bounds(bool x64, PromotionMode mode) {
  static const UpperBounds standard_32 = standard_bounds(false);
  static const UpperBounds standard_64 = standard_bounds(true);
  static const UpperBounds strict = strict_bounds();
  if (mode == PromotionMode::strict) return strict;
  return x64 ? standard_64 : standard_32;
}

Node lattice_node(ScalarType type) {
  if (!is_numeric(type.dtype) && !is_bool(type.dtype)) {
    if (type.dtype == DType::float0) {
      throw TypeError(
          "float0s do not support any operations by design: they are the tangents of integers and booleans. "
          "Make zeros of another dtype to compute with.");
    }
    throw ValueError(concat("dtype=", dtype_name(type.dtype), " is not a valid dtype for JAX type promotion."));
  }
  if (!type.weak || is_bool(type.dtype)) return node_of(type.dtype);
  if (is_integer(type.dtype)) return weak_int;
  return is_floating(type.dtype) ? weak_float : weak_complex;
}

ScalarType type_of_node(Node node, bool x64) {
  if (node == weak_int) return {canonicalize(DType::int64, x64), true};
  if (node == weak_float) return {canonicalize(DType::float64, x64), true};
  if (node == weak_complex) return {canonicalize(DType::complex128, x64), true};
  return {canonicalize(static_cast<DType>(node), x64), false};
}

std::string node_text(Node node) {
  if (node == weak_int) return "\"<class 'int'>\"";
  if (node == weak_float) return "\"<class 'float'>\"";
  if (node == weak_complex) return "\"<class 'complex'>\"";
  return concat("'", dtype_name(static_cast<DType>(node)), "'");
}

[[noreturn]] void throw_no_bound(const std::vector<Node>& nodes, PromotionMode mode) {
  std::string text = "Input dtypes (";
  for (std::size_t i = 0; i < nodes.size(); ++i) text += (i ? ", " : "") + node_text(nodes[i]);
  text += ") have no available implicit dtype promotion path";

  const auto any = [&](auto&& holds) {
    for (Node node : nodes) {
      if (node < weak_int && holds(static_cast<DType>(node))) return true;
    }
    return false;
  };
  const char* avoided = nullptr;
  const char* cast = "float32";
  if (any([](DType d) { return is_floating(d) && bits(d) == 8; }))
    avoided = "8-bit floats";
  else if (any([](DType d) { return is_floating(d) && bits(d) == 6; }))
    avoided = "6-bit floats";
  else if (any([](DType d) { return is_floating(d) && bits(d) == 4; }))
    avoided = "4-bit floats";
  else if (any([](DType d) { return is_integer(d) && bits(d) < 8; })) {
    avoided = "1-bit, 2-bit and 4-bit integers";
    cast = "int32";
  }

  if (mode == PromotionMode::strict) {
    text +=
        " when jax_numpy_dtype_promotion=strict. Try explicitly casting inputs to the desired output "
        "type, or set jax_numpy_dtype_promotion=standard.";
  } else if (avoided) {
    text += concat(". To avoid unintended promotion, ", avoided,
                   " do not support implicit promotion. If you'd like your inputs to be promoted to "
                   "another type, you can do so explicitly using e.g. x.astype('",
                   cast, "')");
  } else {
    text += ". Try explicitly casting inputs to the desired output type.";
  }
  throw TypePromotionError(text);
}

Node least_upper_bound(const std::vector<Node>& nodes, bool x64, PromotionMode mode) {
  const UpperBounds& bounds = upper_bounds(x64, mode);
  NodeSet common = ~NodeSet{0};
  for (Node node : nodes) common &= bounds[node];
  for (Node node = 0; node < node_count; ++node) {
    // The least common bound is below all the others.
    if ((common & set_of(node)) && (common & ~bounds[node]) == 0) return node;
  }
  throw_no_bound(nodes, mode);
}

}  // namespace

ScalarType python_scalar_type(PythonScalar scalar, bool x64) {
  switch (scalar) {
    case PythonScalar::bool_:
      return {DType::bool_, false};
    case PythonScalar::int_:
      return type_of_node(weak_int, x64);
    case PythonScalar::float_:
      return type_of_node(weak_float, x64);
    case PythonScalar::complex_:
      return type_of_node(weak_complex, x64);
  }
  throw InternalError("python_scalar_type: not a PythonScalar");
}

ScalarType promote_types(std::span<const ScalarType> types, bool x64, PromotionMode mode) {
  if (types.empty()) throw ValueError("promote_types: expected at least one type, got none");
  bool all_weak = true;
  bool all_equal = true;
  for (const ScalarType& type : types) {
    all_weak &= type.weak;
    all_equal &= type.dtype == types[0].dtype;
  }
  const auto result = [](ScalarType type) { return ScalarType{type.dtype, type.weak && !is_bool(type.dtype)}; };
  if (types.size() == 1) return result(types[0]);
  if (all_equal && !all_weak) return {types[0].dtype, false};

  // Weak types alone are bounded as if strong, lest a weak int16 become the default integer.
  const bool as_strong = all_weak && mode != PromotionMode::strict;
  std::vector<Node> nodes;
  for (const ScalarType& type : types) {
    const Node node = lattice_node({type.dtype, type.weak && !as_strong});
    bool seen = false;
    for (Node other : nodes) seen |= other == node;
    if (!seen) nodes.push_back(node);
  }
  ScalarType bound = type_of_node(least_upper_bound(nodes, x64, mode), x64);
  if (as_strong) bound.weak = true;
  return result(bound);
}

}  // namespace capibara
