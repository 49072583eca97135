// The common base of the writers of loop nests: the loops of a group, and the elements that its results depend on.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "backends/cpu/elements/element.h"
#include "backends/cpu/loops/builder.h"
#include "backends/cpu/regions/region.h"

namespace capibara::cpu {

// One loop: a run of dimensions of the space that every access traverses with a single stride.
struct Loop {
  std::size_t first, last;  // dimensions of the space
  int64_t extent;
};

class NestWriter {
 public:
  NestWriter(const Program& program, const Fusion& fusion, const Group& group, const Aliases& aliases);
  NestWriter(const NestWriter&) = delete;
  virtual ~NestWriter() = default;

 protected:
  using Strides = std::vector<std::vector<int64_t>>;  // per access: the factor of each dimension of the space
  using Key = std::pair<int32_t, std::vector<int64_t>>;

  const Equation& equation(int e) const { return program_.equations()[at(e)]; }
  const ArrayType& type(Var var) const { return program_.type(var); }
  static bool listed(const std::vector<int>& list, int e) {
    return std::find(list.begin(), list.end(), e) != list.end();
  }
  // Results and kept values, ascending.
  std::vector<int> members() const;
  Region finish();

  // ---- loops ------------------------------------------------------------------------------------------------------
  void open_space(std::size_t rank);
  static std::vector<int64_t> factors(const Affine& place, std::size_t rank);
  void add_access(const Access& access, std::size_t rank, Strides& strides) const;
  // The accesses that a value at `index` depends on: to memory, or to equations that are computed once.
  std::vector<Access> reads_of(Atom atom, const Index& index, Symbol first_free) const;
  // Neighbouring dimensions of one kind become one loop if every access traverses them with a single stride.
  static std::vector<Loop> joined(const Shape& space, std::span<const int> kinds, const Strides& strides);
  // Sets the symbols of a loop's dimensions: its index counts steps of the last one.
  void enter(const Loop& loop, Value index);
  // Sets the symbols of several loops from a position counted over all of them, the last one fastest.
  void enter_all(std::span<const Loop> loops, Value position);
  void zero_unset();
  static int64_t size_of(std::span<const Loop> loops);

  // Values computed inside a loop are unknown outside it.
  struct Scoped {
    explicit Scoped(NestWriter& writer) : writer(writer), symbols(writer.symbols_) { writer.memo_.emplace_back(); }
    ~Scoped() {
      writer.memo_.pop_back();
      writer.symbols_ = std::move(symbols);
    }
    NestWriter& writer;
    std::vector<Value> symbols;
  };
  // A loop without carries.
  template <class Write>
  void loop(int64_t extent, Builder::LoopOptions options, Write&& write) {
    builder_.loop(extent, options, {}, [&](Value position, std::span<const Value>) {
      Scoped scope(*this);
      write(position);
      return std::vector<Value>();
    });
  }

  // ---- elements (nest_elements.cpp) -------------------------------------------------------------------------------
  Element element(Atom atom, const Index& index);
  Element computed(int e, const Index& index) { return element(Atom(equation(e).outputs[0]), index); }
  Element element_of(const Equation& self, const Index& index);
  // An element that the nest holds in the frame or memory; `own` is the equation of this group that computes it, or -1.
  virtual std::optional<Element> held(Var, int own, const Index&) { return static_cast<void>(own), std::nullopt; }
  // How far ahead of an element read at `place` the nest will soon read, in elements; 0 if right next to it.
  virtual int64_t ahead_of(Var, const Affine& place) const { return static_cast<void>(place), 0; }
  // The equation of this group that computes a variable, -1 if it comes from elsewhere.
  int own_result(Var var) const;
  static Element take(DType dtype, std::span<const Value> values, std::size_t& position);
  static Key key_of(Var var, const Index& index);

  // ---- indices ----------------------------------------------------------------------------------------------------
  Symbol symbol(Value value);
  Value start_value(Atom atom, int64_t last);
  Value value_of(const Affine& place);
  Address address(Var var, const Affine& place);
  int32_t parameter(Var var);
  // Memory of `bytes` bytes that the regions of the group share, and that is used nowhere else.
  int32_t temporary(int64_t bytes);

  const Program& program_;
  const Fusion& fusion_;
  const Group& group_;
  const int group_number_;
  const Aliases& aliases_;
  Region region_;
  Builder builder_;
  std::vector<int> stops_;
  std::unordered_set<const PrimitiveRecord*> shared_;  // functions that are called, not inlined
  std::vector<Value> symbols_;
  std::vector<std::map<Key, Element>> memo_;
  std::map<int32_t, Element> row_known_;    // values that do not depend on the position in the row
  std::vector<int64_t> offsets_, extents_;  // where the loops of the space begin, and their lengths
  double inner_size_ = 1;                   // positions in one iteration of the outermost loop
  std::size_t space_rank_ = 0;              // symbols below this are dimensions of the space

 private:
  Element read(Var var, const Affine& place);
  Element counted_bits(const Equation& self, const Index& index);
  std::optional<Var> own_sum(const Equation& self) const;
  Element guarded(const Equation& self, const Index& index);
  std::optional<std::pair<int64_t, int64_t>> range_of(const Affine& place) const;
  Affine bounded(const Affine& place, int64_t size, Value& inside);
  Element reduced(const Equation& self, const Index& index);
  std::vector<Value> reduce_nest(const Equation& self, DType dtype, const std::vector<std::size_t>& loops,
                                 std::size_t depth, const Shape& shape, Index place, const std::vector<Value>& initial);
  int64_t offset_of(const Affine& place) const;

  std::map<int32_t, int32_t> parameters_;
};

// ---- the nests ----------------------------------------------------------------------------------------------------

// A part of an operand and its destination: offset + index * stride + start.
struct Part {
  Atom value;
  Shape shape;
  Ints first, offsets, strides;
  std::span<const Atom> starts;
};

// nest_flat.cpp: every result has the shape of the space.
Region write_flat_nest(const Program& program, const Fusion& fusion, const Group& group, const Aliases& aliases);
Region write_piece(const Program& program, const Fusion& fusion, const Group& group, const Aliases& aliases, Var target,
                   const Part& part);
// nest_table.cpp: of one large array of 16-bit floats; empty for any other group.
std::vector<Region> write_table_nest(const Program& program, const Fusion& fusion, const Group& group,
                                     const Aliases& aliases);
// nest_rows.cpp: row by row, stage by stage; sums of columns are accumulated as the rows are computed.
std::vector<Region> write_row_nest(const Program& program, const Fusion& fusion, const Group& group,
                                   const Aliases& aliases);

}  // namespace capibara::cpu
