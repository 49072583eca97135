// The operations of VHLO, StableHLO's versioned twin: the versions that have them, and their attributes in our terms.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace capibara::stablehlo {

// The form of an attribute in our syntax tree, if it differs from VHLO's.
enum class VhloForm : std::uint8_t {
  same,
  integers,   // array<i64: ..>; in VHLO a tensor
  flags,      // array<i1: ..>; in VHLO a tensor
  unit,       // present or absent; in VHLO true or false
  symbol,     // @name; in VHLO a string
  symbols,    // [@name]; in VHLO strings
  list,       // a list of numbers in a structure; in VHLO a tensor
  word,       // a type's name in a structure; in VHLO the type
  interface,  // the number of a custom call's interface; in VHLO a name
};

// What VHLO writes for an attribute that is absent in the tree, and that the reader leaves out.
enum class VhloAbsence : std::uint8_t {
  error,  // must be present
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
  ones,          // one per dimension of the window
  falses,        // the same
  zero_padding,  // the same, as pairs
};

struct VhloAttribute {
  std::string_view name;  // in VHLO
  VhloForm form = VhloForm::same;
  VhloAbsence absence = VhloAbsence::error;
  // A StableHLO attribute that VHLO splits into fields: its name, its kind, and the field; otherwise empty.
  std::string_view structure = {}, kind = {}, field = {};
};

// A version of VHLO such as 1.15; patch versions add nothing.
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
  VhloVersion since, until;               // both inclusive
  std::vector<VhloAttribute> attributes;  // in file order, which is that of their names
};

// Null for unknown names.
const VhloOperation* find_vhlo(std::string_view name);
// The operation in the version that is written.
const VhloOperation* find_vhlo_of(std::string_view stablehlo);

}  // namespace capibara::stablehlo
