// Lowering of decompositions: calls of jaxlib's LAPACK functions, with NaN where a call reports failure, as jax does on
// CPU.
#include "lax/linalg/linalg.h"

#include <algorithm>
#include <limits>

namespace capibara {

namespace lax = jax::lax;

namespace linalg {

namespace {

// s, d, c or z.
char type_letter(const char* op, DType dtype) {
  switch (dtype) {
    case DType::float32:
      return 's';
    case DType::float64:
      return 'd';
    case DType::complex64:
      return 'c';
    case DType::complex128:
      return 'z';
    default:
      throw NotImplementedError(
          concat(op, ": LAPACK has no routine for ", to_string(dtype), "; convert the operand first"));
  }
}

struct Alias {
  int64_t output, operand;  // the call may overwrite this operand with this output
};

struct Call {
  std::string routine;   // of LAPACK, without type letter: getrf
  std::string settings;  // MLIR text of the entries of mhlo.backend_config
  Types results;
  std::vector<Alias> aliases;
  std::string target;  // if the function is not LAPACK's
};

Arrays call_lapack(const char* op, const Call& call, std::span<const Array> inputs) {
  static const Primitive custom_call = primitive("custom_call");
  std::size_t most = 0;
  for (const Array& input : inputs) most = std::max(most, input.shape().size());
  // Matrices are column-major for LAPACK: their last two dimensions are exchanged in memory.
  auto layout = [&](std::size_t rank) {
    Ints order;
    for (std::size_t i = rank; i-- > 0;) order.push_back(static_cast<int64_t>(i));
    if (rank == most && rank >= 2) std::swap(order[0], order[1]);
    return Attr(std::move(order));
  };
  Attr::List operand_layouts, result_layouts, results, aliases;
  for (const Array& input : inputs) operand_layouts.push_back(layout(input.shape().size()));
  for (const ArrayType& type : call.results) {
    result_layouts.push_back(layout(type.shape.size()));
    results.emplace_back(type);
  }
  for (const Alias& alias : call.aliases) aliases.emplace_back(Ints{alias.output, alias.operand});
  std::string target = call.target;
  if (target.empty()) target = concat("lapack_", type_letter(op, inputs[0].dtype()), call.routine, "_ffi");
  return capibara::bind(custom_call, inputs,
                        {{"call_target_name", std::move(target)},
                         {"result_types", std::move(results)},
                         {"has_side_effect", false},
                         {"api_version", 4},
                         {"mhlo_backend_config", "{" + call.settings + "}"},
                         {"num_batch_dims", static_cast<int64_t>(most) - 2},
                         {"operand_layouts", std::move(operand_layouts)},
                         {"result_layouts", std::move(result_layouts)},
                         {"output_operand_aliases", std::move(aliases)}});
}

std::string letter_setting(const char* name, char letter) {
  return concat(name, " = ", static_cast<int>(letter), " : ui8");
}

// Types of one matrix operand: its own, and others with the same batch.
struct BatchTypes {
  ArrayType matrix;
  Shape batch;

  explicit BatchTypes(const Array& x) : matrix(x.type().strong()), batch(x.shape().begin(), x.shape().end() - 2) {}
  int64_t rows() const { return matrix.shape[matrix.shape.size() - 2]; }
  int64_t cols() const { return matrix.shape.back(); }
  ArrayType of(DType dtype, std::initializer_list<int64_t> core) const {
    ArrayType type = matrix.with_dtype(dtype);
    type.shape = batch;
    type.shape.insert(type.shape.end(), core.begin(), core.end());
    return type;
  }
  ArrayType info() const { return of(DType::int32, {}); }
};

Array not_a_number(DType dtype) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  if (!is_complex(dtype)) return scalar_of(dtype, nan);
  Array part = scalar_of(real_dtype(dtype), nan);
  return lax::complex(part, part);
}

// The values if the call succeeded, NaN otherwise.
Array checked(const Array& x, const Array& ok) {
  Ints dims;
  for (int64_t i = 0; i < ok.ndim(); ++i) dims.push_back(i);
  Shape narrow = ok.shape();
  narrow.resize(x.shape().size(), 1);
  Array mask = lax::broadcast_in_dim(ok, narrow, dims);
  Ints all;
  for (int64_t i = 0; i < x.ndim(); ++i) all.push_back(i);
  Array broadcasted = lax::broadcast_in_dim(mask, x.shape(), all);
  return lax::select(broadcasted, x, lax::full(x.shape(), not_a_number(x.dtype())));
}

Array succeeded(const Array& info) { return lax::eq(info, lax::zeros(info.type())); }

Arrays all_checked(std::span<const Array> values, const Array& info) {
  Array ok = succeeded(info);
  Arrays out;
  for (const Array& value : values) out.push_back(checked(value, ok));
  return out;
}

bool complex_operand(std::span<const Array> inputs) { return is_complex(inputs[0].dtype()); }

Arrays lower_lu(std::span<const Array> inputs, const Attrs&) {
  BatchTypes types(inputs[0]);
  type_letter("lu", types.matrix.dtype);
  int64_t m = types.rows(), n = types.cols();
  Arrays out = call_lapack(
      "lu", {"getrf", "", {types.matrix, types.of(DType::int32, {std::min(m, n)}), types.info()}, {{0, 0}}}, inputs);
  Array pivots = lax::sub(out[1], lax::full(out[1].shape(), scalar_of(DType::int32, 1)));
  Array factors = checked(out[0], lax::ge(out[2], lax::zeros(out[2].type())));
  static const Primitive permutation = primitive("lu_pivots_to_permutation");
  return {factors, pivots, capibara::bind(permutation, Arrays{pivots}, {{"permutation_size", m}})[0]};
}

Arrays lower_geqrf(std::span<const Array> inputs, const Attrs&) {
  BatchTypes types(inputs[0]);
  return call_lapack(
      "geqrf",
      {"geqrf", "", {types.matrix, types.of(types.matrix.dtype, {std::min(types.rows(), types.cols())})}, {{0, 0}}},
      inputs);
}

Arrays lower_geqp3(std::span<const Array> inputs, const Attrs&) {
  BatchTypes types(inputs[0]);
  return call_lapack(
      "geqp3",
      {"geqp3",
       "",
       {types.matrix, inputs[1].type().strong(), types.of(types.matrix.dtype, {std::min(types.rows(), types.cols())})},
       {{0, 0}, {1, 1}}},
      inputs);
}

Arrays lower_householder_product(std::span<const Array> inputs, const Attrs&) {
  BatchTypes types(inputs[0]);
  return call_lapack("householder_product", {complex_operand(inputs) ? "ungqr" : "orgqr", "", {types.matrix}, {{0, 0}}},
                     inputs);
}

Arrays lower_ormqr(std::span<const Array> inputs, const Attrs& attrs) {
  BatchTypes types(inputs[2]);
  std::string settings = concat("left = ", attrs.boolean("left") ? "true" : "false",
                                ", transpose = ", attrs.boolean("transpose") ? "true" : "false");
  return call_lapack("ormqr", {complex_operand(inputs) ? "unmqr" : "ormqr", settings, {types.matrix}, {{0, 2}}},
                     inputs);
}

void refuse_subset(const char* op, const Attr& subset, int64_t whole) {
  const Ints* range = subset.get_if<Ints>();
  if (range && *range != Ints{0, whole})
    throw NotImplementedError(concat(op, ": subset_by_index has no lowering to LAPACK"));
}

Arrays lower_eigh(std::span<const Array> inputs, const Attrs& attrs) {
  BatchTypes types(inputs[0]);
  int64_t n = types.cols();
  refuse_subset("eigh", attrs["subset_by_index"], n);
  std::string settings =
      letter_setting("mode", 'V') + ", " + letter_setting("uplo", attrs.boolean("lower") ? 'L' : 'U');
  Types results = {types.matrix, types.of(real_dtype(types.matrix.dtype), {n}), types.info()};
  Arrays out = call_lapack("eigh", {complex_operand(inputs) ? "heevd" : "syevd", settings, results, {{0, 0}}}, inputs);
  return all_checked(std::span<const Array>(out).first(2), out[2]);
}

Arrays lower_svd(std::span<const Array> inputs, const Attrs& attrs) {
  BatchTypes types(inputs[0]);
  int64_t m = types.rows(), n = types.cols(), least = std::min(m, n);
  bool vectors = attrs.boolean("compute_uv"), full = attrs.boolean("full_matrices");
  refuse_subset("svd", attrs["subset_by_index"], least);
  DType dtype = types.matrix.dtype;
  ArrayType u = types.of(dtype, {m, full ? m : least}), vt = types.of(dtype, {full ? n : least, n}),
            s = types.of(real_dtype(dtype), {least});
  if (least == 0) {
    Arrays out = {lax::zeros(s)};
    if (!vectors) return out;
    for (const ArrayType& type : {u, vt}) {
      int64_t rank = type.rank();
      Shape core(type.shape.end() - 2, type.shape.end());
      out.push_back(lax::broadcast_in_dim(eye(dtype, core[0], core[1]), type.shape, {rank - 2, rank - 1}));
    }
    return out;
  }
  const std::string* algorithm = attrs["algorithm"].get_if<std::string>();
  std::string routine = algorithm && *algorithm == "SvdAlgorithm.QR" ? "gesvd" : "gesdd";
  Arrays out = call_lapack("svd",
                           {routine,
                            letter_setting("mode", !vectors ? 'N'
                                                   : full   ? 'A'
                                                            : 'S'),
                            {types.matrix, s, u, vt, types.info()},
                            {{0, 0}}},
                           inputs);
  return all_checked(std::span<const Array>(out).subspan(1, vectors ? 3 : 1), out[4]);
}

Arrays lower_eig(std::span<const Array> inputs, const Attrs& attrs) {
  BatchTypes types(inputs[0]);
  int64_t n = types.cols();
  bool left = attrs.boolean("compute_left_eigenvectors"), right = attrs.boolean("compute_right_eigenvectors"),
       real = !complex_operand(inputs);
  DType dtype = types.matrix.dtype;
  ArrayType values = types.of(dtype, {n}), vectors = types.of(complex_dtype(dtype), {n, n});
  Types results = {values, vectors, vectors, types.info()};
  if (real) results.insert(results.begin(), values);
  std::string settings =
      letter_setting("compute_left", left ? 'V' : 'N') + ", " + letter_setting("compute_right", right ? 'V' : 'N');
  Arrays out = call_lapack("eig", {"geev", settings, results, {}}, inputs);
  std::size_t first = real ? 2 : 1;
  Arrays wanted = {real ? lax::complex(out[0], out[1]) : out[0]};
  if (left) wanted.push_back(out[first]);
  if (right) wanted.push_back(out[first + 1]);
  return all_checked(wanted, out.back());
}

Arrays lower_schur(std::span<const Array> inputs, const Attrs& attrs) {
  BatchTypes types(inputs[0]);
  if (attrs.boolean("sort_eig_vals")) throw NotImplementedError("schur: sort_eig_vals=True is not implemented");
  bool vectors = attrs.boolean("compute_schur_vectors");
  ArrayType values = types.of(types.matrix.dtype, {types.cols()});
  Types results = {types.matrix, types.matrix, values};
  if (!complex_operand(inputs)) results.push_back(values);
  results.push_back(types.info());
  results.push_back(types.info());
  std::string settings = letter_setting("mode", vectors ? 'V' : 'N') + ", " + letter_setting("sort", 'N');
  Arrays out = call_lapack("schur", {"gees", settings, results, {{0, 0}}}, inputs);
  return all_checked(std::span<const Array>(out).first(vectors ? 2 : 1), out.back());
}

Arrays lower_hessenberg(std::span<const Array> inputs, const Attrs&) {
  BatchTypes types(inputs[0]);
  int64_t n = types.cols();
  std::string settings = concat("high = ", n, " : i32, low = 1 : i32");
  Arrays out = call_lapack(
      "hessenberg", {"gehrd", settings, {types.matrix, types.of(types.matrix.dtype, {n - 1}), types.info()}, {{0, 0}}},
      inputs);
  return all_checked(std::span<const Array>(out).first(2), out[2]);
}

Arrays lower_tridiagonal(std::span<const Array> inputs, const Attrs& attrs) {
  BatchTypes types(inputs[0]);
  int64_t n = types.cols();
  DType dtype = types.matrix.dtype, real = real_dtype(dtype);
  Types results = {types.matrix, types.of(real, {n}), types.of(real, {n - 1}), types.of(dtype, {n - 1}), types.info()};
  Arrays out = call_lapack("tridiagonal",
                           {complex_operand(inputs) ? "hetrd" : "sytrd",
                            letter_setting("uplo", attrs.boolean("lower") ? 'L' : 'U'),
                            results,
                            {{0, 0}}},
                           inputs);
  return all_checked(std::span<const Array>(out).first(4), out[4]);
}

Arrays lower_tridiagonal_solve(std::span<const Array> inputs, const Attrs& attrs) {
  BatchTypes types(inputs[3]);
  if (attrs.boolean("perturb_singular")) {
    return call_lapack("tridiagonal_solve", {"", "", {types.matrix}, {}, "tridiagonal_solve_perturbed_ffi"}, inputs);
  }
  Types results;
  for (const Array& input : inputs) results.push_back(input.type().strong());
  results.push_back(types.info());
  Arrays out = call_lapack("tridiagonal_solve", {"gtsv", "", results, {{0, 0}, {1, 1}, {2, 2}, {3, 3}}}, inputs);
  return {checked(out[3], succeeded(out[4]))};
}

}  // namespace

void add_lapack_lowering(std::vector<PrimitiveRecord>& records) {
  static const std::pair<std::string_view, Arrays (*)(std::span<const Array>, const Attrs&)> rules[] = {
      {"lu", lower_lu},
      {"geqrf", lower_geqrf},
      {"geqp3", lower_geqp3},
      {"householder_product", lower_householder_product},
      {"ormqr", lower_ormqr},
      {"eigh", lower_eigh},
      {"svd", lower_svd},
      {"eig", lower_eig},
      {"schur", lower_schur},
      {"hessenberg", lower_hessenberg},
      {"tridiagonal", lower_tridiagonal},
      {"tridiagonal_solve", lower_tridiagonal_solve}};
  for (PrimitiveRecord& record : records) {
    for (const auto& [name, rule] : rules) {
      if (record.name == name) record.lower = rule;
    }
  }
}

}  // namespace linalg

}  // namespace capibara
