// Index expressions, the contents of an array's brackets: integers, slices, ellipsis, new axes, index arrays and masks.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace capibara {

// start:stop:step; an absent bound has Python's default.
struct Slice {
  std::optional<int64_t> start, stop, step;
};
// A slice of an axis, as start:stop:step in Python; without arguments, the whole axis.
inline Slice slice() { return {}; }
inline Slice slice(std::optional<int64_t> stop) { return {std::nullopt, stop, std::nullopt}; }
inline Slice slice(std::optional<int64_t> start, std::optional<int64_t> stop,
                   std::optional<int64_t> step = std::nullopt) {
  return {start, stop, step};
}

struct Ellipsis {};
struct NewAxis {};
inline constexpr Ellipsis ellipsis{};
inline constexpr NewAxis newaxis{};

// One entry of an index expression.
class Index {
 public:
  using Entry = std::variant<int64_t, Slice, Ellipsis, NewAxis, Array>;

  template <std::integral T>
  requires(!std::is_same_v<T, bool>) Index(T position) : entry_(static_cast<int64_t>(position)) {}
  Index(Slice s) : entry_(s) {}
  Index(Ellipsis e) : entry_(e) {}
  Index(NewAxis n) : entry_(n) {}
  Index(Array indices) : entry_(std::move(indices)) {}

  const Entry& entry() const { return entry_; }

 private:
  Entry entry_;
};

// Options of a read through an index: mode is one of "", "clip", "fill", "promise_in_bounds", "drop", "wrap".
struct GetOptions {
  std::string mode;
  std::optional<Array> fill_value;
  bool indices_are_sorted = false;
  bool unique_indices = false;
  bool wrap_negative_indices = true;
};

struct UpdateOptions {
  std::string mode;  // by default out-of-bounds writes are dropped
  bool indices_are_sorted = false;
  bool unique_indices = false;
  bool wrap_negative_indices = true;
};

// x.at(i): functional reads and updates of part of an array.
class IndexUpdate {
 public:
  IndexUpdate(Array array, std::vector<Index> indices) : array_(std::move(array)), indices_(std::move(indices)) {}

  Array get(const GetOptions& options = {}) const;
  Array set(const Array& values, const UpdateOptions& options = {}) const;
  Array add(const Array& values, const UpdateOptions& options = {}) const;
  Array subtract(const Array& values, const UpdateOptions& options = {}) const;
  Array multiply(const Array& values, const UpdateOptions& options = {}) const;
  Array divide(const Array& values, const UpdateOptions& options = {}) const;
  Array power(const Array& values, const UpdateOptions& options = {}) const;
  Array min(const Array& values, const UpdateOptions& options = {}) const;
  Array max(const Array& values, const UpdateOptions& options = {}) const;

 private:
  Array array_;
  std::vector<Index> indices_;
};

// The elements at an index expression; array(...) is its short form.
Array index(const Array& array, const std::vector<Index>& indices, const GetOptions& options = {});

namespace detail {
// An Index for each argument, built in place: g++ 12 warns about the copies that an initializer list makes.
template <class... Indices>
std::vector<Index> index_list(const Indices&... indices) {
  std::vector<Index> list;
  list.reserve(sizeof...(indices));
  (list.emplace_back(indices), ...);
  return list;
}
}  // namespace detail

template <class... Indices>
Array Array::operator()(const Indices&... indices) const {
  return index(*this, detail::index_list(indices...));
}
template <class... Indices>
IndexUpdate Array::at(const Indices&... indices) const {
  return IndexUpdate(*this, detail::index_list(indices...));
}

}  // namespace capibara
