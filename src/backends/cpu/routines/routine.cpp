// Selects the operations that are written as loops of their own, and defines the loops they share.
#include "backends/cpu/routines/routine.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "backends/cpu/routines/linalg.h"
#include "lax/sort/sort.h"

namespace capibara::cpu {

namespace {

// Linear algebra functions, whose element types are those of LAPACK.
using Write = Function (*)(const Types& inputs, const Types& outputs, const Attrs& attrs);
Write linear_algebra(const Primitive& of) {
  static const std::unordered_map<const PrimitiveRecord*, Write> rows = {
      {&primitive("cholesky").record(), routines::cholesky},
      {&primitive("lu").record(), routines::lu},
      {&primitive("triangular_solve").record(), routines::triangular_solve},
      {&primitive("geqrf").record(), routines::geqrf},
      {&primitive("householder_product").record(), routines::householder_product},
      {&primitive("eigh").record(), routines::eigh},
      {&primitive("svd").record(), routines::svd},
  };
  const auto row = rows.find(&of.record());
  return row == rows.end() ? nullptr : row->second;
}

bool has_linear_algebra(const Types& inputs, const Attrs& attrs) {
  const DType real = real_dtype(inputs[0].dtype);
  return (real == DType::float32 || real == DType::float64) &&
         std::all_of(inputs.begin(), inputs.end(),
                     [&](const ArrayType& type) { return type.dtype == inputs[0].dtype; }) &&
         (!attrs.has("subset_by_index") || attrs["subset_by_index"].is_none());
}

}  // namespace

std::optional<Routine> write_routine(const Primitive& primitive, const Types& inputs, const Types& outputs,
                                     const Attrs& attrs, bool in_place) {
  const std::string_view name = primitive.name();
  if (name == "dot_general") return Routine{routines::dot_general(inputs, outputs, attrs)};
  if (name == "gather") return Routine{routines::gather(inputs, outputs, attrs)};
  if (name == "fft") return routines::fft(inputs, outputs, attrs);
  const auto as_routine = [](std::optional<Function> function) {
    return function ? std::optional<Routine>(Routine{std::move(*function)}) : std::nullopt;
  };
  if (name == "sort") {
    return as_routine(
        routines::sort(inputs, sort_comparator(inputs, attrs.integer("num_keys")), attrs.integer("dimension")));
  }
  if (name == "sort_general")
    return as_routine(routines::sort(inputs, attrs.program("comparator"), attrs.integer("dimension")));
  if (name.substr(0, 7) == "scatter") return as_routine(routines::scatter(inputs, outputs, attrs, in_place));
  if (const Write write = linear_algebra(primitive); write && has_linear_algebra(inputs, attrs))
    return Routine{write(inputs, outputs, attrs)};
  return std::nullopt;
}

namespace routines {

void nest(Builder& builder, std::span<const int64_t> extents, bool lanes,
          const std::function<void(std::span<const Value>)>& body) {
  std::vector<Value> indices;
  const std::function<void()> inner = [&] {
    if (indices.size() == extents.size()) return body(indices);
    const bool last = indices.size() + 1 == extents.size();
    builder.loop(extents[indices.size()], {.lanes = lanes && last}, {}, [&](Value index, std::span<const Value>) {
      indices.push_back(index);
      inner();
      indices.pop_back();
      return std::vector<Value>();
    });
  };
  inner();
}

Ints strides_of(const Shape& shape) {
  Ints strides(shape.size());
  int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0; step *= shape[d]) strides[d] = step;
  return strides;
}

}  // namespace routines

}  // namespace capibara::cpu
