// Configuration from Python: process-wide defaults and thread-local scopes.
#include <capibara/config.h>
#include <capibara/jit.h>

#include <nanobind/stl/string.h>

#include "bindings.h"
#include "config_values.h"
#include "core/runtime/trace_context.h"

namespace capibara::python {

namespace {

// Sets the core setting with this Python name.
bool set_field(Config& config, const std::string& name, nb::handle value) {
  auto flag = [&](bool& field) { field = nb::cast<bool>(nb::bool_(value)); };
  auto text = [&](std::string& field) {
    field = value.is_none() ? std::string() : nb::cast<std::string>(nb::str(value));
  };
  if (name == "enable_x64")
    flag(config.enable_x64);
  else if (name == "numpy_dtype_promotion")
    text(config.numpy_dtype_promotion);
  else if (name == "numpy_rank_promotion")
    text(config.numpy_rank_promotion);
  else if (name == "default_matmul_precision")
    text(config.default_matmul_precision);
  else if (name == "threefry_partitionable")
    flag(config.threefry_partitionable);
  else if (name == "default_prng_impl")
    text(config.default_prng_impl);
  else if (name == "disable_jit")
    flag(config.disable_jit);
  else if (name == "debug_nans")
    flag(config.debug_nans);
  else if (name == "debug_infs")
    flag(config.debug_infs);
  else if (name == "log_compiles")
    flag(config.log_compiles);
  else if (name == "check_tracer_leaks")
    flag(config.check_tracer_leaks);
  else if (name == "no_tracing")
    flag(config.no_tracing);
  else if (name == "enable_checks")
    flag(config.enable_checks);
  else if (name == "softmax_custom_jvp")
    flag(config.softmax_custom_jvp);
  else if (name == "enable_custom_prng")
    flag(config.enable_custom_prng);
  else if (name == "legacy_prng_key")
    text(config.legacy_prng_key);
  else if (name == "num_cpu_devices")
    config.num_cpu_devices = nb::cast<int>(value);
  else
    return false;
  return true;
}

}  // namespace

nb::dict config_dict(const Config& now) {
  nb::dict all;
  auto optional_text = [](const std::string& text) {
    return text.empty() ? nb::none() : nb::object(nb::str(text.c_str()));
  };
  all["enable_x64"] = now.enable_x64;
  all["numpy_dtype_promotion"] = now.numpy_dtype_promotion;
  all["numpy_rank_promotion"] = now.numpy_rank_promotion;
  all["default_matmul_precision"] = optional_text(now.default_matmul_precision);
  all["threefry_partitionable"] = now.threefry_partitionable;
  all["default_prng_impl"] = now.default_prng_impl;
  all["disable_jit"] = now.disable_jit;
  all["debug_nans"] = now.debug_nans;
  all["debug_infs"] = now.debug_infs;
  all["log_compiles"] = now.log_compiles;
  all["check_tracer_leaks"] = now.check_tracer_leaks;
  all["no_tracing"] = now.no_tracing;
  all["enable_checks"] = now.enable_checks;
  all["softmax_custom_jvp"] = now.softmax_custom_jvp;
  all["enable_custom_prng"] = now.enable_custom_prng;
  all["legacy_prng_key"] = now.legacy_prng_key;
  all["num_cpu_devices"] = now.num_cpu_devices;
  return all;
}

namespace {

// A thread-local scope, opened and closed by Python's with statement.
struct PythonScope {
  nb::dict changes;
  std::unique_ptr<ConfigScope> open;
};

// A hash of Python, which may be negative.
std::size_t number_of(const nb::int_& hash) { return static_cast<std::size_t>(PyLong_AsSsize_t(hash.ptr())); }

struct TraceStateScope {
  std::string name;  // empty: compile-time evaluation
  std::unique_ptr<jax::Scope> open;
};

}  // namespace

void bind_config(nb::module_& m) {
  m.def("config_values", [] { return config_dict(config()); });
  m.def(
      "config_update",
      [](const std::string& name, nb::handle value) {
        Config next = config();
        if (!set_field(next, name, value)) throw NameError(concat("no setting of the core is called '", name, "'"));
        update_config(next);
      },
      nb::arg(), nb::arg().none());
  m.def("set_trace_context", [](nb::int_ key) { set_trace_context(number_of(key)); });
  m.def("set_default_trace_context", [](nb::int_ key) { set_default_trace_context(number_of(key)); });
  nb::class_<PythonScope>(m, "ConfigScope")
      .def("__init__",
           [](PythonScope* self, nb::dict changes) {
             new (self) PythonScope{changes, nullptr};
           })
      .def("__enter__",
           [](PythonScope& self) {
             Config next = config();
             for (auto [name, value] : self.changes) {
               if (!set_field(next, nb::cast<std::string>(name), value)) throw NameError("unknown setting");
             }
             self.open = std::make_unique<ConfigScope>(next);
           })
      .def("__exit__", [](PythonScope& self, nb::args) { self.open.reset(); });
  nb::class_<TraceStateScope>(m, "NamedScope")
      .def("__init__",
           [](TraceStateScope* self, const std::string& name) {
             new (self) TraceStateScope{name, nullptr};
           })
      .def("__enter__",
           [](TraceStateScope& self) {
             self.open.reset(self.name.empty() ? new jax::Scope(jax::ensure_compile_time_eval())
                                               : new jax::Scope(jax::named_scope(self.name)));
           })
      .def("__exit__", [](TraceStateScope& self, nb::args) { self.open.reset(); });
}

}  // namespace capibara::python
