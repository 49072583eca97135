// Program: a typed, immutable sequence of equations in static single assignment form, printed as a jaxpr.
#pragma once

#include <capibara/attributes.h>
#include <capibara/effects.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace capibara {

class Primitive;

// A variable of one program: an index into its table of types.
struct Var {
  int32_t id = -1;
  bool dropped() const { return id < 0; }  // an output that is never read, printed as _
  friend bool operator==(Var, Var) = default;
};

// An operand: a variable, or a literal (a rank-0 constant stored in the program's table).
struct Atom {
  int32_t code = 0;  // >= 0: variable id; < 0: literal ~code

  Atom() = default;
  Atom(Var var) : code(var.id) {}
  static Atom literal(int32_t index) {
    Atom atom;
    atom.code = ~index;
    return atom;
  }
  bool is_literal() const { return code < 0; }
  Var var() const { return Var{code}; }
  int32_t literal_index() const { return ~code; }
  friend bool operator==(Atom, Atom) = default;
};

// Where an equation came from: an interned id, resolved only for printing. Not part of equality or hash.
struct Source {
  uint32_t id = 0;
};

class Primitive {
 public:
  Primitive() = default;
  explicit Primitive(std::shared_ptr<const struct PrimitiveRecord> record) : record_(std::move(record)) {}
  const PrimitiveRecord& record() const { return *record_; }
  const PrimitiveRecord* operator->() const { return record_.get(); }
  const std::string& name() const;
  bool defined() const { return record_ != nullptr; }
  bool is(std::string_view name) const { return this->name() == name; }
  friend bool operator==(const Primitive& a, const Primitive& b) { return a.record_ == b.record_; }

 private:
  std::shared_ptr<const PrimitiveRecord> record_;
};

struct Equation {
  Primitive primitive;
  std::vector<Atom> inputs;
  std::vector<Var> outputs;
  Attrs attrs;
  Effects effects;
  Source source;
};

class Program {
 public:
  // The contents of a program; filled by a builder, then frozen.
  struct Body {
    std::string name;  // of the traced function; printed, not compared
    std::vector<ArrayType> var_types;
    std::vector<Var> constvars;    // bound to `constants`
    std::vector<Array> constants;  // concrete arrays
    std::vector<Var> invars;
    std::vector<Equation> equations;
    std::vector<Atom> outputs;
    std::vector<Array> literals;
    Effects effects;
  };

  Program() = default;
  explicit Program(Body body);  // computes the hash; does not verify

  bool defined() const { return body_ != nullptr; }
  const std::string& name() const { return body_->name; }
  const std::vector<Var>& invars() const { return body_->invars; }
  const std::vector<Var>& constvars() const { return body_->constvars; }
  const std::vector<Array>& constants() const { return body_->constants; }
  const std::vector<Equation>& equations() const { return body_->equations; }
  const std::vector<Atom>& outputs() const { return body_->outputs; }
  const Effects& effects() const { return body_->effects; }
  const Body& body() const { return *body_; }

  const ArrayType& type(Var var) const { return body_->var_types[static_cast<std::size_t>(var.id)]; }
  const ArrayType& type(Atom atom) const { return atom.is_literal() ? literal(atom).type() : type(atom.var()); }
  const Array& literal(Atom atom) const { return body_->literals[static_cast<std::size_t>(atom.literal_index())]; }
  int32_t var_count() const { return static_cast<int32_t>(body_->var_types.size()); }
  std::vector<ArrayType> input_types() const;
  std::vector<ArrayType> output_types() const;

  Program renamed(std::string name) const;

  std::string to_string() const;  // jaxpr text
  std::size_t hash() const { return hash_; }
  const void* identity() const { return body_.get(); }  // equal for copies of one program
  // Structural equality: the same equations over the same types, regardless of names and sources.
  friend bool operator==(const Program& a, const Program& b);

 private:
  std::shared_ptr<const Body> body_;
  std::size_t hash_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Program& program);

// Raises ProgramTypeError unless a program is well typed. Equations satisfy the type rules of their primitives,
// variables are defined once and before use, and effects are complete.
void verify(const Program& program);

// The StableHLO text of a program.
std::string to_stablehlo(const Program& program, const std::string& module_name = "main");
// The program of a StableHLO text or portable artifact (MLIR bytecode); its functions become nested programs. If its
// sizes are dynamic, it is read for arguments of these types, from which all sizes follow.
Program from_stablehlo(std::string_view module, const std::vector<ArrayType>& arguments = {});

// Rewrites a program in terms of the primitives that StableHLO has.
Program lower(const Program& program);

}  // namespace capibara
