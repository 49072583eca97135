// The profiler from Python: start, stop, spans, and recorded profiles as rows and files.
#include "profiles.h"

#include <capibara/profile_formats.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "core/runtime/background.h"
#include "core/runtime/counters.h"
#include "program/ir/varying.h"

namespace capibara::python {

namespace {

using profile::Profile;
using Arguments = std::vector<std::pair<std::string, std::string>>;

// A span or a step, opened and closed by Python's with statement.
class PythonSpan {
 public:
  PythonSpan(std::string name, Arguments arguments, std::optional<int64_t> step)
      : name_(std::move(name)), arguments_(std::move(arguments)), step_(step) {}
  void enter() {
    if (step_)
      open_ = std::make_unique<profile::Step>(*step_, name_, arguments_);
    else
      open_ = std::make_unique<profile::Span>(name_, arguments_);
  }
  void exit() { open_.reset(); }
  void argument(const std::string& name, const std::string& value) {
    if (open_)
      open_->argument(name, value);
    else
      arguments_.emplace_back(name, value);
  }

 private:
  std::string name_;
  Arguments arguments_;
  std::optional<int64_t> step_;
  std::unique_ptr<profile::Span> open_;
};

nb::bytes python_bytes(const std::string& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

nb::list slot_rows(const Profile& profile) {
  nb::list rows;
  for (const profile::Slot& slot : profile.slots) {
    nb::dict row;
    row["name"] = slot.name;
    row["kind"] = slot.kind;
    row["text"] = slot.text;
    row["program"] = slot.program < 0 ? nb::object(nb::none())
                                      : nb::cast(profile.programs[static_cast<std::size_t>(slot.program)].name);
    row["equations"] = slot.equations;
    row["collective"] = std::any_of(slot.equations.begin(), slot.equations.end(), [](const std::string& name) {
      const std::optional<Primitive> found = find_primitive(name);
      return found && is_collective(*found);
    });
    row["file"] = slot.file;
    row["line"] = slot.line;
    row["scope"] = slot.scope;
    row["flops"] = slot.flops;
    row["bytes_read"] = slot.bytes_read;
    row["bytes_written"] = slot.bytes_written;
    row["calls"] = slot.calls;
    row["nanoseconds"] = slot.nanoseconds;
    rows.append(row);
  }
  return rows;
}

// Rows of all events, except operations unless requested: there may be very many.
nb::list event_rows(const Profile& profile, bool operations) {
  nb::list rows;
  for (const profile::Event& event : profile.events) {
    if (event.kind == profile::EventKind::operation && !operations) continue;
    nb::dict row, arguments;
    for (const auto& [name, value] : event.arguments) arguments[name.c_str()] = value;
    row["kind"] = profile::to_string(event.kind);
    row["name"] = event.name;
    row["thread"] = event.thread;
    row["start"] = event.start;
    row["duration"] = event.duration;
    row["slot"] = event.slot;
    row["step"] = event.step;
    row["occurrences"] = event.occurrences;
    row["arguments"] = arguments;
    rows.append(row);
  }
  return rows;
}

nb::list peak_rows(const Profile& profile) {
  nb::list rows;
  for (const profile::MemoryBlock& block : profile.peak_blocks) rows.append(nb::make_tuple(block.bytes, block.purpose));
  return rows;
}

int64_t peak_memory(const Profile& profile) {
  int64_t peak = 0;
  for (const profile::MemorySample& sample : profile.memory) peak = std::max(peak, sample.peak);
  return peak;
}

// Removes what a profiler was configured not to capture.
void leave_out(Profile& profile, bool memory, bool compute) {
  if (memory) {
    profile.memory.clear();
    profile.peak_blocks.clear();
  }
  if (!compute) return;
  std::erase_if(profile.events,
                [](const profile::Event& event) { return event.kind == profile::EventKind::operation; });
  profile.slots.clear();
}

}  // namespace

void bind_profiles(nb::module_& m) {
  nb::class_<Profile>(m, "Profile")
      .def_ro("host", &Profile::host)
      .def_ro("device", &Profile::device)
      .def_ro("start_wall", &Profile::start_wall)
      .def_ro("duration", &Profile::duration)
      .def_ro("dropped", &Profile::dropped)
      .def_ro("refusals", &Profile::refusals)
      .def_prop_ro(
          "peaks",
          [](const Profile& self) { return nb::make_tuple(self.peaks.flops_per_second, self.peaks.bytes_per_second); })
      .def("slots", &slot_rows)
      .def("events", &event_rows, nb::arg("operations") = false)
      .def("peak_blocks", &peak_rows)
      .def("peak_memory", &peak_memory)
      .def("leave_out", &leave_out)
      .def("summary_text",
           [](const Profile& self, std::size_t rows) { return profile::to_string(profile::summarise(self), rows); })
      .def("summary_json", [](const Profile& self) { return profile::to_json(profile::summarise(self)); })
      .def("save", [](const Profile& self, const std::string& file) { profile::save(self, file); })
      .def(
          "xspace",
          [](const Profile& self, const std::vector<nb::bytes>& spaces, bool host_spans) {
            std::vector<std::string> others;
            for (const nb::bytes& space : spaces) others.emplace_back(space.c_str(), space.size());
            return python_bytes(profile::to_xspace(self, others, host_spans));
          },
          nb::arg("spaces") = nb::list(), nb::arg("host_spans") = true);
  nb::class_<PythonSpan>(m, "ProfileSpan")
      .def(nb::init<std::string, Arguments, std::optional<int64_t>>(), nb::arg("name"), nb::arg("arguments"),
           nb::arg("step").none())
      .def("enter", &PythonSpan::enter)
      .def("exit", &PythonSpan::exit)
      .def("argument", &PythonSpan::argument);
  m.def("profile_active", [] { return profile::active(); });
  m.def("profile_start", [] {
    nb::gil_scoped_release others;
    profile::start();
  });
  m.def(
      "profile_stop",
      [](bool wait) {
        Profile taken = [&] {
          nb::gil_scoped_release others;
          return profile::stop(wait);
        }();
        for (const std::string& refusal :
             taken.refusals) {  // otherwise a profile without its device would look complete
          if (PyErr_WarnEx(PyExc_RuntimeWarning, refusal.c_str(), 1) < 0) throw nb::python_error();
        }
        return taken;
      },
      nb::arg("wait") = false);
  m.def("machine_peaks", [] {
    nb::gil_scoped_release others;
    const profile::Peaks peaks = profile::machine_peaks();
    return std::pair(peaks.flops_per_second, peaks.bytes_per_second);
  });
  m.def("peak_flops", [](const std::string& type) {
    const std::optional<DType> element = dtype_from_name(type);
    if (!element) throw ValueError(concat("peak_flops: there is no element type '", type, "'"));
    nb::gil_scoped_release others;
    return profile::peak_flops(rate_type(*element));
  });
  // {type: operations so far}, for types with any.
  m.def("executed_flops", [] {
    nb::dict counted;
    const FlopsByType flops = counted_flops();
    for (std::size_t type = 0; type < flops.size(); ++type) {
      const std::string_view name = dtype_name(element_type(static_cast<RateType>(type)));
      if (flops[type] > 0) counted[nb::str(name.data(), name.size())] = flops[type];
    }
    return counted;
  });
  m.def("load_profile", [](const std::string& file) { return profile::load(file); });
  m.def("save_tensorboard",
        [](nb::bytes xspace, const std::string& host, const std::string& folder, const std::string& run) {
          const std::string_view view(xspace.c_str(), xspace.size());
          nb::gil_scoped_release others;
          return profile::save_tensorboard(view, host, folder, run);
        });
  m.def("host_planes", [](nb::bytes xspace, const std::string& name) {
    return python_bytes(profile::host_planes({xspace.c_str(), xspace.size()}, name));
  });
  m.def("trace_json", [](nb::bytes xspace) {
    return python_bytes(profile::to_trace_json({xspace.c_str(), xspace.size()}));
  });
  m.def("pprof", [](nb::list rows) {
    std::vector<profile::LiveMemory> blocks;
    for (nb::handle row : rows) {
      blocks.push_back({nb::cast<std::string>(row[0]), nb::cast<std::string>(row[1]), nb::cast<std::string>(row[2]),
                        nb::cast<int64_t>(row[3]), nb::cast<int64_t>(row[4])});
    }
    return python_bytes(profile::to_pprof(blocks));
  });
}

}  // namespace capibara::python
