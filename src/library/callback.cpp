// Host callbacks: the user's functions wrapped as equations.
#include <capibara/callback.h>
#include <capibara/primitive.h>

#include "program/callback.h"

#include <cstdio>

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

// Raises before tracing where the format and the arguments do not fit together.
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
                        {{"callback", wrap("host", std::move(function))},
                         {"result_avals", types_attr(result_types)},
                         {"sharding", Attr()},
                         {"vmap_method", options.vmap_method.empty() ? Attr() : Attr(options.vmap_method)}});
}

std::vector<Array> io_callback(HostFunction function, const std::vector<ArrayType>& result_types,
                               const std::vector<Array>& arguments, const IoCallbackOptions& options) {
  static const Primitive callback = primitive("io_callback");
  return capibara::bind(callback, arguments,
                        {{"callback", wrap("host", std::move(function))},
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
                 {{"callback", wrap("host", host)},
                  {"debug", true},
                  {"ordered", options.ordered},
                  {"result_avals", Attr(Attr::List{})}});
}

void print(const std::string& format, const std::vector<Array>& arguments, const CallbackOptions& options) {
  check_format(format, arguments.size());
  callback([format](const std::vector<Array>& values) {
    std::string line = formatted(format, values) + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  }, arguments, options);
}

}  // namespace debug

void effects_barrier() {}  // every backend here runs callbacks before it returns

}  // namespace capibara::jax
