// Trees: nested containers and structs with Arrays as leaves; everything else in them is static structure.
#pragma once

#include <capibara/array.h>

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

namespace capibara {

using Arrays = std::vector<Array>;

// One step from a node to a child: [0], ['name'], [3] (an integer key) or .field.
struct TreeKey {
  enum Kind { index, text, integer, field } kind = index;
  int64_t number = 0;
  std::string name;
  friend bool operator==(const TreeKey&, const TreeKey&) = default;
};
using KeyPath = std::vector<TreeKey>;
// A path as text: ['a'][0].b.
std::string keystr(const KeyPath& path);

// A non-Array value inside a tree: compared and hashed as part of the structure.
class StaticLeaf {
 public:
  virtual ~StaticLeaf() = default;
  virtual bool equals(const StaticLeaf& other) const = 0;
  virtual std::size_t hash() const = 0;
  virtual std::string print() const = 0;
};

// The structure of a tree without its leaves; independent of the C++ type it came from. Copies share storage.
class TreeDef {
 public:
  enum class Kind { leaf, none, tuple, list, dict, record, value };
  struct Node;

  TreeDef();  // one leaf
  static TreeDef leaf();
  static TreeDef none();
  static TreeDef tuple(std::vector<TreeDef> children);
  static TreeDef list(std::vector<TreeDef> children);
  static TreeDef dict(std::vector<TreeKey> keys, std::vector<TreeDef> children);
  static TreeDef record(std::string type, std::vector<TreeKey> fields, std::vector<TreeDef> children);
  static TreeDef value(std::shared_ptr<const StaticLeaf> value);

  Kind kind() const;
  std::size_t num_leaves() const;
  std::size_t num_nodes() const;
  std::size_t hash() const;
  const std::vector<TreeDef>& children() const;
  const std::vector<TreeKey>& keys() const;     // of dicts and records
  TreeKey key(std::size_t child) const;         // of any container
  const std::string& type_name() const;         // of records
  const StaticLeaf* static_value() const;       // of values
  std::string to_string() const;                // PyTreeDef({'a': *, 'b': (*, *)})
  std::vector<KeyPath> paths() const;           // of the leaves, in order
  TreeDef compose(const TreeDef& inner) const;  // with every leaf replaced by `inner`
  friend bool operator==(const TreeDef& a, const TreeDef& b);

 private:
  explicit TreeDef(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

std::ostream& operator<<(std::ostream& out, const TreeDef& tree);

// Where two structures first differ, in words: "at ['a'] expected a tuple of 2, got a tuple of 3".
std::string tree_difference(const TreeDef& expected, const TreeDef& got);

// The named members of a struct declared by CAPIBARA_TREE.
template <class Struct, class Member>
struct TreeField {
  const char* name;
  Member Struct::*member;
};
template <class Struct, class Member>
TreeField(const char*, Member Struct::*) -> TreeField<Struct, Member>;

namespace detail {

// Reads leaves in order while a tree is rebuilt; leaves that are no longer needed are moved.
class LeafReader {
 public:
  explicit LeafReader(std::span<const Array> leaves) : leaves_(leaves) {}
  explicit LeafReader(Arrays&& leaves) : leaves_(leaves), movable_(leaves.data()) {}
  Array next();
  void finish() const;  // raises ValueError if leaves remain

 private:
  std::span<const Array> leaves_;
  Array* movable_ = nullptr;
  std::size_t position_ = 0;
};

[[noreturn]] void throw_unexpected_node(const TreeDef& got, const char* expected);
void require_children(const TreeDef& tree, TreeDef::Kind kind, std::size_t count, const char* expected);

template <class T>
concept StructTree = requires(const T* value) {
  capibara_tree_fields(value);
};

template <class T>
struct is_tuple : std::false_type {};
template <class... Ts>
struct is_tuple<std::tuple<Ts...>> : std::true_type {};
template <class A, class B>
struct is_tuple<std::pair<A, B>> : std::true_type {};
template <class T>
struct is_sequence : std::false_type {};
template <class T, class A>
struct is_sequence<std::vector<T, A>> : std::true_type {};
template <class T, std::size_t n>
struct is_sequence<std::array<T, n>> : std::true_type {};
template <class T>
struct is_std_array : std::false_type {};
template <class T, std::size_t n>
struct is_std_array<std::array<T, n>> : std::true_type {};
template <class T>
struct is_dict : std::false_type {};
template <class K, class T, class C, class A>
struct is_dict<std::map<K, T, C, A>> : std::true_type {};
template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
inline constexpr bool is_none =
    std::is_same_v<T, std::monostate> || std::is_same_v<T, std::nullptr_t> || std::is_same_v<T, std::nullopt_t>;

// True if values of this type are a single static leaf: no Array and no declared struct anywhere inside.
template <class T>
constexpr bool is_static_value() {
  if constexpr (std::is_same_v<T, Array> || StructTree<T> || is_tuple<T>::value || is_optional<T>::value ||
                is_none<T>) {
    return false;
  } else if constexpr (is_sequence<T>::value) {
    return is_static_value<typename T::value_type>();
  } else if constexpr (is_dict<T>::value) {
    return is_static_value<typename T::mapped_type>();
  } else {
    return true;
  }
}

// True if the structure follows from the type alone.
template <class T>
constexpr bool has_fixed_structure();

template <class Tuple>
constexpr bool all_fixed() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return (has_fixed_structure<std::tuple_element_t<i, Tuple>>() && ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Tuple>>());
}
template <class Struct, class Member>
constexpr bool field_fixed(const TreeField<Struct, Member>*) {
  return has_fixed_structure<Member>();
}

template <class T>
constexpr bool has_fixed_structure() {
  if constexpr (std::is_same_v<T, Array> || is_none<T>) {
    return true;
  } else if constexpr (StructTree<T>) {
    using Fields = decltype(capibara_tree_fields(static_cast<const T*>(nullptr)));
    return []<class... F>(const std::tuple<F...>*) {
      return (field_fixed(static_cast<const F*>(nullptr)) && ...);
    }(static_cast<const Fields*>(nullptr));
  } else if constexpr (is_tuple<T>::value) {
    return all_fixed<T>();
  } else if constexpr (is_std_array<T>::value) {
    return has_fixed_structure<typename T::value_type>();
  } else {
    return false;
  }
}

template <class T>
concept Hashable = requires(const T& value) {
  std::hash<T>{}(value);
};
template <class T>
concept Printable = requires(std::ostream& out, const T& value) {
  out << value;
};

template <class T>
std::size_t static_hash(const T& value) {
  if constexpr (is_sequence<T>::value) {
    std::size_t hash = value.size();
    for (const auto& element : value) {
      hash = hash * 1099511628211ULL + static_hash(static_cast<const typename T::value_type&>(element));
    }
    return hash;
  } else if constexpr (is_dict<T>::value) {
    std::size_t hash = value.size();
    for (const auto& [key, element] : value)
      hash = (hash * 1099511628211ULL + static_hash(key)) * 31 + static_hash(element);
    return hash;
  } else if constexpr (Hashable<T>) {
    return std::hash<T>{}(value);
  } else {
    return typeid(T).hash_code();  // equality alone decides
  }
}

template <class T>
std::string static_text(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "True" : "False";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return concat("'", value, "'");
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<long long>(value));
  } else if constexpr (is_sequence<T>::value) {
    std::string text = "[";
    for (const auto& element : value) {
      text += concat(text.size() > 1 ? ", " : "", static_text(static_cast<const typename T::value_type&>(element)));
    }
    return text + "]";
  } else if constexpr (Printable<T>) {
    return concat(value);
  } else {
    return concat("<", typeid(T).name(), ">");
  }
}

template <class T>
class TypedStaticLeaf final : public StaticLeaf {
 public:
  explicit TypedStaticLeaf(T v) : value(std::move(v)) {}
  bool equals(const StaticLeaf& other) const override {
    const auto* typed = dynamic_cast<const TypedStaticLeaf*>(&other);
    if (!typed) return false;
    if constexpr (std::is_empty_v<T>) {
      return true;  // a capture-less lambda or a tag has only one value
    } else {
      static_assert(
          requires(const T& a, const T& b) { a == b; },
          "a static value in a tree needs operator==; structs that hold Arrays are declared by CAPIBARA_TREE");
      return value == typed->value;
    }
  }
  std::size_t hash() const override { return static_hash(value); }
  std::string print() const override { return static_text(value); }

  T value;
};

// ---- the three operations on a typed tree, from which all others are built ----------------------------------------

template <class T>
void collect_leaves(const T& tree, Arrays& leaves);
template <class T>
void move_leaves(T& tree, Arrays& leaves);
template <class T>
TreeDef make_structure(const T& tree);
template <class T>
T build_tree(const TreeDef& structure, LeafReader& leaves);

template <class T, class Visit>
void for_each_field(Visit visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, capibara_tree_fields(static_cast<const T*>(nullptr)));
}

template <class T>
void collect_leaves(const T& tree, Arrays& leaves) {
  if constexpr (std::is_same_v<T, Array>) {
    leaves.push_back(tree);
  } else if constexpr (StructTree<T>) {
    for_each_field<T>([&](const auto& field) { collect_leaves(tree.*field.member, leaves); });
  } else if constexpr (is_tuple<T>::value) {
    std::apply([&](const auto&... element) { (collect_leaves(element, leaves), ...); }, tree);
  } else if constexpr (is_optional<T>::value) {
    if (tree) collect_leaves(*tree, leaves);
  } else if constexpr (!is_static_value<T>() && is_sequence<T>::value) {
    for (const auto& element : tree) collect_leaves(element, leaves);
  } else if constexpr (!is_static_value<T>() && is_dict<T>::value) {
    for (const auto& [key, element] : tree) collect_leaves(element, leaves);
  }
}

// The same, leaving empty handles in the tree.
template <class T>
void move_leaves(T& tree, Arrays& leaves) {
  if constexpr (std::is_same_v<T, Array>) {
    leaves.push_back(std::move(tree));
  } else if constexpr (StructTree<T>) {
    for_each_field<T>([&](const auto& field) { move_leaves(tree.*field.member, leaves); });
  } else if constexpr (is_tuple<T>::value) {
    std::apply([&](auto&... element) { (move_leaves(element, leaves), ...); }, tree);
  } else if constexpr (is_optional<T>::value) {
    if (tree) move_leaves(*tree, leaves);
  } else if constexpr (!is_static_value<T>() && is_sequence<T>::value) {
    for (auto& element : tree) move_leaves(element, leaves);
  } else if constexpr (!is_static_value<T>() && is_dict<T>::value) {
    for (auto& [key, element] : tree) move_leaves(element, leaves);
  }
}

template <class K>
TreeKey dict_key(const K& key) {
  if constexpr (std::is_integral_v<K>) {
    return {TreeKey::integer, static_cast<int64_t>(key), {}};
  } else {
    static_assert(std::is_convertible_v<K, std::string>, "the keys of a map in a tree are strings or integers");
    return {TreeKey::text, 0, key};
  }
}

template <class T>
TreeDef compute_structure(const T& tree) {
  if constexpr (std::is_same_v<T, Array>) {
    return TreeDef::leaf();
  } else if constexpr (is_none<T>) {
    return TreeDef::none();
  } else if constexpr (StructTree<T>) {
    std::vector<TreeKey> keys;
    std::vector<TreeDef> children;
    for_each_field<T>([&](const auto& field) {
      keys.push_back({TreeKey::field, 0, field.name});
      children.push_back(make_structure(tree.*field.member));
    });
    return TreeDef::record(capibara_tree_name(static_cast<const T*>(nullptr)), std::move(keys), std::move(children));
  } else if constexpr (is_tuple<T>::value) {
    std::vector<TreeDef> children;
    std::apply([&](const auto&... element) { (children.push_back(make_structure(element)), ...); }, tree);
    return TreeDef::tuple(std::move(children));
  } else if constexpr (is_optional<T>::value) {
    return tree ? make_structure(*tree) : TreeDef::none();
  } else if constexpr (is_static_value<T>()) {
    return TreeDef::value(std::make_shared<const TypedStaticLeaf<T>>(tree));
  } else if constexpr (is_sequence<T>::value) {
    std::vector<TreeDef> children;
    for (const auto& element : tree) children.push_back(make_structure(element));
    return TreeDef::list(std::move(children));
  } else {
    std::vector<TreeKey> keys;
    std::vector<TreeDef> children;
    for (const auto& [key, element] : tree) {
      keys.push_back(dict_key(key));
      children.push_back(make_structure(element));
    }
    return TreeDef::dict(std::move(keys), std::move(children));
  }
}

template <class T>
TreeDef make_structure(const T& tree) {
  if constexpr (has_fixed_structure<T>()) {
    static const TreeDef structure = compute_structure(tree);
    return structure;
  } else {
    return compute_structure(tree);
  }
}

template <class T>
T build_tree(const TreeDef& structure, LeafReader& leaves) {
  using Kind = TreeDef::Kind;
  if constexpr (std::is_same_v<T, Array>) {
    if (structure.kind() != Kind::leaf) throw_unexpected_node(structure, "an array");
    return leaves.next();
  } else if constexpr (is_none<T>) {
    if (structure.kind() != Kind::none) throw_unexpected_node(structure, "None");
    if constexpr (std::is_same_v<T, std::nullopt_t>)
      return std::nullopt;
    else
      return T{};
  } else if constexpr (StructTree<T>) {
    static_assert(std::is_default_constructible_v<T>, "a struct declared by CAPIBARA_TREE needs a default constructor");
    T tree{};
    std::size_t child = 0;
    require_children(structure, Kind::record,
                     std::tuple_size_v<decltype(capibara_tree_fields(static_cast<const T*>(nullptr)))>,
                     capibara_tree_name(static_cast<const T*>(nullptr)));
    for_each_field<T>([&]<class Member>(const TreeField<T, Member>& field) {
      tree.*field.member = build_tree<Member>(structure.children()[child++], leaves);
    });
    return tree;
  } else if constexpr (is_tuple<T>::value) {
    require_children(structure, Kind::tuple, std::tuple_size_v<T>, "a tuple");
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return T{build_tree<std::tuple_element_t<i, T>>(structure.children()[i], leaves)...};  // braces: left to right
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (is_optional<T>::value) {
    if (structure.kind() == Kind::none) return std::nullopt;
    return build_tree<typename T::value_type>(structure, leaves);
  } else if constexpr (is_static_value<T>()) {
    const auto* typed = dynamic_cast<const TypedStaticLeaf<T>*>(structure.static_value());
    if (!typed) throw_unexpected_node(structure, "a static value of the tree's type");
    return typed->value;
  } else if constexpr (is_std_array<T>::value) {
    require_children(structure, Kind::list, std::tuple_size_v<T>, "a list");
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return T{build_tree<typename T::value_type>(structure.children()[i], leaves)...};
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (is_sequence<T>::value) {
    require_children(structure, Kind::list, structure.children().size(), "a list");
    T tree;
    tree.reserve(structure.children().size());
    for (const TreeDef& child : structure.children()) {
      tree.push_back(build_tree<typename T::value_type>(child, leaves));
    }
    return tree;
  } else {
    require_children(structure, Kind::dict, structure.children().size(), "a dict");
    T tree;
    for (std::size_t i = 0; i < structure.children().size(); ++i) {
      const TreeKey& key = structure.keys()[i];
      auto value = build_tree<typename T::mapped_type>(structure.children()[i], leaves);
      if constexpr (std::is_integral_v<typename T::key_type>) {
        tree.emplace(static_cast<typename T::key_type>(key.number), std::move(value));
      } else {
        tree.emplace(typename T::key_type(key.name), std::move(value));
      }
    }
    return tree;
  }
}

// Raises ValueError naming the path of the first difference.
void require_same_structure(const char* operation, const TreeDef& expected, const TreeDef& got);

}  // namespace detail

namespace jax::tree {

using capibara::KeyPath;
using capibara::keystr;
using capibara::TreeDef;

// The arrays of a tree, in order.
template <class T>
Arrays leaves(const T& tree) {
  Arrays result;
  capibara::detail::collect_leaves(tree, result);
  return result;
}

// The structure of a tree, without its arrays.
template <class T>
TreeDef structure(const T& tree) {
  return capibara::detail::make_structure(tree);
}

// The leaves and the structure of a tree.
template <class T>
std::pair<Arrays, TreeDef> flatten(const T& tree) {
  return {leaves(tree), structure(tree)};
}

// The tree of a structure and leaves: unflatten<Params>(structure, leaves). Static values come from the structure.
template <class T>
T unflatten(const TreeDef& structure, std::span<const Array> leaves) {
  capibara::detail::LeafReader reader(leaves);
  T tree = capibara::detail::build_tree<T>(structure, reader);
  reader.finish();
  return tree;
}

// unflatten(prototype, leaves): a tree of the prototype's type and structure.
template <class T>
requires(!std::is_same_v<T, TreeDef>) T unflatten(const T& prototype, std::span<const Array> leaves) {
  return unflatten<T>(structure(prototype), leaves);
}

// The tree of f(leaf, leaf of each other tree...); all trees must have the structure of the first.
template <class F, class T, class... Rest>
T map(F&& f, const T& tree, const Rest&... rest) {
  Arrays first = leaves(tree);
  TreeDef shape = structure(tree);
  (capibara::detail::require_same_structure("tree.map", shape, structure(rest)), ...);
  auto others = std::make_tuple(leaves(rest)...);
  Arrays results;
  results.reserve(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    results.push_back(std::apply([&](const auto&... other) { return Array(f(first[i], other[i]...)); }, others));
  }
  return unflatten<T>(shape, results);
}

// map with the path of each leaf as the first argument of f.
template <class F, class T, class... Rest>
T map_with_path(F&& f, const T& tree, const Rest&... rest) {
  std::vector<KeyPath> paths = structure(tree).paths();
  std::size_t next = 0;
  return map([&](const auto&... leaf) { return f(static_cast<const KeyPath&>(paths[next++]), leaf...); }, tree,
             rest...);
}

// The leaves of a tree, each with its path.
template <class T>
std::vector<std::pair<KeyPath, Array>> leaves_with_path(const T& tree) {
  std::vector<KeyPath> paths = structure(tree).paths();
  Arrays values = leaves(tree);
  std::vector<std::pair<KeyPath, Array>> result;
  for (std::size_t i = 0; i < values.size(); ++i) result.emplace_back(std::move(paths[i]), values[i]);
  return result;
}

// The leaves with their paths, and the structure of a tree.
template <class T>
std::pair<std::vector<std::pair<KeyPath, Array>>, TreeDef> flatten_with_path(const T& tree) {
  return {leaves_with_path(tree), structure(tree)};
}

// Folds the leaves from left to right: f(f(initial, leaf 0), leaf 1)...
template <class F, class T, class Value>
Value reduce(F&& f, const T& tree, Value initial) {
  for (const Array& leaf : leaves(tree)) initial = f(std::move(initial), leaf);
  return initial;
}
template <class F, class T>
Array reduce(F&& f, const T& tree) {
  Arrays values = leaves(tree);
  if (values.empty()) throw TypeError("tree.reduce: the tree has no leaves and no initial value was given");
  Array result = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) result = f(result, values[i]);
  return result;
}

// True if every leaf, a concrete single value, is true.
template <class T>
bool all(const T& tree) {
  for (const Array& leaf : leaves(tree)) {
    if (!static_cast<bool>(leaf)) return false;
  }
  return true;
}

// Swaps the outer and the inner structure: transpose<Result>(outer, inner, tree) makes inner(outer(*)) from
// outer(inner(*)).
template <class Result, class T>
Result transpose(const TreeDef& outer, const TreeDef& inner, const T& tree) {
  capibara::detail::require_same_structure("tree.transpose", outer.compose(inner), structure(tree));
  Arrays values = leaves(tree), turned;
  for (std::size_t j = 0; j < inner.num_leaves(); ++j) {
    for (std::size_t i = 0; i < outer.num_leaves(); ++i) turned.push_back(values[i * inner.num_leaves() + j]);
  }
  return unflatten<Result>(inner.compose(outer), turned);
}

}  // namespace jax::tree

// jax.tree_util: the same functions under their older names.
namespace jax::tree_util {

using capibara::KeyPath;
using PyTreeDef = capibara::TreeDef;
using capibara::keystr;

// tree::flatten under its name in jax.tree_util.
template <class T>
auto tree_flatten(const T& tree) {
  return jax::tree::flatten(tree);
}
// tree::unflatten under its name in jax.tree_util.
template <class T>
T tree_unflatten(const PyTreeDef& structure, std::span<const Array> leaves) {
  return jax::tree::unflatten<T>(structure, leaves);
}
// tree::leaves under its name in jax.tree_util.
template <class T>
Arrays tree_leaves(const T& tree) {
  return jax::tree::leaves(tree);
}
// tree::structure under its name in jax.tree_util.
template <class T>
PyTreeDef tree_structure(const T& tree) {
  return jax::tree::structure(tree);
}
// tree::map under its name in jax.tree_util.
template <class F, class T, class... Rest>
T tree_map(F&& f, const T& tree, const Rest&... rest) {
  return jax::tree::map(f, tree, rest...);
}
// tree::map_with_path under its name in jax.tree_util.
template <class F, class T, class... Rest>
T tree_map_with_path(F&& f, const T& tree, const Rest&... rest) {
  return jax::tree::map_with_path(f, tree, rest...);
}
// tree::leaves_with_path under its name in jax.tree_util.
template <class T>
auto tree_leaves_with_path(const T& tree) {
  return jax::tree::leaves_with_path(tree);
}
// tree::flatten_with_path under its name in jax.tree_util.
template <class T>
auto tree_flatten_with_path(const T& tree) {
  return jax::tree::flatten_with_path(tree);
}
// tree::reduce under its name in jax.tree_util.
template <class F, class T, class... Initial>
auto tree_reduce(F&& f, const T& tree, Initial... initial) {
  return jax::tree::reduce(f, tree, std::move(initial)...);
}
// tree::all under its name in jax.tree_util.
template <class T>
bool tree_all(const T& tree) {
  return jax::tree::all(tree);
}
// tree::transpose under its name in jax.tree_util.
template <class Result, class T>
Result tree_transpose(const PyTreeDef& outer, const PyTreeDef& inner, const T& tree) {
  return jax::tree::transpose<Result>(outer, inner, tree);
}

}  // namespace jax::tree_util
}  // namespace capibara

template <>
struct std::hash<capibara::TreeDef> {
  std::size_t operator()(const capibara::TreeDef& tree) const { return tree.hash(); }
};

// ---- CAPIBARA_TREE(Type, field, ...) at namespace scope declares a struct as a tree --------------------------------

#define CAPIBARA_PARENTHESES ()
#define CAPIBARA_RESCAN4(...) __VA_ARGS__
#define CAPIBARA_RESCAN3(...) CAPIBARA_RESCAN4(CAPIBARA_RESCAN4(CAPIBARA_RESCAN4(CAPIBARA_RESCAN4(__VA_ARGS__))))
#define CAPIBARA_RESCAN2(...) CAPIBARA_RESCAN3(CAPIBARA_RESCAN3(CAPIBARA_RESCAN3(CAPIBARA_RESCAN3(__VA_ARGS__))))
#define CAPIBARA_RESCAN(...) CAPIBARA_RESCAN2(CAPIBARA_RESCAN2(CAPIBARA_RESCAN2(CAPIBARA_RESCAN2(__VA_ARGS__))))
#define CAPIBARA_TREE_FIELDS(Type, field, ...) \
  ::capibara::TreeField{#field,                \
                        &Type::field} __VA_OPT__(, CAPIBARA_TREE_FIELDS_AGAIN CAPIBARA_PARENTHESES(Type, __VA_ARGS__))
#define CAPIBARA_TREE_FIELDS_AGAIN() CAPIBARA_TREE_FIELDS

#define CAPIBARA_TREE(Type, ...)                                                                  \
  [[maybe_unused]] constexpr auto capibara_tree_fields(const Type*) {                             \
    return std::make_tuple(__VA_OPT__(CAPIBARA_RESCAN(CAPIBARA_TREE_FIELDS(Type, __VA_ARGS__)))); \
  }                                                                                               \
  [[maybe_unused]] constexpr const char* capibara_tree_name(const Type*) { return #Type; }
