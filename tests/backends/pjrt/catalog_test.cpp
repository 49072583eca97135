// Every primitive of the catalog gives on a plugin what it gives on the reference backend.
#include "backends/pjrt/on_plugin.h"

#include "backends/pjrt/prepare.h"
#include "properties/calls.h"

#include <set>

namespace capibara::pjrt {
namespace {

// Primitives without a program to compare by themselves: they live inside named axes or on mutable references, or draw from
// a generator with state.
const std::set<std::string> without_own_program = {
    "psum", "pmax", "pmin", "all_gather", "reduce_scatter", "all_to_all", "ppermute", "axis_index", "new_ref", "get", "swap",
    "addupdate", "freeze", "rng_uniform", "custom_lin"};

double error_allowed(const std::string& name, DType dtype) {
  if (!is_inexact(dtype)) return 0;
  const double eps = finfo(real_dtype(dtype)).eps;
  for (std::string_view wide : {"dot", "conv", "sum", "prod", "fft", "lu", "qr", "eig", "svd", "schur", "hess", "trid", "chol", "triangular", "gamma",
                                "bessel", "igamma", "betainc", "zeta", "polygamma", "erf", "logsumexp", "householder", "random", "norm", "tan", "ormqr", "geq"}) {
    if (name.find(wide) != std::string::npos) return 4000 * eps;
  }
  return 64 * eps;
}

std::string difference(const Array& got, const Array& want, double allowed) {
  if (got.shape() != want.shape() || got.dtype() != want.dtype()) return concat("got ", to_string(got.type()), ", expected ", to_string(want.type()));
  if (!is_inexact(got.dtype())) {
    const auto bytes = static_cast<std::size_t>(got.size() * storage_size(got.dtype()));
    return std::memcmp(got.raw_data(), want.raw_data(), bytes) == 0 ? "" : concat("got ", got.to_string(), ", expected ", want.to_string());
  }
  const auto a = got.to_vector<std::complex<double>>(), b = want.to_vector<std::complex<double>>();
  double scale = 1;
  for (const auto& value : b) {
    if (std::isfinite(std::abs(value))) scale = std::max(scale, std::abs(value));
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same_kind = std::isfinite(std::abs(a[i])) == std::isfinite(std::abs(b[i]));
    if (!same_kind || std::abs(a[i] - b[i]) > allowed * scale) return concat("element ", i, ": got ", a[i], ", expected ", b[i]);
  }
  return "";
}

Arrays on_reference(const Program& program, const Arrays& inputs) {
  Config settings = config();
  settings.platform = "reference";
  ConfigScope scope(settings);
  return default_backend().compile(program)->execute(inputs, {});
}

class CatalogSlow : public OnPlugin, public testing::WithParamInterface<std::string> {};

TEST_P(CatalogSlow, GivesTheValuesOfTheReference) {
  const Primitive tried = primitive(GetParam());
  ASSERT_TRUE(can_prepare(tried)) << "has no text and no host call";
  for (DType dtype : {DType::float32, DType::int32, DType::complex64}) {
    if (!tried->dtypes.empty() && std::find(tried->dtypes.begin(), tried->dtypes.end(), dtype) == tried->dtypes.end()) continue;
    std::size_t number = 0;
    for (const Sample& sample : tried->samples(dtype)) {
      if (number++ >= 3) break;
      const properties::Call call{tried, dtype, number, sample, {}, {}};
      ConfigScope scope = properties::config_for(call);
      const Arrays inputs = properties::Values(7).operands(sample);
      const Program program = stage(call.function(), sample.inputs, "f").program;
      const Arrays want = on_reference(program, inputs);
      const Arrays got = default_backend().compile(program)->execute(inputs, {});
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(difference(got[i], want[i], error_allowed(GetParam(), want[i].dtype())), "") << properties::describe(call) << " output " << i;
      }
    }
  }
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
