// Reads operations that are forms of other operations: legacy and broadcasting forms, and dynamic shapes that are in
// fact static.
#include <algorithm>
#include <map>
#include <unordered_map>

#include <capibara/error.h>
#include <capibara/lax.h>

#include "compiler/stablehlo/read_body.h"
#include "program/ir/window_shape.h"

namespace capibara::stablehlo {

namespace {

namespace lax = jax::lax;

const ArrayType result_type(const Operation& operation) {
  const Types types = result_types(operation);
  if (types.size() != 1) fail(operation, concat("expected one result, got ", types.size()));
  return types[0];
}

Arrays by_row(BodyReader& body, const Operation& operation, const Arrays& operands) {
  const OperationRow* row = find_row(operation);
  if (!row) throw UnsupportedError(concat(place_of(operation), ": this operation is not supported"));
  return body.read_row(operation, *row, operands);
}

Arrays as_operation(BodyReader& body, Operation operation, std::string name, const Arrays& operands) {
  operation.name = std::move(name);
  return by_row(body, operation, operands);
}

Operation with_attribute(Operation operation, const std::string& name, Attribute value) {
  std::vector<Dictionary::Entry> entries = {{name, std::move(value)}};
  for (const Dictionary::Entry& entry : operation.attributes) {
    if (entry.first != name) entries.push_back(entry);
  }
  operation.attributes = Dictionary(std::move(entries));
  return operation;
}

Attribute integer_list(const Ints& values) { return Attribute::of(DenseArray{"i64", values, {}}); }

NdArray broadcast(const NdArray& x, const Shape& shape, const Ints& dims) {
  return bind_named("broadcast_in_dim", {x},
                    {{"shape", shape}, {"broadcast_dimensions", dims}, {"sharding", Attr()}})[0];
}
NdArray reshape(const NdArray& x, const Shape& shape) {
  return bind_named("reshape", {x}, {{"new_sizes", shape}, {"dimensions", Attr()}, {"sharding", Attr()}})[0];
}

// ---- index vectors -----------------------------------------------------------------------------------------------

// Our gather and scatter have the index vectors in the last dimension of the indices.
NdArray with_last_index(const Operation& operation, const NdArray& indices, int64_t dim, Ints& batching) {
  const int64_t rank = indices.ndim();
  if (dim < 0 || dim > rank) fail(operation, concat("index_vector_dim must be between 0 and ", rank, ", got ", dim));
  if (dim == rank) {
    Shape shape = indices.shape();
    shape.push_back(1);
    return reshape(indices, shape);
  }
  if (dim == rank - 1) return indices;
  Ints permutation;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != dim) permutation.push_back(i);
  }
  permutation.push_back(dim);
  for (int64_t& batch : batching) batch -= batch > dim ? 1 : 0;
  return bind_named("transpose", {indices}, {{"permutation", permutation}})[0];
}

Arrays read_gather(BodyReader&, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 2);
  const Attribute numbers = operation.attributes.find("dimension_numbers");
  const OperationRow* row = find_row(operation);
  const Types inputs = {operands[0].type(), operands[1].type()}, outputs = result_types(operation);
  Attrs attrs = row->read({operation, inputs, outputs});
  GatherDimensionNumbers dims = attrs.get<GatherDimensionNumbers>("dimension_numbers");
  const NdArray indices = with_last_index(operation, operands[1], field_integer(numbers, "index_vector_dim", 0),
                                          dims.start_indices_batching_dims);
  return bind_named("gather", {operands[0], indices}, attrs.with("dimension_numbers", dims));
}

Arrays read_scatter(BodyReader& body, const Operation& operation, const Arrays& operands) {
  if (operands.size() < 3 || operands.size() % 2 == 0) {
    fail(operation, concat("expected operands, indices and as many updates, got ", operands.size(), " operands"));
  }
  if (operation.regions.size() != 1) fail(operation, "expected one region");
  const Attribute numbers = operation.attributes.find("scatter_dimension_numbers");
  const OperationRow* row = find_row(operation);
  Attrs attrs = row->read({operation, {}, {}});
  ScatterDimensionNumbers dims = attrs.get<ScatterDimensionNumbers>("dimension_numbers");
  Arrays inputs = operands;
  const std::size_t middle = operands.size() / 2;
  inputs[middle] = with_last_index(operation, operands[middle], field_integer(numbers, "index_vector_dim", 0),
                                   dims.scatter_indices_batching_dims);
  return bind_named(
      "scatter", inputs,
      attrs.with("dimension_numbers", dims).with("update_jaxpr", body.closed_region(operation, operation.regions[0])));
}

// ---- elementwise -------------------------------------------------------------------------------------------------

// StableHLO allows the real and imaginary parts of real numbers, too.
Arrays read_real(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 1);
  return is_complex(operands[0].dtype()) ? by_row(body, operation, operands) : operands;
}

Arrays read_imag(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 1);
  if (is_complex(operands[0].dtype())) return by_row(body, operation, operands);
  return {lax::zeros(operands[0].type())};
}

// The total order has no primitives of its own for GT, GE and NE.
Arrays read_compare(BodyReader& body, const Operation& operation, const Arrays& operands) {
  if (find_row(operation)) return by_row(body, operation, operands);
  require_operands(operation, operands, 2);
  const std::string direction = word_attribute(operation, "comparison_direction");
  if (direction == "GT") return bind_named("lt_to", {operands[1], operands[0]});
  if (direction == "GE") return bind_named("le_to", {operands[1], operands[0]});
  if (direction == "NE") return bind_named("not", bind_named("eq_to", operands));
  fail(operation,
       concat("expected EQ, NE, GE, GT, LE or LT as attribute 'comparison_direction', got '", direction, "'"));
}

// chlo.broadcast_add and related operations: operands are broadcast to the shape of the result.
Arrays read_broadcasting(BodyReader& body, const Operation& operation, const Arrays& operands) {
  const Shape shape = result_type(operation).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const bool explicit_dims = operation.attributes.contains("broadcast_dimensions");
  Arrays wide;
  for (const NdArray& x : operands) {
    if (x.shape() == shape) {
      wide.push_back(x);
      continue;
    }
    Ints dims;
    for (int64_t i = 0; i < x.ndim(); ++i) dims.push_back(rank - x.ndim() + i);
    if (explicit_dims && x.ndim() < rank) dims = integers_attribute(operation, "broadcast_dimensions");
    wide.push_back(broadcast(x, shape, dims));
  }
  const std::string base = operation.name.substr(std::string_view("chlo.broadcast_").size());
  for (const char* dialect : {"stablehlo.", "chlo."}) {
    Operation renamed = operation;
    renamed.name = dialect + base;
    if (const OperationRow* row = find_row(renamed)) return body.read_row(renamed, *row, wide);
  }
  throw UnsupportedError(concat(place_of(operation), ": this operation is not supported"));
}

Arrays read_constant_like(BodyReader&, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 1);
  const Attribute value = operation.attributes.find("value");
  NdArray scalar;
  if (const auto* integer = value.as<Integer>())
    scalar = NdArray(integer->value);
  else if (const auto* number = value.as<Float>())
    scalar = NdArray(number->value);
  else
    fail(operation, "expected a number as attribute 'value'");
  return {lax::full(operands[0].shape(), scalar, operands[0].dtype())};
}

// ---- legacy ------------------------------------------------------------------------------------------------------

Arrays read_broadcast(BodyReader&, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 1);
  const Shape shape = result_type(operation).shape;
  Ints dims;
  const int64_t added = static_cast<int64_t>(shape.size()) - operands[0].ndim();
  for (int64_t i = 0; i < operands[0].ndim(); ++i) dims.push_back(added + i);
  return {broadcast(operands[0], shape, dims)};
}

NdArray contract(const NdArray& lhs, const NdArray& rhs, DotDimensionNumbers numbers, DType dtype) {
  return bind_named("dot_general", {lhs, rhs},
                    {{"dimension_numbers", std::move(numbers)},
                     {"precision", Attr()},
                     {"preferred_element_type", dtype},
                     {"out_sharding", Attr()}})[0];
}

Arrays read_dot(BodyReader&, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 2);
  if (operands[0].ndim() < 1 || operands[1].ndim() < 1) fail(operation, "expected vectors or matrices");
  return {contract(operands[0], operands[1], {{operands[0].ndim() - 1}, {0}, {}, {}}, result_type(operation).dtype)};
}

// "ab,bc->ac": letters in both operands and the result are batch dimensions, other letters of the result are kept, the
// rest are summed.
Arrays read_einsum(BodyReader&, const Operation& operation, const Arrays& operands) {
  const std::string config = string_attribute(operation, "einsum_config");
  const std::size_t arrow = config.find("->");
  if (arrow == std::string::npos)
    fail(operation, concat("expected 'ab,bc->ac' as attribute 'einsum_config', got ", config));
  const std::string left = config.substr(0, arrow), out = config.substr(arrow + 2);
  std::vector<std::string> terms(1);
  for (char c : left) {
    if (c == ',')
      terms.emplace_back();
    else if (c != ' ')
      terms.back() += c;
  }
  require_operands(operation, operands, terms.size());
  auto contains = [](const std::string& term, char c) { return term.find(c) != std::string::npos; };
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (static_cast<int64_t>(terms[i].size()) != operands[i].ndim()) {
      fail(operation, concat("'", terms[i], "' does not fit ", to_string(operands[i].type())));
    }
  }
  // Letters that appear in only one operand and not in the result are summed first.
  Arrays summed;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    Ints axes;
    std::string rest;
    for (std::size_t d = 0; d < terms[i].size(); ++d) {
      const char c = terms[i][d];
      const bool elsewhere = contains(out, c) || (terms.size() == 2 && contains(terms[1 - i], c));
      if (!elsewhere)
        axes.push_back(static_cast<int64_t>(d));
      else
        rest += c;
    }
    summed.push_back(axes.empty() ? operands[i] : lax::reduce_sum(operands[i], {.axes = axes}));
    terms[i] = rest;
  }
  std::string got = terms[0];
  NdArray result = summed[0];
  if (terms.size() == 2) {
    DotDimensionNumbers numbers;
    std::string batch, lhs_free, rhs_free;
    for (std::size_t d = 0; d < terms[0].size(); ++d) {
      const std::size_t other = terms[1].find(terms[0][d]);
      if (other == std::string::npos) {
        lhs_free += terms[0][d];
      } else if (contains(out, terms[0][d])) {
        numbers.lhs_batch.push_back(static_cast<int64_t>(d));
        numbers.rhs_batch.push_back(static_cast<int64_t>(other));
        batch += terms[0][d];
      } else {
        numbers.lhs_contracting.push_back(static_cast<int64_t>(d));
        numbers.rhs_contracting.push_back(static_cast<int64_t>(other));
      }
    }
    for (char c : terms[1]) {
      if (!contains(terms[0], c)) rhs_free += c;
    }
    result = contract(summed[0], summed[1], numbers, result_type(operation).dtype);
    got = batch + lhs_free + rhs_free;
  }
  Ints permutation;
  for (char c : out) {
    const std::size_t at = got.find(c);
    if (at == std::string::npos) fail(operation, concat("'", c, "' appears in no operand of ", config));
    permutation.push_back(static_cast<int64_t>(at));
  }
  return {got == out ? result : lax::transpose(result, permutation)};
}

// Convolution with a reversed kernel.
Arrays read_convolution(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 2);
  const Attribute numbers = operation.attributes.find("dimension_numbers");
  const Ints space = field_integers(numbers, "kernel_spatial_dimensions");
  const Ints reversal = integers_attribute(operation, "window_reversal", Ints(space.size(), 0));
  Ints reversed;
  for (std::size_t i = 0; i < space.size() && i < reversal.size(); ++i) {
    if (reversal[i] != 0) reversed.push_back(space[i]);
  }
  Arrays inputs = operands;
  if (!reversed.empty()) inputs[1] = bind_named("rev", {operands[1]}, {{"dimensions", reversed}})[0];
  return by_row(body, operation, inputs);
}

Arrays read_cholesky(BodyReader&, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 1);
  const bool lower = flag_attribute(operation, "lower");
  const NdArray& x = operands[0];
  Ints swapped;
  for (int64_t i = 0; i < x.ndim(); ++i) swapped.push_back(i);
  if (swapped.size() < 2) fail(operation, concat("expected matrices, got ", to_string(x.type())));
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  auto adjoint = [&](const NdArray& a) {
    const NdArray t = lax::transpose(a, swapped);
    return is_complex(a.dtype()) ? lax::conj(t) : t;
  };
  const NdArray factor = bind_named("cholesky", {lower ? x : adjoint(x)})[0];
  return {lower ? factor : adjoint(factor)};
}

Arrays read_rng(BodyReader&, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 3);
  if (word_attribute(operation, "rng_distribution") != "UNIFORM") {
    throw UnsupportedError(concat(place_of(operation), ": only the uniform distribution is supported"));
  }
  return bind_named("rng_uniform", {operands[0], operands[1]}, {{"shape", result_type(operation).shape}});
}

// ---- dynamic operations whose result has a static shape ----------------------------------------------------------

Arrays read_dynamic_iota(BodyReader& body, const Operation& operation, const Arrays&) {
  return as_operation(body, operation, "stablehlo.iota", {});
}

Arrays read_dynamic_reshape(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 2);
  return as_operation(body, operation, "stablehlo.reshape", {operands[0]});
}

Arrays read_dynamic_broadcast(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 2);
  return as_operation(body, operation, "stablehlo.broadcast_in_dim", {operands[0]});
}

Arrays read_dynamic_pad(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 5);
  Operation fixed =
      with_attribute(operation, "edge_padding_low", integer_list(constant_integers(operation, operands, 2)));
  fixed = with_attribute(fixed, "edge_padding_high", integer_list(constant_integers(operation, operands, 3)));
  fixed = with_attribute(fixed, "interior_padding", integer_list(constant_integers(operation, operands, 4)));
  return as_operation(body, fixed, "stablehlo.pad", {operands[0], operands[1]});
}

Arrays read_dynamic_gather(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 3);
  Operation fixed = with_attribute(operation, "slice_sizes", integer_list(constant_integers(operation, operands, 2)));
  fixed.name = "stablehlo.gather";
  return read_gather(body, fixed, {operands[0], operands[1]});
}

Arrays read_dynamic_convolution(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 3);
  Operation fixed = with_attribute(operation, "padding", integer_list(constant_integers(operation, operands, 2)));
  fixed.name = "stablehlo.convolution";
  return read_convolution(body, fixed, {operands[0], operands[1]});
}

Arrays read_dynamic_slice(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 4);
  if (operands[1].is_tracer()) return read_slice_at(body, operation, operands);
  Operation fixed = with_attribute(operation, "start_indices", integer_list(constant_integers(operation, operands, 1)));
  fixed = with_attribute(fixed, "limit_indices", integer_list(constant_integers(operation, operands, 2)));
  fixed = with_attribute(fixed, "strides", integer_list(constant_integers(operation, operands, 3)));
  return as_operation(body, fixed, "stablehlo.slice", {operands[0]});
}

Arrays read_dimension_size(BodyReader&, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 1);
  const int64_t dim = integer_attribute(operation, "dimension");
  if (dim < 0 || dim >= operands[0].ndim()) fail(operation, concat("there is no dimension ", dim));
  const auto size = static_cast<int32_t>(operands[0].shape(dim));
  return {NdArray::from_host(DType::int32, {}, &size)};
}

Arrays read_set_dimension_size(BodyReader&, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 2);
  const int64_t dim = integer_attribute(operation, "dimension");
  const Ints size = constant_integers(operation, operands, 1);
  if (dim < 0 || dim >= operands[0].ndim() || size.size() != 1 || size[0] != operands[0].shape(dim)) {
    throw UnsupportedError(concat(place_of(operation), ": dynamic shapes are not supported"));
  }
  return {operands[0]};
}

}  // namespace

OperationRule find_composed_rule(std::string_view operation) {
  static const std::unordered_map<std::string_view, OperationRule> rules = {
      {"stablehlo.gather", read_gather},
      {"stablehlo.scatter", read_scatter},
      {"stablehlo.real", read_real},
      {"stablehlo.imag", read_imag},
      {"stablehlo.compare", read_compare},
      {"chlo.constant_like", read_constant_like},
      {"stablehlo.broadcast", read_broadcast},
      {"stablehlo.dot", read_dot},
      {"stablehlo.einsum", read_einsum},
      {"stablehlo.unary_einsum", read_einsum},
      {"stablehlo.convolution", read_convolution},
      {"stablehlo.cholesky", read_cholesky},
      {"stablehlo.rng", read_rng},
      {"stablehlo.dynamic_iota", read_dynamic_iota},
      {"stablehlo.dynamic_reshape", read_dynamic_reshape},
      {"stablehlo.dynamic_broadcast_in_dim", read_dynamic_broadcast},
      {"stablehlo.dynamic_pad", read_dynamic_pad},
      {"stablehlo.dynamic_gather", read_dynamic_gather},
      {"stablehlo.dynamic_conv", read_dynamic_convolution},
      {"stablehlo.real_dynamic_slice", read_dynamic_slice},
      {"stablehlo.get_dimension_size", read_dimension_size},
      {"stablehlo.set_dimension_size", read_set_dimension_size},
  };
  const auto it = rules.find(operation);
  if (it != rules.end()) return it->second;
  return operation.starts_with("chlo.broadcast_") ? read_broadcasting : nullptr;
}

}  // namespace capibara::stablehlo
