// Meshes and specifications as attributes: compared by value, printed as jax prints them.
#include "core/sharding/mesh_attr.h"

#include "core/array/hash.h"
#include "core/sharding/placed_memory.h"

namespace capibara {

namespace {

std::size_t text_hash(const std::string& text) {
  Hasher hasher;
  hasher.bytes(text.data(), text.size());
  return hasher.value();
}

}  // namespace

bool MeshAttr::equals(const Opaque& other) const {
  const auto* same = dynamic_cast<const MeshAttr*>(&other);
  return same && abstract == same->abstract && devices == same->devices;
}

std::size_t MeshAttr::hash() const { return text_hash(print()); }

std::string MeshAttr::print() const {
  const std::string text = mesh_text(devices.mesh);
  if (!abstract) return text;
  return concat("Abstract", text.substr(0, text.size() - 1), ", device_kind=", devices.platform,
                ", num_cores=None, platform=", devices.platform, ")");
}

bool SpecsAttr::equals(const Opaque& other) const {
  const auto* same = dynamic_cast<const SpecsAttr*>(&other);
  return same && specs == same->specs;
}

std::size_t SpecsAttr::hash() const { return text_hash(print()); }

std::string SpecsAttr::print() const {
  std::string text = "(";
  for (std::size_t i = 0; i < specs.size(); ++i) text += concat(i ? ", " : "", spec_text(specs[i]));
  return text + (specs.size() == 1 ? ",)" : ")");
}

}  // namespace capibara
