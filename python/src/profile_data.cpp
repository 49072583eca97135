// jax.profiler.ProfileData: the planes, lines, events and values of an .xplane.pb file.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <functional>
#include <memory>

#include "operate/reports/xspace.h"
#include "profiles.h"

namespace capibara::python {

namespace {

using profile::XEvent;
using profile::XLine;
using profile::XPlane;
using profile::XSpace;
using profile::XStat;

// Parts of a space, each of which keeps the space alive.
struct DataPlane {
  std::shared_ptr<const XSpace> space;
  const XPlane* plane;
};
struct DataLine {
  std::shared_ptr<const XSpace> space;
  const XPlane* plane;
  const XLine* line;
};
struct DataEvent {
  std::shared_ptr<const XSpace> space;
  const XPlane* plane;
  const XLine* line;
  const XEvent* event;
};
struct DataSpace {
  std::shared_ptr<const XSpace> space;
};

// Iterates over `size` parts.
struct PartIterator {
  std::size_t size, next = 0;
  std::function<nb::object(std::size_t)> part;
};

PartIterator iterate(std::size_t size, std::function<nb::object(std::size_t)> part) {
  return {size, 0, std::move(part)};
}

nb::object text_or_bytes(const std::string& bytes) {
  PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), nullptr);
  if (text) return nb::steal(text);
  PyErr_Clear();
  return nb::bytes(bytes.data(), bytes.size());
}

// (name, value); (None, None) if the plane has no such name or there is no value.
nb::object stat_pair(const XPlane& plane, const XStat& stat) {
  const std::string* name = plane.stat_name(stat);
  nb::object value = nb::none();
  if (const auto* real = std::get_if<double>(&stat.value)) value = nb::float_(*real);
  if (const auto* natural = std::get_if<uint64_t>(&stat.value)) value = nb::int_(*natural);
  if (const auto* whole = std::get_if<int64_t>(&stat.value)) value = nb::int_(*whole);
  if (const auto* text = std::get_if<std::string>(&stat.value)) value = text_or_bytes(*text);
  if (const auto* bytes = std::get_if<XStat::Bytes>(&stat.value)) value = text_or_bytes(bytes->bytes);
  if (const auto* reference = std::get_if<XStat::Reference>(&stat.value)) {
    const auto it = plane.stat_metadata.find(static_cast<int64_t>(reference->metadata_id));
    value = text_or_bytes(it == plane.stat_metadata.end() ? std::string() : it->second);
  }
  if (name == nullptr || value.is_none()) return nb::make_tuple(nb::none(), nb::none());
  return nb::make_tuple(*name, value);
}

PartIterator iterate_stats(std::shared_ptr<const XSpace> space, const XPlane* plane, const std::vector<XStat>* stats) {
  return iterate(stats->size(),
                 [space = std::move(space), plane, stats](std::size_t i) { return stat_pair(*plane, (*stats)[i]); });
}

// The sum wraps around, as in the program that wrote the file.
int64_t start_nanoseconds(const DataEvent& self) {
  return static_cast<int64_t>(static_cast<uint64_t>(self.line->timestamp_ns) +
                              static_cast<uint64_t>(self.event->offset_ps / 1000));
}

std::shared_ptr<const XSpace> parse(nb::bytes bytes) {
  const std::string_view view(bytes.c_str(), bytes.size());
  nb::gil_scoped_release others;
  return std::make_shared<const XSpace>(profile::read_xspace(view));
}

}  // namespace

void bind_profile_data(nb::module_& m) {
  nb::class_<PartIterator>(m, "ProfileIterator")
      .def("__iter__", [](nb::object self) { return self; })
      .def("__next__", [](PartIterator& self) {
        if (self.next == self.size) throw nb::stop_iteration();
        return self.part(self.next++);
      });
  nb::class_<DataEvent>(m, "ProfileEvent", "Something that took time, on a line of a profile.")
      .def_prop_ro(
          "name", [](const DataEvent& self) { return std::string(self.plane->event_name(*self.event)); }, "Its name.")
      .def_prop_ro(
          "start_ns", [](const DataEvent& self) { return static_cast<double>(start_nanoseconds(self)); },
          "When it began, in nanoseconds.")
      .def_prop_ro(
          "duration_ns", [](const DataEvent& self) { return static_cast<double>(self.event->duration_ps / 1000); },
          "How long it took, in nanoseconds.")
      .def_prop_ro(
          "end_ns",
          [](const DataEvent& self) {
            return static_cast<double>(start_nanoseconds(self)) + static_cast<double>(self.event->duration_ps / 1000);
          },
          "When it ended, in nanoseconds.")
      .def_prop_ro(
          "stats", [](const DataEvent& self) { return iterate_stats(self.space, self.plane, &self.event->stats); },
          "Pairs of names and values; (None, None) for those without a known name or a value.");
  nb::class_<DataLine>(m, "ProfileLine", "A line of a profile: the events of a thread or of a stream.")
      .def_prop_ro(
          "name", [](const DataLine& self) { return self.line->name; }, "Its name.")
      .def_prop_ro(
          "events",
          [](const DataLine& self) {
            return iterate(self.line->events.size(), [self](std::size_t i) {
              return nb::cast(DataEvent{self.space, self.plane, self.line, &self.line->events[i]});
            });
          },
          "Its events, in the order of the file.");
  nb::class_<DataPlane>(m, "ProfilePlane", "A plane of a profile: a host or a device.")
      .def_prop_ro(
          "name", [](const DataPlane& self) { return self.plane->name; }, "Its name.")
      .def_prop_ro(
          "lines",
          [](const DataPlane& self) {
            return iterate(self.plane->lines.size(), [self](std::size_t i) {
              return nb::cast(DataLine{self.space, self.plane, &self.plane->lines[i]});
            });
          },
          "Its lines, in the order of the file.")
      .def_prop_ro(
          "stats", [](const DataPlane& self) { return iterate_stats(self.space, self.plane, &self.plane->stats); },
          "Pairs of names and values; (None, None) for those without a known name or a value.");
  nb::class_<DataSpace>(m, "ProfileSpace")
      .def(nb::new_([](nb::bytes bytes) { return DataSpace{parse(bytes)}; }))
      .def_prop_ro("planes",
                   [](const DataSpace& self) {
                     return iterate(self.space->planes.size(), [self](std::size_t i) {
                       return nb::cast(DataPlane{self.space, &self.space->planes[i]});
                     });
                   })
      .def("find_plane_with_name", [](const DataSpace& self, const std::string& name) -> nb::object {
        for (const XPlane& plane : self.space->planes) {
          if (plane.name == name) return nb::cast(DataPlane{self.space, &plane});
        }
        return nb::none();
      });
}

}  // namespace capibara::python
