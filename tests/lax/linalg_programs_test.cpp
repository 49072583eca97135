// Linear algebra as programs: the text of each function and its derivative equals jax's in linalg_programs.txt.
#include <capibara/linalg.h>

#include "data/recordings.h"
#include "lax/rules.h"
#include "transforms/flat.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

namespace capibara {
namespace {

namespace la = jax::lax::linalg;
using In = std::span<const Array>;

struct Case {
  FlatFunction function;
  Types types;
};

ArrayType typed(DType dtype, Shape shape) {
  ArrayType type;
  type.dtype = dtype;
  type.shape = std::move(shape);
  return type;
}
ArrayType f32(Shape shape) { return typed(DType::float32, std::move(shape)); }
ArrayType c64(Shape shape) { return typed(DType::complex64, std::move(shape)); }

FlatFunction bound(const char* name) {
  return [name](In x) { return capibara::bind(primitive(name), x); };
}
FlatFunction solve(la::TriangularSolveOptions options) {
  return [options](In x) { return Arrays{la::triangular_solve(x[0], x[1], options)}; };
}
Arrays lu(In x) { return {std::get<0>(la::lu(x[0]))}; }
FlatFunction qr(bool full) {
  return [full](In x) {
    auto [q, r] = la::qr(x[0], full);
    return Arrays{q, r};
  };
}
Arrays pivoted_qr(In x) {
  auto [q, r, p] = la::qr_with_pivoting(x[0], false);
  return {q, r};
}
FlatFunction eigh(la::EighOptions options) {
  return [options](In x) {
    auto [v, w] = la::eigh(x[0], options);
    return Arrays{v, w};
  };
}
FlatFunction svd(la::SvdOptions options) {
  return [options](In x) {
    auto [u, s, vh] = la::svd(x[0], options);
    return Arrays{u, s, vh};
  };
}

std::map<std::string, Case> cases() {
  la::EighOptions as_given = {.symmetrize_input = false};
  la::SvdOptions thin = {.full_matrices = false};
  return {
      {"cholesky", {[](In x) { return Arrays{la::cholesky(x[0])}; }, {f32({3, 3})}}},
      {"cholesky_jvp", {bound("cholesky"), {f32({3, 3})}}},
      {"cholesky_batch_jvp", {bound("cholesky"), {f32({2, 3, 3})}}},
      {"triangular_solve_jvp",
       {solve({.left_side = true, .lower = true, .unit_diagonal = true}), {f32({3, 3}), f32({3, 2})}}},
      {"triangular_solve_batch_jvp",
       {solve({.left_side = true, .transpose_a = true}), {f32({2, 3, 3}), f32({2, 3, 3})}}},
      {"triangular_solve_conj_jvp", {solve({.conjugate_a = true}), {c64({3, 3}), c64({2, 3})}}},
      {"triangular_solve_vector", {solve({.left_side = true}), {f32({2, 3, 3}), f32({2, 3})}}},
      {"triangular_solve_row_vector", {solve({}), {f32({2, 3, 3}), f32({2, 3})}}},
      {"lu_jvp", {lu, {f32({3, 3})}}},
      {"lu_tall_jvp", {lu, {f32({4, 3})}}},
      {"lu_wide_jvp", {lu, {f32({3, 4})}}},
      {"lu_batch_jvp", {lu, {f32({2, 3, 3})}}},
      {"qr_jvp", {qr(false), {f32({5, 3})}}},
      {"qr_batch_jvp", {qr(false), {f32({2, 5, 3})}}},
      {"qr_wide_jvp", {qr(false), {f32({3, 5})}}},
      {"qr_full_jvp", {qr(true), {f32({5, 3})}}},
      {"qr_pivoting_jvp", {pivoted_qr, {f32({3, 3})}}},
      {"qr_complex_jvp", {qr(false), {c64({3, 3})}}},
      {"eigh", {eigh({}), {f32({3, 3})}}},
      {"eigh_jvp", {eigh(as_given), {f32({3, 3})}}},
      {"eigh_complex_jvp", {eigh(as_given), {c64({3, 3})}}},
      {"eigh_batch_jvp", {eigh(as_given), {f32({2, 3, 3})}}},
      {"svd_tall_jvp", {svd(thin), {f32({4, 3})}}},
      {"svd_wide_jvp", {svd(thin), {f32({3, 4})}}},
      {"svd_batch_jvp", {svd(thin), {f32({2, 3, 3})}}},
      {"svd_complex_jvp", {svd(thin), {c64({3, 3})}}},
      {"svd_values_jvp", {[](In x) { return Arrays{la::singular_values(x[0])}; }, {f32({4, 3})}}},
      {"tridiagonal_solve_jvp",
       {[](In x) { return Arrays{la::tridiagonal_solve(x[0], x[1], x[2], x[3])}; },
        {f32({5}), f32({5}), f32({5}), f32({5, 2})}}},
      {"symmetric_product",
       {[](In x) { return Arrays{la::symmetric_product(x[0], x[1], {.symmetrize_output = true})}; },
        {f32({2, 3}), f32({2, 2})}}},
      {"svd_qr", {svd({.algorithm = la::SvdAlgorithm::qr}), {f32({3, 3})}}},
      {"eigh_subset",
       {eigh({.subset_by_index = la::IndexRange(0, 3), .implementation = la::EighImplementation::qr}), {f32({3, 3})}}},
  };
}

// Collapses white space, and removes it after an opening bracket: jax breaks lines by the length of np.int64(1).
std::string flowing(const std::string& text) {
  std::string out;
  for (char c : text) {
    bool space = c == ' ' || c == '\n';
    if (space && (out.empty() || out.back() == ' ' || out.back() == '[')) continue;
    if (c == ']' && !out.empty() && out.back() == ' ') out.pop_back();
    out += space ? ' ' : c;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

TEST(LinalgPrograms, ReadAsJaxPrintsThem) {
  std::ifstream file(oracle::recording("linalg_programs.txt"));
  ASSERT_TRUE(file);
  std::map<std::string, std::string> expected;
  std::string line, name;
  while (std::getline(file, line)) {
    if (line.starts_with("== "))
      name = line.substr(3);
    else
      expected[name] += line + "\n";
  }
  std::map<std::string, Case> all = cases();
  EXPECT_EQ(all.size(), expected.size());
  for (const auto& [key, text] : expected) {
    SCOPED_TRACE(key);
    ASSERT_TRUE(all.count(key));
    const Case& c = all[key];
    std::size_t count = c.types.size();
    bool derivative = key.ends_with("_jvp");
    Types types = c.types;
    if (derivative) types.insert(types.end(), c.types.begin(), c.types.end());
    FlatFunction function = [&](In x) {
      return derivative ? jvp_flat(c.function, x.first(count), x.subspan(count)).tangents : c.function(x);
    };
    EXPECT_EQ(flowing(stage(function, types, "f").program.to_string()), flowing(text));
  }
}

}  // namespace
}  // namespace capibara
