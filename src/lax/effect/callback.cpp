// Callbacks to the host: their records, and the user's functions wrapped as equations.
#include <capibara/callback.h>

#include <cstdio>

#include "lax/control/control.h"
#include "lax/effect/host_calls.h"
#include "lax/sharding/factors.h"
#include "program/ir/callback.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

Types result_types(const Attrs& attrs) {
  Types types;
  for (const Attr& attr : attrs.list("result_avals")) types.push_back(*attr.get_if<ArrayType>());
  return types;
}

Arrays call_host(std::span<const Array> inputs, const Attrs& attrs) {
  Arrays results;
  try {
    results = attrs.opaque<Callback>("callback")->function(inputs);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw RuntimeError(concat("callback '", attrs.opaque<Callback>("callback")->name, "' failed: ", error.what()));
  }
  Types expected = result_types(attrs);
  if (results.size() != expected.size()) {
    throw RuntimeError(concat("callback '", attrs.opaque<Callback>("callback")->name, "' must return ", expected.size(),
                              " arrays, got ", results.size()));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ArrayType& got = results[i].type();
    if (got.shape != expected[i].shape || got.dtype != expected[i].dtype) {
      throw RuntimeError(concat("callback '", attrs.opaque<Callback>("callback")->name, "': result ", i, " must be ",
                                to_string(expected[i]), ", got ", to_string(got)));
    }
  }
  return results;
}

// One call per lane, in a loop.
BatchResult batch_sequential(const BatchArgs& args) {
  Types slices;
  Arrays operands, consts;
  std::vector<bool> mapped = mapped_mask(args);
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    if (!mapped[i]) consts.push_back(args.inputs[i]);
  }
  std::vector<std::size_t> place;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    if (!mapped[i]) slices.push_back(args.inputs[i].type());
  }
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    if (!mapped[i]) continue;
    Array x = batch_at(args.inputs[i], args.dims[i], args.axis);
    operands.push_back(x);
    ArrayType type = x.type();
    type.shape.erase(type.shape.begin());
    slices.push_back(type);
  }
  Staged body = stage(
      [&](std::span<const Array> in) {
        Arrays arguments;
        std::size_t next_const = 0, next_slice = consts.size();
        for (bool is_mapped : mapped) arguments.push_back(in[is_mapped ? next_slice++ : next_const++]);
        return capibara::bind(args.primitive, arguments, args.attrs);
      },
      slices, "callback");
  Arrays outputs = bind_scan({body.program, consts}, 0, args.axis.size, operands);
  return {outputs, std::vector<int64_t>(outputs.size(), 0)};
}

BatchResult batch_pure(const BatchArgs& args) {
  return batch_by_method(args, "pure_callback", [&](const std::vector<bool>&) {
    return args.attrs.with("result_avals", with_leading(result_types(args.attrs), args.axis.size));
  });
}

PrimitiveRecord callback_record(std::string name, std::string doc) {
  PrimitiveRecord record;
  record.name = std::move(name);
  record.factors = whole_factors;
  record.doc = std::move(doc);
  record.type = [](std::span<const ArrayType>, const Attrs& attrs) {
    Effects effects;
    if (const Attr* ordered = attrs.find("ordered")) {
      bool in_order = *ordered->get_if<bool>(), debug = attrs.has("debug");
      effects.flags =
          debug ? (in_order ? Effects::ordered_debug : Effects::debug) : (in_order ? Effects::ordered_io : Effects::io);
    }
    return TypeResult(result_types(attrs), effects);
  };
  record.traits.multiple_results = true;
  record.evaluate = call_host;
  return record;
}

}  // namespace

Attr with_leading(const Types& types, int64_t size) {
  Attr::List longer;
  for (ArrayType type : types) {
    type.shape.insert(type.shape.begin(), size);
    longer.emplace_back(type);
  }
  return Attr(std::move(longer));
}

BatchResult batch_by_method(const BatchArgs& args, const char* called,
                            const std::function<Attrs(const std::vector<bool>& longer)>& widened) {
  const std::string* name = args.attrs["vmap_method"].get_if<std::string>();
  if (!name) {
    throw NotImplementedError(concat("vmap is only supported for ", called,
                                     " with a non-empty vmap_method ('sequential', 'expand_dims' or 'broadcast_all')"));
  }
  if (*name == "sequential" || *name == "sequential_unrolled") return batch_sequential(args);
  Arrays operands;
  std::vector<bool> longer;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    longer.push_back(args.mapped(i) || *name != "legacy_vectorized");
    if (args.mapped(i) || *name == "broadcast_all")
      operands.push_back(batch_at(args.inputs[i], args.dims[i], args.axis));
    else
      operands.push_back(longer.back() ? lax::expand_dims(args.inputs[i], {0}) : args.inputs[i]);
  }
  Arrays outputs = capibara::bind(args.primitive, operands, widened(longer));
  return {outputs, std::vector<int64_t>(outputs.size(), 0)};
}

Family callback_records() {
  PrimitiveRecord pure = callback_record("pure_callback", "Calls a host function without side effects.");
  pure.jvp = [](const JvpArgs&) -> JvpResult {
    throw ValueError(
        "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking gradients.");
  };
  pure.transpose = [](const TransposeArgs&) -> Arrays {
    throw ValueError(
        "Pure callbacks do not support transpose. Please use `jax.custom_vjp` to use callbacks while taking "
        "gradients.");
  };
  pure.traits.repeatable = false;
  pure.batch = batch_pure;

  PrimitiveRecord io = callback_record("io_callback", "Calls a host function with side effects.");
  io.jvp = [](const JvpArgs&) -> JvpResult {
    throw ValueError(
        "IO callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking gradients.");
  };
  io.transpose = [](const TransposeArgs&) -> Arrays {
    throw ValueError(
        "IO callbacks do not support transpose. Please use `jax.custom_vjp` to use callbacks while taking gradients.");
  };
  io.batch = [](const BatchArgs& args) {
    if (args.attrs.boolean("ordered") && !args.attrs.has("per_device"))
      throw ValueError("Cannot `vmap` ordered IO callback.");
    return batch_sequential(args);
  };

  PrimitiveRecord debug = callback_record("debug_callback", "Shows values to a host function while a program runs.");
  debug.jvp = [](const JvpArgs& args) {
    return JvpResult{capibara::bind(args.primitive, args.primals, args.attrs), {}};
  };
  debug.transpose = [](const TransposeArgs& args) { return Arrays(args.inputs.size()); };
  debug.batch = batch_sequential;
  return {pure, io, debug};
}

}  // namespace capibara

namespace capibara::jax {

namespace {

Attr types_attr(const std::vector<ArrayType>& types) { return Attr(Attr::List(types.begin(), types.end())); }

std::shared_ptr<const Opaque> wrap(std::string name, HostFunction function) {
  return std::make_shared<const Callback>(std::move(name), [f = std::move(function)](std::span<const Array> inputs) {
    return f(std::vector<Array>(inputs.begin(), inputs.end()));
  });
}

std::string formatted(const std::string& format, const std::vector<Array>& arguments) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < format.size(); ++i) {
    bool twice = i + 1 < format.size() && format[i + 1] == format[i];
    if ((format[i] == '{' || format[i] == '}') && twice) {
      out += format[i++];
    } else if (format[i] == '{') {
      i = format.find('}', i);
      out += arguments[next++].to_string();
    } else {
      out += format[i];
    }
  }
  return out;
}

// Raises before tracing if the format and the arguments do not match.
void check_format(const std::string& format, std::size_t arguments) {
  std::size_t holes = 0;
  for (std::size_t i = 0; i < format.size(); ++i) {
    bool twice = i + 1 < format.size() && format[i + 1] == format[i];
    if ((format[i] == '{' || format[i] == '}') && twice) {
      ++i;
    } else if (format[i] == '{') {
      i = format.find('}', i);
      if (i == std::string::npos) throw ValueError(concat("debug.print: unclosed { in format '", format, "'"));
      ++holes;
    }
  }
  if (holes != arguments) {
    throw ValueError(concat("debug.print: format '", format, "' has ", holes, " places for ", arguments, " arguments"));
  }
}

}  // namespace

std::vector<Array> pure_callback(HostFunction function, const std::vector<ArrayType>& result_types,
                                 const std::vector<Array>& arguments, const PureCallbackOptions& options) {
  static const Primitive callback = primitive("pure_callback");
  return capibara::bind(callback, arguments,
                        {{"callback", wrap(options.name, std::move(function))},
                         {"result_avals", types_attr(result_types)},
                         {"sharding", Attr()},
                         {"vmap_method", options.vmap_method.empty() ? Attr() : Attr(options.vmap_method)}});
}

std::vector<Array> io_callback(HostFunction function, const std::vector<ArrayType>& result_types,
                               const std::vector<Array>& arguments, const IoCallbackOptions& options) {
  static const Primitive callback = primitive("io_callback");
  return capibara::bind(callback, arguments,
                        {{"callback", wrap(options.name, std::move(function))},
                         {"ordered", options.ordered},
                         {"result_avals", types_attr(result_types)},
                         {"sharding", Attr()}});
}

namespace debug {

void callback(std::function<void(const std::vector<Array>&)> function, const std::vector<Array>& arguments,
              const CallbackOptions& options) {
  static const Primitive primitive = capibara::primitive("debug_callback");
  auto host = [f = std::move(function)](const std::vector<Array>& values) {
    f(values);
    return std::vector<Array>{};
  };
  capibara::bind(primitive, arguments,
                 {{"callback", wrap(options.name, host)},
                  {"debug", true},
                  {"ordered", options.ordered},
                  {"result_avals", Attr(Attr::List{})}});
}

void print(const std::string& format, const std::vector<Array>& arguments, const CallbackOptions& options) {
  check_format(format, arguments.size());
  CallbackOptions named = options;
  named.name = "print";
  callback(
      [format](const std::vector<Array>& values) {
        std::string line = formatted(format, values) + "\n";
        std::fwrite(line.data(), 1, line.size(), stdout);
        std::fflush(stdout);
      },
      arguments, named);
}

}  // namespace debug

void effects_barrier() {}  // every backend here runs callbacks before it returns

}  // namespace capibara::jax
