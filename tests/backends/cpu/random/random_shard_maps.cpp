// Functions of one device's rows [24, 2]; each operation keeps that shape: 24 is divisible by 2, 3, 4, 6 and 8.
#include "backends/cpu/random/random_shard_maps.h"

#include <capibara/collective.h>
#include <capibara/config.h>
#include <capibara/control.h>
#include <capibara/lax.h>
#include <capibara/shard_map.h>
#include <capibara/transforms.h>

#include <algorithm>
#include <random>

#include "program/trace/stage.h"

namespace capibara::random_shard_maps {
namespace {

namespace lax = jax::lax;
using lax::AxisNames;

constexpr int64_t rows = 24, cols = 2;

Array number(double value) { return Array(static_cast<float>(value)); }

// A sequence of choices determined by the seed.
struct Choices {
  std::mt19937_64 bits;
  int64_t below(int64_t count) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(count)); }
  bool one_in(int64_t count) { return below(count) == 0; }
};

// The context of an operation: its mesh, some axes of the mesh, and the weights of the function.
struct Scene {
  Mesh mesh;
  AxisNames some;  // one axis or several, in some order
  Array weights;   // [cols, cols]
  int64_t draw = 0;

  const std::string& axis() const { return some[0]; }
  int64_t size() const { return mesh.axis_size(axis()); }
  int64_t size_of_some() const {
    int64_t size = 1;
    for (const std::string& name : some) size *= mesh.axis_size(name);
    return size;
  }
};

std::vector<std::pair<int64_t, int64_t>> ring(int64_t size, int64_t draw) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t i = 0; i < size; ++i) {
    if (draw % 3 == 0 && i == draw % size) continue;  // with a gap
    pairs.emplace_back(i, (i + 1 + draw % 2) % size);
  }
  return pairs;
}

lax::AxisGroups halves(int64_t size) {
  lax::AxisGroups groups(2);
  for (int64_t i = 0; i < size; ++i) groups[static_cast<std::size_t>(i % 2)].push_back(i);
  return groups;
}

Array sums_of_parts(const Array& x, int64_t parts) {
  return lax::reduce_sum(lax::reshape(x, {parts, rows, cols}), {.axes = {0}});
}

Array column_means(const Array& x) {
  const Array sums = lax::reduce_sum(x, {.axes = {1}});
  return lax::broadcast_in_dim(lax::mul(sums, lax::full_like(sums, number(0.5))), {rows, cols}, {0});
}

struct Operation {
  const char* name;
  Array (*apply)(const Array& x, const Array& y, const Scene& scene);
  bool row_by_row = false;      // rows do not depend on each other or on their device
  bool differentiable = true;   // in reverse mode
  bool unchecked_only = false;  // rejected by jax with varying types
};

Array scaled(const Array& x, double by) { return lax::mul(x, lax::full_like(x, number(by))); }

const Operation operations[] = {
    {"sin", [](const Array& x, const Array&, const Scene&) { return lax::sin(x); }, true},
    {"mul", [](const Array& x, const Array& y, const Scene&) { return lax::mul(x, y); }, true},
    {"sub", [](const Array& x, const Array& y, const Scene&) { return lax::sub(x, y); }, true},
    {"max", [](const Array& x, const Array& y, const Scene&) { return lax::max(x, y); }, true},
    {"dot", [](const Array& x, const Array&, const Scene& s) { return lax::dot(x, s.weights); }, true},
    {"column_means", [](const Array& x, const Array&, const Scene&) { return column_means(x); }, true},
    {"cond of a row's sign",
     [](const Array& x, const Array& y, const Scene&) {
       return lax::select(lax::gt(x, lax::zeros_like(x)), lax::cos(x), y);
     },
     true},
    {"scan without collectives",
     [](const Array& x, const Array& y, const Scene&) {
       return lax::fori_loop(
           0, 3, [&](const Array&, const Array& c) { return lax::sin(lax::add(c, y)); }, x);
     },
     true},
    {"psum", [](const Array& x, const Array&, const Scene& s) { return scaled(lax::psum(x, s.some), 0.3); }},
    {"pmean", [](const Array& x, const Array&, const Scene& s) { return lax::pmean(x, s.some); }},
    {"pmax", [](const Array& x, const Array&, const Scene& s) { return lax::pmax(x, s.some); }, false, false},
    {"pmin", [](const Array& x, const Array&, const Scene& s) { return lax::pmin(x, s.some); }, false, false},
    {"psum in groups",
     [](const Array& x, const Array&, const Scene& s) {
       return s.size() % 2 ? x : lax::psum(x, {s.axis()}, halves(s.size()));
     },
     false, true, true},
    {"all_gather in groups",
     [](const Array& x, const Array&, const Scene& s) {
       if (s.size() % 2) return x;
       const Array all = lax::all_gather(x, s.axis(), {.axis = 0, .axis_index_groups = halves(s.size())});
       return lax::reduce_sum(all, {.axes = {0}});
     },
     false, true, true},
    {"all_gather tiled",
     [](const Array& x, const Array&, const Scene& s) {
       const Array all = lax::all_gather(x, s.some, {.axis = 0, .tiled = true});
       return sums_of_parts(all, s.size_of_some());
     }},
    {"all_gather stacked",
     [](const Array& x, const Array&, const Scene& s) {
       const Array all = lax::all_gather(x, s.some, {.axis = 1});  // [rows, devices, cols]
       return lax::index_in_dim(all, s.draw % s.size_of_some(), 1, false);
     }},
    {"all_gather_invariant",
     [](const Array& x, const Array&, const Scene& s) {
       const Array all = lax::all_gather_invariant(x, s.some, {.axis = 0});
       return lax::index_in_dim(all, s.draw % s.size_of_some(), 0, false);
     }},
    {"psum_scatter tiled",
     [](const Array& x, const Array&, const Scene& s) {
       const Array part = lax::psum_scatter(x, s.some, {.scatter_dimension = 0, .tiled = true});
       return lax::tile(part, {s.size_of_some(), 1});
     }},
    {"psum_scatter stacked",
     [](const Array& x, const Array&, const Scene& s) {
       const Array part = lax::psum_scatter(lax::slice_in_dim(x, 0, s.size()), s.axis(), {.scatter_dimension = 0});
       return lax::broadcast_in_dim(part, {rows, cols}, {1});
     }},
    {"all_to_all tiled",
     [](const Array& x, const Array&, const Scene& s) { return lax::all_to_all(x, s.some, 0, 0, {.tiled = true}); }},
    {"all_to_all stacked",
     [](const Array& x, const Array&, const Scene& s) {
       const Array cut = lax::reshape(x, {s.size(), rows / s.size(), cols});
       return lax::reshape(lax::all_to_all(cut, s.axis(), 0, 1), {rows, cols});
     }},
    {"ppermute", [](const Array& x, const Array&,
                    const Scene& s) { return lax::ppermute(x, s.some, ring(s.size_of_some(), s.draw)); }},
    {"pbroadcast",
     [](const Array& x, const Array&, const Scene& s) { return lax::pbroadcast(x, s.axis(), s.draw % s.size()); },
     false, true, true},
    {"axis_index",
     [](const Array& x, const Array&, const Scene& s) {
       const Array own = lax::convert_element_type(lax::axis_index(s.axis()), DType::float32);
       return lax::add(x, lax::broadcast_in_dim(own, {rows, cols}, {}));
     }},
    {"scan of psum",
     [](const Array& x, const Array& y, const Scene& s) {
       return lax::fori_loop(
           0, 3,
           [&](const Array&, const Array& c) {
             return lax::pvary(lax::sin(lax::add(scaled(lax::psum(c, s.some), 0.1), y)), s.mesh.axis_names);
           },
           x);
     }},
    {"scan of ppermute",
     [](const Array& x, const Array&, const Scene& s) {
       return lax::fori_loop(
           0, 2, [&](const Array&, const Array& c) { return lax::ppermute(c, s.some, ring(s.size_of_some(), s.draw)); },
           x);
     }},
    {"while of all_to_all",
     [](const Array& x, const Array&, const Scene& s) {
       using State = std::pair<Array, Array>;
       return lax::while_loop([](const State& c) { return lax::lt(c.first, Array(int32_t{3})); },
                              [&](const State& c) {
                                return State(lax::add(c.first, Array(int32_t{1})),
                                             lax::all_to_all(c.second, s.some, 0, 0, {.tiled = true}));
                              },
                              State(Array(int32_t{0}), x))
           .second;
     },
     false, false},
    {"while that differs between devices",
     [](const Array& x, const Array&, const Scene&) {
       auto total = [](const Array& c) { return lax::reduce_sum(lax::abs(c), {.axes = {0, 1}}); };
       return lax::while_loop([&](const Array& c) { return lax::gt(total(c), number(9)); },
                              [](const Array& c) { return scaled(c, 0.5); }, x);
     },
     false, false},
    {"cond that differs between devices",
     [](const Array& x, const Array& y, const Scene&) {
       const Array sum = lax::reduce_sum(x, {.axes = {0, 1}});
       return lax::cond(
           lax::gt(sum, number(0)), [](const Array& a, const Array&) { return lax::cos(a); },
           [](const Array&, const Array& b) { return b; }, x, y);
     }},
    {"cond of psum",
     [](const Array& x, const Array& y, const Scene& s) {
       const Array sum = lax::psum(lax::reduce_sum(y, {.axes = {0, 1}}), s.mesh.axis_names);
       auto all = s.mesh.axis_names;
       return lax::cond(
           lax::gt(sum, number(0)), [&](const Array& a) { return lax::pvary(scaled(lax::psum(a, s.some), 0.2), all); },
           [](const Array& a) { return lax::sin(a); }, x);
     }},
};

// Small random numbers.
Array random_array(Choices& choices, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  for (float& value : values) value = static_cast<float>(choices.below(2001) - 1000) / 700.0f;
  return Array::from_host(DType::float32, shape, values.data());
}

Mesh random_mesh(Choices& choices) {
  switch (choices.below(4)) {
    case 0:
      return {{"x"}, {8}, {}};
    case 1:
      return {{"x", "y"}, {4, 2}, {}};
    case 2:
      return {{"x", "y", "z"}, {2, 2, 2}, {}};
    default:
      return {{"x", "y"}, {3, 2}, {}};
  }
}

AxisNames some_axes(Choices& choices, const Mesh& mesh) {
  AxisNames names = mesh.axis_names;
  std::shuffle(names.begin(), names.end(), choices.bits);
  names.resize(static_cast<std::size_t>(1 + choices.below(static_cast<int64_t>(names.size()))));
  return names;
}

struct Step {
  const Operation* operation;
  std::size_t x, y;  // indices into the values so far
  AxisNames some;
  int64_t draw;
};

struct Plan {
  Mesh mesh;
  bool row_by_row, gradient, checked;
  std::vector<Step> steps;
};

Plan make_plan(Choices& choices) {
  Plan plan{random_mesh(choices), choices.one_in(5), choices.one_in(3), !choices.one_in(3), {}};
  const int64_t count = 2 + choices.below(6);
  while (static_cast<int64_t>(plan.steps.size()) < count) {
    const Operation& operation = operations[choices.below(std::ssize(operations))];
    if ((plan.row_by_row && !operation.row_by_row) || (plan.gradient && !operation.differentiable) ||
        (plan.checked && operation.unchecked_only))
      continue;
    const auto values = static_cast<int64_t>(plan.steps.size()) + 1;
    const auto x = static_cast<std::size_t>(choices.below(values)), y = static_cast<std::size_t>(choices.below(values));
    plan.steps.push_back({&operation, x, y, some_axes(choices, plan.mesh), choices.below(100)});
  }
  return plan;
}

// The last value of the steps; `on_devices`: every value varies over all axes, so loops accept any of them.
Array run_steps(const Plan& plan, const Array& x, const Array& weights, bool on_devices) {
  Arrays values{x};
  for (const Step& step : plan.steps) {
    const Scene scene{plan.mesh, step.some, weights, step.draw};
    Array next = step.operation->apply(values[step.x], values[step.y], scene);
    if (!step.operation->row_by_row) next = lax::sin(next);  // stays small
    values.push_back(on_devices ? lax::pvary(next, plan.mesh.axis_names) : next);
  }
  return values.back();
}

PartitionSpec over(const AxisNames& names) { return PartitionSpec{{names}}; }

Arrays mapped(const Plan& plan, const Array& x, const Array& weights) {
  const auto function = [&](const Arrays& parts) {
    const Array w = lax::pvary(parts[1], plan.mesh.axis_names);
    const Array own = run_steps(plan, parts[0], w, true);
    return Arrays{own, lax::psum(lax::reduce_sum(own, {.axes = {0}}), plan.mesh.axis_names)};
  };
  return jax::shard_map(function, {.mesh = jax::make_sharding(plan.mesh, {}, "cpu"),
                                   .in_specs = {over(plan.mesh.axis_names), {}},
                                   .out_specs = {over(plan.mesh.axis_names), {}},
                                   .axis_names = {},
                                   .check_vma = plan.checked})({x, weights});
}

Arrays unmapped(const Plan& plan, const Array& x, const Array& weights) {
  const Array parts = lax::reshape(x, {plan.mesh.size(), rows, cols});
  Arrays own;
  for (int64_t i = 0; i < plan.mesh.size(); ++i)
    own.push_back(run_steps(plan, lax::index_in_dim(parts, i, 0, false), weights, false));
  const Array all = lax::concatenate(own, 0);
  return {all, lax::reduce_sum(all, {.axes = {0}})};
}

using Function = Arrays (*)(const Plan&, const Array&, const Array&);

// The function, or the gradient of the sum of its results.
Arrays results_of(Function function, const Plan& plan, const Array& x, const Array& weights) {
  if (!plan.gradient) return function(plan, x, weights);
  auto [dx, dw] = jax::grad<0, 1>([&](const Array& a, const Array& b) {
    const Arrays results = function(plan, a, b);
    return lax::add(lax::reduce_sum(results[0], {.axes = {0, 1}}),
                    lax::reduce_sum(lax::sin(results[1]), {.axes = {0}}));
  })(x, weights);
  return {dx, dw};
}

Program program_of(Function function, const Plan& plan, const Arrays& inputs) {
  const Types types{inputs[0].type(), inputs[1].type()};
  return stage([&](std::span<const Array> in) { return results_of(function, plan, in[0], in[1]); }, types, "f").program;
}

}  // namespace

RandomMap make_random_map(uint64_t seed) {
  Choices choices{std::mt19937_64(seed)};
  const Plan plan = make_plan(choices);
  RandomMap made;
  made.inputs = {random_array(choices, {rows * plan.mesh.size(), cols}), random_array(choices, {cols, cols})};
  for (const Step& step : plan.steps) {
    made.text += concat(made.text.empty() ? "" : "; ", step.operation->name, "(", step.x, ", ", step.y, ") over");
    for (const std::string& name : step.some) made.text += concat(" ", name);
  }
  made.text +=
      concat(" on a mesh of ", plan.mesh.size(), plan.checked ? ", checked" : "", plan.gradient ? ", gradient" : "");
  made.program = program_of(mapped, plan, made.inputs);
  if (plan.row_by_row) made.whole = program_of(unmapped, plan, made.inputs);
  return made;
}

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const Operation& operation : operations) names.push_back(operation.name);
  return names;
}

}  // namespace capibara::random_shard_maps
