// Every primitive of the catalog gives the same results on a plugin as on the reference backend.
#include "backends/pjrt/on_plugin.h"

#include "backends/pjrt/prepare.h"
#include "program/trace/stage.h"
#include "properties/property.h"

#include <cstdlib>
#include <functional>
#include <set>

namespace capibara::pjrt {
namespace {

// Primitives that have no program to compare alone: they need named axes or mutable references, or draw from a
// stateful generator.
const std::set<std::string> without_own_program = {
    "psum",    "pmax", "pmin", "all_gather", "reduce_scatter", "all_to_all",  "ppermute",  "axis_index",
    "new_ref", "get",  "swap", "addupdate",  "freeze",         "rng_uniform", "custom_lin"};

double error_allowed(const std::string& name, DType dtype) {
  if (!is_inexact(dtype)) return 0;
  const double eps = finfo(real_dtype(dtype)).eps;
  for (std::string_view wide :
       {"dot",  "conv",      "sum",         "prod",       "fft",   "lu",     "qr",     "eig",     "svd",  "schur",
        "hess", "trid",      "chol",        "triangular", "gamma", "bessel", "igamma", "betainc", "zeta", "polygamma",
        "erf",  "logsumexp", "householder", "random",     "norm",  "tan",    "ormqr",  "geq"}) {
    if (name.find(wide) != std::string::npos) return 4000 * eps;
  }
  return 64 * eps;
}

std::string difference(const Array& got, const Array& want, double allowed) {
  if (got.shape() != want.shape() || got.dtype() != want.dtype())
    return concat("got ", to_string(got.type()), ", expected ", to_string(want.type()));
  if (!is_inexact(got.dtype())) {
    const auto bytes = static_cast<std::size_t>(got.size() * storage_size(got.dtype()));
    return std::memcmp(got.raw_data(), want.raw_data(), bytes) == 0
               ? ""
               : concat("got ", got.to_string(), ", expected ", want.to_string());
  }
  const auto a = got.to_vector<std::complex<double>>(), b = want.to_vector<std::complex<double>>();
  double scale = 1;
  for (const auto& value : b) {
    if (std::isfinite(std::abs(value))) scale = std::max(scale, std::abs(value));
  }
  auto kind = [](double size) { return std::isnan(size) ? 2 : std::isinf(size) ? 1 : 0; };
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int expected = kind(std::abs(b[i]));
    if (kind(std::abs(a[i])) == expected && expected != 0) continue;
    if (kind(std::abs(a[i])) != expected || std::abs(a[i] - b[i]) > allowed * scale)
      return concat("element ", i, ": got ", a[i], ", expected ", b[i]);
  }
  return "";
}

class CatalogSlow : public OnPlugin, public testing::WithParamInterface<std::string> {};

// Compares a primitive with the reference on its samples; `behind` makes the staged function and its
// inputs.
using Behind = std::function<std::pair<FlatFunction, Arrays>(const FlatFunction&, const Arrays&)>;

void compare_samples(const std::string& name, const std::function<Arrays(const Program&, const Arrays&)>& on_reference,
                     const Behind& behind) {
  const Primitive tried = primitive(name);
  ASSERT_TRUE(can_prepare(tried)) << "has no text and no host call";
  const std::size_t max_samples = std::getenv("CAPIBARA_EVERY_CALL") ? 1000 : 3;
  for (DType dtype : {DType::float32, DType::int32, DType::complex64}) {
    if (!tried->dtypes.empty() && std::find(tried->dtypes.begin(), tried->dtypes.end(), dtype) == tried->dtypes.end())
      continue;
    std::size_t number = 0;
    for (const Sample& sample : tried->samples(dtype)) {
      if (number++ >= max_samples) break;
      const properties::Call call{tried, dtype, number, sample, {}, {}};
      ConfigScope scope = properties::config_for(call);
      const auto [function, inputs] = behind(call.function(), properties::Values(7).operands(sample));
      Types types;
      for (const Array& input : inputs) types.push_back(input.type());
      const Program program = stage(function, types, "f").program;
      Arrays got;
      try {
        got = default_backend().compile(program)->execute(inputs, {});
      } catch (const Error& error) {
        // Rejections by the plugin's compiler are ignored, such as cuDNN's of integer convolutions.
        if (std::string_view(error.what()).find("UNIMPLEMENTED") == std::string_view::npos) throw;
        continue;
      }
      Arrays want = on_reference(program, inputs);
      ASSERT_EQ(got.size(), want.size());
      if (name == "eigh") {  // the phase of each eigenvector is arbitrary
        want[0] = jax::numpy::abs(want[0]);
        got[0] = jax::numpy::abs(got[0]);
      }
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(difference(got[i], want[i], error_allowed(name, want[i].dtype())), "")
            << properties::describe(call) << " output " << i;
      }
    }
  }
}

TEST_P(CatalogSlow, GivesTheValuesOfTheReference) {
  compare_samples(GetParam(), on_reference,
                  [](const FlatFunction& function, const Arrays& inputs) { return std::pair(function, inputs); });
}

// A transpose is free if the next operation accepts another layout of its operand: an operation that does not
// specify its layout gets permuted elements.
TEST_P(CatalogSlow, GivesTheValuesOfTheReferenceBehindATranspose) {
  auto reversed = [](const Array& x) {
    Ints axes;
    for (int64_t axis = x.ndim(); axis-- > 0;) axes.push_back(axis);
    return jax::lax::transpose(x, axes);
  };
  compare_samples(GetParam(), on_reference, [&](const FlatFunction& function, const Arrays& inputs) {
    Arrays backwards;
    for (const Array& input : inputs) backwards.push_back(input.ndim() < 2 ? input : reversed(input));
    const FlatFunction behind = [=](std::span<const Array> given) {
      Arrays straight;
      for (const Array& one : given) straight.push_back(one.ndim() < 2 ? one : reversed(one));
      return function(straight);
    };
    return std::pair(behind, backwards);
  });
}

std::vector<std::string> tried_names() {
  std::vector<std::string> names;
  for (const Primitive& one : catalog()) {
    if (one->samples && !without_own_program.count(one.name())) names.push_back(one.name());
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, CatalogSlow, testing::ValuesIn(tried_names()), properties::test_name);

}  // namespace
}  // namespace capibara::pjrt
