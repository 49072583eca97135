// Derivatives of functions on leaves, with JAX's checks: jvp, linearize, vjp, grad and linear_transpose.
#include <capibara/lax.h>
#include <capibara/transforms.h>

#include "core/array/element.h"
#include "core/array/format.h"
#include "lax/rules.h"
#include "program/ir/dce.h"
#include "program/ir/explicit_types.h"
#include "program/ir/handles.h"
#include "program/ir/source.h"
#include "transforms/linear_map.h"

#include <algorithm>
#include <unordered_map>

namespace capibara::detail {

namespace lax = jax::lax;

namespace {

// A tangent or cotangent in the form the core takes: float0 zeros are symbolic.
Array or_symbolic_zero(const Array& tangent) { return tangent.dtype() == DType::float0 ? Array() : tangent; }

bool same_shape_and_dtype(const ArrayType& a, const ArrayType& b) { return a.shape == b.shape && a.dtype == b.dtype; }

}  // namespace

Array or_zeros(const Array& cotangent, const ArrayType& primal) {
  return cotangent.defined() ? cotangent : lax::zeros(cotangent_type(primal));
}

// ---- differentiable dtypes ------------------------------------------------------------------------------------------

void check_reverse_input(const std::string& name, const ArrayType& type, const jax::GradOptions& options) {
  if (options.holomorphic && !is_complex(type.dtype)) {
    throw TypeError(concat(name, " with holomorphic=True requires inputs with complex dtype, but got ",
                           dtype_name(type.dtype), "."));
  }
  if (is_inexact(type.dtype) || options.allow_int) return;
  throw TypeError(
      concat(name, " requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got ",
             dtype_name(type.dtype),
             ". If you want to use Boolean- or integer-valued inputs, use vjp or set allow_int to True."));
}

void check_reverse_output(const std::string& name, const ArrayType& type, const jax::GradOptions& options) {
  if (options.holomorphic) {
    if (is_complex(type.dtype)) return;
    throw TypeError(concat(name, " with holomorphic=True requires outputs with complex dtype, but got ",
                           dtype_name(type.dtype), "."));
  }
  if (is_inexact(type.dtype) && !is_complex(type.dtype)) return;
  std::string start =
      concat(name, " requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got ",
             dtype_name(type.dtype), ". ");
  if (is_complex(type.dtype)) {
    throw TypeError(start +
                    "For holomorphic differentiation, pass holomorphic=True. For differentiation of non-holomorphic "
                    "functions involving complex outputs, use jax.vjp directly.");
  }
  throw TypeError(start + "For differentiation of functions with integer outputs, use jax.vjp directly.");
}

std::vector<bool> argument_leaves(const char* operation, const TreeDef& in, std::initializer_list<int> positions) {
  int count = static_cast<int>(in.children().size());
  for (int position : positions) {
    if (position >= -count && position < count) continue;
    throw ValueError(
        concat(operation, ": argument ", position, " is to be differentiated, but the call has ", count, " arguments"));
  }
  std::vector<bool> mask;
  for (int i = 0; i < count; ++i) {
    const TreeDef& argument = in.children()[static_cast<std::size_t>(i)];
    bool named = names_position(i, count, positions);
    if (named && argument.num_leaves() == 0) {
      throw TypeError(concat(operation, ": argument ", i, " holds no array to differentiate with respect to, got ",
                             argument.to_string()));
    }
    mask.insert(mask.end(), argument.num_leaves(), named);
  }
  return mask;
}

// ---- linear maps ------------------------------------------------------------------------------------------------

LinearizedCall linearize_leaves(const FlatFunction& function, std::span<const Array> leaves,
                                const std::vector<bool>& differentiated, const std::size_t& main) {
  auto map = std::make_shared<LinearMap>();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    map->in_types.push_back(leaves[i].type());
    map->differentiated.push_back(differentiated[i] && is_inexact(leaves[i].dtype()));
  }
  map->linearized = linearize_flat(function, leaves, map->differentiated);
  Linearized& linearized = map->linearized;
  Arrays outputs = std::move(linearized.outputs);
  linearized.outputs.clear();
  if (main < outputs.size()) {
    // Drop the tangents of auxiliary outputs, and whatever only they need.
    std::vector<bool> used;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (linearized.nonzero_outputs[i]) used.push_back(i < main);
    }
    std::vector<bool> keep(linearized.residuals.size(), false);
    keep.resize(linearized.linear.invars().size(), true);
    DceProgram pruned = dce_program(linearized.linear, used, keep);
    Arrays residuals;
    for (std::size_t i = 0; i < linearized.residuals.size(); ++i) {
      if (pruned.used_inputs[i]) residuals.push_back(linearized.residuals[i]);
    }
    linearized.linear = pruned.program;
    linearized.residuals = std::move(residuals);
    linearized.nonzero_outputs.resize(main);
  }
  for (std::size_t i = 0; i < main; ++i) map->out_types.push_back(outputs[i].type());
  return {std::move(outputs), std::move(map)};
}

Arrays push_forward(const LinearMap& map, const TreeDef& expected, const TreeDef& got,
                    std::span<const Array> tangents) {
  if (!(expected == got)) {
    throw TypeError(
        concat("linearized function called with tangents of another structure: ", tree_difference(expected, got)));
  }
  require_values("linearized function", got, tangents);
  Arrays inputs = map.linearized.residuals;
  for (std::size_t i = 0; i < tangents.size(); ++i) {
    ArrayType wanted = tangent_type(map.in_types[i]);
    if (!same_shape_and_dtype(wanted, tangents[i].type())) {
      throw ValueError(
          concat("linearized function called on tangent values inconsistent with the original primal values:\nGot "
                 "tangent aval ",
                 to_string(tangents[i].type()), " for primal aval ", to_string(map.in_types[i]), " but expected ",
                 to_string(wanted), "."));
    }
    if (map.differentiated[i]) inputs.push_back(tangents[i]);
  }
  Arrays nonzero = evaluate_program(map.linearized.linear, inputs), results;
  std::size_t next = 0;
  for (std::size_t i = 0; i < map.out_types.size(); ++i) {
    results.push_back(map.linearized.nonzero_outputs[i] ? nonzero[next++] : instantiate(Array(), map.out_types[i]));
  }
  return results;
}

Arrays pull_back_raw(const LinearMap& map, std::span<const Array> cotangents) {
  Arrays results = capibara::pull_back(map.linearized, cotangents), all;
  std::size_t next = 0;
  for (std::size_t i = 0; i < map.in_types.size(); ++i)
    all.push_back(map.differentiated[i] ? results[next++] : Array());
  return all;
}

Arrays pull_back(const LinearMap& map, const TreeDef& expected, const TreeDef& got, std::span<const Array> cotangents) {
  if (!(expected == got)) {
    throw ValueError(
        concat("unexpected tree structure of the argument to a VJP function, which must match the output of the "
               "differentiated function: ",
               tree_difference(expected, got)));
  }
  require_values("VJP function", got, cotangents);
  Arrays given;
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    ArrayType wanted = tangent_type(map.out_types[i]);
    // The output itself is accepted as its cotangent if that is float0.
    if (wanted.dtype == DType::float0 && same_shape_and_dtype(map.out_types[i], cotangents[i].type())) {
      given.emplace_back();
      continue;
    }
    if (!same_shape_and_dtype(wanted, cotangents[i].type())) {
      throw ValueError(concat("unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got ",
                              to_string(cotangents[i].type()), ", but expected ", to_string(wanted),
                              " because the corresponding output of the differentiated function had JAX type ",
                              to_string(map.out_types[i])));
    }
    given.push_back(or_symbolic_zero(cotangents[i]));
  }
  Arrays results = pull_back_raw(map, given);
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = or_zeros(results[i], map.in_types[i]);
  return results;
}

// ---- grad ---------------------------------------------------------------------------------------------------------

GradCall grad_leaves(const FlatFunction& function, std::span<const Array> leaves,
                     const std::vector<bool>& differentiated, const jax::GradOptions& options) {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (differentiated[i]) check_reverse_input("grad", leaves[i].type(), options);
  }
  const std::size_t main = 1;
  LinearizedCall call = linearize_leaves(function, leaves, differentiated, main);
  const Array& value = call.outputs.at(0);
  if (value.ndim() != 0) {
    throw TypeError(concat(
        "Gradient only defined for scalar-output functions. Output had shape: ", shape_tuple(value.shape()), "."));
  }
  check_reverse_output("grad", value.type(), options);
  Array seed = scalar_like(value, 1.0);
  if (value.type().sharding.is_explicit()) {
    const Attr wanted = sharding_attr(cotangent_sharding(value.type().sharding));
    seed = bind1(prim::reshard(), {seed}, {{"dst_sharding", wanted}});
  }
  Arrays results = pull_back_raw(*call.map, Arrays{seed});
  GradCall result{std::move(call.outputs), {}};
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (differentiated[i]) result.gradients.push_back(or_zeros(results[i], leaves[i].type()));
  return result;
}

// ---- jvp ----------------------------------------------------------------------------------------------------------

JvpCall jvp_leaves(const FlatFunction& function, const TreeDef& in, const TreeDef& tangent_in,
                   std::span<const Array> leaves, std::span<const Array> tangents, const std::size_t& main) {
  if (!(in == tangent_in)) {
    throw TypeError(concat(
        "primal and tangent arguments to jax.jvp must have the same tree structure; primals have tree structure ",
        in.to_string(), " whereas tangents have tree structure ", tangent_in.to_string(), "."));
  }
  require_values("jvp", in, leaves);
  require_values("jvp (tangents)", in, tangents);
  Arrays given;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    ArrayType wanted = tangent_type(leaves[i].type());
    if (wanted.dtype != tangents[i].dtype()) {
      throw TypeError(
          concat("primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case of int/bool "
                 "primal dtype the tangent dtype must be float0. Got primal dtype ",
                 dtype_name(leaves[i].dtype()), " and so expected tangent dtype ", dtype_name(wanted.dtype),
                 ", but got tangent dtype ", dtype_name(tangents[i].dtype()), " instead."));
    }
    if (wanted.shape != tangents[i].shape()) {
      throw ValueError(concat("jvp called with different primal and tangent shapes; Got primal shape ",
                              shape_tuple(leaves[i].shape()), " and tangent shape as ",
                              shape_tuple(tangents[i].shape())));
    }
    given.push_back(or_symbolic_zero(tangents[i]));
  }
  JvpResult result = jvp_flat(function, leaves, given);
  JvpCall call{std::move(result.primals), {}};
  for (std::size_t i = 0; i < main; ++i)
    call.tangents.push_back(instantiate(result.tangents[i], call.outputs[i].type()));
  return call;
}

// ---- linear_transpose ---------------------------------------------------------------------------------------------

namespace {

std::string type_list(const Types& types) {
  std::string text = "[";
  for (const ArrayType& type : types) text += concat(text.size() > 1 ? ", " : "", to_string(type));
  return text + "]";
}

bool all_of(const Types& types, bool (*test)(DType)) {
  return std::all_of(types.begin(), types.end(), [&](const ArrayType& type) { return test(type.dtype); });
}

}  // namespace

std::shared_ptr<const TransposedFunction> transpose_leaves(const FlatFunction& function, const Types& types) {
  auto transposed = std::make_shared<TransposedFunction>();
  transposed->staged = stage(function, types, "linear_transpose");
  transposed->in_types = types;
  const Types results = transposed->staged.program.output_types();
  if (!(all_of(types, is_inexact) && all_of(results, is_inexact)) &&
      !(all_of(types, is_integer) && all_of(results, is_integer))) {
    throw TypeError(concat(
        "linear_transpose only supports [float or complex] -> [float or complex], and integer -> integer functions, "
        "but got ",
        type_list(types), " -> ", type_list(results), "."));
  }
  return transposed;
}

Arrays apply_transposed(const TransposedFunction& function, const TreeDef& expected, const TreeDef& got,
                        std::span<const Array> cotangents) {
  if (!(expected == got)) {
    throw TypeError(concat("linear_transpose: the cotangent's structure does not match the function's output: ",
                           tree_difference(expected, got)));
  }
  const Program& program = function.staged.program;
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    const ArrayType& output = program.type(program.outputs()[i]);
    if (cotangents[i].defined() && same_shape_and_dtype(output, cotangents[i].type())) continue;
    throw TypeError(concat("linear_transpose: cotangent type does not match function output, expected ",
                           to_string(output), " but got ",
                           cotangents[i].defined() ? to_string(cotangents[i].type()) : "an empty array handle"));
  }
  Arrays inputs = function.staged.captured;
  std::size_t captured = inputs.size();
  inputs.resize(program.invars().size());
  std::vector<bool> is_linear(inputs.size(), true);
  std::fill_n(is_linear.begin(), captured, false);
  Arrays results = backward_pass(program, is_linear, inputs, cotangents), arguments;
  for (std::size_t i = captured; i < results.size(); ++i) {
    const ArrayType& type = function.in_types[i - captured];
    // The transpose of a function on integers has integer cotangents.
    arguments.push_back(results[i].defined() || is_inexact(type.dtype) ? instantiate(results[i], type)
                                                                       : lax::full(type.shape, Array(0), type.dtype));
  }
  return arguments;
}

// ---- residuals ----------------------------------------------------------------------------------------------------

Residuals saved_residuals(const FlatFunction& function, const Types& types) {
  Staged staged = stage(
      [&](std::span<const Array> inputs) {
        std::vector<bool> differentiable;
        for (const Array& input : inputs) differentiable.push_back(is_inexact(input.dtype()));
        return linearize_flat(function, inputs, differentiable).residuals;
      },
      types, "saved_residuals");
  const Program& program = staged.program;
  std::vector<bool> wanted(static_cast<std::size_t>(program.var_count()), false);
  std::unordered_map<int32_t, int32_t> rounded;  // reduce_precision is not a producer: look through it
  for (const Equation& equation : program.equations()) {
    if (equation.primitive == prim::reduce_precision() && !equation.inputs[0].is_literal() &&
        !equation.outputs[0].dropped()) {
      rounded[equation.outputs[0].id] = equation.inputs[0].code;
    }
  }
  Residuals result;
  auto add = [&](const ArrayType& type, std::string origin) {
    result.types.push_back(type);
    result.origins.push_back(std::move(origin));
  };
  for (Atom output : program.outputs()) {
    if (output.is_literal()) {
      add(program.type(output), "literal");
      continue;
    }
    auto it = rounded.find(output.code);
    wanted[static_cast<std::size_t>(it == rounded.end() ? output.code : it->second)] = true;
  }
  auto take = [&](Var var) {
    if (var.dropped() || !wanted[static_cast<std::size_t>(var.id)]) return false;
    wanted[static_cast<std::size_t>(var.id)] = false;
    return true;
  };
  for (Var var : program.constvars()) {
    if (take(var)) add(program.type(var), "constant");
  }
  std::size_t captured = staged.captured.size();
  for (std::size_t i = 0; i < program.invars().size(); ++i) {
    Var var = program.invars()[i];
    if (take(var)) add(program.type(var), i < captured ? "constant" : concat("argument ", i - captured));
  }
  for (const Equation& equation : program.equations()) {
    for (Var var : equation.outputs) {
      if (!take(var)) continue;
      std::string origin = concat("output of ", equation.primitive.name());
      if (equation.primitive == prim::name()) origin = concat("named ", equation.attrs.text("name"));
      if (equation.primitive == prim::jit()) {
        origin = concat("output of jitted function '", equation.attrs.text("name"), "'");
      }
      const SourceInfo written = source_info(equation.source);  // lines of Python code; C++ code has none
      if (!written.file.empty()) origin = concat(origin, " from ", written.file, ":", written.line);
      add(program.type(var), std::move(origin));
    }
  }
  return result;
}

}  // namespace capibara::detail
