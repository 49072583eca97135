// Errors that users can catch, and the separate type for bugs in the library itself.
#pragma once

#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace capibara {

namespace detail {

// A value and its print function: a call of concat compiles to little more than a list of these.
struct Piece {
  const void* value;
  void (*print)(std::ostream& out, const void* value);

  template <class T>
  static Piece of(const T& value) {
    if constexpr (std::is_convertible_v<const T&, const char*>) {
      return {static_cast<const char*>(value), print_text};
    } else {
      return {&value, print_value<T>};
    }
  }

 private:
  template <class T>
  static void print_value(std::ostream& out, const void* value) {
    out << *static_cast<const T*>(value);
  }
  static void print_text(std::ostream& out, const void* text) { out << static_cast<const char*>(text); }
};

[[gnu::noinline]] inline std::string joined(std::initializer_list<Piece> pieces) {
  std::ostringstream out;
  for (const Piece& piece : pieces) piece.print(out, piece.value);
  return out.str();
}

}  // namespace detail

// Joins any printable pieces into one string; the library's only formatter.
template <class... Pieces>
std::string concat(const Pieces&... pieces) {
  return detail::joined({detail::Piece::of(pieces)...});
}

// The base of every error caused by the user's input or program.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A wrong type, dtype, shape or structure.
class TypeError : public Error {
 public:
  using Error::Error;
};

// A right type with an unacceptable value.
class ValueError : public Error {
 public:
  using Error::Error;
};

// A number that its dtype cannot hold.
class OverflowError : public ValueError {
 public:
  using ValueError::ValueError;
};

class IndexError : public Error {
 public:
  using Error::Error;
};

// A pair of dtypes without a common type.
class TypePromotionError : public ValueError {
 public:
  using ValueError::ValueError;
};

// A name that does not exist: an unbound axis, an unknown function or attribute.
class NameError : public Error {
 public:
  using Error::Error;
};

// Something went wrong while a program ran: a deleted buffer, a failing callback, no memory.
class RuntimeError : public Error {
 public:
  using Error::Error;
};

// A NaN or infinity found by the debug modes.
class FloatingPointError : public Error {
 public:
  using Error::Error;
};

// A rule (jvp, transpose, batch...) that a primitive lacks.
class NotImplementedError : public Error {
 public:
  using Error::Error;
};

// A concrete value was needed but only a tracer is available.
class ConcretizationTypeError : public TypeError {
 public:
  using TypeError::TypeError;
};

class TracerBoolConversionError : public ConcretizationTypeError {
 public:
  using ConcretizationTypeError::ConcretizationTypeError;
};

class NonConcreteBooleanIndexError : public IndexError {
 public:
  using IndexError::IndexError;
};

// A tracer was used after its trace had ended, or on another thread.
class UnexpectedTracerError : public TypeError {
 public:
  using TypeError::TypeError;
};

// The axes of a mesh split the operands of an operation such that the sharding of its result is ambiguous.
class ShardingTypeError : public Error {
 public:
  using Error::Error;
};

// A program that breaks its own typing rules.
class ProgramTypeError : public TypeError {
 public:
  using TypeError::TypeError;
};

// Text that is not a valid StableHLO program; reports line and column.
class ParseError : public ValueError {
 public:
  using ValueError::ValueError;
};

// A bug in capibara, not in the user's program.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace capibara
