// Several processes from Python: initialization, exchanged values, and the position of this process.
#include <capibara/distributed.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "core/processes/job.h"
#include "core/processes/key_value_store.h"
#include "core/processes/mpi_module.h"
#include "core/processes/multihost.h"

namespace capibara::python {

namespace {

struct Timeouts {
  int initialization, heartbeat, shutdown;
  double collective;
};

void initialize(const std::optional<std::string>& address, std::optional<int> count, std::optional<int> id,
                const std::string& bind_address, const Timeouts& timeouts) {
  nb::gil_scoped_release other_threads_run;
  jax::distributed::initialize({address, count, id, bind_address, timeouts.initialization, timeouts.heartbeat,
                                timeouts.shutdown, timeouts.collective});
}

processes::Reduction reduction_named(const std::string& name) {
  if (name == "sum") return processes::Reduction::sum;
  if (name == "min") return processes::Reduction::min;
  if (name == "max") return processes::Reduction::max;
  throw ValueError(concat("reduce: 'sum', 'min' or 'max' is expected, got '", name, "'"));
}

// Runs a call without the GIL, since it waits for other processes.
template <class Body>
nb::object unlocked(const Body& body) {
  Array result;
  {
    nb::gil_scoped_release other_threads_run;
    result = body();
  }
  return wrap(std::move(result));
}

}  // namespace

void bind_processes(nb::module_& m) {
  m.def(
      "initialize_processes",
      [](const std::optional<std::string>& address, std::optional<int> count, std::optional<int> id,
         const std::string& bind_address, int initialization, int heartbeat, int shutdown, double collective) {
        initialize(address, count, id, bind_address, {initialization, heartbeat, shutdown, collective});
      },
      nb::arg("address").none(), nb::arg("count").none(), nb::arg("id").none(), nb::arg("bind_address"),
      nb::arg("initialization"), nb::arg("heartbeat"), nb::arg("shutdown"), nb::arg("collective"));
  m.def("shut_down_processes", [] {
    nb::gil_scoped_release other_threads_run;
    jax::distributed::shutdown();
  });
  m.def("process_group", [] {
    const ProcessGroup group = distributed::group();
    return nb::make_tuple(group.process_id, group.process_count, group.store != nullptr);
  });
  m.def("describe_mpi", &processes::describe_mpi);
  m.def("set_process_where", &processes::set_where);
  m.def("set_process_ending", &processes::set_ending);
  m.def("process_all_gather", [](nb::handle x, bool tiled, const std::string& line) {
    const Array array = to_array(x, "process_allgather");
    return unlocked([&] { return processes::all_gather(array, tiled, line); });
  });
  m.def(
      "process_broadcast",
      [](nb::handle x, std::optional<bool> is_source, const std::string& line) {
        const Array array = to_array(x, "broadcast_one_to_all");
        return unlocked([&] { return processes::broadcast(array, is_source, line); });
      },
      nb::arg("x"), nb::arg("is_source").none(), nb::arg("line"));
  m.def("process_reduce", [](nb::handle x, const std::string& kind, const std::string& line) {
    const Array array = to_array(x, "reduce");
    return unlocked([&] { return processes::reduce(array, reduction_named(kind), line); });
  });
  m.def("process_barrier", [](const std::string& name, const std::string& line) {
    nb::gil_scoped_release other_threads_run;
    processes::exchange().barrier({name, line}).wait();
  });
}

}  // namespace capibara::python
