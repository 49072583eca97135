// Calls for primitives whose records have no samples: they involve programs, refs, named axes or host functions, so
// each is tested inside a small function, which must have the same properties as any primitive.
#include <capibara/capibara.h>

#include "program/trace/stage.h"
#include "properties/calls.h"

#include <map>
#include <set>

namespace capibara::properties {
namespace {

namespace lax = jax::lax;
using Inputs = std::span<const Array>;

struct Composition {
  std::string name;
  std::vector<Shape> shapes;
  FlatFunction function;
  std::vector<DType> first_dtypes = {};  // of the leading operands, if they differ from the call's dtype
};

Array cubic(const Array& x, const Array& y) { return lax::mul(lax::sin(x), lax::add(y, lax::mul(x, y))); }

Array step(const Array& carry, const Array& x) { return lax::tanh(lax::add(lax::mul(carry, x), carry)); }

Arrays scanned(Inputs in, const lax::ScanOptions& options) {
  auto [last, ys] =
      lax::scan([&](Array c, Array x) { return std::pair(step(c, x), lax::mul(c, x)); }, in[0], in[1], options);
  return {last, ys};
}

// A loop with constants outside it, and two carries.
Arrays scanned_with_constants(Inputs in) {
  using Pair = std::pair<Array, Array>;
  auto [last, ys] = lax::scan(
      [&](Pair c, Array x) {
        return std::pair(Pair(step(c.first, lax::mul(x, in[2])), lax::add(c.second, x)), lax::mul(c.first, c.second));
      },
      Pair(in[0], in[0]), in[1]);
  return {last.first, last.second, ys};
}

Arrays looped(Inputs in) {
  using State = std::pair<Array, Array>;
  State last = lax::while_loop([](State s) { return lax::lt(s.first, Array(3)); },
                               [&](State s) { return State(lax::add(s.first, Array(1)), step(s.second, in[1])); },
                               State(Array(0), in[0]));
  return {last.second};
}

// The trip count depends on the values, so lanes of a batch stop at different times.
Arrays looped_by_value(Inputs in) {
  return {lax::while_loop([](Array x) { return lax::lt(lax::reduce_sum(x, {.axes = {0}}), Array(8)); },
                          [&](Array x) { return lax::add(x, lax::add(lax::mul(x, x), Array(1))); }, in[0])};
}

Array doubled_sine(const Array& x) {
  auto f = jax::custom_jvp([](Array v) { return lax::sin(v); }, "sine");
  f.defjvp([](auto primals, auto tangents) {
    Array v = std::get<0>(primals);
    return std::tuple(lax::sin(v), lax::mul(std::get<0>(tangents), lax::cos(v)));
  });
  return f(x);
}

Array product(const Array& x, const Array& y) {
  auto f = jax::custom_vjp([](Array a, Array b) { return lax::mul(lax::sin(a), b); }, "product");
  f.defvjp([](Array a, Array b) { return std::tuple(lax::mul(lax::sin(a), b), std::tuple(a, b)); },
           [](std::tuple<Array, Array> kept, Array ct) {
             auto [a, b] = kept;
             return std::tuple(lax::mul(ct, lax::mul(lax::cos(a), b)), lax::mul(ct, lax::sin(a)));
           });
  return f(x, y);
}

// A function's program as one equation, as interpreters bind it.
Array called(const char* name, const Array& x, const Array& y) {
  Program program =
      stage([](Inputs in) { return Arrays{cubic(in[0], in[1])}; }, Types{x.type(), y.type()}, "cubic").program;
  return capibara::bind(primitive(name), Arrays{x, y}, {{"call_jaxpr", program}})[0];
}

Array square_by_rule(const Array& x) {
  auto f = jax::custom_batching::custom_vmap([](Array v) { return lax::mul(v, v); }, "square");
  f.def_vmap(
      [](int64_t, const std::vector<bool>& batched, Array v) { return std::tuple(lax::mul(v, v), bool(batched[0])); });
  return f(x);
}

Array positive(const Array& x) {
  return lax::dot(x, lax::transpose(x, {1, 0})) +
         lax::convert_element_type(
             lax::eq(lax::broadcasted_iota(DType::int32, {3, 3}, 0), lax::broadcasted_iota(DType::int32, {3, 3}, 1)),
             x.dtype());
}
Array lower_factor(const Array& x) { return lax::linalg::cholesky(positive(x)); }

Array solved(const Array& x, const Array& b) {
  Array a = positive(x);
  return lax::custom_linear_solve(
      [&](Array v) { return lax::dot(a, v); }, b,
      [&](auto, Array rhs) {
        Array l = lax::linalg::cholesky(a), column = lax::expand_dims(rhs, {1});
        Array half = lax::linalg::triangular_solve(l, column, {.left_side = true, .lower = true});
        return lax::squeeze(
            lax::linalg::triangular_solve(l, half, {.left_side = true, .lower = true, .transpose_a = true}), {1});
      },
      true);
}

Arrays with_refs(Inputs in) {
  jax::Ref ref = jax::new_ref(lax::mul(in[0], in[1]));  // a ref must be mapped before a mapped value is written to it
  Array first = ref.get();
  ref.add(lax::mul(first, in[1]));
  Array old = ref.swap(lax::sin(ref.get()));
  ref.set(lax::mul(ref.get(), old));
  return {jax::freeze(ref), old};
}

Arrays normalized_tangent(Inputs in) {
  auto function = [&](Array x) { return kernels::layer_norm(x, in[1], in[2]); };
  return {std::get<1>(jax::jvp(function, std::tuple(in[0]), std::tuple(in[3])))};
}
Arrays normalized_pullback(Inputs in) {
  auto [y, pull] = jax::vjp([](Array x, Array scale, Array bias) { return kernels::layer_norm(x, scale, bias); }, in[0],
                            in[1], in[2]);
  const auto [x, scale, bias] = pull(in[3]);
  return {y, x, scale, bias};
}

// Runs a function of one lane over the leading axis, named "i".
Arrays over_axis(Inputs in, const std::function<Array(Array)>& lane) {
  return {jax::vmap(lane, {.axis_name = "i"})(in[0])};
}

template <class F>
FlatFunction unary(F f) {
  return [f](Inputs in) { return Arrays{f(in[0])}; };
}
template <class F>
FlatFunction binary(F f) {
  return [f](Inputs in) { return Arrays{f(in[0], in[1])}; };
}

std::vector<Array> negated(const std::vector<Array>& in) { return {lax::neg(in[0])}; }

const std::multimap<std::string, Composition>& compositions() {
  static const std::multimap<std::string, Composition> all = {
      {"jit", {"one call", {{2, 3}, {2, 3}}, binary([](Array x, Array y) { return jax::jit(cubic)(x, y); })}},
      {"jit", {"two calls", {{3}, {}}, binary([](Array x, Array y) {
                 return jax::jit(cubic)(jax::jit(cubic)(x, lax::broadcast(y, {3})), x);
               })}},
      {"scan", {"forward", {{2}, {4, 2}}, [](Inputs in) { return scanned(in, {}); }}},
      {"scan",
       {"reverse", {{2}, {3, 2}}, [](Inputs in) { return scanned(in, {.length = std::nullopt, .reverse = true}); }}},
      {"scan",
       {"unrolled",
        {{}, {5}},
        [](Inputs in) { return scanned(in, {.length = std::nullopt, .reverse = false, .unroll = 2}); }}},
      {"scan", {"of length 0", {{2}, {0, 2}}, [](Inputs in) { return scanned(in, {}); }}},
      {"scan", {"with constants", {{2}, {3, 2}, {2}}, scanned_with_constants}},
      {"while", {"three times", {{2}, {2}}, looped}},
      {"while", {"until the value is large", {{2}}, looped_by_value}},
      {"cond",
       {"on a bool",
        {{}, {3}, {3}},
        [](Inputs in) {
          return Arrays{lax::cond(
              in[0], cubic, [](Array x, Array y) { return lax::sub(x, y); }, in[1], in[2])};
        },
        {DType::bool_}}},
      {"cond",
       {"on an index",
        {{}, {2}, {2}},
        [](Inputs in) {
          using Branch = std::function<Array(const Array&, const Array&)>;
          std::vector<Branch> branches = {cubic, [](Array x, Array) { return lax::neg(x); },
                                          [](Array x, Array y) { return lax::mul(x, y); }};
          return Arrays{lax::switch_<Array, Array, Array>(in[0], branches, in[1], in[2])};
        },
        {DType::int32}}},
      {"call", {"of a function", {{2, 3}, {2, 3}}, binary([](Array x, Array y) { return called("call", x, y); })}},
      {"closed_call",
       {"of a function", {{2, 3}, {2, 3}}, binary([](Array x, Array y) { return called("closed_call", x, y); })}},
      {"remat2",
       {"of one function", {{2, 3}, {2, 3}}, binary([](Array x, Array y) { return jax::checkpoint(cubic)(x, y); })}},
      {"remat2", {"that saves everything", {{3}, {3}}, binary([](Array x, Array y) {
                    return jax::checkpoint(cubic, {.policy = jax::checkpoint_policies::everything_saveable})(x, y);
                  })}},
      {"custom_jvp_call", {"of a sine", {{3}}, unary([](Array x) { return lax::mul(doubled_sine(x), x); })}},
      {"custom_vjp_call", {"of a product", {{3}, {3}}, binary(product)}},
      {"custom_lin",
       {"in a pullback",
        {{3}, {3}},
        [](Inputs in) {
          return Arrays{jax::grad([&](Array x) { return lax::reduce_sum(product(x, in[1]), {.axes = {0}}); })(in[0])};
        }}},
      {"composed_tangent", {"of layer_norm", {{2, 5}, {5}, {5}, {2, 5}}, normalized_tangent}},
      {"composed_tangent", {"in a pullback", {{2, 5}, {5}, {5}, {2, 5}}, normalized_pullback}},
      {"custom_vmap_call", {"of a square", {{3}}, unary(square_by_rule)}},
      {"new_ref", {"read and written", {{2, 2}, {2, 2}}, with_refs}},
      {"get",
       {"in a loop",
        {{2}, {3, 2}},
        [](Inputs in) {
          jax::Ref ref = jax::new_ref(lax::add(in[0], lax::index_in_dim(in[1], 0, 0, false)));
          lax::scan(
              [&](std::monostate, Array x) {
                ref.set(step(ref.get(), x));
                return std::pair(std::monostate{}, std::monostate{});
              },
              std::monostate{}, in[1]);
          return Arrays{jax::freeze(ref)};
        }}},
      {"swap",
       {"of two refs",
        {{3}, {3}},
        [](Inputs in) {
          jax::Ref a = jax::new_ref(lax::mul(in[0], in[1])), b = jax::new_ref(lax::add(in[0], in[1]));
          a.set(b.swap(a.get()));
          return Arrays{lax::mul(a.get(), jax::freeze(b)), jax::freeze(a)};
        }}},
      {"addupdate",
       {"twice",
        {{3}, {3}},
        [](Inputs in) {
          jax::Ref ref = jax::new_ref(lax::mul(in[0], in[1]));
          ref.add(in[1]);
          ref.add(lax::mul(in[1], ref.get()));
          return Arrays{jax::freeze(ref)};
        }}},
      {"freeze", {"at once", {{3}}, unary([](Array x) { return jax::freeze(jax::new_ref(x)); })}},
      {"pure_callback", {"lane by lane", {{3}}, unary([](Array x) {
                           return jax::pure_callback(negated, {x.type().strong()}, {x},
                                                     {.vmap_method = "sequential"})[0];
                         })}},
      {"pure_callback", {"on all lanes", {{3}}, unary([](Array x) {
                           return jax::pure_callback(negated, {x.type().strong()}, {x},
                                                     {.vmap_method = "broadcast_all"})[0];
                         })}},
      {"io_callback",
       {"unordered", {{3}}, unary([](Array x) { return jax::io_callback(negated, {x.type().strong()}, {x})[0]; })}},
      {"debug_callback", {"beside a sine", {{3}}, unary([](Array x) {
                            jax::debug::callback([](const std::vector<Array>&) {}, {x});
                            return lax::sin(x);
                          })}},
      {"cholesky", {"of a product", {{3, 3}}, unary(lower_factor)}},
      {"eigh",
       {"of a symmetric matrix",
        {{3, 3}},
        [](Inputs in) {
          auto [vectors, values] = lax::linalg::eigh(in[0]);
          return Arrays{vectors, values};
        }}},
      {"custom_linear_solve", {"by a triangular factor", {{3, 3}, {3}}, binary(solved)}},
      {"psum",
       {"of sines",
        {{4, 2}},
        [](Inputs in) { return over_axis(in, [](Array x) { return lax::mul(x, lax::psum(lax::sin(x), {"i"})); }); }}},
      {"pmax",
       {"of values without tangents",
        {{4, 2}},
        [](Inputs in) {
          return over_axis(in, [](Array x) { return lax::sub(x, lax::pmax(lax::stop_gradient(x), {"i"})); });
        }}},
      {"pmin",
       {"of values without tangents",
        {{4, 2}},
        [](Inputs in) {
          return over_axis(in, [](Array x) { return lax::sub(x, lax::pmin(lax::stop_gradient(x), {"i"})); });
        }}},
      {"all_gather",
       {"in a new dimension",
        {{3, 2}},
        [](Inputs in) {
          return over_axis(in, [](Array x) {
            return lax::all_gather(lax::sin(x), "i", {.axis = 1, .tiled = false, .axis_index_groups = {}});
          });
        }}},
      {"all_gather",
       {"tiled",
        {{3, 2}},
        [](Inputs in) {
          return over_axis(
              in, [](Array x) { return lax::all_gather(x, "i", {.axis = 0, .tiled = true, .axis_index_groups = {}}); });
        }}},
      {"reduce_scatter",
       {"of a dimension",
        {{3, 3, 2}},
        [](Inputs in) { return over_axis(in, [](Array x) { return lax::psum_scatter(lax::sin(x), "i"); }); }}},
      {"reduce_scatter",
       {"tiled",
        {{3, 6}},
        [](Inputs in) {
          return over_axis(in, [](Array x) {
            return lax::psum_scatter(x, "i", {.scatter_dimension = 0, .tiled = true, .axis_index_groups = {}});
          });
        }}},
      {"all_to_all",
       {"of two dimensions",
        {{3, 2, 3}},
        [](Inputs in) { return over_axis(in, [](Array x) { return lax::all_to_all(lax::sin(x), "i", 1, 0); }); }}},
      {"all_to_all",
       {"tiled",
        {{2, 4, 3}},
        [](Inputs in) {
          return over_axis(
              in, [](Array x) { return lax::all_to_all(x, "i", 0, 1, {.tiled = true, .axis_index_groups = {}}); });
        }}},
      {"ppermute",
       {"with a gap",
        {{4, 2}},
        [](Inputs in) {
          return over_axis(in, [](Array x) { return lax::ppermute(lax::sin(x), "i", {{0, 2}, {1, 3}, {3, 0}}); });
        }}},
      {"pbroadcast",
       {"of one lane",
        {{4, 2}},
        [](Inputs in) { return over_axis(in, [](Array x) { return lax::pbroadcast(lax::sin(x), "i", 2); }); }}},
      {"axis_index",
       {"as a factor",
        {{4, 2}},
        [](Inputs in) {
          return over_axis(in, [](Array x) {
            return lax::mul(x, lax::broadcast(lax::convert_element_type(lax::axis_index("i"), x.dtype()), {2}));
          });
        }}},
  };
  return all;
}

}  // namespace

std::vector<Call> composed_calls(const Primitive& primitive) {
  std::vector<Call> calls;
  auto [begin, end] = compositions().equal_range(primitive.name());
  for (DType dtype : {DType::float32, DType::float64}) {
    std::size_t number = 0;
    for (auto it = begin; it != end; ++it) {
      const Composition& composition = it->second;
      Call call{primitive, dtype, number++, {}};
      call.body = composition.function;
      call.name = composition.name;
      for (std::size_t i = 0; i < composition.shapes.size(); ++i) {
        DType own = i < composition.first_dtypes.size() ? composition.first_dtypes[i] : dtype;
        call.sample.inputs.push_back({composition.shapes[i], own, false, false, {}});
      }
      calls.push_back(std::move(call));
    }
  }
  return calls;
}

// Tokens carry no value, shard_map and primitives bound only by it need a mesh (python/tests/sharding), a foreign call
// means nothing to this library's own backend, and two calls of a stateful generator never agree.
TEST(Catalog, EveryPrimitiveHasCalls) {
  const std::set<std::string> of_meshes = {"pvary",           "psum_invariant",        "all_gather_invariant",
                                           "unreduced_psum",  "all_gather_reduced",    "unreduced_reduce_scatter",
                                           "preduced",        "vary_unreduced_cast_p", "reduced_vary_cast_p",
                                           "shard_map",       "process_reduce",        "process_all_gather",
                                           "process_permute", "custom_partitioning"};
  for (const Primitive& primitive : catalog()) {
    if (of_meshes.count(primitive.name())) continue;
    if (primitive.is("create_token") || primitive.is("after_all") || primitive.is("custom_call") ||
        primitive.is("rng_uniform"))
      continue;
    EXPECT_FALSE(calls_of(primitive).empty()) << primitive.name() << " has neither samples nor a composition";
    EXPECT_FALSE(primitive->doc.empty()) << primitive.name();
  }
}

}  // namespace capibara::properties
