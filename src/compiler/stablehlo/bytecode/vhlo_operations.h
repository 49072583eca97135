// The operations of VHLO, StableHLO's versioned twin: since when and until when, and how their attributes are ours.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace capibara::stablehlo {

// The form that an attribute has in our syntax tree, where VHLO's own is another one.
enum class VhloForm : std::uint8_t {
  same,
  integers,   // array<i64: ..>; in VHLO a tensor
  flags,      // array<i1: ..>; in VHLO a tensor
  unit,       // there or not; in VHLO true or false
  symbol,     // @name; in VHLO a string
  symbols,    // [@name]; in VHLO strings
  list,       // a list of numbers in a structure; in VHLO a tensor
  word,       // a type's name in a structure; in VHLO the type
  interface,  // the number of a custom call's interface; in VHLO a name
};

// What VHLO says where the tree has no attribute, and what is left out of the tree.
enum class VhloAbsence : std::uint8_t {
  error,  // it must be there
  no,
  zero,
  minus_one,
  one,  // the original interface of custom calls
  empty_text,
  empty_list,
  empty_dictionary,
  empty_numbers,       // of a structure's list
  nothing,             // the type `none`
  no_type,             // of a comparison
  standard_precision,  // of two operands
  standard_accuracy,
  ones,          // one for each dimension of the window
  falses,        // likewise
  zero_padding,  // likewise, pairs
};

struct VhloAttribute {
  std::string_view name;  // VHLO's
  VhloForm form = VhloForm::same;
  VhloAbsence absence = VhloAbsence::error;
  // An attribute of StableHLO that VHLO takes apart: its name, its kind, and the field; else empty.
  std::string_view structure = {}, kind = {}, field = {};
};

// A version of VHLO, 1.15; patches add nothing.
struct VhloVersion {
  int major = 0, minor = 0;
  friend auto operator<=>(const VhloVersion&, const VhloVersion&) = default;
};
inline constexpr VhloVersion vhlo_written{1, 15};
inline constexpr VhloVersion vhlo_newest{1, 20};
inline constexpr VhloVersion vhlo_without_end{1 << 20, 0};

struct VhloOperation {
  std::string_view name;                  // "vhlo.dot_general_v2"
  std::string_view stablehlo;             // "stablehlo.dot_general"
  VhloVersion since, until;               // both among those that have it
  std::vector<VhloAttribute> attributes;  // in the order of the file, that of their names
};

// Null for names that it does not have.
const VhloOperation* find_vhlo(std::string_view name);
// The operation of the version that is written.
const VhloOperation* find_vhlo_of(std::string_view stablehlo);

}  // namespace capibara::stablehlo
