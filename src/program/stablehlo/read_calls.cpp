// Reading custom calls: expectations, annotations of shardings, and the LAPACK routines that jax calls on the CPU.
#include <unordered_map>

#include <capibara/error.h>
#include <capibara/lax.h>

#include "program/stablehlo/read_body.h"

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

// The tolerances of the custom calls and of the operations of one name differ.
Attrs named_expectation(const Operation& operation, const std::string& name, bool custom_call) {
  if (name.starts_with("check.expect_almost_eq")) return expectation(operation, name, "almost_eq", custom_call ? 1e-3 : 1e-4);
  if (name == "check.expect_close") return expectation(operation, name, "close", 0);
  if (name.starts_with("check.expect_eq") || name == "check.eq") return expectation(operation, name, "eq", 0);
  throw UnsupportedError(concat(place_of(operation), ": expectation ", name, " is not supported"));
}

// ---- LAPACK ------------------------------------------------------------------------------------------------------

// The settings that jax passes: characters of LAPACK's own interface.
char setting(const Operation& operation, std::string_view name, char otherwise) {
  const Attribute attribute = operation.attributes.find("mhlo.backend_config");
  const auto* settings = attribute.as<Dictionary>();
  if (!settings) return otherwise;
  const Attribute value = settings->find(name);
  const auto* number = value.as<Integer>();
  return number ? static_cast<char>(number->value) : otherwise;
}

// The status that every routine returns: zero, success. A failure shows as NaN in the values themselves.
NdArray success(const Operation& operation) { return lax::zeros(result_types(operation).back()); }

Arrays with_success(const Operation& operation, Arrays results) {
  results.push_back(success(operation));
  return results;
}

NdArray transposed(const NdArray& x) {
  Ints order;
  for (int64_t i = 0; i < x.ndim(); ++i) order.push_back(i);
  std::swap(order.at(order.size() - 1), order.at(order.size() - 2));
  return lax::transpose(x, order);
}

Arrays read_potrf(const Operation& operation, const Arrays& in) {
  const bool lower = setting(operation, "uplo", 'L') == 'L';
  auto adjoint = [](const NdArray& x) { return is_complex(x.dtype()) ? lax::conj(transposed(x)) : transposed(x); };
  const NdArray factor = bind_named("cholesky", {lower ? in[0] : adjoint(in[0])})[0];
  return with_success(operation, {lower ? factor : adjoint(factor)});
}

// LAPACK counts pivots from 1.
Arrays read_getrf(const Operation& operation, const Arrays& in) {
  const Arrays out = bind_named("lu", in);
  return with_success(operation, {out[0], lax::add(out[1], lax::full_like(out[1], NdArray(1)))});
}

Arrays read_geqrf(const Operation&, const Arrays& in) { return bind_named("geqrf", in); }
Arrays read_orgqr(const Operation&, const Arrays& in) { return bind_named("householder_product", in); }

Arrays read_ormqr(const Operation& operation, const Arrays& in) {
  return bind_named("ormqr", in,
                    {{"left", setting(operation, "side", 'L') == 'L'},
                     {"transpose", setting(operation, "trans", 'N') != 'N'}});
}

Arrays read_syevd(const Operation& operation, const Arrays& in) {
  return with_success(operation, bind_named("eigh", in,
                                            {{"lower", setting(operation, "uplo", 'L') == 'L'},
                                             {"sort_eigenvalues", true},
                                             {"subset_by_index", Attr()},
                                             {"algorithm", Attr()}}));
}

Arrays read_gesdd(const Operation& operation, const Arrays& in) {
  const char mode = setting(operation, "mode", 'A');
  const Types results = result_types(operation);
  if (results.size() != 5) fail(operation, concat("expected 5 results, got ", results.size()));
  const bool vectors = mode != 'N';
  const bool full = mode == 'A' || (mode == 'N' && results[2].shape.back() == in[0].shape(-2));
  Arrays out = bind_named("svd", in,
                          {{"full_matrices", full},
                           {"compute_uv", vectors},
                           {"subset_by_index", Attr()},
                           {"algorithm", Attr()}});
  if (!vectors) {
    out.push_back(lax::zeros(results[2]));
    out.push_back(lax::zeros(results[3]));
  }
  out.insert(out.begin(), in[0]);
  return with_success(operation, out);
}

Arrays read_geev(const Operation& operation, const Arrays& in) {
  const bool left = setting(operation, "compute_left", 'N') == 'V', right = setting(operation, "compute_right", 'N') == 'V';
  const Arrays values = bind_named("eig", in,
                                   {{"compute_left_eigenvectors", left},
                                    {"compute_right_eigenvectors", right},
                                    {"enable_eigvec_derivs", false},
                                    {"implementation", Attr()}});
  Arrays out;
  if (is_complex(in[0].dtype())) out = {values[0]};
  else out = {lax::real(values[0]), lax::imag(values[0])};
  const ArrayType vectors = result_types(operation).at(out.size());
  std::size_t next = 1;
  for (bool wanted : {left, right}) out.push_back(wanted ? values.at(next++) : lax::zeros(vectors));
  return with_success(operation, out);
}

Arrays read_gees(const Operation& operation, const Arrays& in) {
  const bool vectors = setting(operation, "mode", 'V') == 'V';
  Arrays out = bind_named("schur", in,
                          {{"compute_schur_vectors", vectors}, {"sort_eig_vals", false}, {"select_callable", Attr()}});
  const Types results = result_types(operation);
  for (std::size_t i = out.size(); i < results.size(); ++i) out.push_back(lax::zeros(results[i]));
  return out;
}

Arrays read_gehrd(const Operation& operation, const Arrays& in) {
  return with_success(operation, bind_named("hessenberg", in));
}

Arrays read_sytrd(const Operation& operation, const Arrays& in) {
  return with_success(operation, bind_named("tridiagonal", in, {{"lower", setting(operation, "uplo", 'L') == 'L'}}));
}

Arrays read_trsm(const Operation& operation, const Arrays& in) {
  const char transpose = setting(operation, "trans_x", 'N');
  return bind_named("triangular_solve", {in[0], in[1]},
                    {{"left_side", setting(operation, "side", 'L') == 'L'},
                     {"lower", setting(operation, "uplo", 'L') == 'L'},
                     {"transpose_a", transpose != 'N'},
                     {"conjugate_a", transpose == 'C'},
                     {"unit_diagonal", setting(operation, "diag", 'N') == 'U'}});
}

using LapackRule = Arrays (*)(const Operation&, const Arrays&);

// lapack_sgetrf_ffi: the routine without its type letter.
LapackRule find_lapack_rule(const std::string& target, std::size_t operands) {
  static const std::unordered_map<std::string_view, std::pair<LapackRule, std::size_t>> rules = {
      {"potrf", {read_potrf, 1}}, {"getrf", {read_getrf, 1}}, {"geqrf", {read_geqrf, 1}}, {"orgqr", {read_orgqr, 2}},
      {"ungqr", {read_orgqr, 2}}, {"ormqr", {read_ormqr, 3}}, {"unmqr", {read_ormqr, 3}}, {"syevd", {read_syevd, 1}},
      {"heevd", {read_syevd, 1}}, {"gesdd", {read_gesdd, 1}}, {"gesvd", {read_gesdd, 1}}, {"geev", {read_geev, 1}},
      {"gees", {read_gees, 1}},   {"gehrd", {read_gehrd, 1}}, {"sytrd", {read_sytrd, 1}}, {"hetrd", {read_sytrd, 1}},
      {"trsm", {read_trsm, 2}}};
  constexpr std::string_view prefix = "lapack_", suffix = "_ffi";
  if (!target.starts_with(prefix) || !target.ends_with(suffix) || target.size() <= prefix.size() + 1 + suffix.size()) {
    return nullptr;
  }
  const std::string_view routine =
      std::string_view(target).substr(prefix.size() + 1, target.size() - prefix.size() - 1 - suffix.size());
  const auto place = rules.find(routine);
  return place == rules.end() || operands < place->second.second ? nullptr : place->second.first;
}

bool is_annotation(const std::string& target) {
  static const char* const names[] = {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint",
                                      "MoveToHost", "MoveToDevice", "annotate_device_placement", "xla.sdy.FuncResultSharding",
                                      "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"};
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
    const Attribute value = operation.attributes.find("value");
    const auto* dense = value.as<DenseElements>();
    if (!dense) fail(operation, "expected dense elements as attribute 'value'");
    inputs.push_back(dense_array(operation, *dense));
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
  if (target.starts_with("mhlo.") || target.starts_with("chlo.")) {  // an operation in another coat
    Operation plain = operation;
    plain.name = (target == "mhlo.topk" ? "chlo.top_k" : "chlo." + target.substr(5));
    const Attribute attributes = operation.attributes.find("mhlo.attributes");
    if (const auto* own = attributes.as<Dictionary>()) plain.attributes = *own;
    if (const OperationRow* row = find_row(plain)) return body.read_row(plain, *row, operands);
  }
  if (LapackRule rule = find_lapack_rule(target, operands.size())) return rule(operation, operands);
  throw UnsupportedError(concat(place_of(operation), ": custom call of unknown target @", target));
}

}  // namespace capibara::stablehlo
