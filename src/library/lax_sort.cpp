// jax.lax: sorting and the greatest elements.
#include <capibara/lax.h>
#include <capibara/primitive.h>

namespace capibara::jax::lax {

namespace {

int64_t normalised_axis(const std::string& op, int64_t axis, const Array& x, const char* argument) {
  if (axis < -x.ndim() || axis >= x.ndim()) {
    throw ValueError(concat(op, ": axis ", axis, " is out of range for ", to_string(x.type()), " (argument '", argument, "')"));
  }
  return axis < 0 ? axis + x.ndim() : axis;
}

Arrays approx_top_k(const Array& x, int64_t k, bool greatest, const ApproxTopKOptions& options) {
  static const Primitive p = primitive("approx_top_k");
  return capibara::bind(p, Arrays{x},
                        {{"k", k},
                         {"reduction_dimension", options.reduction_dimension},
                         {"recall_target", options.recall_target},
                         {"is_max_k", greatest},
                         {"reduction_input_size_override", options.reduction_input_size_override},
                         {"aggregate_to_topk", options.aggregate_to_topk}});
}

}  // namespace

Array sort(const Array& x, const SortOptions& options) {
  if (options.num_keys != 1) {
    throw ValueError(concat("sort: num_keys=", options.num_keys, " must equal 1 for a single operand."));
  }
  return sort(Arrays{x}, options)[0];
}

Arrays sort(const Arrays& operands, const SortOptions& options) {
  static const Primitive p = primitive("sort");
  if (operands.empty()) throw TypeError("sort: requires at least one operand");
  if (options.num_keys < 1 || options.num_keys > static_cast<int64_t>(operands.size())) {
    throw ValueError(concat("sort: num_keys=", options.num_keys, " must be between 1 and the number of operands, ", operands.size()));
  }
  int64_t dimension = normalised_axis("sort", options.dimension, operands[0], "dimension");
  return capibara::bind(p, operands, {{"dimension", dimension}, {"is_stable", options.is_stable}, {"num_keys", options.num_keys}});
}

std::pair<Array, Array> sort_key_val(const Array& keys, const Array& values, const SortOptions& options) {
  SortOptions by_first = options;
  by_first.num_keys = 1;
  Arrays sorted = sort(Arrays{keys, values}, by_first);
  return {sorted[0], sorted[1]};
}

std::pair<Array, Array> top_k(const Array& x, int64_t k, int64_t axis) {
  static const Primitive p = primitive("top_k");
  if (k < 0) throw ValueError(concat("k argument to top_k must be nonnegative, got ", k));
  if (x.ndim() == 0) throw TypeError(concat("top_k operand must have >= 1 dimension, got ", to_string(x.type())));
  Arrays out = capibara::bind(p, Arrays{x}, {{"k", k}, {"axis", normalised_axis("top_k", axis, x, "axis")}});
  return {out[0], out[1]};
}

std::pair<Array, Array> approx_max_k(const Array& x, int64_t k, const ApproxTopKOptions& options) {
  Arrays out = approx_top_k(x, k, true, options);
  return {out[0], out[1]};
}

std::pair<Array, Array> approx_min_k(const Array& x, int64_t k, const ApproxTopKOptions& options) {
  Arrays out = approx_top_k(x, k, false, options);
  return {out[0], out[1]};
}

}  // namespace capibara::jax::lax
