// Ahead-of-time compilation from Python: topologies, and programs compiled for them.
#include <capibara/jit.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <mutex>

#include "backends/pjrt/backend.h"
#include "backends/pjrt/topology.h"
#include "bindings.h"
#include "jit.h"

namespace capibara::python {

namespace {

// Placements on a topology's devices name it as "topology:" followed by its index here.
std::mutex topologies_mutex;
std::deque<std::shared_ptr<pjrt::Topology>>& topologies() {
  static auto* all = new std::deque<std::shared_ptr<pjrt::Topology>>;  // never freed: programs refer to them by number
  return *all;
}

nb::object add_topology(std::shared_ptr<pjrt::Topology> topology) {
  nb::list rows;
  for (const pjrt::DeviceInfo& info : topology->devices())
    rows.append(nb::make_tuple(info.id, info.kind, info.process));
  const std::string platform = topology->plugin().platform();
  std::lock_guard lock(topologies_mutex);
  topologies().push_back(std::move(topology));
  return nb::make_tuple(concat("topology:", topologies().size() - 1), platform, rows);
}

pjrt::TopologyOptions options_of(nb::dict given) {
  pjrt::TopologyOptions options;
  for (auto [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    if (nb::isinstance<nb::bool_>(value))
      options[name] = nb::cast<bool>(value);
    else if (nb::isinstance<nb::int_>(value))
      options[name] = nb::cast<int64_t>(value);
    else if (nb::isinstance<nb::str>(value))
      options[name] = nb::cast<std::string>(value);
    else
      options[name] = nb::cast<std::vector<int64_t>>(value);
  }
  return options;
}

std::shared_ptr<pjrt::Topology> find_topology(const std::string& platform) {
  std::lock_guard lock(topologies_mutex);
  return topologies().at(static_cast<std::size_t>(std::stoul(platform.substr(platform.find(':') + 1))));
}

}  // namespace

std::string topology_plugin_platform(const std::string& platform) {
  return find_topology(platform)->plugin().platform();
}

struct AheadOfTime {
  std::shared_ptr<const pjrt::Compiled> compiled;
  std::string text;
};

nb::object compile_for_topology(const std::string& platform, const std::vector<int>& devices, const std::string& text,
                                const std::string& what) {
  const std::shared_ptr<pjrt::Topology> topology = find_topology(platform);
  pjrt::CompileOptions options = pjrt::standard_options(topology->plugin().platform());
  options.partitions = static_cast<int64_t>(devices.size());
  options.devices.assign(devices.begin(), devices.end());
  AheadOfTime made;
  made.text = text;
  {
    nb::gil_scoped_release other_threads_run;
    made.compiled = topology->compile(made.text, options, concat("compile of ", what));
  }
  return nb::cast(std::move(made));
}

void bind_topologies(nb::module_& m) {
  m.def(
      "make_topology",
      [](std::optional<std::string> platform, const std::string& name, nb::dict options) {
        const std::string chosen = platform ? *platform : pjrt::topology_platform(name);
        const pjrt::TopologyOptions given = options_of(options);
        std::shared_ptr<pjrt::Topology> made;
        {
          nb::gil_scoped_release other_threads_run;
          made = std::make_shared<pjrt::Topology>(chosen, name, given);
        }
        return add_topology(std::move(made));
      },
      nb::arg("platform").none(), nb::arg("name"), nb::arg("options"));
  m.def("attached_topology", [](const std::string& platform) {
    return add_topology(std::make_shared<pjrt::Topology>(pjrt::client(platform)));
  });
  nb::class_<AheadOfTime>(m, "AheadOfTime")
      .def("as_text", [](const AheadOfTime& self) { return self.text; })
      .def("_optimized_program",
           [](const AheadOfTime& self) {  // (compiled program, format)
             const auto [program, format] = self.compiled->optimized_program();
             return nb::make_tuple(nb::bytes(program.data(), program.size()), format);
           })
      .def("memory_analysis",
           [](const AheadOfTime& self) {
             const MemoryUse use = self.compiled->memory_analysis();
             return nb::module_::import_("capibara._types")
                 .attr("CompiledMemoryStats")(use.generated_code, use.argument, use.output, use.alias, use.temp,
                                              use.host_generated_code, use.host_argument, use.host_output,
                                              use.host_alias, use.host_temp, use.peak);
           })
      .def("cost_analysis",
           [](const AheadOfTime& self) {
             nb::dict all;
             for (const auto& [name, value] : self.compiled->cost_analysis()) all[name.c_str()] = value;
             return all;
           })
      .def("serialize", [](const AheadOfTime& self) {
        const std::optional<std::string> bytes = self.compiled->serialized();
        if (!bytes) throw RuntimeError("serialize: the plugin does not serialize programs");
        return nb::bytes(bytes->data(), bytes->size());
      });
}

}  // namespace capibara::python
