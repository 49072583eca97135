// Ring attention: each device computes its queries while blocks of keys and values rotate around the mesh axis.
//
// After `step` rotations a device holds the keys and values of the device `step` behind it. The results for each of
// them are combined by the log-sum-exp of their rows; the cotangents of keys and values travel with them, and are back
// home after passing all devices.
#include "kernels/attention/ring.h"

#include <capibara/collective.h>
#include <capibara/custom_derivatives.h>
#include <capibara/device.h>
#include <capibara/lax.h>
#include <capibara/shard_map.h>

#include <algorithm>
#include <limits>

#include "core/sharding/explicit.h"
#include "core/sharding/mesh_attr.h"
#include "core/sharding/placed_memory.h"
#include "lax/collective/collective.h"
#include "lax/rules.h"
#include "program/trace/mesh_trace.h"

namespace capibara::kernels {

namespace lax = jax::lax;

namespace {

constexpr std::size_t sequence = 2;  // of [batch, heads, length, head_dim]

// ---- the split of the sequence ----------------------------------------------------------------------------------

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw ValueError(concat(name, ": sequence_parallel ", what));
}

// The axes of one entry of a spec that actually split.
AxisList splitting(const Mesh& mesh, const PartitionSpec& spec, std::size_t dim) {
  AxisList axes;
  if (dim >= spec.dims.size()) return axes;
  for (const std::string& axis : spec.dims[dim]) {
    if (mesh.axis_size(axis) > 1) axes.push_back(axis);
  }
  return axes;
}

std::optional<NamedSharding> known_placement(const Array& x) {
  if (x.type().sharding.is_explicit() && x.type().sharding.mesh().any_is(AxisType::Explicit)) {
    const std::shared_ptr<const NamedSharding>& around = context_mesh();
    NamedSharding placement = around && around->mesh.axis_names == x.type().sharding.mesh().axis_names
                                  ? *around
                                  : jax::make_sharding(x.type().sharding.mesh(), {});
    placement.spec = x.type().sharding.spec();
    return placement;
  }
  return jax::placement(x);
}

// For arrays with a known placement: values outside of traces, and types with Explicit axes.
std::optional<RingPlace> place_of(const AttentionOperands& operands, const NamedSharding& query,
                                  const std::string& axis) {
  const AxisList axes = splitting(query.mesh, query.spec, sequence);
  if (axes.empty()) {
    if (!axis.empty())
      refuse(operands.name,
             concat("expects the sequence of the query to be split over '", axis, "' (argument 'sequence_axis'), got ",
                    spec_text(query.spec), "; jax.device_put it with P(None, None, '", axis, "')"));
    return std::nullopt;
  }
  if (axes.size() > 1 || (!axis.empty() && axes[0] != axis)) {
    refuse(operands.name,
           concat("expects the sequence of the query to be split over ",
                  axis.empty() ? "one mesh axis" : concat("'", axis, "' alone"), ", got ", spec_text(query.spec)));
  }
  if (!splitting(query.mesh, query.spec, 3).empty()) {
    refuse(operands.name,
           concat("expects the head_dim of the query whole on each device, got ", spec_text(query.spec)));
  }
  const std::pair<const char*, const Array*> others[] = {{"key", &operands.key}, {"value", &operands.value}};
  for (const auto& [argument, array] : others) {
    const std::optional<NamedSharding> own = known_placement(*array);
    if (own && own->devices == query.devices && own->mesh == query.mesh &&
        splitting(own->mesh, own->spec, sequence) == axes && splitting(own->mesh, own->spec, 3).empty())
      continue;
    refuse(operands.name, concat("expects the sequence of the ", argument, " to be split over '", axes[0],
                                 "' of the mesh of the query, got ", own ? to_string(*own) : "an array on no mesh"));
  }
  RingPlace place{axes[0], query, query.spec};
  place.devices->spec = {};
  place.devices->memory_kind.clear();
  place.query.dims.resize(4);
  return place;
}

// Inside a trace that hides placements: the axis is one of the mesh in context.
std::optional<RingPlace> place_in_context(const std::string& name, const std::string& axis) {
  const std::shared_ptr<const NamedSharding>& around = context_mesh();
  if (!around) {
    if (jax::devices().size() < 2 && axis.empty()) return std::nullopt;  // there is nothing to split over
    refuse(name,
           "inside of a traced function needs a mesh in context, since the function does not see how its arguments are "
           "placed, got none; trace it under jax.set_mesh(mesh), or call it on arrays");
  }
  const Mesh& mesh = around->mesh;
  std::string own = axis;
  if (own.empty() && mesh.has("sequence")) own = "sequence";
  if (own.empty() && mesh.axis_names.size() == 1) own = mesh.axis_names[0];
  if (own.empty() || !mesh.has(own)) {
    refuse(name, concat("inside of a traced function needs the mesh axis that splits the sequence, ",
                        own.empty() ? "got none" : concat("got '", own, "'"),
                        " (argument 'sequence_axis'); the mesh in ", "context is ", mesh_text(mesh)));
  }
  if (mesh.axis_size(own) == 1) return std::nullopt;
  RingPlace place{own, *around, PartitionSpec{{{}, {}, {own}, {}}}};
  place.devices->spec = {};
  return place;
}

// The axis of an enclosing shard_map: the named one, or the only one along which the query varies.
std::string bound_axis(const AttentionOperands& operands, const std::string& axis) {
  if (!axis.empty()) return are_mesh_axes({axis}) ? axis : std::string();
  const AxisList& varying = operands.query.type().sharding.varying();
  return varying.size() == 1 && are_mesh_axes(varying) ? varying[0] : std::string();
}

// ---- one device -------------------------------------------------------------------------------------------------

Array scalar(DType dtype, double value) { return scalar_of(dtype, value); }

Array along_rows(const Array& rows, const Array& like) { return lax::broadcast_in_dim(rows, like.shape(), {0, 1, 2}); }

// The computation of one device, on its own part of the operands.
class Ring {
 public:
  Ring(std::string axis, const Attrs& attrs, const Array& query, const Array& key)
      : axis_(std::move(axis)),
        spec_(attrs),
        attrs_(attrs.with("query_offset", int64_t{0})),
        devices_(lax::axis_size(axis_)),
        me_(lax::convert_element_type(lax::axis_index(axis_), DType::int32)),
        queries_(query.shape(2)),
        keys_(key.shape(2)),
        wide_(attention_sum_dtype(query.dtype())) {
    // Blocks of equal size see each other fully or not at all, except a device's own; otherwise positions decide.
    by_position_ = spec_.left >= 0 || spec_.right >= 0 || (spec_.causal && queries_ != keys_);
    attrs_ = attrs_.with("window", Ints{-1, -1}).with("sinks", int64_t{0}).with("mask", spec_.has_mask || by_position_);
  }

  // (output, log-sum-exp) from query, key, value and the other operands of the primitive.
  Arrays forward(const Array& query, Array key, Array value, Arrays extras) const {
    Array output, lse;
    for (int64_t step = 0; step < devices_; ++step) {
      Arrays inputs = {query, key, value};
      for (Array& extra : of_block(extras, step)) inputs.push_back(std::move(extra));
      const Arrays block = capibara::bind(primitive("flash_attention"), inputs, attrs_of(step));
      const Array seen = seen_lse(block[1], step, -std::numeric_limits<double>::infinity());
      if (step == 0) {
        output = block[0].astype(wide_);
        lse = seen;
      } else {
        join(output, lse, block[0].astype(wide_), seen);
      }
      if (step + 1 < devices_) rotate({&key, &value, key_segments(extras)});
    }
    return {output.astype(query.dtype()), lse};
  }

  // Cotangents of query, key and value, and of the bias if there is one.
  Arrays backward(const Array& query, Array key, Array value, Arrays extras, const Array& output, const Array& lse,
                  const Array& cotangent) const {
    const Array delta = lax::reduce_sum(cotangent.astype(wide_) * output.astype(wide_), {.axes = {3}});
    Array dquery, dkey, dvalue, dbias;
    for (int64_t step = 0; step < devices_; ++step) {
      // The probabilities exp(logit - 1e30) of hidden keys are 0.
      Arrays inputs = {cotangent, query, key, value, seen_lse(lse, step, 1e30), delta};
      for (Array& extra : of_block(extras, step)) inputs.push_back(std::move(extra));
      const Arrays block = capibara::bind(primitive("flash_attention_grad"), inputs, attrs_of(step));
      dquery = sum(dquery, block[0]);
      dkey = sum(dkey, block[1]);
      dvalue = sum(dvalue, block[2]);
      if (spec_.has_bias) dbias = with_block_of_bias(dbias, bias(extras), block[3], step);
      if (devices_ > 1) rotate({&dkey, &dvalue});
      if (step + 1 < devices_) rotate({&key, &value, key_segments(extras)});
    }
    const DType narrow = query.dtype();
    Arrays results = {dquery.astype(narrow), dkey.astype(narrow), dvalue.astype(narrow)};
    if (spec_.has_bias) results.push_back(dbias.astype(bias(extras).dtype()));
    return results;
  }

 private:
  const Array& bias(const Arrays& extras) const { return extras[static_cast<std::size_t>(spec_.bias)]; }
  Array* key_segments(Arrays& extras) const {
    return spec_.has_segments ? &extras[static_cast<std::size_t>(spec_.key_segments)] : nullptr;
  }

  Array sum(const Array& before, const Array& block) const {
    const Array wide = block.astype(wide_);
    return before.defined() ? before + wide : wide;
  }

  Attrs attrs_of(int64_t step) const { return attrs_.with("causal", spec_.causal && !by_position_ && step == 0); }

  // The device whose keys this one holds.
  Array owner(int64_t step) const {
    const Array devices = scalar(DType::int32, static_cast<double>(devices_));
    return lax::rem(me_ + scalar(DType::int32, static_cast<double>(devices_ - step)), devices);
  }

  // In causal order the blocks of preceding devices are fully visible, those of following devices hidden: their values
  // are replaced by `hidden`.
  Array seen_lse(const Array& lse, int64_t step, double hidden) const {
    if (!spec_.causal || by_position_ || step == 0) return lse;
    const Array seen = me_ >= scalar(DType::int32, static_cast<double>(step));
    return lax::select(lax::broadcast_in_dim(seen, lse.shape(), {}), lse, lax::full_like(lse, hidden));
  }

  // The operands other than query, key and value, for the keys of a step.
  Arrays of_block(const Arrays& extras, int64_t step) const {
    Arrays own;
    for (std::size_t i = 0; i < extras.size(); ++i) {
      const auto index = static_cast<int>(i);
      own.push_back(index == spec_.mask || index == spec_.bias ? block_of(extras[i], step) : extras[i]);
    }
    if (!by_position_) return own;
    const Array seen = position_mask(step);
    if (spec_.has_mask) {
      Array& mask = own[static_cast<std::size_t>(spec_.mask)];
      mask = mask & seen;
    } else {
      own.insert(own.begin(), seen);
    }
    return own;
  }

  Array block_of(const Array& x, int64_t step) const {
    if (x.shape(3) == 1) return x;
    return lax::dynamic_slice_in_dim(x, first_key(step), keys_, 3, false);
  }

  Array first_key(int64_t step) const { return owner(step) * scalar(DType::int32, static_cast<double>(keys_)); }

  Array with_block_of_bias(const Array& before, const Array& bias, const Array& block, int64_t step) const {
    if (bias.shape(3) == 1) return sum(before, block);
    const Array start = first_key(step), wide = block.astype(wide_);
    const Array all = before.defined() ? before : lax::zeros_like(bias).astype(wide_);
    return lax::dynamic_update_slice_in_dim(all, wide, start, 3, false);  // each block is visited once
  }

  // The keys of a step that positions leave visible, [1, 1, queries, keys].
  Array position_mask(int64_t step) const {
    const Shape shape{1, 1, queries_, keys_};
    auto number = [](int64_t value) { return scalar(DType::int32, static_cast<double>(value)); };
    const Array query = lax::broadcasted_iota(DType::int32, shape, 2) + me_ * number(queries_);
    const Array key = lax::broadcasted_iota(DType::int32, shape, 3) + first_key(step);
    Array seen;
    auto and_also = [&](const Array& more) { seen = seen.defined() ? seen & more : more; };
    if (spec_.left >= 0) {
      seen = key >= query - number(spec_.left);
      if (spec_.sinks > 0) seen = seen | (key < number(spec_.sinks));
    }
    if (spec_.right >= 0) and_also(key <= query + number(spec_.right));
    if (spec_.causal) and_also(key <= query);
    return seen;
  }

  void rotate(const std::vector<Array*>& arrays) const {
    std::vector<std::pair<int64_t, int64_t>> to_next;
    for (int64_t i = 0; i < devices_; ++i) to_next.emplace_back(i, (i + 1) % devices_);
    for (Array* array : arrays) {
      if (array) *array = lax::ppermute(*array, axis_, to_next);
    }
  }

  // Combines the rows for two sets of keys into those for both.
  void join(Array& output, Array& lse, const Array& more, const Array& more_lse) const {
    const Array zero = lax::zeros_like(lse), one = lax::full_like(lse, 1.0);
    const Array nothing = lax::full_like(lse, -std::numeric_limits<double>::infinity());
    const Array largest = lax::max(lse, more_lse);
    const Array base = lax::select(lax::eq(largest, nothing), zero, largest);
    const Array before = lax::exp(lse - base), own = lax::exp(more_lse - base), total = before + own;
    const Array empty = lax::eq(total, zero), divisor = lax::select(empty, one, total);
    const Array kept = output * along_rows(before / divisor, output), added = more * along_rows(own / divisor, more);
    output = kept + added;
    lse = lax::select(empty, nothing, base + lax::log(divisor));
  }

  std::string axis_;
  AttentionSpec spec_;
  Attrs attrs_;
  int64_t devices_;
  Array me_;
  int64_t queries_, keys_;
  DType wide_;
  bool by_position_ = false;
};

// The computation of one device, with its reverse derivative. `inputs` are those of the primitive.
Array on_device(const std::string& axis, const Attrs& attrs, const Arrays& inputs) {
  const AttentionSpec spec(attrs);
  Arrays own;
  for (const Array& input : inputs) own.push_back(lax::varied_over(input, {axis}));
  // Floats are separated from other types, which have no cotangents.
  auto extras_of = [spec](const Arrays& bias, const Arrays& others) {
    Arrays extras = others;
    if (spec.has_bias) extras.insert(extras.begin() + spec.bias, bias[0]);
    return extras;
  };
  auto forward = [axis, attrs, extras_of](const Array& query, const Array& key, const Array& value, const Arrays& bias,
                                          const Arrays& others) {
    return Ring(axis, attrs, query, key).forward(query, key, value, extras_of(bias, others));
  };
  auto attend = jax::custom_vjp([forward](const Array& query, const Array& key, const Array& value, const Arrays& bias,
                                          const Arrays& others) { return forward(query, key, value, bias, others)[0]; },
                                "ring_attention");
  using Kept = std::tuple<Array, Array, Array, Arrays, Arrays, Arrays>;
  attend.defvjp(
      [forward](const Array& query, const Array& key, const Array& value, const Arrays& bias, const Arrays& others) {
        const Arrays results = forward(query, key, value, bias, others);
        return std::pair(results[0], Kept(query, key, value, bias, others, results));
      },
      [axis, attrs, extras_of, has_bias = spec.has_bias](const Kept& kept, const Array& cotangent) {
        const auto& [query, key, value, bias, others, results] = kept;
        const Arrays gradients =
            Ring(axis, attrs, query, key)
                .backward(query, key, value, extras_of(bias, others), results[0], results[1], cotangent);
        Arrays dbias;
        if (has_bias) dbias.push_back(gradients[3]);
        return std::tuple(gradients[0], gradients[1], gradients[2], dbias, std::nullopt);
      });
  Arrays bias, others;
  for (std::size_t i = forward_operands; i < own.size(); ++i) {
    const bool is_bias = static_cast<int>(i - forward_operands) == spec.bias;
    (is_bias ? bias : others).push_back(own[i]);
  }
  return attend(own[0], own[1], own[2], bias, others);
}

void check_operands(const RingPlace& place, const AttentionOperands& operands, const Attrs& attrs) {
  const double rate = attrs.real("dropout_rate");
  const int64_t offset = attrs.integer("query_offset");
  if (rate > 0) {
    refuse(operands.name, concat("over a split sequence expects no dropout, got dropout_rate=", rate,
                                 "; drop elements of the result, or leave sequence_parallel out"));
  }
  if (offset != 0) {
    refuse(operands.name, concat("over a split sequence expects query_offset=0, got ", offset));
  }
  if (!place.devices) return;
  auto parts_of = [&](std::size_t dim) {
    int64_t parts = 1;
    for (const std::string& axis : place.query.dims[dim]) parts *= place.devices->mesh.axis_size(axis);
    return parts;
  };
  struct Entry {
    const char* argument;
    const Array& array;
  };
  const Entry entries[] = {{"query", operands.query}, {"key", operands.key}, {"value", operands.value}};
  for (const Entry& entry : entries) {
    for (std::size_t dim = 0; dim < 3; ++dim) {
      const int64_t parts = parts_of(dim), size = entry.array.shape(static_cast<int64_t>(dim));
      if (size % parts == 0) continue;
      const char* names[] = {"batch", "heads", "length"};
      refuse(operands.name, concat("expects a ", names[dim], " that ", parts, " devices divide (argument '",
                                   entry.argument, "'), got ", to_string(entry.array.type())));
    }
  }
}

// The entries of the query's spec for the dimensions of another operand that are not broadcast.
PartitionSpec spec_like(const RingPlace& place, const Shape& shape, const std::vector<int>& dims) {
  PartitionSpec spec;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool split = dims[i] >= 0 && shape[i] > 1;
    spec.dims.push_back(split ? place.query.dims[static_cast<std::size_t>(dims[i])] : AxisList{});
  }
  return spec;
}

}  // namespace

std::optional<RingPlace> ring_place(const AttentionOperands& operands, const std::string& axis) {
  if (operands.query.ndim() != 4) return std::nullopt;  // the primitive rejects it
  if (const std::string bound = bound_axis(operands, axis); !bound.empty()) return RingPlace{bound, std::nullopt, {}};
  if (const std::optional<NamedSharding> query = known_placement(operands.query); query) {
    return place_of(operands, *query, axis);
  }
  if (operands.query.is_tracer()) return place_in_context(operands.name, axis);
  if (!axis.empty()) {
    refuse(operands.name, concat("expects the sequence of the query to be split over '", axis,
                                 "' (argument 'sequence_axis'), got an array on no mesh"));
  }
  return std::nullopt;
}

Array ring_attention(const RingPlace& place, const AttentionOperands& operands, const Attrs& attrs) {
  check_operands(place, operands, attrs);
  Attrs own = attrs;
  const Arrays inputs = attention_inputs(operands, own);
  if (!place.devices) return on_device(place.axis, own, inputs);
  const AttentionSpec spec(own);
  std::vector<PartitionSpec> specs(forward_operands, place.query);
  for (std::size_t i = forward_operands; i < inputs.size(); ++i) {
    const bool segments = inputs[i].ndim() == 2;
    specs.push_back(segments ? spec_like(place, inputs[i].shape(), {0, 2})
                             : spec_like(place, inputs[i].shape(), {0, 1, 2, -1}));
  }
  AxisList manual;
  for (const AxisList& entry : place.query.dims) manual.insert(manual.end(), entry.begin(), entry.end());
  auto mapped =
      jax::shard_map([&](const Arrays& parts) { return Arrays{on_device(place.axis, own, parts)}; },
                     {.mesh = *place.devices, .in_specs = specs, .out_specs = {place.query}, .axis_names = manual});
  return mapped(inputs)[0];
}

}  // namespace capibara::kernels
