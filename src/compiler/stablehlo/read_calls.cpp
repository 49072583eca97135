// Reads custom calls: expectations, sharding annotations, the LAPACK routines that jax calls on the CPU, callbacks, and
// opaque calls.
#include <algorithm>

#include <capibara/error.h>
#include <capibara/lax.h>

#include "compiler/stablehlo/attribute_text.h"
#include "compiler/stablehlo/read_body.h"
#include "lax/linalg/lapack_calls.h"

namespace capibara::stablehlo {

namespace {

namespace lax = jax::lax;

// ---- expectations ------------------------------------------------------------------------------------------------

double real_attribute(const Operation& operation, std::string_view name, double otherwise) {
  const Attribute attribute = operation.attributes.find(name);
  if (!attribute) return otherwise;
  if (const auto* number = attribute.as<Float>()) return number->value;
  return static_cast<double>(integer_attribute(operation, name));
}

Attrs expectation(const Operation& operation, const std::string& name, const char* kind, double tolerance) {
  return {{"kind", kind},
          {"place", operation.position.line == 0 ? name : concat(operation.position.line, ": ", name)},
          {"tolerance", real_attribute(operation, "tolerance", tolerance)},
          {"min_ulp", integer_attribute(operation, "min_ulp_difference", 0)},
          {"max_ulp", integer_attribute(operation, "max_ulp_difference", 3)}};
}

// The tolerances of custom calls differ from those of operations with the same name.
Attrs named_expectation(const Operation& operation, const std::string& name, bool custom_call) {
  if (name.starts_with("check.expect_almost_eq"))
    return expectation(operation, name, "almost_eq", custom_call ? 1e-3 : 1e-4);
  if (name == "check.expect_close") return expectation(operation, name, "close", 0);
  if (name.starts_with("check.expect_eq") || name == "check.eq") return expectation(operation, name, "eq", 0);
  throw UnsupportedError(concat(place_of(operation), ": expectation ", name, " is not supported"));
}

// ---- LAPACK ------------------------------------------------------------------------------------------------------

char setting(const Operation& operation, std::string_view name, char otherwise) {
  const Attribute attribute = operation.attributes.find("mhlo.backend_config");
  const auto* settings = attribute.as<Dictionary>();
  if (!settings) return otherwise;
  const Attribute value = settings->find(name);
  const auto* number = value.as<Integer>();
  return number ? static_cast<char>(number->value) : otherwise;
}

// Two of the routines are StableHLO operations.
Arrays read_potrf(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 1);
  const Types results = result_types(operation);
  if (results.size() != 2) fail(operation, concat("expected 2 results, got ", results.size()));
  Operation cholesky = operation;
  cholesky.name = "stablehlo.cholesky";
  cholesky.attributes = Dictionary({{"lower", Attribute::of(setting(operation, "uplo", 'L') == 'L')}});
  // The status is success; a failure appears as NaN in the values.
  return {find_composed_rule(cholesky.name)(body, cholesky, operands)[0], lax::zeros(results[1])};
}

Arrays read_trsm(const Operation& operation, const Arrays& operands) {
  if (operands.size() < 2) fail(operation, "expected two operands");
  const char transpose = setting(operation, "trans_x", 'N');
  return bind_named("triangular_solve", {operands[0], operands[1]},
                    {{"left_side", setting(operation, "side", 'L') == 'L'},
                     {"lower", setting(operation, "uplo", 'L') == 'L'},
                     {"transpose_a", transpose != 'N'},
                     {"conjugate_a", transpose == 'C'},
                     {"unit_diagonal", setting(operation, "diag", 'N') == 'U'}});
}

Attr layouts(const Operation& operation, std::string_view name) {
  Attr::List list;
  const Attribute attribute = operation.attributes.find(name);
  if (const auto* array = attribute.as<Array>()) {
    for (const Attribute& element : array->elements) list.emplace_back(integers_of(element).value_or(Ints{}));
  }
  return list;
}

// The other routines stay calls, and are written as they were read.
Arrays read_lapack(const Operation& operation, const std::string& target, const Arrays& operands) {
  Attr::List results, aliases;
  for (const ArrayType& type : result_types(operation)) results.emplace_back(type);
  const Attribute alias_list = operation.attributes.find("output_operand_aliases");
  if (const auto* array = alias_list.as<Array>()) {
    for (const Attribute& alias : array->elements) {
      const Ints output = field_integers(alias, "output_tuple_indices");
      aliases.emplace_back(Ints{output.empty() ? 0 : output[0], field_integer(alias, "operand_index", 0)});
    }
  }
  const Attribute settings = operation.attributes.find("mhlo.backend_config");
  std::size_t rank = 2;
  for (const NdArray& operand : operands) rank = std::max(rank, operand.shape().size());
  return bind_named("custom_call", operands,
                    {{"call_target_name", target},
                     {"result_types", std::move(results)},
                     {"has_side_effect", flag_attribute(operation, "has_side_effect")},
                     {"api_version", 4},
                     {"mhlo_backend_config", settings ? print_attribute(settings) : "{}"},
                     {"num_batch_dims", static_cast<int64_t>(rank) - 2},
                     {"operand_layouts", layouts(operation, "operand_layouts")},
                     {"result_layouts", layouts(operation, "result_layouts")},
                     {"output_operand_aliases", std::move(aliases)}});
}

// Any other call is passed on unchanged. Its attributes stay text, between the braces; tokens and tuples are rejected,
// since they could not be kept unchanged.
Arrays read_opaque(const Operation& operation, const std::string& target, const Arrays& operands) {
  const auto refuse = [&](const char* what) {
    throw UnsupportedError(
        concat(place_of(operation), ": custom call @", target, " ", what, ", and cannot be passed on"));
  };
  for (const std::vector<Value>* values : {&operation.operands, &operation.results}) {
    for (const Value& value : *values) {
      if (value.type.is_token() || value.type.is_tuple())
        refuse("has a token or a tuple among its operands or results");
    }
  }
  const Attribute called = operation.attributes.find("called_computations");
  if (const auto* list = called.as<Array>(); list && !list->elements.empty()) refuse("calls functions of the module");
  static constexpr std::string_view apart[] = {"call_target_name", "has_side_effect"};
  Attr::List results;
  for (const ArrayType& type : result_types(operation)) results.emplace_back(type);
  return bind_named("custom_call", operands,
                    {{"call_target_name", target},
                     {"result_types", std::move(results)},
                     {"has_side_effect", flag_attribute(operation, "has_side_effect")},
                     {"attributes", attributes_text(operation, apart)}});
}

// ---- approximate selection ---------------------------------------------------------------------------------------

// True for the result of an iota along a dimension.
bool counts_along(const Block& block, ValueId id, int64_t dimension) {
  for (const Operation& operation : block.operations) {
    for (const Value& result : operation.results) {
      if (result.id == id)
        return operation.name == "stablehlo.iota" && integer_attribute(operation, "iota_dimension") == dimension;
    }
  }
  return false;
}

// The direction in which a function compares its first two arguments; empty if it does something else first.
std::string comparison_of(const Function& function) {
  if (function.body.operations.empty() || function.arguments.size() < 2) return "";
  const Operation& first = function.body.operations[0];
  const bool compares = first.name == "stablehlo.compare" && first.operands[0].id == function.arguments[0].id &&
                        first.operands[1].id == function.arguments[1].id;
  return compares ? word_attribute(first, "comparison_direction") : "";
}

// The largest or smallest elements as jax writes them: with their positions, and a function that compares two of them.
Arrays read_approximate(BodyReader& body, const Operation& operation, const Arrays& operands) {
  require_operands(operation, operands, 4);
  const Attribute stated = operation.attributes.find("mhlo.backend_config");
  const auto* settings = stated.as<Dictionary>();
  if (!settings) fail(operation, "expected a dictionary as attribute 'mhlo.backend_config'");
  const auto setting_of = [&](std::string_view name) {
    const Attribute value = settings->find(name);
    if (const auto* integer = value.as<Integer>()) return static_cast<double>(integer->value);
    if (const auto* real = value.as<Float>()) return real->value;
    if (const bool* flag = value.as<bool>()) return *flag ? 1.0 : 0.0;
    fail(operation, concat("expected a number as setting '", name, "'"));
  };
  const auto dimension = static_cast<int64_t>(setting_of("reduction_dim"));
  const Attribute called = operation.attributes.find("called_computations");
  const auto* functions = called.as<Array>();
  if (!functions || functions->elements.size() != 1) fail(operation, "expected one function that compares");
  const std::string comparison = comparison_of(body.module().function_of(operation, functions->elements[0]));
  if ((comparison != "GT" && comparison != "LT") || !counts_along(body.block(), operation.operands[1].id, dimension)) {
    throw UnsupportedError(concat(place_of(operation), ": custom call @ApproxTopK is supported for the largest or ",
                                  "least elements with positions that count from 0"));
  }
  return bind_named(
      "approx_top_k", {operands[0]},
      {{"k", static_cast<int64_t>(setting_of("top_k"))},
       {"reduction_dimension", dimension},
       {"recall_target", setting_of("recall_target")},
       {"is_max_k", comparison == "GT"},
       {"reduction_input_size_override", static_cast<int64_t>(setting_of("reduction_input_size_override"))},
       {"aggregate_to_topk", setting_of("aggregate_to_topk") != 0}});
}

// ---- callbacks ---------------------------------------------------------------------------------------------------

bool is_callback(const std::string& target) {
  return target == "xla_ffi_python_cpu_callback" || target == "xla_ffi_partitioned_python_cpu_callback";
}

// A function that the client identifies by a number, called with the values of one device. A token among the operands
// means that calls run in program order.
Arrays read_callback(BodyReader& body, const Operation& operation, const Arrays& operands) {
  if (!body.module().options().numbered_calls) {
    throw UnsupportedError(concat(place_of(operation), ": a call of a Python function needs the process that made the ",
                                  "module\nHint: export the function without callbacks"));
  }
  const Attribute stated = operation.attributes.find("mhlo.backend_config");
  const auto* settings = stated.as<Dictionary>();
  const Attribute index = settings ? settings->find("index") : Attribute();
  const auto* number = index.as<Integer>();
  if (!number) fail(operation, "expected an integer 'index' in attribute 'mhlo.backend_config'");
  NumberedCall call{number->value, {}, {}};
  const auto add = [&](const std::vector<Value>& values, std::vector<std::optional<ArrayType>>& list) {
    for (const Value& value : values)
      list.push_back(value.type.is_token() ? std::nullopt : std::optional(array_type(operation, value.type)));
  };
  add(operation.operands, call.operands);
  add(operation.results, call.results);
  Attr::List types;
  for (const ArrayType& type : result_types(operation)) types.emplace_back(type);
  const std::shared_ptr<const Opaque> function = body.module().options().numbered_calls(call);
  const bool ordered = std::count(call.operands.begin(), call.operands.end(), std::nullopt) > 0;
  if (!ordered && !flag_attribute(operation, "has_side_effect")) {
    return bind_named("pure_callback", operands,
                      {{"callback", function},
                       {"result_avals", std::move(types)},
                       {"sharding", Attr()},
                       {"vmap_method", "sequential"}});
  }
  return bind_named(
      "io_callback", operands,
      {{"callback", function}, {"ordered", ordered}, {"result_avals", std::move(types)}, {"sharding", Attr()}});
}

bool is_annotation(const std::string& target) {
  static const char* const names[] = {"Sharding",
                                      "SPMDFullToShardShape",
                                      "SPMDShardToFullShape",
                                      "LayoutConstraint",
                                      "MoveToHost",
                                      "MoveToDevice",
                                      "annotate_device_placement",
                                      "xla.sdy.FuncResultSharding",
                                      "xla.sdy.GlobalToLocalShape",
                                      "xla.sdy.LocalToGlobalShape"};
  for (const char* name : names) {
    if (target == name) return true;
  }
  return target.starts_with("annotate_");
}

}  // namespace

Arrays read_expectation(BodyReader&, const Operation& operation, const Arrays& operands) {
  if (operation.name == "interpreter.probe") {
    require_operands(operation, operands, 1);
    return capibara::bind(probe_primitive(), operands, {{"probe_id", string_attribute(operation, "probe_id")}});
  }
  if (operation.name == "check.expect_serialized_eq") {
    require_operands(operation, operands, 1);
    return capibara::bind(expect_probe_primitive(), operands,
                          expectation(operation, operation.name, "eq", 0)
                              .with("probe_id", string_attribute(operation, "probe_id"))
                              .with("iter", integer_attribute(operation, "iter", 0)));
  }
  Arrays inputs = operands;
  if (operation.name.ends_with("_const")) {
    inputs.push_back(read_constant(operation));
  }
  require_operands(operation, inputs, 2);
  return capibara::bind(expect_primitive(), inputs, named_expectation(operation, operation.name, false));
}

Arrays read_custom_call(BodyReader& body, const Operation& operation, const Arrays& operands) {
  const std::string target = string_attribute(operation, "call_target_name");
  if (target.starts_with("check.")) {
    require_operands(operation, operands, 2);
    capibara::bind(expect_primitive(), operands, named_expectation(operation, target, true));
    const bool yes = true;
    return operation.results.empty() ? Arrays{} : Arrays{NdArray::from_host(DType::bool_, {}, &yes)};
  }
  if (is_annotation(target)) return operands;
  if (target == "shape_assertion") return read_shape_assertion(operation, operands);
  if (target == "stablehlo.dynamic_reduce_window") return read_dynamic_window(body, operation, operands);
  if (target == "ragged_all_to_all") {
    throw UnsupportedError(concat(
        place_of(operation), ": exchanges of parts of different sizes (ragged_all_to_all) are ", "not supported",
        body.module().manual() ? " between devices" : "", "\nHint: pad the parts to one size and use all_to_all"));
  }
  if (target.starts_with("mhlo.") || target.starts_with("chlo.")) {  // an operation as a custom call
    Operation plain = operation;
    plain.name = (target == "mhlo.topk" ? "chlo.top_k" : "chlo." + target.substr(5));
    const Attribute attributes = operation.attributes.find("mhlo.attributes");
    if (const auto* own = attributes.as<Dictionary>()) plain.attributes = *own;
    if (const OperationRow* row = find_row(plain)) return body.read_row(plain, *row, operands);
  }
  if (is_callback(target)) return read_callback(body, operation, operands);
  if (target == "ApproxTopK") return read_approximate(body, operation, operands);
  const std::string routine = lapack_routine(target);
  if (routine == "potrf") return read_potrf(body, operation, operands);
  if (routine == "trsm") return read_trsm(operation, operands);
  if (is_lapack_routine(routine) || target == "tridiagonal_solve_perturbed_ffi")
    return read_lapack(operation, target, operands);
  return read_opaque(operation, target, operands);
}

}  // namespace capibara::stablehlo
