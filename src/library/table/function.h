// The table of the library: every function of jax.numpy, lax, nn ... by name, with its signature and its C++ call.
// Python's modules and their documentation, the coverage table and the differential tests are generated from it.
#pragma once

#include <capibara/numpy/axis.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "library/table/value.h"

namespace capibara::library {

struct Parameter {
  enum Kind { positional_only, positional_or_keyword, variadic, keyword_only, keywords } kind = positional_or_keyword;
  std::string name;
  std::string annotation;  // its type, unless it is the usual one for the name
  std::optional<Value> default_value;
  std::string default_text;
};

// Parsed from Python notation: "a, axis=None, *, keepdims=False", "*arrays", "x, /, **options". A row may give types:
// "x, k: int = 0 -> tuple[Array, Array]". Otherwise a parameter has the type that tools/python/stub_types.py assigns to
// its name, and the result is an Array.
class Signature {
 public:
  explicit Signature(std::string_view text);
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::string& result() const { return result_; }               // its type; empty for a single array
  std::size_t positional_count() const { return positional_count_; }  // before *, excluding the variadic one
  int find(std::string_view name) const;                              // -1 if there is none
  bool has_variadic() const { return variadic_; }
  bool has_keywords() const { return keywords_; }

 private:
  std::vector<Parameter> parameters_;
  std::string result_;
  std::size_t positional_count_ = 0;
  bool variadic_ = false, keywords_ = false;
};

// The arguments of one call, one per parameter, read by name. Each reader raises TypeError or ValueError that names the
// function, the argument, and the expected and actual value.
class Arguments {
 public:
  Arguments(std::string_view function, const Signature& signature, const Values& values)
      : function_(function), signature_(signature), values_(values) {}

  const std::string function() const { return std::string(function_); }
  const Signature& signature() const { return signature_; }
  const Value& operator[](std::string_view name) const;
  bool given(std::string_view name) const { return !(*this)[name].is_none(); }

  Array array(std::string_view name) const;  // an array or number; lists are rejected as in jax.numpy
  std::optional<Array> optional_array(std::string_view name) const;
  Array array_like(std::string_view name) const;  // also nested lists and tuples
  Arrays arrays(std::string_view name) const;     // a sequence of arrays, an array's rows, or *variadic ones
  int64_t integer(std::string_view name) const;
  std::optional<int64_t> optional_integer(std::string_view name) const;
  bool flag(std::string_view name) const;
  double real(std::string_view name) const;
  std::optional<double> optional_real(std::string_view name) const;
  std::string text(std::string_view name) const;  // None becomes ""
  Ints ints(std::string_view name) const;         // one number or a sequence of them
  std::optional<Ints> optional_ints(std::string_view name) const;
  std::vector<std::pair<int64_t, int64_t>> pairs(std::string_view name) const;
  Shape shape(std::string_view name) const { return ints(name); }
  jax::numpy::Axis axis(std::string_view name) const;
  DType dtype(std::string_view name) const;  // canonical; warns if 64 bits were requested but x64 is off
  std::optional<DType> optional_dtype(std::string_view name) const;
  Callable callable(std::string_view name) const;
  const Values& variadic(std::string_view name) const;  // of *name
  // Raises NotImplementedError if a jax argument that is not supported is given.
  void require_absent(std::string_view name) const;

 private:
  [[noreturn]] void refuse(std::string_view name, const char* expected) const;
  int64_t integer_of(std::string_view name, const Value& value) const;

  std::string_view function_;
  const Signature& signature_;
  const Values& values_;
};

// An array, number, or nested sequence of them as an array; weak types only for plain numbers. `dtype` is canonical.
Array array_of(const Value& value, const char* function, std::optional<DType> dtype = std::nullopt);
std::optional<DType> dtype_of(const Value& value);  // of a dtype or its name

struct Function {
  std::string_view name;
  std::string_view signature;
  Value (*call)(const Arguments&);
  std::string_view doc;
  int ufunc_inputs = 0;  // of a universal function: one with reduce, accumulate, at and outer
};

using Family = std::span<const Function>;

struct Module {
  std::string_view name;  // numpy, numpy.linalg, lax, ... of jax; or capibara.kernels
  std::vector<Family> families;
};

// In Python notation: "svd(a, full_matrices=True) -> ...".
std::string text_of(const Function& function);

const std::vector<Module>& modules();
const Function* find_function(std::string_view module, std::string_view name);

}  // namespace capibara::library
