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

// A call of a function in the language that the module was written in, identified only by its number.
struct NumberedCall {
  int64_t number = 0;
  std::vector<std::optional<ArrayType>> operands, results;  // nullopt: a token
};

struct ReadOptions {
  // Creates the function for a call of jax's callbacks; empty: such calls are rejected.
  std::function<std::shared_ptr<const Callback>(const NumberedCall&)> numbered_calls;
  // The argument types to read the entry for, if its text leaves sizes open; empty: those that it declares.
  Types arguments = {};
  // Keeps sharding annotations inside functions, which change no values: for callers that need the layouts of results.
  bool placements = false;
};

// Argument sizes that a module's own assertions forbid.
class ShapeError : public ValueError {
 public:
  using ValueError::ValueError;
};

// The program of @main, or of the only public function. Raises ParseError if the module is malformed, and
// UnsupportedError (operations.h) if it uses a feature that this library lacks.
Program read_module(const Module& module, const ReadOptions& options = {});

// Properties of an argument or result of read_module's function, beyond its type.
struct EntryValue {
  Type type;
  std::optional<ShardingText> sharding;
  std::string gspmd_sharding;  // in GSPMD's notation, which is not parsed; empty: none
  std::string memory_kind;     // empty: none
  bool donated = false;        // an argument whose memory a result may reuse
};
struct Entry {
  std::string name;
  std::vector<EntryValue> arguments, results;
};
Entry read_entry(const Module& module);
// The mesh of that name; ParseError if the module declares none.
DeviceMesh find_mesh(const Module& module, const Operation& reader, const std::string& name);

}  // namespace capibara::stablehlo
