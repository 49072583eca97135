// capibara._core: the C++ library as Python sees it.
#include <capibara/version.h>

#include <nanobind/stl/string.h>

#include "bindings.h"
#include "models.h"
#include "profiles.h"
#include "tpu.h"
#include "training_monitor.h"
#include "tree_checkpoints.h"

NB_MODULE(_core, m) {
  using namespace capibara::python;
  m.doc() = "The C++ core of capibara.";
  nb::set_leak_warnings(false);  // caches of the core keep Python objects until the process ends
  bind_errors(m);
  bind_dtypes(m);
  bind_programs(m);
  bind_arrays(m);
  bind_array_class(m);
  bind_functions(m);
  bind_trees(m);
  bind_config(m);
  bind_devices(m);
  bind_processes(m);
  bind_placements(m);
  bind_topologies(m);
  bind_transforms(m);
  bind_jit(m);
  bind_custom(m);
  bind_control(m);
  bind_callbacks(m);
  bind_primitives(m);
  bind_traces(m);
  bind_refs(m);
  bind_kde(m);
  bind_exported(m);
  bind_foreign(m);
  bind_stablehlo(m);
  bind_sources(m);
  bind_tree_checkpoints(m);
  bind_optimizers(m);
  bind_training(m);
  bind_training_monitor(m);
  bind_profiles(m);
  bind_profile_data(m);
  bind_event_listener(m);
  bind_tpu(m);
  bind_models(m);
  m.def(
      "version", [] { return std::string(capibara::version()); }, "The version of the library.");
}
