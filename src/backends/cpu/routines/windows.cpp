// Gather and scatter: windows of an array at positions given by an array of indices.
#include <algorithm>

#include "backends/cpu/routines/routine.h"
#include "core/array/byte_count.h"
#include "lax/index/scatter.h"
#include "lax/shape/shape.h"
#include "program/ir/handles.h"

namespace capibara::cpu::routines {

namespace {

int64_t bytes(const ArrayType& type) { return static_cast<int64_t>(byte_count(type)); }

bool contains(const Ints& list, std::size_t d) {
  return std::find(list.begin(), list.end(), static_cast<int64_t>(d)) != list.end();
}

// How the dimensions of operand, index vectors and windows correspond, for both gather and scatter.
// `moved`: the gathered or scattered array, whose dimensions are those of the index vectors and of the window.
struct Windows {
  const ArrayType &operand, &indices, &moved;
  GatherDimensionNumbers dims;
  Ints sizes = {};                    // of a window, per operand dimension
  std::vector<int64_t> vectors = {};  // extents of the index vectors' dimensions
  Ints moved_by_vector = {};          // strides of `moved` for them
  Ints index_by_vector = {};          // strides of `indices`
  std::vector<int64_t> window = {};   // extents of a window's dimensions
  Ints moved_by_window = {}, operand_by_window = {};
  Ints operand_strides = {};

  void plan() {
    const Ints moved_strides = strides_of(moved.shape), index_strides = strides_of(indices.shape);
    operand_strides = strides_of(operand.shape);
    std::size_t vector = 0, inner = 0;
    std::vector<std::size_t> kept;  // operand dimensions that windows have
    for (std::size_t d = 0; d < operand.shape.size(); ++d) {
      if (!contains(dims.collapsed_slice_dims, d) && !contains(dims.operand_batching_dims, d)) kept.push_back(d);
    }
    for (std::size_t d = 0; d < moved.shape.size(); ++d) {
      if (contains(dims.offset_dims, d)) {
        window.push_back(moved.shape[d]);
        moved_by_window.push_back(moved_strides[d]);
        operand_by_window.push_back(operand_strides[kept.at(inner++)]);
      } else {
        vectors.push_back(moved.shape[d]);
        moved_by_vector.push_back(moved_strides[d]);
        index_by_vector.push_back(index_strides[vector++]);
      }
    }
  }

  static std::vector<Term> terms(std::span<const Value> at, const Ints& strides) {
    std::vector<Term> result;
    for (std::size_t i = 0; i < at.size(); ++i) result.push_back({at[i], strides[i]});
    return result;
  }

  // Component k of an index vector: the start of a window in one operand dimension.
  Value start(Builder& b, int32_t buffer, std::span<const Value> at, std::size_t k) const {
    const Element loaded =
        load_element(b, indices.dtype, {buffer, static_cast<int64_t>(k), terms(at, index_by_vector)});
    return convert_element(b, indices.dtype, DType::int64, loaded).parts[0];
  }
  int64_t limit(std::size_t k) const {
    const auto d = static_cast<std::size_t>(dims.start_index_map[k]);
    return operand.shape[d] - sizes[d];
  }
  // Adds the batching dimensions.
  void add_batch(std::span<const Value> at, std::vector<Term>& place) const {
    for (std::size_t i = 0; i < dims.operand_batching_dims.size(); ++i) {
      const auto vector = static_cast<std::size_t>(dims.start_indices_batching_dims[i]);
      place.push_back({at[vector], operand_strides[static_cast<std::size_t>(dims.operand_batching_dims[i])]});
    }
  }
};

std::vector<Term> joined(std::vector<Term> a, const std::vector<Term>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Value clamped(Builder& b, Value index, int64_t limit) {
  const Value zero = b.index(0), last = b.index(limit);
  const Value positive = b.compute(Op::select, b.compute(Op::lt, index, zero), zero, index);
  return b.compute(Op::select, b.compute(Op::gt, positive, last), last, positive);
}

// The combining operation of a scatter; no primitive if the new element replaces the old.
struct Update {
  bool known = false;
  std::optional<Primitive> primitive = std::nullopt;
};

Update update_of(const Attrs& attrs) {
  if (attrs["update_jaxpr"].is_none()) return {true};
  const Program& region = attrs.program("update_jaxpr");
  if (region.invars().size() != 2 || !region.constvars().empty()) return {};
  const Atom first = region.invars()[0], second = region.invars()[1], result = region.outputs()[0];
  if (region.equations().empty()) return {result == second};
  const Equation& equation = region.equations()[0];
  const bool plain = region.equations().size() == 1 && equation.inputs == std::vector<Atom>{first, second} &&
                     result == Atom(equation.outputs[0]) && region.type(first).dtype == region.type(result).dtype;
  for (const Primitive& one :
       {prim::add(), prim::sub(), prim::mul(), prim::min(), prim::max(), prim::and_(), prim::or_(), prim::xor_()}) {
    if (plain && equation.primitive == one) return {true, one};
  }
  return {};
}

}  // namespace

Function gather(const Types& inputs, const Types& outputs, const Attrs& attrs) {
  Function function;
  Builder b(function);
  Windows plan{inputs[0], inputs[1], outputs[0], attrs.get<GatherDimensionNumbers>("dimension_numbers"),
               attrs.ints("slice_sizes")};
  plan.plan();
  const int32_t operand = b.parameter(bytes(inputs[0]), false), indices = b.parameter(bytes(inputs[1]), false),
                result = b.parameter(bytes(outputs[0]), true);
  const DType dtype = inputs[0].dtype;
  nest(b, plan.vectors, plan.window.empty(), [&](std::span<const Value> at) {
    std::vector<Term> place;
    for (std::size_t k = 0; k < plan.dims.start_index_map.size(); ++k) {
      const auto d = static_cast<std::size_t>(plan.dims.start_index_map[k]);
      place.push_back({clamped(b, plan.start(b, indices, at, k), plan.limit(k)), plan.operand_strides[d]});
    }
    plan.add_batch(at, place);
    nest(b, plan.window, true, [&](std::span<const Value> inner) {
      const Element element =
          load_element(b, dtype, {operand, 0, joined(place, Windows::terms(inner, plan.operand_by_window))});
      store_element(
          b, dtype,
          {result, 0, joined(Windows::terms(at, plan.moved_by_vector), Windows::terms(inner, plan.moved_by_window))},
          element);
    });
  });
  return function;
}

std::optional<Function> scatter(const Types& inputs, const Types& outputs, const Attrs& attrs, bool in_place) {
  if (inputs.size() != 3) return std::nullopt;
  const Update update = update_of(attrs);
  const DType dtype = inputs[0].dtype;
  if (!update.known || (update.primitive && is_key(dtype))) return std::nullopt;
  const ScatterDimensionNumbers& dims = scatter_dims(attrs);
  Function function;
  Builder b(function);
  Windows plan{inputs[0], inputs[1], inputs[2], inverse_of(dims),
               window_sizes(dims, inputs[0].rank(), inputs[2].shape)};
  plan.plan();
  const int32_t operand = in_place ? -1 : b.parameter(bytes(inputs[0]), false);
  const int32_t indices = b.parameter(bytes(inputs[1]), false), updates = b.parameter(bytes(inputs[2]), false),
                result = b.parameter(bytes(outputs[0]), true);
  if (!in_place) {
    nest(b, std::vector<int64_t>{inputs[0].size()}, true, [&](std::span<const Value> at) {
      store_element(b, dtype, {result, 0, {{at[0], 1}}}, load_element(b, dtype, {operand, 0, {{at[0], 1}}}));
    });
  }
  const bool clamps = mode_of(attrs) == jax::lax::GatherScatterMode::clip;
  nest(b, plan.vectors, false, [&](std::span<const Value> at) {
    std::vector<Term> place;
    Value inside = b.constant_int(Scalar::i1, 1);
    for (std::size_t k = 0; k < plan.dims.start_index_map.size(); ++k) {
      const auto d = static_cast<std::size_t>(plan.dims.start_index_map[k]);
      Value start = plan.start(b, indices, at, k);
      if (clamps) {
        start = clamped(b, start, plan.limit(k));
      } else {  // also rejects negative starts, which are large when unsigned
        inside = b.compute(Op::bit_and, inside, b.compute(Op::le_unsigned, start, b.index(plan.limit(k))));
      }
      place.push_back({start, plan.operand_strides[d]});
    }
    plan.add_batch(at, place);
    auto write = [&] {
      nest(b, plan.window, true, [&](std::span<const Value> inner) {
        const Address target{result, 0, joined(place, Windows::terms(inner, plan.operand_by_window))};
        Element element = load_element(
            b, dtype,
            {updates, 0,
             joined(Windows::terms(at, plan.moved_by_vector), Windows::terms(inner, plan.moved_by_window))});
        if (update.primitive) {
          const Element both[] = {load_element(b, dtype, target), element};
          const DType types[] = {dtype, dtype};
          element = apply_elementwise(b, *update.primitive, {}, types, dtype, both);
        }
        store_element(b, dtype, target, element);
      });
      return std::vector<Value>();
    };
    if (clamps || plan.dims.start_index_map.empty())
      write();
    else
      b.branch(inside, write, [] { return std::vector<Value>(); });
  });
  return function;
}

}  // namespace capibara::cpu::routines
