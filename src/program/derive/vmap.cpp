// Batching: a function applied along an axis of its inputs, each operation batched once.
#include <capibara/config.h>
#include <capibara/lax.h>

#include "program/derive/custom.h"
#include "program/derive/derive.h"
#include "program/derive/spmd.h"
#include "program/derive/tracer_parts.h"
#include "program/derive/values.h"
#include "program/ir/explicit_types.h"
#include "program/ir/handles.h"
#include "program/ir/memo.h"
#include "program/ir/nested.h"
#include "program/ir/source.h"
#include "program/ir/varying.h"

#include <algorithm>

namespace capibara {

namespace {

class BatchTracer final : public Tracer {
 public:
  Array value;
  int64_t dim;
  Source source = current_source();

  BatchTracer(std::shared_ptr<Trace> trace, Array v, int64_t d, const MappedAxis& axis)
      : Tracer(seen_type(v.type(), d, axis), std::move(trace)), value(std::move(v)), dim(d) {}

 private:
  // The function sees one member of the mapped axis: neither its dimension nor the mesh axes that shard it.
  static ArrayType seen_type(const ArrayType& type, int64_t dim, const MappedAxis& axis) {
    ArrayType seen = without_dimension(type, dim);
    if (const AxisList& axes = spmd_axes(axis); !axes.empty()) seen.sharding = without_varying(seen.sharding, axes);
    return seen;
  }
};

// True if an operation works over a named axis: a collective, or a program that contains one.
bool uses_axis(const Attrs& attrs, const std::string& name) {
  if (name.empty()) return false;
  auto is_over_axis = [&](const Program& program) {
    const std::vector<std::string>& axes = program.effects().axes;
    return std::find(axes.begin(), axes.end(), name) != axes.end();
  };
  if (any_program(attrs, is_over_axis)) return true;
  for (const char* key : {"axes", "axis_name"}) {
    const Attr* attr = attrs.find(key);
    if (!attr) continue;
    if (const auto* text = attr->get_if<std::string>()) return *text == name;
    if (const auto* list = attr->get_if<std::shared_ptr<const Attr::List>>()) {
      return std::any_of((*list)->begin(), (*list)->end(), [&](const Attr& entry) {
        const auto* text = entry.get_if<std::string>();
        return text && *text == name;
      });
    }
  }
  return false;
}

class BatchTrace final : public Trace, public detail::CustomCallTrace {
 public:
  // Traces with one tag are parts of one vmap: each recognises the tracers of the others.
  using Tag = std::shared_ptr<const int>;
  BatchTrace(std::shared_ptr<Trace> outer, MappedAxis axis, Tag tag) : axis_(std::move(axis)), tag_(std::move(tag)) {
    parent = std::move(outer);
  }
  const char* kind() const override { return "vmap"; }

  std::optional<int64_t> axis_size(const std::string& name) const override {
    if (!axis_.name.empty() && name == axis_.name) return axis_.size;
    return Trace::axis_size(name);
  }
  std::string bound_axis() const override { return axis_.name; }

  std::pair<Array, int64_t> unpack(const Array& value) const {
    Trace* trace = value.body()->trace();
    if (trace != this) {
      const auto* other = dynamic_cast<const BatchTrace*>(trace);
      if (!other || other->tag_ != tag_) return {value, not_mapped};
    }
    const auto& tracer = static_cast<const BatchTracer&>(*value.body());
    return {tracer.value, tracer.dim};
  }

  std::string line_of(const ArrayBody& tracer) const override {
    Source source = static_cast<const BatchTracer&>(tracer).source;
    return source_info(source).file.empty() ? std::string() : to_string(source);
  }
  std::string origin(const ArrayBody& tracer) override {
    std::string line = line_of(tracer);
    return line.empty() ? line : concat("This BatchTracer was created on line:\n  ", line);
  }

  Array pack(Array value, int64_t dim) {
    if (dim == not_mapped) return value;
    return Array(std::make_shared<const BatchTracer>(shared_from_this(), std::move(value), dim, axis_));
  }

  Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    Arrays values;
    std::vector<int64_t> dims;
    // A ref is mapped from the start: values written to it later may be.
    bool any = uses_axis(attrs, axis_.name) || primitive == prim::new_ref();
    for (const Array& input : inputs) {
      auto [value, dim] = unpack(input);
      any |= dim != not_mapped;
      values.push_back(std::move(value));
      dims.push_back(dim);
    }
    TraceScope scope(parent);
    if (!any) return parent->bind(primitive, values, attrs);
    if (!primitive->batch) {
      throw NotImplementedError(concat("Batching rule for '", primitive.name(), "' not implemented"));
    }
    BatchResult result = primitive->batch({primitive, axis_, values, dims, attrs});
    Arrays outputs;
    for (std::size_t i = 0; i < result.outputs.size(); ++i) {
      outputs.push_back(pack(std::move(result.outputs[i]), result.dims[i]));
    }
    return outputs;
  }

  std::optional<Arrays> call(const detail::CustomCall& call, std::span<const Array> inputs) override;

 private:
  MappedAxis axis_;
  Tag tag_;
};

// Runs a function on mapped inputs; outputs come back wherever their rules left the axis.
BatchResult run_batched(const FlatFunction& function, std::span<const Array> inputs, std::span<const int64_t> in_dims,
                        const MappedAxis& axis, BatchTrace::Tag tag = std::make_shared<const int>()) {
  auto trace = std::make_shared<BatchTrace>(current_trace(), axis, std::move(tag));
  TraceEnd end(trace);
  Arrays packed;
  for (std::size_t i = 0; i < inputs.size(); ++i) packed.push_back(trace->pack(inputs[i], in_dims[i]));
  Arrays outputs;
  {
    TraceScope scope(trace);
    const SpmdScope spmd(spmd_axes(axis));
    outputs = function(packed);
  }
  BatchResult result;
  for (const Array& output : outputs) {
    auto [value, dim] = trace->unpack(output);
    result.outputs.push_back(std::move(value));
    result.dims.push_back(dim);
  }
  return result;
}

std::optional<Arrays> BatchTrace::call(const detail::CustomCall& call, std::span<const Array> inputs) {
  if (detail::is_staged(*this)) return std::nullopt;
  TraceScope scope(parent);
  Arrays values;
  std::vector<bool> mapped;
  for (const Array& input : inputs) {
    auto [value, dim] = unpack(input);
    mapped.push_back(dim != not_mapped);
    values.push_back(mapped.back() ? move_axis(value, dim, 0) : value);
  }
  Mapping mapping{[axis = axis_, tag = tag_](const FlatFunction& function, std::span<const Array> arguments,
                                             std::span<const int64_t> dims) {
                    return run_batched(function, arguments, dims, axis, tag);
                  },
                  axis_.size};
  auto outputs_mapped = std::make_shared<std::vector<bool>>();
  detail::CustomCall batched = call;
  batched.function = [function = call.function, mapping, mapped, outputs_mapped](std::span<const Array> arguments) {
    std::vector<int64_t> dims;
    for (bool is_mapped : mapped) dims.push_back(is_mapped ? 0 : not_mapped);
    BatchResult result = mapping.run(function, arguments, dims);
    outputs_mapped->assign(result.dims.size(), false);
    for (std::size_t i = 0; i < result.dims.size(); ++i) {
      if (result.dims[i] == not_mapped) continue;
      (*outputs_mapped)[i] = true;
      result.outputs[i] = batch_at(result.outputs[i], result.dims[i], mapping.size);
    }
    return result.outputs;
  };
  if (call.jvp) batched.jvp = batched_rule(call.jvp, mapping, mapped, outputs_mapped);
  if (call.vjp) batched.vjp = batched_rule(call.vjp, mapping, mapped, outputs_mapped);
  Arrays outputs = detail::call_custom(batched, values);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = pack(std::move(outputs[i]), (*outputs_mapped)[i] ? 0 : not_mapped);
  }
  return outputs;
}

void check_unmapped(const MappedAxis& axis, std::span<const Array> inputs, std::span<const int64_t> dims) {
  if (!axis.split.is_explicit()) return;
  const AxisList& axes = axis.split.spec().dims[0];
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ArrayType& type = inputs[i].type();
    for (std::size_t d = 0; dims[i] == not_mapped && d < type.shape.size(); ++d) {
      for (const std::string& own : split_axes(type, d)) {
        if (std::find(axes.begin(), axes.end(), own) == axes.end()) continue;
        throw ValueError(
            concat("Unmapped values passed to vmap cannot be sharded along the mesh axis you are vmapping "
                   "over. Got type: ",
                   short_string(type), ", in_axes: None and vmapped mesh axis: ", axis_tuple(axes)));
      }
    }
  }
}

std::string axis_key(const MappedAxis& axis) {
  if (axis.split.is_explicit()) return concat(axis.name, "@", sharding_text(axis.split), context_mesh_key());
  if (axis.split.single_device()) return axis.name;
  return concat(axis.name, "@spmd", partitions_text(axis.split.spec()), abstract_mesh_text(axis.split.mesh()));
}

// The axes that split the mapped dimension of all inputs.
MappedAxis with_split(MappedAxis axis, std::span<const Array> inputs, std::span<const int64_t> dims) {
  if (!explicit_types_exist()) return axis;
  const ArrayType* first = nullptr;
  int64_t first_dim = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (dims[i] == not_mapped) continue;
    const ArrayType& type = inputs[i].type();
    const AxisList& axes = split_axes(type, static_cast<std::size_t>(dims[i]));
    if (!first) {
      first = &type;
      first_dim = dims[i];
    }
    const AxisList& known = split_axes(*first, static_cast<std::size_t>(first_dim));
    if (known != axes) {
      auto text = [](const AxisList& one) {
        const std::string tuple = partitions_text({{one}, {}, {}});
        return one.size() == 1 ? one[0] : tuple.substr(1, tuple.size() - 3);
      };
      throw ValueError(
          concat("Mapped away dimension of inputs passed to vmap should be sharded the same. Got "
                 "inconsistent axis specs: ",
                 text(known), " vs ", text(axes)));
    }
    if (!axes.empty()) {
      if (const AxisList& spmd = spmd_axes(axis); !spmd.empty() && spmd != axes) {
        throw ValueError(
            concat("Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed. "
                   "Got spmd_axis_name=",
                   axis_tuple(spmd), " and arrays sharded on explicit_mesh_axis=", axis_tuple(axes)));
      }
      axis.split = Sharding::explicit_over(type.sharding.mesh(), {{axes}, {}, {}});
    }
  }
  check_unmapped(axis, inputs, dims);
  return axis;
}

Memo<BatchedProgram>& batched_memo() {
  static Memo<BatchedProgram> instance;
  return instance;
}

}  // namespace

std::optional<Array> batch_of(const Array& value) {
  const auto* tracer = dynamic_cast<const BatchTracer*>(value.body().get());
  if (!tracer) return std::nullopt;
  return tracer->value;
}

BatchResult vmap_in_place(const FlatFunction& function, std::span<const Array> inputs, std::span<const int64_t> in_dims,
                          const MappedAxis& axis) {
  return run_batched(function, inputs, in_dims, with_split(axis, inputs, in_dims));
}

BatchedCall batch_call(const Program& program, const MappedAxis& axis, std::span<const int64_t> dims,
                       bool outputs_to_front) {
  static Memo<BatchedCall> calls;
  MemoKey key{program, {outputs_to_front}, {}, axis.size, axis_key(axis), config().key(), {dims.begin(), dims.end()}};
  return calls.get(key, [&] {
    Types types;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      ArrayType type = program.type(program.invars()[i]);
      if (dims[i] != not_mapped) type = batched_type(type, dims[i], axis);
      types.push_back(std::move(type));
    }
    BatchedCall call;
    call.program = stage(
                       [&](std::span<const Array> inputs) {
                         BatchResult result =
                             run_batched([&](std::span<const Array> xs) { return evaluate_program(program, xs); },
                                         inputs, dims, axis);
                         for (std::size_t i = 0; i < result.outputs.size(); ++i) {
                           if (!outputs_to_front || result.dims[i] == not_mapped) continue;
                           result.outputs[i] = batch_at(result.outputs[i], result.dims[i], axis, 0);
                           result.dims[i] = 0;
                         }
                         call.dims = result.dims;
                         return result.outputs;
                       },
                       types, program.name())
                       .program;
    return call;
  });
}

Arrays vmap_flat(const FlatFunction& function, std::span<const Array> inputs, std::span<const int64_t> in_dims,
                 const std::vector<int64_t>& out_dims, const MappedAxis& mapped) {
  const MappedAxis axis = with_split(mapped, inputs, in_dims);
  BatchResult result = run_batched(function, inputs, in_dims, axis);
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    int64_t wanted = out_dims.empty() ? 0 : out_dims[i];
    if (wanted == not_mapped) {
      if (result.dims[i] != not_mapped) {
        throw ValueError(concat("vmap has mapped output",
                                axis.name.empty() ? "" : concat(" (axis_name=", axis.name, ")"),
                                " but out_axes is None: at vmap out_axes, output ", i, " of type ",
                                to_string(result.outputs[i].type()), " is mapped over axis ", result.dims[i]));
      }
      continue;
    }
    result.outputs[i] = batch_at(result.outputs[i], result.dims[i], axis, wanted);
  }
  return result.outputs;
}

BatchedProgram batch_program(const Program& program, const MappedAxis& axis, const std::vector<bool>& mapped,
                             const std::vector<bool>& instantiate_outputs) {
  return batched_memo().get({program, mapped, instantiate_outputs, axis.size, axis_key(axis), config().key()}, [&] {
    Types types;
    std::vector<int64_t> in_dims;
    for (std::size_t i = 0; i < mapped.size(); ++i) {
      ArrayType type = program.type(program.invars()[i]);
      if (mapped[i]) type = batched_type(type, 0, axis);
      types.push_back(std::move(type));
      in_dims.push_back(mapped[i] ? 0 : not_mapped);
    }
    BatchedProgram batched;
    Staged staged = stage(
        [&](std::span<const Array> inputs) {
          BatchResult result = run_batched([&](std::span<const Array> xs) { return evaluate_program(program, xs); },
                                           inputs, in_dims, axis);
          for (std::size_t i = 0; i < result.outputs.size(); ++i) {
            bool wanted = result.dims[i] != not_mapped || (!instantiate_outputs.empty() && instantiate_outputs[i]);
            batched.mapped_outputs.push_back(wanted);
            if (wanted) result.outputs[i] = batch_at(result.outputs[i], result.dims[i], axis, 0);
          }
          return result.outputs;
        },
        types, program.name());
    batched.program = staged.program;
    return batched;
  });
}

}  // namespace capibara
