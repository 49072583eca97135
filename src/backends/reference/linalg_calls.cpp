// Foreign calls of jaxlib's LAPACK functions in lowered programs, run by the kernels of the corresponding
// primitives.
#include "backends/reference/linalg_batch.h"

#include <cstring>

namespace capibara::reference {

namespace {

Arrays run(const char* name, std::span<const Array> inputs, const Attrs& attrs = {}) {
  Types types;
  for (const Array& input : inputs) types.push_back(input.type());
  const Primitive own = primitive(name);
  TypeResult result = own->type(types, attrs);
  return find_kernel(own)({inputs, result.types, attrs});
}

// The text after `name = ` in the settings of a call.
std::string_view setting(const Attrs& attrs, const std::string& name) {
  std::string_view text = attrs.text("mhlo_backend_config");
  std::size_t at = text.find(name + " = ");
  return at == std::string_view::npos ? std::string_view() : text.substr(at + name.size() + 3);
}
char letter(const Attrs& attrs, const std::string& name) {
  return static_cast<char>(std::atoi(std::string(setting(attrs, name)).c_str()));
}
bool flag(const Attrs& attrs, const std::string& name) { return setting(attrs, name).starts_with("true"); }

Array zeros(const ArrayType& type) {
  Output out = allocate(type);
  std::memset(out.data, 0, static_cast<std::size_t>(type.size() * storage_size(type.dtype)));
  return out.array;
}

// Zeros for the call's remaining results: vectors that were not requested are never read, and status 0 is success,
// since a failure shows as NaN in the values.
Arrays filled(Arrays results, const Types& types) {
  while (results.size() < types.size()) results.push_back(zeros(types[results.size()]));
  return results;
}

Array part_of(const Array& x, const ArrayType& type, bool imaginary) {
  Output out = allocate(type);
  std::size_t bytes = static_cast<std::size_t>(storage_size(type.dtype));
  for (int64_t i = 0; i < x.size(); ++i) {
    std::size_t at = static_cast<std::size_t>(i);
    std::memcpy(out.data + at * bytes, x.raw_data() + (2 * at + (imaginary ? 1 : 0)) * bytes, bytes);
  }
  return out.array;
}

Arrays call_getrf(const KernelArgs& args) {
  Arrays out = run("lu", args.inputs);
  Output pivots = allocate(args.output_types[1]);
  const int* from = reinterpret_cast<const int*>(out[1].raw_data());
  for (int64_t i = 0; i < out[1].size(); ++i) reinterpret_cast<int*>(pivots.data)[i] = from[i] + 1;
  return filled({out[0], pivots.array}, args.output_types);
}

Arrays call_geqrf(const KernelArgs& args) { return run("geqrf", args.inputs); }
Arrays call_geqp3(const KernelArgs& args) { return run("geqp3", args.inputs, {{"use_magma", Attr()}}); }
Arrays call_orgqr(const KernelArgs& args) { return run("householder_product", args.inputs); }
Arrays call_ormqr(const KernelArgs& args) {
  return run("ormqr", args.inputs, {{"left", flag(args.attrs, "left")}, {"transpose", flag(args.attrs, "transpose")}});
}

Arrays call_syevd(const KernelArgs& args) {
  Attrs attrs = {{"lower", letter(args.attrs, "uplo") == 'L'},
                 {"sort_eigenvalues", true},
                 {"subset_by_index", Attr()},
                 {"algorithm", Attr()}};
  return filled(run("eigh", args.inputs, attrs), args.output_types);
}

Arrays call_svd(const KernelArgs& args, const char* algorithm) {
  char mode = letter(args.attrs, "mode");
  Attrs attrs = {{"full_matrices", mode == 'A'},
                 {"compute_uv", mode != 'N'},
                 {"subset_by_index", Attr()},
                 {"algorithm", algorithm}};
  Arrays results = {args.inputs[0]};
  for (const Array& out : run("svd", args.inputs, attrs)) results.push_back(out);
  return filled(std::move(results), args.output_types);
}
Arrays call_gesdd(const KernelArgs& args) { return call_svd(args, "SvdAlgorithm.DEFAULT"); }
Arrays call_gesvd(const KernelArgs& args) { return call_svd(args, "SvdAlgorithm.QR"); }

Arrays call_geev(const KernelArgs& args) {
  bool left = letter(args.attrs, "compute_left") == 'V', right = letter(args.attrs, "compute_right") == 'V';
  Arrays out = run("eig", args.inputs,
                   {{"compute_left_eigenvectors", left},
                    {"compute_right_eigenvectors", right},
                    {"enable_eigvec_derivs", false},
                    {"implementation", Attr()}});
  Arrays results;
  if (is_complex(args.inputs[0].dtype()))
    results = {out[0]};
  else
    results = {part_of(out[0], args.output_types[0], false), part_of(out[0], args.output_types[1], true)};
  std::size_t next = 1;
  for (bool wanted : {left, right}) results.push_back(wanted ? out[next++] : zeros(args.output_types[results.size()]));
  return filled(std::move(results), args.output_types);
}

Arrays call_gees(const KernelArgs& args) {
  bool vectors = letter(args.attrs, "mode") == 'V';
  Attrs attrs = {{"compute_schur_vectors", vectors}, {"sort_eig_vals", false}, {"select_callable", Attr()}};
  return filled(run("schur", args.inputs, attrs), args.output_types);
}

Arrays call_gehrd(const KernelArgs& args) { return filled(run("hessenberg", args.inputs), args.output_types); }
Arrays call_sytrd(const KernelArgs& args) {
  return filled(run("tridiagonal", args.inputs, {{"lower", letter(args.attrs, "uplo") == 'L'}}), args.output_types);
}
Arrays call_gtsv(const KernelArgs& args) {
  Arrays results(args.inputs.begin(), args.inputs.end());
  results[3] = run("tridiagonal_solve", args.inputs, {{"perturb_singular", false}})[0];
  return filled(std::move(results), args.output_types);
}

Arrays call_perturbed(const KernelArgs& args) {
  return run("tridiagonal_solve", args.inputs, {{"perturb_singular", true}});
}

struct Target {
  std::string_view routine;
  std::size_t operands;
  Kernel kernel;
};
const Target targets[] = {{"getrf", 1, call_getrf}, {"geqrf", 1, call_geqrf}, {"geqp3", 2, call_geqp3},
                          {"orgqr", 2, call_orgqr}, {"ungqr", 2, call_orgqr}, {"ormqr", 3, call_ormqr},
                          {"unmqr", 3, call_ormqr}, {"syevd", 1, call_syevd}, {"heevd", 1, call_syevd},
                          {"gesdd", 1, call_gesdd}, {"gesvd", 1, call_gesvd}, {"geev", 1, call_geev},
                          {"gees", 1, call_gees},   {"gehrd", 1, call_gehrd}, {"sytrd", 1, call_sytrd},
                          {"hetrd", 1, call_sytrd}, {"gtsv", 4, call_gtsv}};

}  // namespace

Kernel find_lapack_call(std::string_view target, std::size_t operands) {
  if (target == "tridiagonal_solve_perturbed_ffi" && operands == 4) return call_perturbed;
  constexpr std::string_view prefix = "lapack_", suffix = "_ffi";
  if (!target.starts_with(prefix) || !target.ends_with(suffix) || target.size() <= prefix.size() + suffix.size() + 1)
    return nullptr;
  std::string_view routine = target.substr(prefix.size() + 1, target.size() - prefix.size() - suffix.size() - 1);
  for (const Target& entry : targets) {
    if (entry.routine == routine && entry.operands == operands) return entry.kernel;
  }
  return nullptr;
}

}  // namespace capibara::reference
