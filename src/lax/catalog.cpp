// The catalog: all built-in primitives by family, looked up by name.
#include <algorithm>
#include <string>
#include <unordered_map>

#include "lax/families.h"

namespace capibara {

namespace {

struct Catalog {
  std::vector<Primitive> primitives;
  std::unordered_map<std::string, Primitive> by_name;

  Catalog() {
    for (const FamilyMaker family : primitive_families()) {
      for (PrimitiveRecord& record : family()) {
        Primitive primitive = make_primitive(std::move(record));
        if (!by_name.emplace(primitive.name(), primitive).second) {
          throw InternalError(concat("catalog: primitive '", primitive.name(), "' is listed twice"));
        }
        primitives.push_back(std::move(primitive));
      }
    }
  }
};

const Catalog& the_catalog() {
  static const Catalog catalog;
  return catalog;
}

// The number of single-letter edits between two names.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

const std::string& Primitive::name() const {
  static const std::string none = "(undefined primitive)";
  return record_ ? record_->name : none;
}

const std::vector<Primitive>& catalog() { return the_catalog().primitives; }

std::optional<Primitive> find_primitive(std::string_view name) {
  const auto& by_name = the_catalog().by_name;
  const auto found = by_name.find(std::string(name));
  if (found == by_name.end()) return std::nullopt;
  return found->second;
}

Primitive primitive(std::string_view name) {
  if (std::optional<Primitive> found = find_primitive(name)) return *found;
  const Primitive* nearest = nullptr;
  std::size_t best = 0;
  for (const Primitive& candidate : catalog()) {
    const std::size_t distance = edit_distance(name, candidate.name());
    if (!nearest || distance < best) {
      nearest = &candidate;
      best = distance;
    }
  }
  throw NameError(concat("primitive: there is no primitive named '", name, "'",
                         nearest ? concat("; did you mean '", nearest->name(), "'?") : std::string()));
}

Primitive make_primitive(PrimitiveRecord record) {
  if (record.name.empty()) throw ValueError("make_primitive: the record needs a name (field 'name')");
  return Primitive(std::make_shared<const PrimitiveRecord>(std::move(record)));
}

}  // namespace capibara
