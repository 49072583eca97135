// The LAPACK routines that jax calls on the CPU, computed by our own primitives.
#include "lax/linalg/lapack_calls.h"

#include <cstdlib>
#include <unordered_map>

#include <capibara/error.h>
#include <capibara/lax.h>

#include "program/ir/handles.h"
#include "program/ir/nested.h"

namespace capibara {

namespace {

namespace lax = jax::lax;

struct CallArgs {
  Arrays inputs;
  Types results;
  const std::string& settings;  // {mode = 86 : ui8, uplo = 76 : ui8}: characters of LAPACK's own interface

  std::string word(const std::string& name) const {
    const std::size_t at = settings.find(name + " = ");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + name.size() + 3;
    return settings.substr(begin, settings.find_first_of(" ,}", begin) - begin);
  }
  char letter(const std::string& name, char otherwise) const {
    const std::string text = word(name);
    return text.empty() ? otherwise : static_cast<char>(std::atoi(text.c_str()));
  }
};

Arrays bind_lapack(const char* name, std::span<const capibara::Array> inputs, const Attrs& attrs = {}) {
  return capibara::bind(primitive(name), inputs, attrs);
}

// Every routine ends with a status: always success. A failure appears as NaN in the values themselves.
Arrays with_success(const CallArgs& args, Arrays results) {
  results.push_back(lax::zeros(args.results.back()));
  return results;
}

// LAPACK counts pivots from 1.
Arrays getrf(const CallArgs& args) {
  const Arrays out = bind_lapack("lu", args.inputs);
  return with_success(args, {out[0], lax::add(out[1], lax::full(out[1].shape(), capibara::Array(1), out[1].dtype()))});
}

Arrays geqrf(const CallArgs& args) { return bind_lapack("geqrf", args.inputs); }
Arrays geqp3(const CallArgs& args) { return bind_lapack("geqp3", args.inputs, {{"use_magma", Attr()}}); }
Arrays orgqr(const CallArgs& args) { return bind_lapack("householder_product", args.inputs); }

Arrays ormqr(const CallArgs& args) {
  return bind_lapack("ormqr", args.inputs,
                     {{"left", args.word("left") != "false"}, {"transpose", args.word("transpose") == "true"}});
}

Arrays syevd(const CallArgs& args) {
  return with_success(args, bind_lapack("eigh", args.inputs,
                                        {{"lower", args.letter("uplo", 'L') == 'L'},
                                         {"sort_eigenvalues", true},
                                         {"subset_by_index", Attr()},
                                         {"algorithm", Attr()}}));
}

Arrays gesdd(const CallArgs& args) {
  const char mode = args.letter("mode", 'A');
  Arrays out = bind_lapack("svd", args.inputs,
                           {{"full_matrices", mode != 'S'},
                            {"compute_uv", mode != 'N'},
                            {"subset_by_index", Attr()},
                            {"algorithm", Attr()}});
  for (std::size_t i = out.size(); i < 3; ++i) out.push_back(lax::zeros(args.results.at(i + 1)));
  out.insert(out.begin(), args.inputs[0]);
  return with_success(args, out);
}

Arrays geev(const CallArgs& args) {
  const bool left = args.letter("compute_left", 'N') == 'V', right = args.letter("compute_right", 'N') == 'V';
  const Arrays values = bind_lapack("eig", args.inputs,
                                    {{"compute_left_eigenvectors", left},
                                     {"compute_right_eigenvectors", right},
                                     {"enable_eigvec_derivs", true},
                                     {"implementation", Attr()}});
  Arrays out;
  if (is_complex(args.inputs[0].dtype()))
    out = {values[0]};
  else
    out = {lax::real(values[0]), lax::imag(values[0])};
  const ArrayType vectors = args.results.at(out.size());
  std::size_t next = 1;
  for (bool wanted : {left, right}) out.push_back(wanted ? values.at(next++) : lax::zeros(vectors));
  return with_success(args, out);
}

Arrays gees(const CallArgs& args) {
  Arrays out = bind_lapack("schur", args.inputs,
                           {{"compute_schur_vectors", args.letter("mode", 'V') == 'V'},
                            {"sort_eig_vals", false},
                            {"select_callable", Attr()}});
  for (std::size_t i = out.size(); i < args.results.size(); ++i) out.push_back(lax::zeros(args.results[i]));
  return out;
}

Arrays gehrd(const CallArgs& args) { return with_success(args, bind_lapack("hessenberg", args.inputs)); }

Arrays sytrd(const CallArgs& args) {
  return with_success(args, bind_lapack("tridiagonal", args.inputs, {{"lower", args.letter("uplo", 'L') == 'L'}}));
}

// The factors that gtsv leaves in place of the diagonals are not computed.
Arrays gtsv(const CallArgs& args) {
  const Arrays x = bind_lapack("tridiagonal_solve", args.inputs, {{"perturb_singular", false}});
  return with_success(args, {args.inputs[0], args.inputs[1], args.inputs[2], x[0]});
}

struct Routine {
  Arrays (*compute)(const CallArgs&) = nullptr;  // null: an operation of StableHLO
  std::size_t operands = 1;
};

const std::unordered_map<std::string, Routine>& routines() {
  static const std::unordered_map<std::string, Routine> table = {
      {"getrf", {getrf, 1}}, {"geqrf", {geqrf, 1}}, {"geqp3", {geqp3, 2}}, {"orgqr", {orgqr, 2}}, {"ungqr", {orgqr, 2}},
      {"ormqr", {ormqr, 3}}, {"unmqr", {ormqr, 3}}, {"syevd", {syevd, 1}}, {"heevd", {syevd, 1}}, {"gesdd", {gesdd, 1}},
      {"gesvd", {gesdd, 1}}, {"geev", {geev, 1}},   {"gees", {gees, 1}},   {"gehrd", {gehrd, 1}}, {"sytrd", {sytrd, 1}},
      {"hetrd", {sytrd, 1}}, {"gtsv", {gtsv, 4}}};
  return table;
}

}  // namespace

std::string lapack_routine(const std::string& target) {
  constexpr std::string_view prefix = "lapack_", suffix = "_ffi";
  if (!target.starts_with(prefix) || !target.ends_with(suffix) || target.size() <= prefix.size() + 1 + suffix.size())
    return "";
  return target.substr(prefix.size() + 1, target.size() - prefix.size() - 1 - suffix.size());
}

bool is_lapack_routine(const std::string& routine) { return routines().count(routine) != 0; }

bool is_known_call(const std::string& target) {
  return is_lapack_routine(lapack_routine(target)) || target == "tridiagonal_solve_perturbed_ffi";
}

std::string opaque_call(const Program& program) {
  for (const Equation& equation : program.equations()) {
    if (equation.primitive == prim::custom_call() && !is_known_call(equation.attrs.text("call_target_name"))) {
      return equation.attrs.text("call_target_name");
    }
    std::string inside;
    any_program(equation.attrs, [&](const Program& nested) { return !(inside = opaque_call(nested)).empty(); });
    if (!inside.empty()) return inside;
  }
  return "";
}

void refuse_native_call(const std::string& target) {
  throw NotImplementedError(concat("custom_call: the native backends (cpu, reference) have no function '", target,
                                   "'\nHint: register it by jax.ffi.register_ffi_target, or run the program on a PJRT "
                                   "plugin whose compiler supports it, for example with jax_platforms set to 'cuda'"));
}

Arrays compose_custom_call(std::span<const Array> inputs, const Attrs& attrs, const char* wanted) {
  const std::string& target = attrs.text("call_target_name");
  const auto it = routines().find(lapack_routine(target));
  if (it == routines().end()) {
    if (!wanted) refuse_native_call(target);
    if (attrs.has("vmap_method") && std::string_view(wanted) == "differentiated") {
      throw ValueError(concat("The FFI call to `", target,
                              "` cannot be differentiated. You can use `jax.custom_jvp` or ",
                              "`jax.custom_vjp` to add support."));
    }
    throw NotImplementedError(concat("custom_call: a call of '", target, "' cannot be ", wanted,
                                     ": its meaning is known to the compiler of a plugin alone\nHint: give the "
                                     "function around it a rule of its own by custom_vjp or custom_vmap"));
  }
  if (inputs.size() != it->second.operands) {
    throw TypeError(concat("custom_call: ", target, " takes ", it->second.operands, " operands, got ", inputs.size()));
  }
  Types results;
  for (const Attr& type : attrs.list("result_types")) results.push_back(*type.get_if<ArrayType>());
  if (results.empty()) throw TypeError(concat("custom_call: ", target, " has results, got none"));
  static const std::string none = "{}";
  const Attr* settings = attrs.find("mhlo_backend_config");
  const std::string* text = settings ? settings->get_if<std::string>() : nullptr;
  Arrays out = it->second.compute({Arrays(inputs.begin(), inputs.end()), results, text ? *text : none});
  bool fits = out.size() == results.size();
  for (std::size_t i = 0; fits && i < out.size(); ++i) {
    fits = out[i].shape() == results[i].shape && out[i].dtype() == results[i].dtype;
  }
  if (!fits) throw TypeError(concat("custom_call: the declared results of ", target, " are not those of the routine"));
  return out;
}

}  // namespace capibara
