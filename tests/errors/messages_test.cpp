// Error messages for users' mistakes: each names the operation, the argument, the expected and the actual
// value.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

using capibara::Array;
using capibara::Arrays;
using capibara::DType;
using capibara::Shape;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

namespace {

Array zeros(Shape shape, DType dtype = DType::float32) {
  return lax::zeros(capibara::ArrayType{std::move(shape), dtype, false, false, {}});
}
Array ints(std::vector<int32_t> values) { return capibara::array<int32_t>(values); }

// A mistake, the kind of error, and words of its message in order.
struct Mistake {
  const char* name;
  std::function<void()> make;
  enum Kind {
    type,
    value,
    index,
    name_,
    concretization,
    leak,
    bool_conversion,
    runtime,
    floating,
    parse,
    missing_rule,
    any
  } kind;
  std::vector<std::string> words;
};

template <class E>
bool is(const std::exception& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

bool has_kind(const std::exception& error, Mistake::Kind kind) {
  using namespace capibara;
  switch (kind) {
    case Mistake::type:
      return is<TypeError>(error);
    case Mistake::value:
      return is<ValueError>(error);
    case Mistake::index:
      return is<IndexError>(error);
    case Mistake::name_:
      return is<NameError>(error);
    case Mistake::concretization:
      return is<ConcretizationTypeError>(error);
    case Mistake::leak:
      return is<UnexpectedTracerError>(error);
    case Mistake::bool_conversion:
      return is<TracerBoolConversionError>(error);
    case Mistake::runtime:
      return is<RuntimeError>(error);
    case Mistake::floating:
      return is<FloatingPointError>(error);
    case Mistake::parse:
      return is<ParseError>(error);
    case Mistake::any:
      return true;
    case Mistake::missing_rule:
      return is<NotImplementedError>(error);
  }
  return false;
}

void check(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.name);
    std::string text;
    try {
      mistake.make();
      ADD_FAILURE() << "no error";
      continue;
    } catch (const std::exception& error) {
      text = error.what();
      EXPECT_TRUE(is<capibara::Error>(error)) << "not an error of the user's kind: " << text;
      EXPECT_TRUE(has_kind(error, mistake.kind)) << "another kind of error: " << text;
    }
    std::size_t from = 0;
    for (const std::string& word : mistake.words) {
      std::size_t position = text.find(word, from);
      EXPECT_NE(position, std::string::npos) << "'" << word << "' is not in (or not in this order): " << text;
      if (position != std::string::npos) from = position + word.size();
    }
  }
}

TEST(Errors, Shapes) {
  Array a = zeros({2, 3}), b = zeros({3, 2}), v = zeros({3});
  check({
      {"add", [=] { lax::add(a, b); }, Mistake::type, {"add", "(2, 3)", "(3, 2)"}},
      {"operator +", [=] { a + b; }, Mistake::type, {"add", "(2, 3)", "(3, 2)"}},
      {"dot", [=] { lax::dot(a, a); }, Mistake::value, {"dot", "expected", "float32[2,3]", "float32[2,3]"}},
      {"dot_general contracting",
       [=] {
         lax::dot_general(a, b, {{0}, {0}, {}, {}});
       },
       Mistake::type,
       {"dot_general", "contracting"}},
      {"reshape", [=] { lax::reshape(a, {4}); }, Mistake::type, {"reshape", "(4,)", "(2, 3)"}},
      {"Array::reshape",
       [=] {
         a.reshape({-1, 4});
       },
       Mistake::type,
       {"reshape"}},
      {"concatenate",
       [=] {
         lax::concatenate({a, b}, 0);
       },
       Mistake::type,
       {"concatenate", "(2, 3)", "(3, 2)"}},
      {"concatenate nothing", [=] { lax::concatenate({}, 0); }, Mistake::value, {"concatenate"}},
      {"broadcast_in_dim",
       [=] {
         lax::broadcast_in_dim(v, {2, 4}, {1});
       },
       Mistake::type,
       {"broadcast_in_dim"}},
      {"select", [=] { lax::select(zeros({2}, DType::bool_), v, v); }, Mistake::type, {"select"}},
      {"clamp", [=] { lax::clamp(zeros({2}), v, zeros({2})); }, Mistake::type, {"clamp"}},
      {"pad",
       [=] {
         lax::pad(a, Array(0.0f), {{0, 0, 0}});
       },
       Mistake::value,
       {"pad", "padding_config", "(2, 3)"}},
      {"pad below zero",
       [=] {
         lax::pad(v, Array(0.0f), {{-2, -2, 0}});
       },
       Mistake::value,
       {"pad"}},
      {"slice", [=] { lax::slice(v, {0}, {5}); }, Mistake::type, {"slice", "limit_indices"}},
      {"slice order", [=] { lax::slice(v, {2}, {1}); }, Mistake::type, {"slice", "start_indices"}},
      {"dynamic_slice",
       [=] { lax::dynamic_slice(v, {Array(0)}, {4}); },
       Mistake::type,
       {"dynamic_slice", "slice_sizes"}},
      {"dynamic_update_slice",
       [=] { lax::dynamic_update_slice(v, zeros({4}), {Array(0)}); },
       Mistake::type,
       {"dynamic_update_slice"}},
      {"split",
       [=] {
         lax::split(v, {1, 1});
       },
       Mistake::value,
       {"split"}},
      {"convolution",
       [=] {
         lax::conv(zeros({1, 2, 4, 4}), zeros({3, 3, 2, 2}), {1, 1}, "VALID");
       },
       Mistake::value,
       {"conv_general_dilated", "2", "3"}},
      {"convolution padding",
       [=] {
         lax::conv(zeros({1, 2, 4, 4}), zeros({3, 2, 2, 2}), {1, 1}, "NICE");
       },
       Mistake::runtime,
       {"padding", "expected", "NICE"}},
      {"top_k", [=] { lax::top_k(v, 4); }, Mistake::value, {"top_k", "4"}},
      {"fft", [=] { lax::fft(zeros({4}, DType::complex64), lax::FftType::fft, {5}); }, Mistake::value, {"fft"}},
      {"array()",
       [] {
         capibara::array<float>({1, 2, 3}, Shape{2, 2});
       },
       Mistake::value,
       {"array", "[2,2]", "4", "3"}},
      {"ragged rows",
       [] {
         capibara::array<float>({{1, 2}, {3}});
       },
       Mistake::value,
       {"rows"}},
      {"stack",
       [=] {
         lax::stack({a, v});
       },
       Mistake::value,
       {"stack", "(2, 3)", "(3,)"}},
      {"iota", [] { lax::iota(DType::int32, -1); }, Mistake::type, {"iota"}},
      {"zeros of a negative size", [] { zeros({-2}); }, Mistake::type, {"-2"}},
  });
}

TEST(Errors, DTypes) {
  Array f = zeros({3}), i = zeros({3}, DType::int32), b = zeros({3}, DType::bool_), c = zeros({3}, DType::complex64);
  check({
      {"add",
       [=] { lax::add(f, i); },
       Mistake::type,
       {"lax.add requires arguments to have the same dtypes", "float32", "int32"}},
      {"neg of bool", [=] { lax::neg(b); }, Mistake::type, {"neg", "bool", "Accepted dtypes"}},
      {"sin of int", [=] { lax::sin(i); }, Mistake::type, {"sin", "int32"}},
      {"lt of complex", [=] { lax::lt(c, c); }, Mistake::type, {"lt", "complex64"}},
      {"and of float", [=] { lax::bitwise_and(f, f); }, Mistake::type, {"and", "float32"}},
      {"floor of complex", [=] { lax::floor(c); }, Mistake::type, {"floor", "complex64"}},
      {"select of float", [=] { lax::select(f, f, f); }, Mistake::type, {"select", "float32"}},
      {"complex of int", [=] { lax::complex(i, i); }, Mistake::type, {"complex", "int32"}},
      {"reduce_sum of bool", [=] { lax::reduce_sum(b, {.axes = {0}}); }, Mistake::type, {"reduce_sum", "bool"}},
      {"argmax of complex", [=] { lax::argmax(c, 0); }, Mistake::type, {"argmax", "complex64"}},
      {"dynamic index of float",
       [=] { lax::dynamic_slice(f, {Array(0.5f)}, {1}); },
       Mistake::type,
       {"dynamic_slice", "integer"}},
      {"gather of float indices",
       [=] {
         lax::gather(f, zeros({1}), {{}, {0}, {0}, {}, {}}, {1});
       },
       Mistake::value,
       {"gather"}},
      {"bitcast to bool", [=] { lax::bitcast_convert_type(f, DType::bool_); }, Mistake::type, {"bitcast_convert_type"}},
      {"key arithmetic",
       [=] { lax::add(jax::random::key(0), jax::random::key(1)); },
       Mistake::type,
       {"add", "key<fry>"}},
      {"index of float", [=] { f(Array(0.5f)); }, Mistake::type, {"integer"}},
      {"strict promotion",
       [=] {
         auto strict = jax::numpy_dtype_promotion("strict");
         f + i;
       },
       Mistake::value,
       {"strict"}},
      {"grad of an integer",
       [=] { jax::grad([](Array x) { return lax::reduce_sum(x, {.axes = {0}}); })(i); },
       Mistake::type,
       {"grad", "int32"}},
      {"item of many", [=] { f.item<float>(); }, Mistake::value, {"item", "one element", "float32[3]"}},
  });
}

TEST(Errors, Axes) {
  Array a = zeros({2, 3});
  check({
      {"reduce_sum", [=] { lax::reduce_sum(a, {.axes = {2}}); }, Mistake::value, {"reduce_sum", "2"}},
      {"reduce_sum twice",
       [=] {
         lax::reduce_sum(a, {.axes = {0, 0}});
       },
       Mistake::value,
       {"reduce_sum"}},
      {"argmin", [=] { lax::argmin(a, 5); }, Mistake::value, {"argmin", "5"}},
      {"transpose",
       [=] {
         lax::transpose(a, {0, 0});
       },
       Mistake::type,
       {"transpose", "(0, 0)"}},
      {"squeeze", [=] { lax::squeeze(a, {0}); }, Mistake::value, {"squeeze", "(2, 3)", "(0,)"}},
      {"expand_dims", [=] { lax::expand_dims(a, {5}); }, Mistake::value, {"5"}},
      {"rev", [=] { lax::rev(a, {2}); }, Mistake::type, {"rev"}},
      {"sort", [=] { lax::sort(a, {.dimension = 3}); }, Mistake::value, {"3"}},
      {"cumsum", [=] { lax::cumsum(a, {.axis = 4}); }, Mistake::value, {"cumsum", "4"}},
      {"shape()", [=] { a.shape(7); }, Mistake::index, {"7"}},
      {"vmap in_axes", [=] { jax::vmap([](Array x) { return x; }, {.in_axes = 3})(a); }, Mistake::value, {"vmap", "3"}},
      {"vmap sizes",
       [=] {
         jax::vmap([](Array x, Array y) { return x + y; })(a, zeros({5, 3}));
       },
       Mistake::value,
       {"vmap", "2", "5"}},
      {"vmap of nothing",
       [=] { jax::vmap([](Array x) { return x; }, {.in_axes = std::nullopt})(a); },
       Mistake::value,
       {"vmap"}},
      {"vmap out_axes None",
       [=] { jax::vmap([](Array x) { return x; }, {.in_axes = 0, .out_axes = std::nullopt})(a); },
       Mistake::value,
       {"out_axes"}},
      {"unbound axis", [=] { lax::psum(a, {"rows"}); }, Mistake::name_, {"unbound axis name", "rows"}},
      {"too many indices", [=] { a(0, 0, 0); }, Mistake::index, {"3"}},
      {"two ellipses", [=] { a(capibara::ellipsis, capibara::ellipsis); }, Mistake::index, {"ellipsis"}},
      {"mask of another shape", [=] { a(zeros({5}, DType::bool_)); }, Mistake::index, {"5"}},
      {"index step", [=] { a(capibara::slice(0, 2, 0)); }, Mistake::value, {"zero"}},
      {"gather numbers",
       [=] {
         lax::gather(a, ints({0}), {{0, 1}, {0}, {0}, {}, {}}, {1, 3});
       },
       Mistake::type,
       {"gather"}},
      {"scatter numbers",
       [=] {
         lax::scatter_add(a, ints({0}), zeros({3}), {{0}, {}, {0}, {}, {}});
       },
       Mistake::type,
       {"scatter"}},
  });
}

struct Point {
  Array x, y;
};
CAPIBARA_TREE(Point, x, y)

TEST(Errors, Trees) {
  using Map = std::map<std::string, Array>;
  Array a = zeros({2});
  check({
      {"tree::map",
       [=] {
         jax::tree::map([](Array x, Array y) { return x + y; }, Map{{"a", a}}, Map{{"b", a}});
       },
       Mistake::value,
       {"a", "b"}},
      {"tree::map lengths",
       [=] {
         jax::tree::map([](Array x, Array y) { return x + y; }, Arrays{a}, Arrays{a, a});
       },
       Mistake::value,
       {"1", "2"}},
      {"tree::unflatten",
       [=] {
         jax::tree::unflatten<Arrays>(jax::tree::structure(Arrays{a, a}), Arrays{a});
       },
       Mistake::value,
       {"unflatten", "1"}},
      {"scan carry type",
       [=] {
         lax::scan([](Array c, Array x) { return std::pair(lax::convert_element_type(c, DType::int32), x); }, a,
                   zeros({3, 2}));
       },
       Mistake::type,
       {"scan", "carry", "float32[2]", "int32[2]"}},
      {"scan lengths",
       [=] {
         using Pair = std::pair<Array, Array>;
         lax::scan([](Array c, Pair x) { return std::pair(c, x.first); }, a, Pair(zeros({3}), zeros({4})));
       },
       Mistake::value,
       {"scan", "3", "4"}},
      {"scan without length",
       [=] { lax::scan([](Array c, std::monostate) { return std::pair(c, c); }, a, std::monostate{}); },
       Mistake::value,
       {"scan", "length"}},
      {"while condition",
       [=] { lax::while_loop([](Array x) { return x; }, [](Array x) { return x; }, a); },
       Mistake::type,
       {"cond"}},
      {"while body",
       [=] {
         lax::while_loop([](Array) { return Array(true); }, [](Array x) { return lax::concatenate({x, x}, 0); }, a);
       },
       Mistake::type,
       {"body", "float32[2]", "float32[4]"}},
      {"cond branches",
       [=] {
         lax::cond(
             Array(true), [](Array x) { return x; }, [](Array x) { return lax::convert_element_type(x, DType::int32); },
             a);
       },
       Mistake::type,
       {"cond", "int32[2]", "float32[2]"}},
      {"cond predicate",
       [=] {
         lax::cond(
             a, [](Array x) { return x; }, [](Array x) { return x; }, a);
       },
       Mistake::type,
       {"scalar", "float32[2]", "pred"}},
      {"switch without branches",
       [=] { lax::switch_<Array, Array>(Array(0), {}, a); },
       Mistake::value,
       {"switch", "branch"}},
      {"grad of a vector",
       [=] { jax::grad([](Array x) { return x; })(a); },
       Mistake::type,
       {"Gradient", "scalar", "(2,)"}},
      {"jvp tangent shape",
       [=] { jax::jvp([](Array x) { return x; }, a, zeros({3})); },
       Mistake::value,
       {"jvp", "(2,)", "(3,)"}},
      {"jvp tangent dtype",
       [=] { jax::jvp([](Array x) { return x; }, a, zeros({2}, DType::int32)); },
       Mistake::type,
       {"jvp", "float32", "int32"}},
      {"vjp cotangent",
       [=] { std::get<1>(jax::vjp([](Array x) { return x; }, a))(zeros({3})); },
       Mistake::value,
       {"VJP", "float32[3]", "expected float32[2]"}},
      {"custom_jvp without a rule",
       [=] {
         auto f = jax::custom_jvp([](Array x) { return x; }, "identity");
         f(a);
       },
       Mistake::any,
       {"custom_jvp", "identity", "defjvp"}},
      {"custom_vjp forward mode",
       [=] {
         auto f = jax::custom_vjp([](Array x) { return x; });
         f.defvjp([](Array x) { return std::tuple(x, x); }, [](Array, Array ct) { return std::tuple(ct); });
         jax::jvp(f, a, a);
       },
       Mistake::type,
       {"forward-mode", "custom_vjp"}},
      {"while reverse",
       [=] {
         jax::grad([](Array x) {
           return lax::reduce_sum(
               lax::while_loop([](Array v) { return lax::lt(lax::reduce_sum(v, {.axes = {0}}), Array(1.0f)); },
                               [](Array v) { return v + 1.0f; }, x),
               {.axes = {0}});
         })(a);
       },
       Mistake::value,
       {"Reverse-mode", "while_loop"}},
      {"compiled for other types",
       [=] { jax::jit([](Array x) { return x; }).lower(a).compile()(zeros({3})); },
       Mistake::type,
       {"float32[2]", "float32[3]"}},
      {"struct of an empty array",
       [=] {
         jax::jit([](Point p) { return p.x; })(Point{a, Array()});
       },
       Mistake::type,
       {".y"}},
  });
}

TEST(Errors, Tracers) {
  Array a = zeros({2});
  check({
      {"leaked from jit",
       [=] {
         Array leaked;
         jax::jit([&](Array x) {
           leaked = x * 2.0f;
           return x;
         })(a);
         leaked + 1.0f;
       },
       Mistake::leak,
       {"leak"}},
      {"leaked from grad",
       [=] {
         Array leaked;
         jax::grad([&](Array x) {
           leaked = x;
           return lax::reduce_sum(x, {.axes = {0}});
         })(a);
         lax::sin(leaked);
       },
       Mistake::leak,
       {"leak"}},
      {"leaked from vmap",
       [=] {
         Array leaked;
         jax::vmap([&](Array x) {
           leaked = x;
           return x;
         })(a);
         lax::sin(leaked);
       },
       Mistake::leak,
       {"leak"}},
      {"if on a tracer",
       [=] { jax::jit([](Array x) { return bool(x(0)) ? x : -x; })(a); },
       Mistake::bool_conversion,
       {"bool"}},
      {"value of a tracer",
       [=] { jax::jit([](Array x) { return x * x(0).item<float>(); })(a); },
       Mistake::concretization,
       {"float32"}},
      {"shape from a tracer",
       [=] { jax::jit([](Array n) { return lax::iota(DType::int32, n.item<int64_t>()); })(Array(3)); },
       Mistake::concretization,
       {"int32"}},
      {"boolean mask of a tracer",
       [=] { jax::jit([](Array x) { return x(lax::gt(x, zeros({2}))); })(a); },
       Mistake::index,
       {"boolean"}},
      {"deleted array",
       [=] {
         Array b = a + 1.0f;
         b.delete_buffers();
         b + 1.0f;
       },
       Mistake::runtime,
       {"deleted", "float32[2]"}},
      {"donated array",
       [=] {
         Array b = a + 1.0f;
         jax::jit([](Array x) { return x + 1.0f; }, {.donate_argnums = {0}})(b);
         b + 1.0f;
       },
       Mistake::runtime,
       {"deleted"}},
      {"debug_nans",
       [=] {
         auto scope = jax::debug_nans();
         lax::log(a - 1.0f);
       },
       Mistake::floating,
       {"nan", "log"}},
      {"no derivative",
       [=] { jax::jvp([](Array x) { return lax::nextafter(x, x); }, a, a); },
       Mistake::missing_rule,
       {"nextafter"}},
      {"vmap of a callback",
       [=] {
         jax::vmap([](Array x) { return jax::pure_callback([](const Arrays& in) { return in; }, {x.type()}, {x})[0]; })(
             a);
       },
       Mistake::missing_rule,
       {"vmap_method"}},
      {"a callback that fails",
       [=] {
         jax::pure_callback([](const Arrays&) -> Arrays { throw std::runtime_error("disk full"); }, {a.type()}, {a});
       },
       Mistake::runtime,
       {"callback", "disk full"}},
      {"a callback of another type",
       [=] { jax::pure_callback([](const Arrays&) { return Arrays{zeros({3})}; }, {a.type()}, {a}); },
       Mistake::runtime,
       {"float32[2]", "float32[3]"}},
      {"unknown primitive", [] { capibara::primitive("ad"); }, Mistake::name_, {"ad", "did you mean 'add'"}},
      {"unknown setting", [] { jax::config::update("jax_enable_x65", true); }, Mistake::name_, {"jax_enable_x65"}},
  });
}

TEST(Errors, StableHlo) {
  auto text = [](const std::string& body, const std::string& result = "tensor<2xf32>") {
    return "module @m {\n  func.func public @main(%arg0: tensor<2xf32>) -> " + result + " {\n" + body + "\n  }\n}\n";
  };
  check({
      {"empty", [] { capibara::from_stablehlo(""); }, Mistake::parse, {"1:1", "module"}},
      {"garbage", [] { capibara::from_stablehlo("hello world"); }, Mistake::parse, {"1:1"}},
      {"cut",
       [=] { capibara::from_stablehlo(text("    return %arg0 : tensor<2xf32>").substr(0, 60)); },
       Mistake::parse,
       {}},
      {"unknown operation",
       [=] {
         capibara::from_stablehlo(
             text("    %0 = stablehlo.frobnicate %arg0 : tensor<2xf32>\n    return %0 : tensor<2xf32>"));
       },
       Mistake::any,
       {"3:", "frobnicate"}},
      {"undefined value",
       [=] { capibara::from_stablehlo(text("    return %7 : tensor<2xf32>")); },
       Mistake::parse,
       {"3:", "%7"}},
      {"wrong type",
       [=] {
         capibara::from_stablehlo(
             text("    %0 = stablehlo.add %arg0, %arg0 : tensor<3xf32>\n    return %0 : tensor<3xf32>"));
       },
       Mistake::parse,
       {"3:"}},
      {"wrong result",
       [=] { capibara::from_stablehlo(text("    return %arg0 : tensor<2xf32>", "tensor<3xf32>")); },
       Mistake::parse,
       {"main", "types"}},
      {"bad dense",
       [=] {
         capibara::from_stablehlo(
             text("    %0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<2xf32>\n    return %0 : tensor<2xf32>"));
       },
       Mistake::parse,
       {"3:", "expected 2", "got 3"}},
      {"bad dtype",
       [=] { capibara::from_stablehlo(text("    return %arg0 : tensor<2xf31>")); },
       Mistake::parse,
       {"f31"}},
      {"missing attribute",
       [=] {
         capibara::from_stablehlo(
             text("    %0 = \"stablehlo.iota\"() : () -> tensor<2xf32>\n    return %0 : tensor<2xf32>"));
       },
       Mistake::parse,
       {"iota"}},
      {"no such function",
       [=] {
         capibara::from_stablehlo(text(
             "    %0 = func.call @nobody(%arg0) : (tensor<2xf32>) -> tensor<2xf32>\n    return %0 : tensor<2xf32>"));
       },
       Mistake::parse,
       {"nobody"}},
  });
}

}  // namespace
