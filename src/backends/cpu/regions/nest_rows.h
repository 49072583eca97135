// RowNest: the writer of nests with rows, in two files: nest_rows.cpp (stages of a row) and nest_sums.cpp (sums that
// several iterations of the outermost loop accumulate together).
#pragma once

#include "backends/cpu/regions/nest.h"

namespace capibara::cpu {

class RowNest : public NestWriter {
 public:
  RowNest(const Program& program, const Fusion& fusion, const Group& group, const Aliases& aliases);
  std::vector<Region> write();

 private:
  // A value computed by a group with rows: one per row, one per position of the row, or sums of columns.
  struct Item {
    int equation;
    bool per_row, reduces, column;
    int level = 0;  // a value per row is available after this stage; one per position is computed in it
    std::vector<Access> reads;
  };
  using Items = std::vector<const Item*>;

  // The sums that iterations leave for a second region: `pieces` sets, each of `size` elements, in `bytes` of memory.
  struct Partials {
    int64_t pieces, size, bytes;
  };
  // A part of a sum in that memory: its type, and its offset in elements of that type.
  struct Slot {
    Scalar type;
    int64_t offset;
  };

  // ---- stages (nest_rows.cpp) ---------------------------------------------------------------------------------------
  void plan_stages();
  void choose_loops();
  Index row_index(Var var) const;
  void make_scratch();
  void zero_rows();
  void write_row();
  void finish_row_values(int level);
  void store_row_values();
  void run_stage(int stage);
  std::pair<Items, std::vector<Value>> stage_sums(int stage);
  std::vector<Builder::Initial> start_of(const Items& sums);
  std::vector<Value> joined_sums(const Items& sums, std::span<const Value> values);
  void know_sums(const Items& sums, std::span<const Value> values);
  bool finished_before(int e) const;
  std::optional<Element> held(Var var, int own, const Index& index) override;
  int64_t ahead_of(Var var, const Affine& place) const override;
  Value lane_position(std::size_t k) const { return symbols_[inner_[k].last]; }
  Address scratch_address(int32_t buffer) const;
  template <class Write>
  std::vector<Value> inner_nest(std::size_t depth, const std::vector<Builder::Initial>& carried, Write&& write) {
    const bool innermost = depth + 1 == inner_.size();
    const int64_t extent = innermost && lane_extent_ > 0 ? lane_extent_ : inner_[depth].extent;
    const Builder::LoopOptions options{.lanes = innermost, .extent_value = innermost ? lane_rest_ : no_value};
    return builder_.loop(extent, options, carried, [&](Value position, std::span<const Value> values) {
      Scoped scope(*this);
      enter(inner_[depth], position);
      if (innermost) {
        zero_unset();
        return write(values);
      }
      std::vector<Builder::Initial> further = carried;
      for (std::size_t i = 0; i < further.size(); ++i) further[i].value = values[i];
      return inner_nest(depth + 1, further, write);
    });
  }
  template <class Write>
  void over_inner(Write&& write) {
    inner_nest(0, {}, [&](std::span<const Value>) {
      write();
      return std::vector<Value>();
    });
  }

  // ---- sums that several iterations accumulate (nest_sums.cpp) ------------------------------------------------------
  bool has_long_rows() const;
  void write_pieces();
  Region join_pieces(const Partials& partials);
  void write_columns();
  void write_folded_columns(int64_t folded);
  Region join_columns(const Partials& partials);
  void make_sums(int64_t width);
  void clear_sums();
  void put_sums(Value chunk, int64_t chunks);
  void put_partials(const Element& sum, std::size_t& slot, Value chunk);
  void fold_sums(int64_t folded, Value chunk);
  Element sum_at(int e);
  void store_sum(int e, const Element& sum);
  Affine column_place() const;
  Items split_sums() const;
  void open_partials(int64_t pieces, int64_t size);
  std::vector<Value> joined_partials(std::span<const Value> values, const std::vector<Term>& place, const Items& sums);
  Value rest_of(Value begin, int64_t extent, int64_t width);
  Value digit(Value& number, int64_t base);
  void shift_inner(Value begin);

  Index index_;
  std::vector<Item> items_;
  int stages_ = 0, stage_ = 0;
  std::vector<int> read_later_;
  std::map<int, int32_t> scratch_;
  std::map<int32_t, int> last_read_;  // the stage in which a variable is last read

  std::vector<Loop> outer_, summed_, inner_;  // rows, rows that columns sum over, and dimensions inside a row
  std::optional<Loop> run_;                   // summed rows and their inner dimensions as one loop, if possible
  std::vector<int64_t> inner_strides_;
  int64_t width_ = 1;        // of a row
  int64_t lane_extent_ = 0;  // of the innermost loop if it runs over a part of the row
  Value lane_rest_ = no_value;

  std::map<int, std::vector<int32_t>> sums_;  // buffers of the frame, one per part
  std::optional<Partials> partials_;
  std::vector<Slot> slots_;
  int32_t room_ = 0;
};

}  // namespace capibara::cpu
