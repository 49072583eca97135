// Writes Shardy's attributes from the text that our syntax tree has of them.
#include <capibara/error.h>

#include "compiler/stablehlo/bytecode/entry_writer.h"
#include "compiler/stablehlo/sharding_text.h"

namespace capibara::stablehlo {

namespace {

void write_indices(ByteWriter& out, const std::vector<std::size_t>& indices) {
  out.number(indices.size());
  for (const std::size_t index : indices) out.number(index);
}

}  // namespace

std::size_t EntryWriter::shardy_mesh(const Mesh& mesh) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < mesh.axis_names.size(); ++i) {
    ByteWriter axis;
    axis.number(1);
    axis.number(string(mesh.axis_names[i]));
    axis.signed_number(mesh.axis_sizes[i]);
    axes.push_back(add(attributes_, "sdy", axis.bytes()));
  }
  ByteWriter out;
  out.number(2);
  write_indices(out, axes);
  const bool one_device = axes.empty();  // without axes there is the number of a device
  out.number(one_device ? 1 : 0);
  if (one_device) out.signed_number(0);
  return add(attributes_, "sdy", out.bytes());
}

std::size_t EntryWriter::shardy_sharding(const ShardingText& text) {
  const auto references = [&](const AxisList& names) {
    std::vector<std::size_t> axes;
    for (const std::string& name : names) {
      ByteWriter axis;
      axis.number(4);
      axis.number(string(name));
      axis.flagged(0, false);
      axes.push_back(add(attributes_, "sdy", axis.bytes()));
    }
    return axes;
  };
  std::vector<std::size_t> dims;
  for (std::size_t i = 0; i < text.dims.size(); ++i) {
    const std::vector<std::size_t> axes = references(text.dims[i]);
    ByteWriter dim;
    dim.number(5);
    write_indices(dim, axes);
    dim.byte(text.open[i] ? 0 : 1);
    const std::optional<int64_t>& priority = text.priorities[i];
    dim.flagged(priority ? static_cast<std::uint64_t>(*priority) : 0, priority.has_value());
    dims.push_back(add(attributes_, "sdy", dim.bytes()));
  }
  const std::vector<std::size_t> replicated = references(text.replicated), unreduced = references(text.unreduced);
  const std::size_t mesh = symbol(text.mesh);
  ByteWriter out;
  out.number(unreduced.empty() ? 6 : 15);
  out.number(mesh);
  write_indices(out, dims);
  write_indices(out, replicated);
  if (!unreduced.empty()) write_indices(out, unreduced);
  return add(attributes_, "sdy", out.bytes());
}

std::size_t EntryWriter::shardy_attribute(const DialectAttribute& own, const Operation& place) {
  if (own.kind == "mesh") return shardy_mesh(read_mesh_text(place, own.text));
  if (own.kind == "sharding") return shardy_sharding(read_sharding_text(place, own.text));
  ByteWriter out;
  std::vector<std::size_t> parts;
  if (own.kind == "sharding_per_value") {
    for (const ShardingText& one : read_shardings_text(place, own.text)) parts.push_back(shardy_sharding(one));
    out.number(7);
  } else if (own.kind == "manual_axes") {
    for (const std::string& axis : read_axes_text(place, own.text)) parts.push_back(builtin_string(axis));
    out.number(0);
  } else {
    throw UnsupportedError(concat(place_of(place), ": #sdy.", own.kind, " is not written into artifacts"));
  }
  write_indices(out, parts);
  return add(attributes_, "sdy", out.bytes());
}

}  // namespace capibara::stablehlo
