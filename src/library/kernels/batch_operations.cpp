// batch_operations: one operation on each array of a list, with small arrays processed together.
#include <capibara/kernels/dense.h>
#include <capibara/kernels/norms.h>
#include <capibara/lax.h>

#include <functional>
#include <set>
#include <tuple>

#include "lax/rules.h"

namespace capibara::kernels {

namespace {

namespace lax = jax::lax;

constexpr int64_t small_bytes = 1 << 16;  // up to which concatenating and splitting inputs costs less than another call

using Parameters = std::map<std::string, Array>;
using RowOperation = std::function<Array(const Array&, const Parameters&)>;

struct BatchOperation {
  const char* name;
  std::set<std::string> parameters;
  RowOperation run;
};

std::optional<Array> given(const Parameters& parameters, const char* name) {
  const auto it = parameters.find(name);
  return it == parameters.end() ? std::nullopt : std::optional(it->second);
}

double epsilon_of(const Parameters& parameters, double otherwise) {
  const std::optional<Array> epsilon = given(parameters, "epsilon");
  return epsilon ? epsilon->item<double>() : otherwise;
}

const Array& required(const char* operation, const Parameters& parameters, const char* name) {
  const auto it = parameters.find(name);
  if (it != parameters.end()) return it->second;
  throw ValueError(concat("batch_operations: '", operation, "' needs '", name, "' (argument 'parameters')"));
}

// All of them act on the last axis, independently for each row.
const std::vector<BatchOperation>& operations() {
  static const std::vector<BatchOperation> all = {
      {"layer_norm",
       {"weight", "bias", "epsilon"},
       [](const Array& x, const Parameters& p) {
         return fast_layer_norm(
             x, {.weight = given(p, "weight"), .bias = given(p, "bias"), .epsilon = epsilon_of(p, 1e-5)});
       }},
      {"rms_norm",
       {"weight", "epsilon"},
       [](const Array& x, const Parameters& p) {
         return rms_norm(x, required("rms_norm", p, "weight"), {.epsilon = epsilon_of(p, 1e-6)});
       }},
      {"softmax", {}, [](const Array& x, const Parameters&) { return softmax(x); }},
      {"gelu", {}, [](const Array& x, const Parameters&) { return fused_gelu_dropout(x, {.rate = 0}); }},
      {"matmul",
       {"b"},
       [](const Array& x, const Parameters& p) { return adaptive_matmul(x, required("matmul", p, "b")); }},
  };
  return all;
}

const BatchOperation& find_operation(const std::string& name) {
  std::string names;
  for (const BatchOperation& operation : operations()) {
    if (name == operation.name) return operation;
    names += concat(names.empty() ? "'" : ", '", operation.name, "'");
  }
  throw ValueError(
      concat("batch_operations: expected one of ", names, " (argument 'operation_type'), got '", name, "'"));
}

Array as_rows(const Array& x) {
  const Shape leading(x.shape().begin(), x.shape().end() - 1);
  return x.reshape({element_count(leading), x.shape(-1)});
}

Array with_leading(const Array& rows, const Array& like) {
  Shape shape(like.shape().begin(), like.shape().end() - 1);
  shape.push_back(rows.shape(-1));
  return rows.reshape(shape);
}

}  // namespace

Arrays batch_operations(const std::string& operation_type, const Arrays& inputs,
                        const BatchOperationsOptions& options) {
  const BatchOperation& operation = find_operation(operation_type);
  for (const auto& [name, value] : options.parameters) {
    if (operation.parameters.contains(name)) continue;
    std::string names;
    for (const std::string& known : operation.parameters) names += (names.empty() ? "'" : ", '") + known + "'";
    throw ValueError(concat("batch_operations: '", operation_type, "' takes ", names.empty() ? "no parameters" : names,
                            " (argument 'parameters'), got '", name, "'"));
  }
  for (const Array& x : inputs) {
    if (x.ndim() == 0 || !is_floating(x.dtype())) {
      throw TypeError(concat("batch_operations: expected floating arrays of rank 1 or more (argument 'inputs'), got ",
                             to_string(x.type())));
    }
  }
  Arrays results(inputs.size());
  if (!options.parallel_execution) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      // Computation on an input starts only after the previous result is available.
      const Array x = i == 0 ? inputs[0] : lax::optimization_barrier({inputs[i], results[i - 1]})[0];
      results[i] = operation.run(x, options.parameters);
    }
    return results;
  }
  std::map<std::pair<DType, int64_t>, std::vector<std::size_t>> small;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_small = inputs[i].size() * storage_size(inputs[i].dtype()) <= small_bytes;
    if (is_small) {
      small[{inputs[i].dtype(), inputs[i].shape(-1)}].push_back(i);
    } else {
      results[i] = operation.run(inputs[i], options.parameters);
    }
  }
  for (const auto& [key, group] : small) {
    if (group.size() == 1) {
      results[group[0]] = operation.run(inputs[group[0]], options.parameters);
      continue;
    }
    Arrays rows;
    for (std::size_t i : group) rows.push_back(as_rows(inputs[i]));
    const Array joined = operation.run(lax::concatenate(rows, 0), options.parameters);
    int64_t begin = 0;
    for (std::size_t k = 0; k < group.size(); ++k) {
      const int64_t end = begin + rows[k].shape(0);
      results[group[k]] = with_leading(lax::slice_in_dim(joined, begin, end), inputs[group[k]]);
      begin = end;
    }
  }
  return results;
}

}  // namespace capibara::kernels
