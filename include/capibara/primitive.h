// PrimitiveRecord: everything the library knows about one primitive; each rule is a slot that may be empty.
#pragma once

#include <capibara/program.h>
#include <capibara/traits.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capibara {

using Types = std::vector<ArrayType>;
using Arrays = std::vector<Array>;

inline constexpr int64_t not_mapped = -1;

// ---- arguments and results of rules; an empty Array is a symbolic zero -----------------------------------------

struct JvpArgs {
  const Primitive& primitive;
  std::span<const Array> primals;
  std::span<const Array> tangents;  // at least one is not a symbolic zero
  const Attrs& attrs;
};
struct JvpResult {
  Arrays primals;
  Arrays tangents;
};

struct TransposeArgs {
  const Primitive& primitive;
  std::span<const Array> cotangents;  // one per output
  std::span<const Array> inputs;      // empty if the equation is linear in that input
  std::span<const ArrayType> types;   // of all inputs
  const Attrs& attrs;

  bool linear(std::size_t i) const { return !inputs[i].defined(); }
};

// The mapped axis that a batch rule handles.
struct MappedAxis {
  std::string name;  // empty: anonymous
  int64_t size = 0;
  Sharding split = {};  // of an array with this dimension only: the Explicit axes that split it
};
struct BatchArgs {
  const Primitive& primitive;
  const MappedAxis& axis;
  std::span<const Array> inputs;
  std::span<const int64_t> dims;  // position of the mapped axis in each input, or not_mapped
  const Attrs& attrs;

  bool mapped(std::size_t i) const { return dims[i] != not_mapped; }
};
struct BatchResult {
  Arrays outputs;
  std::vector<int64_t> dims;
};

// Which values may be kept between the known and the staged half of a split; true: may be saved.
using SavePolicy = std::function<bool(const Primitive&, std::span<const ArrayType>, const Attrs&)>;

// An equation split by which inputs are known: the known half runs now, the staged half later.
struct PartialEvalArgs {
  const Primitive& primitive;
  std::span<const ArrayType> types;
  const Attrs& attrs;
  std::vector<bool> unknown;           // one per input
  const SavePolicy* policy = nullptr;  // null: everything may be saved
};
struct PartialEvalSplit {
  std::vector<bool> unknown_outputs;
  // Known inputs, in order -> known outputs, in order, then residuals. Inlined at its uses.
  Program known;
  int residual_count = 0;
  // Operands, in the order given -> unknown outputs, in order. Inlined as well.
  struct Operand {
    bool residual;  // else an input of the original equation
    int index;
  };
  Program staged;
  std::vector<Operand> operands;
};

struct DceResult {
  std::vector<bool> used_inputs;
  Attrs attrs;                // of the smaller equation; its primitive is unchanged
  std::vector<bool> outputs;  // those the smaller equation still computes; empty: the used ones
};

struct TypeResult {
  Types types;
  Effects effects;
  TypeResult(Types t) : types(std::move(t)) {}
  TypeResult(Types t, Effects e) : types(std::move(t)), effects(std::move(e)) {}
};

using TypeRule = std::function<TypeResult(std::span<const ArrayType>, const Attrs&)>;
using JvpRule = std::function<JvpResult(const JvpArgs&)>;
using TransposeRule = std::function<Arrays(const TransposeArgs&)>;  // one per input, empty if not linear or zero
using BatchRule = std::function<BatchResult(const BatchArgs&)>;
using PartialEvalRule = std::function<PartialEvalSplit(const PartialEvalArgs&)>;
using DceRule = std::function<DceResult(const Attrs&, const std::vector<bool>& used_outputs)>;
using LowerRule = std::function<Arrays(std::span<const Array>, const Attrs&)>;     // composes simpler primitives
using EvaluateRule = std::function<Arrays(std::span<const Array>, const Attrs&)>;  // for user primitives: runs eagerly

using FactorRule = std::function<struct Factors(const struct EquationTypes&)>;  // capibara/factors.h
using LocaliseRule = std::function<Attrs(const EquationTypes&)>;  // types of parts; attributes of the whole

// An equation under Explicit axes of a mesh.
struct SplitArgs {
  const Primitive& primitive;
  std::span<const ArrayType> operands;  // with the axes that split them
  std::span<const ArrayType> results;   // without
  const Attrs& attrs;
  const Mesh& mesh;
};
// How each result is split, one entry per dimension; raises ShardingTypeError if ambiguous.
using SplitRule = std::function<std::vector<PartitionSpec>(const SplitArgs&)>;

// One call of a primitive for tests and documentation: operand types, attributes, and the range of its values.
struct Sample {
  Types inputs;
  Attrs attrs;
  double low = -2.0, high = 2.0;  // uniform operand values
  bool integers_are_indices = false;
};
using SampleMaker = std::function<std::vector<Sample>(DType)>;

struct PrimitiveRecord {
  std::string name;
  std::string doc;
  std::vector<DType> dtypes;  // of the first operand; empty: any
  TypeRule type;
  JvpRule jvp;
  TransposeRule transpose;
  BatchRule batch;
  PartialEvalRule partial_eval;  // empty: unknown as soon as one input is unknown
  DceRule dce;                   // empty: all inputs are used when any output is
  LowerRule lower;               // empty: the primitive itself is part of the StableHLO subset
  std::string stablehlo;         // operation name where the primitive is in the subset
  EvaluateRule evaluate;         // user primitives
  SampleMaker samples;
  Traits traits;
  bool differentiable = true;  // false: outputs carry no tangent (comparisons, argmax), the tangent is zero
  std::function<double(std::span<const ArrayType>, const Attrs&)> flops;
  std::function<std::optional<std::string>(const std::string&, const Attr&)> print_attr;  // jaxpr text of an attribute

  FactorRule factors;     // empty: by traits
  LocaliseRule localise;  // attributes of the equation on parts of its operands; empty: the same
  SplitRule splits;       // of results under Explicit axes; empty: by factors
};

// ---- the catalog ------------------------------------------------------------------------------------------------

const std::vector<Primitive>& catalog();     // every built-in primitive, by family
Primitive primitive(std::string_view name);  // raises NameError with the nearest name
std::optional<Primitive> find_primitive(std::string_view name);
Primitive make_primitive(PrimitiveRecord record);  // a user's primitive; not in the catalog

// Applies a primitive to arrays under the current trace. Call it as capibara::bind: std::bind is found otherwise.
Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs = {});
Array bind1(const Primitive& primitive, std::initializer_list<Array> inputs, const Attrs& attrs = {});

}  // namespace capibara
