// Prepares a program: rewrites host operations to foreign calls, lowers, and writes StableHLO.
#include "backends/pjrt/prepare.h"

#include <capibara/config.h>
#include <capibara/error.h>

#include <algorithm>

#include "backends/pjrt/calls/cuda_kernels.h"
#include "backends/pjrt/calls/cudnn.h"
#include "backends/pjrt/calls/cusolver.h"
#include "backends/pjrt/calls/order_effects.h"
#include "backends/pjrt/calls/plain_attention.h"
#include "backends/pjrt/mosaic/kernels.h"
#include "backends/pjrt/xla_forms.h"
#include "compiler/optimise/passes.h"
#include "compiler/optimise/rewrite.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/write.h"
#include "lax/linalg/lapack_calls.h"
#include "lax/shard_map/shard_map_devices.h"
#include "program/ir/callback.h"
#include "program/ir/handles.h"
#include "program/ir/wide_types.h"

namespace capibara::pjrt {

namespace {

constexpr std::size_t max_written_constant = 1024;  // bytes

// XLA has no 6-bit floats. Some plugins report an error, others abort the process.
void refuse_types_without_a_name(const Program& program, const std::string& name) {
  auto check = [&](const ArrayType& type) {
    if (type.dtype != DType::float6_e2m3fn && type.dtype != DType::float6_e3m2fn) return;
    throw NotImplementedError(concat("compile of ", name.empty() ? "a program" : name,
                                     ": plugins of XLA have no element type ", dtype_name(type.dtype),
                                     ", got a value of type ", to_string(type),
                                     "\nHint: convert it to float8_e4m3fn or float32, or use the cpu backend"));
  };
  for (const ArrayType& type : program.body().var_types) check(type);
  for (const Equation& equation : program.equations()) {
    for (const Atom input : equation.inputs) check(program.type(input));
    for_each_program(equation.attrs, [&](const Program& nested) { refuse_types_without_a_name(nested, name); });
  }
  for (const Atom output : program.outputs()) check(program.type(output));
}

// Replaces the equations selected by `chosen` with foreign calls of our handler.
class HostCallPass {
 public:
  HostCallPass(HostCalls& calls, bool (*chosen)(const Equation&)) : calls_(calls), chosen_(chosen) {}

  Program operator()(const Program& program) {
    return passes::NestedPass([this](const Program& one, passes::NestedPass& nested) { return rewrite(one, nested); })(
        program);
  }

 private:
  static Atom converted(Copy& copy, Atom value, DType dtype) {
    if (copy.type(value).dtype == dtype) return value;
    return copy.builder().add_equation(primitive("convert_element_type"), {value},
                                       Attrs{{"new_dtype", dtype}, {"weak_type", false}})[0];
  }

  Program rewrite(const Program& program, passes::NestedPass& nested) {
    Copy copy(program);
    bool changed = false;
    for (const Equation& equation : program.equations()) {
      std::vector<Atom> inputs = copy(equation.inputs);
      if (!chosen_(equation)) {
        Attrs attrs = nested(equation.attrs);
        changed |= !same_object(attrs, equation.attrs);
        copy.emit(equation, std::move(inputs), std::move(attrs));
        continue;
      }
      changed = true;
      Equation call = equation;
      call.primitive = primitive("custom_call");
      Types types;
      for (Atom input : equation.inputs) types.push_back(program.type(input));
      const Types outputs = equation.primitive->type(types, equation.attrs).types;
      Attr::List results;
      for (const ArrayType& type : outputs) results.emplace_back(carried_type(type.strong()));
      for (Atom& input : inputs) input = converted(copy, input, carried_type(copy.type(input)).dtype);
      const int64_t number = calls_.add(equation.primitive, equation.attrs, types, outputs);
      const bool effect = !equation.effects.empty();
      // Narrow results are converted from the wider ones that the call returns.
      std::vector<std::pair<std::size_t, Var>> carried;  // by output index
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const ArrayType type = carried_type(outputs[i].strong());
        if (type.dtype == outputs[i].dtype || call.outputs[i].dropped()) continue;
        carried.emplace_back(i, copy.builder().new_var(type));
        call.outputs[i] = Var{};
      }
      copy.emit(call, std::move(inputs),
                Attrs{{"call_target_name", std::string(host_call_target)},
                      {"result_types", std::move(results)},
                      {"has_side_effect", effect},
                      {"api_version", 4},
                      {"mhlo_backend_config", concat("{call = ", number, " : i64}")}});
      for (const auto& [i, wide] : carried) copy.builder().body().equations.back().outputs[i] = wide;
      for (const auto& [i, wide] : carried) copy.bind(equation.outputs[i], converted(copy, wide, outputs[i].dtype));
    }
    return changed ? copy.finish() : program;
  }

  HostCalls& calls_;
  bool (*chosen_)(const Equation&);
};

// Replaces the equations that our CUDA kernels compute with calls of them.
Program call_kernels(const Program& program) {
  return passes::NestedPass([](const Program& one, passes::NestedPass& nested) {
    Copy copy(one);
    bool changed = false;
    for (const Equation& equation : one.equations()) {
      Types types;
      for (Atom input : equation.inputs) types.push_back(one.type(input));
      const std::optional<cuda::KernelCall> kernel = kernel_call(equation.primitive, types, equation.attrs);
      Attrs attrs = kernel ? equation.attrs : nested(equation.attrs);
      changed |= kernel || !same_object(attrs, equation.attrs);
      Equation call = equation;
      if (kernel) {
        Attr::List results;
        for (const ArrayType& type : equation.primitive->type(types, equation.attrs).types) results.emplace_back(type);
        for (const ArrayType& type : kernel->scratch) {
          results.emplace_back(type);
          call.outputs.push_back(Var{});
        }
        call.primitive = primitive("custom_call");
        attrs = Attrs{{"call_target_name", kernel->target},
                      {"result_types", std::move(results)},
                      {"has_side_effect", false},
                      {"api_version", 4},
                      {"mhlo_backend_config", "{" + kernel->settings + "}"}};
      }
      copy.emit(call, copy(equation.inputs), std::move(attrs));
    }
    return changed ? copy.finish() : one;
  })(program);
}

// Contractions without a precision, which a program read from a text may contain, get the configured one.
Program set_precision(const Program& program) {
  const std::string& wanted = config().default_matmul_precision;
  if (wanted != "highest" && wanted != "float32") return program;
  return passes::NestedPass([](const Program& one, passes::NestedPass& nested) {
    Copy copy(one);
    bool changed = false;
    for (const Equation& equation : one.equations()) {
      Attrs attrs = nested(equation.attrs);
      const Attr* precision = attrs.find("precision");
      if (precision && precision->is_none()) attrs = attrs.with("precision", Attr::List{"highest", "highest"});
      changed |= !same_object(attrs, equation.attrs);
      copy.emit(equation, copy(equation.inputs), std::move(attrs));
    }
    return changed ? copy.finish() : one;
  })(program);
}

bool is_callback(const Equation& equation) { return runs_on_host(equation.primitive); }

// True for calls that our own primitives compute; opaque ones go to the plugin's compiler unchanged.
bool is_host_routine(const Equation& equation) {
  return equation.primitive == prim::custom_call() && is_known_call(equation.attrs.text("call_target_name"));
}

// Turns constants of more than a few elements into arguments: the text stays small, and the plugin does not fold them.
Program open_constants(const Program& program, Arrays& opened) {
  Program::Body body = program.body();
  body.constvars.clear();
  body.constants.clear();
  for (std::size_t i = 0; i < program.constants().size(); ++i) {
    const Array& constant = program.constants()[i];
    if (byte_count(constant.type()) > max_written_constant) {
      opened.push_back(constant);
      body.invars.push_back(program.constvars()[i]);
    } else {
      body.constvars.push_back(program.constvars()[i]);
      body.constants.push_back(constant);
    }
  }
  return opened.empty() ? program : Program(std::move(body));
}

// The attribute of a donated argument names the output that reuses its memory.
std::vector<std::string> donation_attributes(const Program& program, const std::vector<bool>& donated,
                                             bool partitioned) {
  std::vector<std::string> attributes(program.invars().size());
  const Types outputs = program.output_types();
  std::vector<bool> taken(outputs.size(), false);
  for (std::size_t i = 0; i < donated.size(); ++i) {
    if (!donated[i]) continue;
    const ArrayType& type = program.type(program.invars()[i]);
    attributes[i] = "jax.buffer_donor = true";
    // Whether shards of an input and an output have the same size is unknown until the program is partitioned.
    for (std::size_t k = 0; k < outputs.size() && !partitioned; ++k) {
      if (taken[k] || outputs[k].shape != type.shape || outputs[k].dtype != type.dtype) continue;
      taken[k] = true;
      attributes[i] = concat("tf.aliasing_output = ", k, " : i32");
      break;
    }
  }
  return attributes;
}

}  // namespace

bool runs_on_host(const Primitive& primitive) {
  return calls_host(primitive) &&
         (primitive->stablehlo.empty() || primitive == stablehlo::expect_primitive() ||
          primitive == stablehlo::probe_primitive() || primitive == stablehlo::expect_probe_primitive());
}

bool can_prepare(const Primitive& primitive) {
  // In a text keys are just their words: wrapping them is a no-op.
  if (primitive == prim::random_wrap() || primitive == prim::random_unwrap()) return true;
  return runs_on_host(primitive) || primitive->lower || !primitive->stablehlo.empty();
}

Prepared prepare(const Program& program, const std::vector<bool>& donated, const Extras& extras,
                 const std::shared_ptr<const NamedSharding>& partitions,
                 const std::vector<std::shared_ptr<const NamedSharding>>& inputs) {
  const ConfigScope scope(config_for(program));  // the program keeps the types it was traced with
  auto calls = std::make_shared<HostCalls>();
  const auto partitioned = [&](const NamedSharding& map) {
    return partitions && map.platform == partitions->platform && map.devices == partitions->devices;
  };
  Program now = HostCallPass(
      *calls, is_callback)(passes::lift_constants(with_device_programs(passes::expanded(program), partitioned)));
  Prepared prepared;
  if (extras.cudnn && !partitions) {  // XLA cannot partition these calls
    const Program before = now;
    now = call_cudnn_for_plain(call_cudnn(now, extras.cudnn), extras.cudnn);
    prepared.cudnn = &before.body() != &now.body();
  }
  if (extras.cuda_kernels) now = call_kernels(now);
  if (extras.tpu_kernels) now = mosaic::call_kernels(now, partitions != nullptr);
  now = in_forms_of_xla(lower(now));
  if (extras.cusolver) now = call_cusolver(now, extras.cusolver);
  now = order_effects(HostCallPass(*calls, is_host_routine)(now));
  refuse_types_without_a_name(now, program.name());
  now = open_constants(set_precision(now), prepared.constants);
  stablehlo::WriteOptions options;
  options.module_name = stablehlo::jit_module_name(program.name().empty() ? "fn" : program.name());
  options.locations = true;
  options.widen_narrow_constants = true;
  options.argument_attributes = donation_attributes(now, donated, partitions != nullptr);
  if (partitions) {
    options.argument_placements.assign(now.invars().size(), partitions);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i]) options.argument_placements[i] = inputs[i];
    }
  }
  prepared.effects = !calls->empty() && program.effects().flags != 0;
  prepared.text = stablehlo::write_module(now, options);
  if (!calls->empty()) prepared.calls = std::move(calls);
  return prepared;
}

}  // namespace capibara::pjrt
