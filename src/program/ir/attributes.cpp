// Attributes: equality, hashing and typed access.
#include <capibara/attributes.h>
#include <capibara/program.h>

#include "core/array/hash.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace capibara {

Attr::Attr(const Program& program) : value_(std::make_shared<const Program>(program)) {}

Attr Attr::programs(std::span<const Program> programs) {
  List list;
  for (const Program& program : programs) list.emplace_back(program);
  return Attr(std::move(list));
}

Attr Attr::bools(const std::vector<bool>& values) {
  List list;
  for (bool value : values) list.emplace_back(value);
  return Attr(std::move(list));
}

namespace {

bool equal_arrays(const Array& a, const Array& b) {
  if (a.same_as(b)) return true;
  if (!a.defined() || !b.defined() || a.is_tracer() || b.is_tracer() || !(a.type() == b.type()) || a.type().ref)
    return false;
  return std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.size() * storage_size(a.dtype()))) == 0;
}

struct Equal {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    return a == b;
  }
  // Bitwise, so that NaN attributes are equal to themselves and -0 is not 0.
  bool operator()(double a, double b) const { return std::memcmp(&a, &b, sizeof a) == 0; }
  bool operator()(const Array& a, const Array& b) const { return equal_arrays(a, b); }
  bool operator()(const std::shared_ptr<const Program>& a, const std::shared_ptr<const Program>& b) const {
    return *a == *b;
  }
  bool operator()(const std::shared_ptr<const Opaque>& a, const std::shared_ptr<const Opaque>& b) const {
    return a == b || (a && b && a->equals(*b));
  }
  bool operator()(const std::shared_ptr<const Attr::List>& a, const std::shared_ptr<const Attr::List>& b) const {
    return a == b || *a == *b;
  }
  template <class T, class U>
  bool operator()(const T&, const U&) const {
    return false;
  }
};

struct Hash {
  Hasher& hasher;
  void operator()(Attr::None) const { hasher.mix(0); }
  void operator()(bool value) const { hasher.mix(value ? 3 : 2); }
  void operator()(int64_t value) const { hasher.mix(static_cast<std::size_t>(value)); }
  void operator()(double value) const { hasher.bytes(&value, sizeof value); }
  void operator()(const std::string& text) const { hasher.bytes(text.data(), text.size()); }
  void operator()(DType dtype) const { hasher.mix(static_cast<std::size_t>(dtype)); }
  void operator()(const Ints& ints) const { hasher.ints(ints); }
  void operator()(const DotDimensionNumbers& d) const {
    for (const Ints* ints : {&d.lhs_contracting, &d.rhs_contracting, &d.lhs_batch, &d.rhs_batch}) hasher.ints(*ints);
  }
  void operator()(const ConvDimensionNumbers& d) const {
    for (const Ints* ints : {&d.lhs_spec, &d.rhs_spec, &d.out_spec}) hasher.ints(*ints);
  }
  void operator()(const GatherDimensionNumbers& d) const {
    for (const Ints* ints : {&d.offset_dims, &d.collapsed_slice_dims, &d.start_index_map, &d.operand_batching_dims,
                             &d.start_indices_batching_dims}) {
      hasher.ints(*ints);
    }
  }
  void operator()(const ScatterDimensionNumbers& d) const {
    for (const Ints* ints : {&d.update_window_dims, &d.inserted_window_dims, &d.scatter_dims_to_operand_dims,
                             &d.operand_batching_dims, &d.scatter_indices_batching_dims}) {
      hasher.ints(*ints);
    }
  }
  void operator()(const ArrayType& type) const { hasher.type(type); }
  void operator()(const Array& array) const { hasher.array(array); }
  void operator()(const std::shared_ptr<const Program>& program) const { hasher.mix(program->hash()); }
  void operator()(const std::shared_ptr<const Opaque>& opaque) const { hasher.mix(opaque ? opaque->hash() : 0); }
  void operator()(const std::shared_ptr<const Attr::List>& list) const {
    hasher.mix(list->size());
    for (const Attr& attr : *list) hasher.mix(attr.hash());
  }
};

// The storage that Attrs share: the hash is computed once, since every eager operation reads it. 0: not yet.
struct Stored : std::vector<Attrs::Entry> {
  explicit Stored(std::vector<Attrs::Entry> entries) : std::vector<Attrs::Entry>(std::move(entries)) {}
  mutable std::atomic<std::size_t> hash{0};
};

}  // namespace

bool operator==(const Attr& a, const Attr& b) { return std::visit(Equal{}, a.value_, b.value_); }

std::size_t Attr::hash() const {
  Hasher hasher;
  hasher.mix(value_.index());
  std::visit(Hash{hasher}, value_);
  return hasher.value();
}

Attrs::Attrs(std::initializer_list<Entry> entries) : Attrs(std::vector<Entry>(entries)) {}

Attrs::Attrs(std::vector<Entry> entries) {
  if (entries.empty()) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.first < b.first; });
  entries_ = std::make_shared<const Stored>(std::move(entries));
}

std::span<const Attrs::Entry> Attrs::entries() const {
  return entries_ ? std::span<const Entry>(*entries_) : std::span<const Entry>();
}

const Attr* Attrs::find(std::string_view name) const {
  for (const Entry& entry : entries()) {
    if (entry.first == name) return &entry.second;
  }
  return nullptr;
}

const Attr& Attrs::operator[](std::string_view name) const {
  if (const Attr* attr = find(name)) return *attr;
  throw InternalError(concat("attribute '", name, "' is missing"));
}

void Attrs::throw_wrong_type(std::string_view name) {
  throw InternalError(concat("attribute '", name, "' has another type than its reader expects"));
}

bool Attrs::boolean(std::string_view name) const { return get<bool>(name); }
int64_t Attrs::integer(std::string_view name) const { return get<int64_t>(name); }
double Attrs::real(std::string_view name) const {
  if (const int64_t* whole = (*this)[name].get_if<int64_t>()) return static_cast<double>(*whole);
  return get<double>(name);
}
const std::string& Attrs::text(std::string_view name) const { return get<std::string>(name); }
DType Attrs::dtype(std::string_view name) const { return get<DType>(name); }
const Ints& Attrs::ints(std::string_view name) const { return get<Ints>(name); }
const Program& Attrs::program(std::string_view name) const { return *get<std::shared_ptr<const Program>>(name); }
const Attr::List& Attrs::list(std::string_view name) const { return *get<std::shared_ptr<const Attr::List>>(name); }

std::vector<Program> Attrs::programs(std::string_view name) const {
  std::vector<Program> programs;
  for (const Attr& attr : list(name)) {
    const auto* program = attr.get_if<std::shared_ptr<const Program>>();
    if (!program) throw_wrong_type(name);
    programs.push_back(**program);
  }
  return programs;
}

std::vector<bool> Attrs::booleans(std::string_view name) const {
  std::vector<bool> values;
  for (const Attr& attr : list(name)) {
    const bool* value = attr.get_if<bool>();
    if (!value) throw_wrong_type(name);
    values.push_back(*value);
  }
  return values;
}

Attrs Attrs::with(std::string name, Attr value) const {
  std::vector<Entry> copy(entries().begin(), entries().end());
  for (Entry& entry : copy) {
    if (entry.first == name) {
      entry.second = std::move(value);
      return Attrs(std::move(copy));
    }
  }
  copy.emplace_back(std::move(name), std::move(value));
  return Attrs(std::move(copy));
}

Attrs Attrs::without(std::string_view name) const {
  std::vector<Entry> copy;
  for (const Entry& entry : entries()) {
    if (entry.first != name) copy.push_back(entry);
  }
  return Attrs(std::move(copy));
}

bool operator==(const Attrs& a, const Attrs& b) {
  return a.entries_ == b.entries_ ||
         std::equal(a.entries().begin(), a.entries().end(), b.entries().begin(), b.entries().end());
}

std::size_t Attrs::hash() const {
  if (!entries_) return Hasher().value();
  std::atomic<std::size_t>& known = static_cast<const Stored&>(*entries_).hash;
  if (const std::size_t hash = known.load(std::memory_order_relaxed)) return hash;
  Hasher hasher;
  for (const Entry& entry : entries()) {
    hasher.bytes(entry.first.data(), entry.first.size());
    hasher.mix(entry.second.hash());
  }
  known.store(hasher.value(), std::memory_order_relaxed);
  return hasher.value();
}

}  // namespace capibara
