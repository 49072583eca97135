// jax.random against jax itself: every draw of the recording random.expected, and draws under transforms.
#include <capibara/jit.h>
#include <capibara/random.h>
#include <capibara/transforms.h>

#include "core/array/element.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>

#include "oracle/expected.h"
#include "program/ir/build.h"
#include "transforms/expect.h"

namespace capibara {
namespace {

namespace random = jax::random;
using test::contains;
using test::message_of;

// ---- one record of the expected draws -----------------------------------------------------------------------------

struct Call {
  const oracle::Record& record;
  std::map<std::string, std::string> parameters;

  explicit Call(const oracle::Record& r) : record(r) {
    for (const auto& [key, value] : r.fields) {
      if (key != "param") continue;
      std::size_t space = value.find(' ');
      parameters[value.substr(0, space)] = value.substr(space + 1);
    }
  }
  bool has(const std::string& name) const { return parameters.count(name) > 0 || !record.all(name).empty(); }
  std::string text(const std::string& name, const std::string& otherwise = "") const {
    auto found = parameters.find(name);
    return found == parameters.end() ? otherwise : found->second.substr(1, found->second.size() - 2);
  }
  int64_t integer(const std::string& name, int64_t otherwise = 0) const {
    auto found = parameters.find(name);
    return found == parameters.end() ? otherwise : std::stoll(found->second);
  }
  bool flag(const std::string& name, bool otherwise) const {
    auto found = parameters.find(name);
    return found == parameters.end() ? otherwise : found->second == "True";
  }
  // An array argument, or a number as C++ would write it.
  Array value(const std::string& name) const {
    std::vector<oracle::ExpectedArray> arrays = record.all(name);
    if (!arrays.empty()) return arrays[0].to_array();
    const std::string& number = parameters.at(name);
    if (number.find('.') != std::string::npos) return Array(std::stod(number));
    return Array(static_cast<int64_t>(std::stoll(number)));
  }
  std::optional<Shape> given_shape() const {
    std::optional<std::string> field = record.field("shape");
    if (!field) return std::nullopt;
    Shape shape;
    std::stringstream sizes(*field == "()" ? "" : *field);
    for (std::string size; std::getline(sizes, size, ',');) shape.push_back(std::stoll(size));
    return shape;
  }
  Shape shape() const { return given_shape().value_or(Shape{}); }
  std::optional<DType> dtype() const {
    std::optional<std::string> field = record.field("dtype");
    return field ? dtype_from_name(*field) : std::nullopt;
  }
  random::DrawOptions draw() const { return {.shape = shape(), .dtype = dtype()}; }
  random::ParameterOptions parameter() const {
    random::ParameterOptions options;
    if (std::optional<Shape> given = given_shape()) options.shape = *given;
    options.dtype = dtype();
    return options;
  }
};

using Function = std::function<Array(const Array& key, const Call&)>;

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> table = {
      {"key_data", [](const Array& k, const Call&) { return random::key_data(k); }},
      {"split",
       [](const Array& k, const Call& c) {
         return c.parameters.at("num")[0] == '(' ? random::split(k, Shape{2, 3}) : random::split(k, c.integer("num"));
       }},
      {"fold_in",
       [](const Array& k, const Call& c) {
         return random::fold_in(k, array<uint32_t>({static_cast<uint32_t>(c.integer("data"))}, Shape{}));
       }},
      {"bits", [](const Array& k, const Call& c) { return random::bits(k, c.draw()); }},
      {"uniform",
       [](const Array& k, const Call& c) {
         random::UniformOptions options{.shape = c.shape(), .dtype = c.dtype()};
         if (c.has("minval")) options.minval = c.value("minval"), options.maxval = c.value("maxval");
         return random::uniform(k, options);
       }},
      {"randint",
       [](const Array& k, const Call& c) {
         return random::randint(k, c.shape(), c.value("minval"), c.value("maxval"), {.dtype = c.dtype()});
       }},
      {"bernoulli",
       [](const Array& k, const Call& c) {
         random::BernoulliOptions options{.p = c.value("p"), .shape = {}, .mode = c.text("mode", "low")};
         options.shape = c.shape();
         return random::bernoulli(k, options);
       }},
      {"rademacher", [](const Array& k, const Call& c) { return random::rademacher(k, c.draw()); }},
      {"permutation",
       [](const Array& k, const Call& c) {
         return random::permutation(k, c.value("x"),
                                    {.axis = c.integer("axis"), .independent = c.flag("independent", false)});
       }},
      {"choice",
       [](const Array& k, const Call& c) {
         random::ChoiceOptions options{
             .shape = c.shape(), .replace = c.flag("replace", true), .p = {}, .axis = c.integer("axis"), .mode = {}};
         if (c.has("p")) options.p = c.value("p");
         return random::choice(k, c.value("a"), options);
       }},
      {"categorical",
       [](const Array& k, const Call& c) {
         random::CategoricalOptions options{
             .axis = c.integer("axis", -1), .shape = {}, .replace = c.flag("replace", true), .mode = {}};
         if (c.given_shape()) options.shape = c.shape();
         return random::categorical(k, c.value("logits"), options);
       }},
      {"normal", [](const Array& k, const Call& c) { return random::normal(k, c.draw()); }},
      {"gumbel",
       [](const Array& k, const Call& c) {
         return random::gumbel(k, {.shape = c.shape(), .dtype = c.dtype(), .mode = c.text("mode")});
       }},
      {"exponential", [](const Array& k, const Call& c) { return random::exponential(k, c.draw()); }},
      {"laplace", [](const Array& k, const Call& c) { return random::laplace(k, c.draw()); }},
      {"cauchy", [](const Array& k, const Call& c) { return random::cauchy(k, c.draw()); }},
      {"logistic", [](const Array& k, const Call& c) { return random::logistic(k, c.draw()); }},
      {"maxwell", [](const Array& k, const Call& c) { return random::maxwell(k, c.draw()); }},
      {"lognormal",
       [](const Array& k, const Call& c) {
         random::LognormalOptions options{
             .sigma = c.has("sigma") ? c.value("sigma") : Array(1.0), .shape = {}, .dtype = c.dtype()};
         options.shape = c.shape();
         return random::lognormal(k, options);
       }},
      {"truncated_normal",
       [](const Array& k, const Call& c) {
         return random::truncated_normal(k, c.value("lower"), c.value("upper"), c.parameter());
       }},
      {"pareto", [](const Array& k, const Call& c) { return random::pareto(k, c.value("b"), c.parameter()); }},
      {"weibull_min",
       [](const Array& k, const Call& c) {
         return random::weibull_min(k, c.value("scale"), c.value("concentration"), c.draw());
       }},
      {"rayleigh", [](const Array& k, const Call& c) { return random::rayleigh(k, c.value("scale"), c.parameter()); }},
      {"triangular",
       [](const Array& k, const Call& c) {
         return random::triangular(k, c.value("left"), c.value("mode"), c.value("right"), c.parameter());
       }},
      {"double_sided_maxwell",
       [](const Array& k, const Call& c) {
         return random::double_sided_maxwell(k, c.value("loc"), c.value("scale"), c.draw());
       }},
      {"geometric", [](const Array& k, const Call& c) { return random::geometric(k, c.value("p"), c.parameter()); }},
      {"wald", [](const Array& k, const Call& c) { return random::wald(k, c.value("mean"), c.parameter()); }},
      {"gamma", [](const Array& k, const Call& c) { return random::gamma(k, c.value("a"), c.parameter()); }},
      {"loggamma", [](const Array& k, const Call& c) { return random::loggamma(k, c.value("a"), c.parameter()); }},
      {"beta",
       [](const Array& k, const Call& c) { return random::beta(k, c.value("a"), c.value("b"), c.parameter()); }},
      {"dirichlet",
       [](const Array& k, const Call& c) { return random::dirichlet(k, c.value("alpha"), c.parameter()); }},
      {"t", [](const Array& k, const Call& c) { return random::t(k, c.value("df"), c.parameter()); }},
      {"chisquare", [](const Array& k, const Call& c) { return random::chisquare(k, c.value("df"), c.parameter()); }},
      {"f",
       [](const Array& k, const Call& c) { return random::f(k, c.value("dfnum"), c.value("dfden"), c.parameter()); }},
      {"generalized_normal",
       [](const Array& k, const Call& c) { return random::generalized_normal(k, c.value("p"), c.draw()); }},
      {"ball",
       [](const Array& k, const Call& c) {
         return random::ball(k, c.integer("d"), {.p = c.value("p"), .shape = c.shape(), .dtype = c.dtype()});
       }},
      {"poisson", [](const Array& k, const Call& c) { return random::poisson(k, c.value("lam"), c.parameter()); }},
      {"binomial",
       [](const Array& k, const Call& c) { return random::binomial(k, c.value("n"), c.value("p"), c.parameter()); }},
      {"multinomial",
       [](const Array& k, const Call& c) {
         random::MultinomialOptions options;
         options.shape = c.shape();
         return random::multinomial(k, c.value("n"), c.value("p"), options);
       }},
      {"multivariate_normal",
       [](const Array& k, const Call& c) {
         random::MultivariateNormalOptions options;
         options.shape = c.shape();
         options.method = c.text("method");
         return random::multivariate_normal(k, c.value("mean"), c.value("cov"), options);
       }},
      {"orthogonal",
       [](const Array& k, const Call& c) {
         return random::orthogonal(k, c.integer("n"), {.shape = c.shape(), .dtype = {}, .m = {}});
       }},
  };
  return table;
}

// The number of elements that differ by more than the tolerance, and a description of the first.
std::size_t count_differences(const Array& got, const oracle::ExpectedArray& want, const oracle::Tolerance& tolerance,
                              std::string& first) {
  std::vector<uint8_t> element(static_cast<std::size_t>(storage_size(want.dtype)));
  std::size_t bad = 0, width = element.size(), count = want.bytes.size() / width;
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* ours = got.raw_data() + i * width;
    oracle::ExpectedArray one{want.dtype,
                              {},
                              false,
                              {want.bytes.begin() + static_cast<std::ptrdiff_t>(i * width),
                               want.bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * width)}};
    std::optional<std::string> message = oracle::difference(Array::from_host(want.dtype, {}, ours), one, tolerance);
    if (message && bad++ == 0) first = concat("element ", i, ": ", *message);
  }
  return bad;
}

class Settings {
 public:
  explicit Settings(bool x64, bool partitionable = true) : scope_(changed(x64, partitionable)) {}

 private:
  static Config changed(bool x64, bool partitionable) {
    Config settings = config();
    settings.enable_x64 = x64;
    settings.threefry_partitionable = partitionable;
    return settings;
  }
  ConfigScope scope_;
};

Array drawn(const oracle::Record& record) {
  Array key = random::key(std::stoll(*record.field("seed")), {.impl = *record.field("impl")});
  return functions().at(*record.field("function"))(key, Call(record));
}

TEST(Random, DrawsWhatJaxDraws) {
  std::map<std::string, std::pair<int, int>> tally;  // passed, all
  int without_lapack = 0;
  oracle::read_records(oracle::recording("random.expected"), [&](const oracle::Record& record) {
    const std::string function = *record.field("function");
    auto& [passed, all] = tally[function];
    ++all;
    Settings settings(*record.field("x64") == "1");
    Array got;
    try {
      got = drawn(record);
    } catch (const RuntimeError& error) {
      if (!contains(error.what(), "needs LAPACK")) throw;
      ++without_lapack;
      ++passed;
      return;
    } catch (const std::exception& error) {
      ADD_FAILURE() << record.name << ": " << error.what();
      return;
    }
    oracle::ExpectedArray want = record.all("output")[0];
    ASSERT_EQ(to_string(got.type()), to_string(want.to_array().type())) << record.name;
    EXPECT_EQ(got.weak_type(), want.weak_type) << record.name;
    std::string first;
    std::size_t bad = count_differences(got, want, oracle::Tolerance::parse(*record.field("tolerance")), first);
    double allowed = record.field("flips") ? std::stod(*record.field("flips")) * static_cast<double>(got.size()) : 0;
    if (static_cast<double>(bad) <= allowed) {
      ++passed;
    } else {
      ADD_FAILURE() << record.name << ": " << bad << " of " << got.size() << " differ; " << first;
    }
  });
  for (const auto& [function, counts] : tally) {
    EXPECT_EQ(counts.first, counts.second) << function;
  }
  EXPECT_EQ(tally.size(), functions().size());
  if (without_lapack > 0) std::printf("skipped %d draws: this build has no LAPACK module\n", without_lapack);
}

TEST(Random, DrawsTheSameUnderJit) {
  std::map<std::string, int> seen;
  oracle::read_records(oracle::recording("random.expected"), [&](const oracle::Record& record) {
    const std::string function = *record.field("function");
    if (function == "key_data" || seen[function]++ >= 3) return;
    oracle::ExpectedArray want = record.all("output")[0];
    if (want.bytes.size() > 4000) return;
    Settings settings(*record.field("x64") == "1");
    Array key = random::key(std::stoll(*record.field("seed")), {.impl = *record.field("impl")});
    if (function == "multivariate_normal" || function == "orthogonal") return;  // LAPACK may be absent
    Array eager = drawn(record);
    Call call(record);
    Array compiled = jax::jit([&](Array k) { return functions().at(function)(k, call); })(key);
    ASSERT_EQ(to_string(eager.type()), to_string(compiled.type())) << record.name;
    // Compiled code fuses products with sums and adds in another order; the random words are the same.
    const double unit = is_floating(eager.dtype()) ? finfo(eager.dtype()).eps : 0;
    const double units = function == "wald" ? 4096 : 8;  // wald subtracts numbers that are nearly equal
    const int64_t parts = is_key(eager.dtype()) ? 0 : eager.size();
    for (int64_t i = 0; i < parts && !is_complex(eager.dtype()); ++i) {
      const double a = load_as<double>(eager.dtype(), eager.raw_data(), i),
                   b = load_as<double>(eager.dtype(), compiled.raw_data(), i);
      EXPECT_NEAR(a, b, units * unit * std::max(1.0, std::fabs(a))) << record.name << " element " << i;
    }
    if (parts == 0) {
      std::size_t bytes = static_cast<std::size_t>(eager.size() * storage_size(eager.dtype()));
      EXPECT_EQ(std::memcmp(eager.raw_data(), compiled.raw_data(), bytes), 0) << record.name;
    }
  });
}

// ---- keys -----------------------------------------------------------------------------------------------------------

std::vector<uint32_t> words(const Array& keys) { return random::key_data(keys).to_vector<uint32_t>(); }
using Words = std::vector<uint32_t>;

TEST(Random, LegacyKeysAreTheirWords) {
  Array raw = random::PRNGKey(42), typed = random::key(42);
  EXPECT_EQ(raw.dtype(), DType::uint32);
  EXPECT_EQ(words(typed), raw.to_vector<uint32_t>());
  EXPECT_EQ(random::split(raw).to_vector<uint32_t>(), words(random::split(typed)));
  EXPECT_EQ(random::split(raw).shape(), (Shape{2, 2}));
  EXPECT_EQ(random::normal(raw, {.shape = {3}}).to_vector<float>(),
            random::normal(typed, {.shape = {3}}).to_vector<float>());
  EXPECT_EQ(random::key_impl(typed), "threefry2x32");
  EXPECT_EQ(random::key_impl(random::key(0, {.impl = "rbg"})), "rbg");
  EXPECT_EQ(words(random::clone(typed)), words(typed));
  EXPECT_EQ(words(random::wrap_key_data(raw)), words(typed));
}

TEST(Random, SeedsKeepSixtyFourBitsOnlyWithX64) {
  EXPECT_EQ(words(random::key(-1)), (Words{0, 4294967295u}));
  Settings settings(true);
  EXPECT_EQ(words(random::key(-1)), (Words{4294967295u, 4294967295u}));
  EXPECT_EQ(words(random::key(int64_t{1} << 40)), (Words{256, 0}));
}

TEST(Random, LegacyCountersDrawTheirOwnBits) {
  Settings settings(false, false);
  Array k = random::key(42);
  EXPECT_EQ(random::bits(k, {.shape = {7}, .dtype = DType::uint8}).to_vector<int>(),
            (std::vector<int>{45, 179, 215, 3, 244, 131, 208}));
  EXPECT_EQ(random::bits(k, {.shape = {2, 3}, .dtype = DType::uint16}).to_vector<int>(),
            (std::vector<int>{8426, 37627, 63599, 6563, 55571, 3896}));
  EXPECT_EQ(random::bits(k, {.shape = {5}}).to_vector<uint32_t>(),
            (Words{3134548294u, 3733159049u, 843694964u, 894150801u, 801545058u}));
  EXPECT_EQ(random::bits(k).to_vector<uint32_t>(), (Words{1832780943u}));
  EXPECT_EQ(words(random::split(k, 3)),
            (Words{3134548294u, 3733159049u, 3746501087u, 894150801u, 801545058u, 2363201431u}));
  EXPECT_EQ(words(random::fold_in(k, 3)), (Words{3134548294u, 894150801u}));
  Array rbg = random::split(random::key(7, {.impl = "rbg"}), 3);
  EXPECT_EQ(words(rbg)[4], 1905761346u);
  EXPECT_EQ(words(rbg)[9], 1402713516u);
  Settings wide(true, false);
  EXPECT_EQ(random::bits(k, {.shape = {3}, .dtype = DType::uint64}).to_vector<uint64_t>(),
            (std::vector<uint64_t>{13462782411356743825u, 16033796027023006562u, 16091099645456652183u}));
}

// Every record of the family gives the same results with its kernel and its lowering.
TEST(Random, LoweredProgramsDrawTheSameBits) {
  for (bool partitionable : {true, false}) {
    Settings settings(true, partitionable);
    for (const char* impl : {"threefry2x32", "rbg", "unsafe_rbg"}) {
      auto function = [&](const Array& seeds) {
        Array keys = jax::vmap([&](Array s) { return random::key(s, {.impl = impl}); })(seeds);
        Arrays out;
        out.push_back(random::key_data(jax::vmap([](Array k) { return random::split(k, Shape{2, 3}); })(keys)));
        out.push_back(random::key_data(jax::vmap([](Array k) { return random::fold_in(k, 7); })(keys)));
        out.push_back(random::key_data(jax::vmap([](Array k, Array d) { return random::fold_in(k, d); })(keys, seeds)));
        for (DType dtype : {DType::uint8, DType::uint16, DType::uint32, DType::uint64}) {
          out.push_back(jax::vmap([&](Array k) { return random::bits(k, {.shape = {5}, .dtype = dtype}); })(keys));
          out.push_back(random::bits(keys(0), {.shape = {2, 3}, .dtype = dtype}));
        }
        return out;
      };
      Array seeds = array<int64_t>({3, (int64_t{1} << 40) + 5, -1});
      Program program = jax::make_jaxpr(function)(seeds);
      Arrays direct = function(seeds), lowered = evaluate_program(lower(program), Arrays{seeds});
      ASSERT_EQ(direct.size(), lowered.size());
      for (std::size_t i = 0; i < direct.size(); ++i) {
        EXPECT_EQ(direct[i].to_vector<uint64_t>(), lowered[i].to_vector<uint64_t>())
            << impl << " output " << i << " partitionable " << partitionable;
      }
    }
  }
}

TEST(Random, LoweredGammaEqualsItsKernel) {
  for (const char* impl : {"threefry2x32", "rbg", "unsafe_rbg"}) {
    Array k = random::key(7, {.impl = impl}), a = array<float>({0.5f, 1.0f, 3.0f});
    for (bool log_space : {false, true}) {
      auto draw = [&](const Array& x) { return log_space ? random::loggamma(k, x) : random::gamma(k, x); };
      std::vector<float> direct = draw(a).to_vector<float>();
      std::vector<float> lowered = evaluate_program(lower(jax::make_jaxpr(draw)(a)), Arrays{a})[0].to_vector<float>();
      for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(direct[i], lowered[i], 1e-5 * (1 + std::abs(direct[i]))) << impl;
    }
  }
}

// ---- transforms -----------------------------------------------------------------------------------------------------

Array three_keys(const std::string& impl) { return random::split(random::key(7, {.impl = impl}), 3); }

TEST(Random, VmapOverKeysDrawsFromEachKey) {
  Array keys = three_keys("threefry2x32");
  Array all = jax::vmap([](Array k) { return random::normal(k, {.shape = {4}}); })(keys);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(all(i).to_vector<float>(), random::normal(keys(i), {.shape = {4}}).to_vector<float>());
  }
  Array gammas = jax::vmap([](Array k) { return random::gamma(k, array<float>({0.5f, 1.0f, 3.0f})); })(keys);
  test::expect_near(gammas,
                    {0.01240473985671997, 0.5834417939186096, 2.094104528427124, 0.32492178678512573, 0.798278272151947,
                     3.349334239959717, 0.013925795443356037, 0.4735013246536255, 2.806807518005371},
                    {3, 3});
}

TEST(Random, VmapOverRbgKeysDrawsFromTheFirst) {
  auto bits = [](Array k) { return random::bits(k, {.shape = {2}}); };
  EXPECT_EQ(jax::vmap(bits)(three_keys("rbg")).to_vector<uint32_t>(),
            (Words{1066376912u, 1328836812u, 4291577405u, 2233762157u, 1173161448u, 3219176743u}));
  EXPECT_EQ(jax::vmap(bits)(three_keys("unsafe_rbg")).to_vector<uint32_t>(),
            (Words{1135839771u, 3857205308u, 1650114431u, 60518699u, 2539296062u, 4245175319u}));
  Array keys = three_keys("unsafe_rbg"), numbers = array<int32_t>({0, 1, 2});
  EXPECT_EQ(words(jax::vmap([](Array k, Array d) { return random::fold_in(k, d); })(keys, numbers)),
            (Words{801108493u, 2074581940u, 1737245660u, 3729335256u, 1167222292u, 4214965493u, 2664083822u,
                   2606703556u, 292476221u, 386472478u, 2773151798u, 3540878413u}));
  EXPECT_EQ(words(jax::vmap([](Array k) { return random::fold_in(k, 5); })(keys)),
            (Words{1517637628u, 3710074355u, 4168501944u, 3922941604u, 105500296u, 1319503813u, 4040243012u, 771085986u,
                   4090392240u, 4127808482u, 2405954191u, 724782008u}));
  EXPECT_EQ(words(jax::vmap([&](Array d) { return random::fold_in(keys(0), d); })(numbers)),
            (Words{801108493u, 2074581940u, 1737245660u, 3729335256u, 430892896u, 1757314755u, 2523778194u, 1601807298u,
                   3101029489u, 1008958479u, 3529197569u, 300783953u}));
  Array split = jax::vmap([](Array k) { return random::split(k); })(keys);
  EXPECT_EQ(words(split)[8], 193255341u);
  test::expect_near(random::gamma(random::key(7, {.impl = "rbg"}), array<float>({0.5f, 1.0f, 3.0f})),
                    {0.17552947998046875, 0.4703124761581421, 1.4933993816375732}, {3});
}

TEST(Random, GradOfGammaFollowsTheQuantile) {
  Array k = random::key(42), a = array<float>({0.5f, 1.0f, 3.0f});
  auto total = [](const Array& x) { return jax::lax::reduce_sum(x, {.axes = {0}}); };
  test::expect_near(jax::grad([&](Array x) { return total(random::gamma(k, x)); })(a),
                    {1.877781629562378, 0.6333830952644348, 1.3332040309906006}, {3}, 1e-4);
  test::expect_near(jax::grad([&](Array x) { return total(random::loggamma(k, x)); })(a),
                    {1.8788070678710938, 1.9101735353469849, 0.2739807069301605}, {3}, 1e-4);
}

TEST(Random, GradFlowsThroughBounds) {
  Array k = random::key(42);
  auto total = [](const Array& x) { return jax::lax::reduce_sum(x, {.axes = {0}}); };
  test::expect_near(
      jax::grad([&](Array u) { return total(random::truncated_normal(k, -1.0, u, {.shape = {3}})); })(2.0),
      {0.266130656003952}, {}, 1e-4);
  test::expect_near(
      jax::grad([&](Array u) { return total(random::uniform(k, {.shape = {3}, .minval = u, .maxval = 2.0})); })(0.5),
      {1.2152217626571655}, {}, 1e-5);
}

TEST(Random, GumbelHasThreePrecisions) {
  Array k = random::key(42);
  test::expect_near(
      random::gumbel(k, {.shape = {5}, .dtype = {}, .mode = "highest"}),
      {0.3992578089237213, -0.129975825548172, 0.04309510067105293, 0.19444338977336884, 0.5124772787094116}, {5},
      1e-6);
  test::expect_near(
      random::gumbel(k, {.shape = {5}, .dtype = {}, .mode = "high"}),
      {0.39925798773765564, -0.12997561693191528, 0.043095413595438004, 0.1944437325000763, 0.5124770998954773}, {5},
      1e-6);
}

TEST(Random, ProgramsPrintAsJaxprs) {
  Array k = random::key(0);
  EXPECT_EQ(jax::make_jaxpr([] { return random::key(0); })().to_string(),
            "{ lambda ; . let a:key<fry>[] = random_seed[impl=fry] 0:i32[] in (a,) }");
  EXPECT_EQ(jax::make_jaxpr([](Array x) { return random::bits(x, {.shape = {3}}); })(k).to_string(),
            "{ lambda ; a:key<fry>[]. let\n    b:u32[3] = random_bits[bit_width=32 shape=(3,)] a\n  in (b,) }");
  EXPECT_EQ(jax::make_jaxpr([](Array x) { return random::fold_in(x, 3); })(k).to_string(),
            "{ lambda ; a:key<fry>[]. let b:key<fry>[] = random_fold_in a 3:u32[] in (b,) }");
  std::string normal = jax::make_jaxpr([](Array x) { return random::normal(x, {.shape = {3}}); })(k).to_string();
  EXPECT_TRUE(contains(normal, "name=_normal_real")) << normal;
  EXPECT_TRUE(contains(normal, "or g 1065353216:u32[]") || contains(normal, "1065353216:u32[]")) << normal;
}

// ---- errors ---------------------------------------------------------------------------------------------------------

TEST(Random, RefusesBatchesOfKeys) {
  std::string message = message_of<ValueError>([] { random::normal(random::split(random::key(0))); });
  EXPECT_EQ(message,
            "normal accepts a single key, but was given a key array of shape (2,) != (). Use jax.vmap for batching.");
  EXPECT_TRUE(contains(message_of<ValueError>([] { random::split(random::split(random::key(0), 3)); }),
                       "split accepts a single key"));
}

TEST(Random, RefusesBadArguments) {
  Array k = random::key(0);
  EXPECT_TRUE(contains(message_of<ValueError>([&] { random::uniform(k, {.shape = {2}, .dtype = DType::int32}); }),
                       "dtype argument to `uniform` must be a float dtype, got int32"));
  EXPECT_TRUE(contains(message_of<TypeError>([&] { random::randint(k, {2}, 0, 5, {.dtype = DType::float32}); }),
                       "randint only accepts integer dtypes"));
  EXPECT_TRUE(contains(message_of<ValueError>([&] { random::key(0, {.impl = "twister"}); }),
                       "unrecognized PRNG implementation \"twister\""));
  EXPECT_TRUE(contains(message_of<ValueError>([&] { random::choice(k, 3, {.shape = {5}, .replace = false}); }),
                       "Cannot take a larger sample (size 5)"));
  EXPECT_TRUE(contains(message_of<ValueError>([&] {
                         random::gamma(k, array<float>({1, 2}), {.shape = {1}});
                       }),
                       "gamma parameter shapes must be broadcast-compatible with shape argument"));
  EXPECT_TRUE(
      contains(message_of<ValueError>([&] { random::bernoulli(k, {.mode = "middle"}); }), "expected 'high' or 'low'"));
  EXPECT_TRUE(contains(message_of<TypeError>([&] { random::key(array<int32_t>({1, 2})); }), "accepts a scalar seed"));
  EXPECT_TRUE(contains(message_of<TypeError>([&] { random::normal(array<float>({1, 2})); }), "invalid PRNG key data"));
  EXPECT_TRUE(contains(message_of<NotImplementedError>([&] { random::poisson(random::key(0, {.impl = "rbg"}), 3.0); }),
                       "only implemented for the threefry2x32"));
}

}  // namespace
}  // namespace capibara
