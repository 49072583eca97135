// Reads the syntax tree of a StableHLO module into a program.
#pragma once

#include <capibara/error.h>
#include <capibara/program.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/stablehlo/sharding_text.h"
#include "compiler/stablehlo/syntax/syntax.h"
#include "program/ir/callback.h"

namespace capibara::stablehlo {

// A call of a function of the language that the module was written in, which is known by its number alone.
struct NumberedCall {
  int64_t number = 0;
  std::vector<std::optional<ArrayType>> operands, results;  // nothing: a token
};

struct ReadOptions {
  // Makes the function behind a call of jax's callbacks; empty: such calls are refused.
  std::function<std::shared_ptr<const Callback>(const NumberedCall&)> numbered_calls;
  // What the entry is read for, where its text leaves sizes open; empty: as it declares its arguments.
  Types arguments = {};
  // Keeps what a text says of places inside of functions, which changes no values: for those who ask how results lie.
  bool placements = false;
};

// Sizes of arguments that a module's own assertions forbid.
class ShapeError : public ValueError {
 public:
  using ValueError::ValueError;
};

// The program of @main, or of the only public function. Raises ParseError where the module makes no sense and
// UnsupportedError (operations.h) where this library cannot do what it asks.
Program read_module(const Module& module, const ReadOptions& options = {});

// What the function of read_module says of an argument or a result beyond its type.
struct EntryValue {
  Type type;
  std::optional<ShardingText> sharding;
  std::string gspmd_sharding;  // in the words of GSPMD, which are not read; empty: none
  std::string memory_kind;  // empty: none
  bool donated = false;     // an argument whose memory a result may take
};
struct Entry {
  std::string name;
  std::vector<EntryValue> arguments, results;
};
Entry read_entry(const Module& module);
// The mesh of a name; ParseError where the module declares none.
DeviceMesh find_mesh(const Module& module, const Operation& reader, const std::string& name);

}  // namespace capibara::stablehlo
