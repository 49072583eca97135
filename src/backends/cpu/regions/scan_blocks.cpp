// Scans block by block: carries stay in the memory of their final values, sequences in columns go through tiles in the
// frame.
#include "backends/cpu/regions/scan_blocks.h"

#include <unordered_map>

#include "backends/cpu/elements/element.h"
#include "backends/cpu/loops/builder.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

namespace capibara::cpu {

namespace {

constexpr int64_t rows_at_once = 4;  // of a tile: their stores become whole vectors
constexpr double nanoseconds_per_step = 0.15, nanoseconds_per_long_step = 1.0;

class ScanBlocks {
 public:
  ScanBlocks(const Equation& scan, const std::vector<bool>& in_place)
      : view_(scan),
        body_(view_.body()),
        size_(element_count(elementwise_scan(scan)->shape)),
        block_(block_elements(scan)),
        builder_(function_) {
    const std::vector<SequenceLayout> layouts = layouts_of(scan);
    const std::size_t first_carry = view_.consts(), first_xs = view_.first_xs();
    for (std::size_t i = 0; i < body_.invars().size(); ++i) {
      const ArrayType& type = body_.type(body_.invars()[i]);
      const bool carried = i >= first_carry && i < first_xs;
      if (carried && in_place[i - first_carry])
        inputs_.push_back(-1);
      else
        inputs_.push_back(parameter(type, i < first_xs ? 1 : view_.length()));
      if (i >= first_xs) sequences_.push_back({inputs_.back(), type.dtype, layouts[i - first_xs], is_number(type)});
    }
    for (std::size_t i = 0; i < body_.outputs().size(); ++i) {
      const ArrayType& type = body_.type(body_.outputs()[i]);
      outputs_.push_back(parameter(type, i < view_.carry() ? 1 : view_.length()));
      if (i >= view_.carry())
        stacks_.push_back({outputs_.back(), type.dtype, layouts[view_.xs() + i - view_.carry()], false});
    }
    for (std::size_t i = 0; i < in_place.size(); ++i) {
      if (in_place[i]) inputs_[first_carry + i] = outputs_[i];
    }
  }

  Function write() {
    const int64_t blocks = (size_ + block_ - 1) / block_;
    builder_.loop(blocks, {.parallel = true}, {}, [&](Value block, std::span<const Value>) {
      start_ = builder_.compute(Op::mul, block, builder_.index(block_));
      count_ = no_value;
      if (size_ % block_ != 0) {
        const Value rest = builder_.compute(Op::sub, builder_.index(size_), start_), whole = builder_.index(block_);
        count_ = builder_.compute(Op::select, builder_.compute(Op::lt, rest, whole), rest, whole);
      }
      for (Sequence& sequence : sequences_) {
        if (sequence.layout.columns) read_tile(sequence);
      }
      for (Sequence& stack : stacks_) {
        if (stack.layout.columns) stack.tile = builder_.local(view_.length() * tile_step() * storage_size(stack.dtype));
      }
      start_carries();
      run_steps();
      for (const Sequence& stack : stacks_) {
        if (stack.layout.columns) write_tile(stack);
      }
      return std::vector<Value>();
    });
    double step = 0;
    for (const Equation& equation : body_.equations()) {
      step += nanoseconds_per_step + (is_expensive(equation.primitive) ? nanoseconds_per_long_step : 0);
    }
    step += nanoseconds_per_step * static_cast<double>(sequences_.size() + stacks_.size());
    function_.cost = step * static_cast<double>(view_.length() * block_);
    return std::move(function_);
  }

 private:
  struct Sequence {
    int32_t buffer;
    DType dtype;
    SequenceLayout layout;
    bool number;        // a scalar per step
    int32_t tile = -1;  // in the frame: steps x elements of the block
  };

  static bool is_number(const ArrayType& type) { return type.size() == 1; }

  int32_t parameter(const ArrayType& type, int64_t steps) {
    return builder_.parameter(steps * type.size() * storage_size(type.dtype), false);
  }

  // Rows of a tile begin in different cache sets.
  int64_t tile_step() const { return block_ + rows_at_once; }

  template <class Write>
  void plain_loop(int64_t extent, Value extent_value, bool lanes, Write&& write) {
    builder_.loop(extent, {.lanes = lanes, .extent_value = extent_value}, {}, [&](Value index, std::span<const Value>) {
      write(index);
      return std::vector<Value>();
    });
  }
  // Loops over the elements of the block, in lanes.
  template <class Write>
  void elements_loop(Write&& write) {
    plain_loop(block_, count_, true, write);
  }

  // ---- tiles ------------------------------------------------------------------------------------------------------

  void read_tile(Sequence& sequence) {
    const int64_t length = view_.length();
    sequence.tile = builder_.local(length * tile_step() * storage_size(sequence.dtype));
    auto rows = [&](Value first, int64_t count) {
      plain_loop(length, no_value, true, [&](Value step) {
        std::vector<Element> elements;
        for (int64_t k = 0; k < count; ++k) {
          const Address from{sequence.buffer, k * length, {{start_, length}, {first, length}, {step, 1}}};
          elements.push_back(load_element(builder_, sequence.dtype, from));
        }
        for (int64_t k = 0; k < count; ++k) {
          store_element(builder_, sequence.dtype, {sequence.tile, k, {{step, tile_step()}, {first, 1}}},
                        elements[at(k)]);
        }
      });
    };
    const Value together = builder_.index(rows_at_once);
    const Value groups = count_ == no_value ? no_value : builder_.compute(Op::divide_unsigned, count_, together);
    plain_loop(block_ / rows_at_once, groups, false,
               [&](Value group) { rows(builder_.compute(Op::mul, group, together), rows_at_once); });
    if (count_ == no_value) return;
    const Value done = builder_.compute(Op::mul, groups, together);
    plain_loop(rows_at_once, builder_.compute(Op::sub, count_, done), false,
               [&](Value row) { rows(builder_.compute(Op::add, done, row), 1); });
  }

  void write_tile(const Sequence& stack) {
    const int64_t length = view_.length();
    auto rows = [&](Value first) {
      elements_loop([&](Value e) {
        std::vector<Element> elements;
        for (int64_t k = 0; k < rows_at_once; ++k) {
          elements.push_back(
              load_element(builder_, stack.dtype, {stack.tile, k * tile_step(), {{first, tile_step()}, {e, 1}}}));
        }
        for (int64_t k = 0; k < rows_at_once; ++k) {
          store_element(builder_, stack.dtype, {stack.buffer, k, {{start_, length}, {e, length}, {first, 1}}},
                        elements[at(k)]);
        }
      });
    };
    // The last four steps are written as a whole, some of them for the second time.
    const Value together = builder_.index(rows_at_once);
    plain_loop(length / rows_at_once, no_value, false,
               [&](Value group) { rows(builder_.compute(Op::mul, group, together)); });
    if (length % rows_at_once != 0) rows(builder_.index(length - rows_at_once));
  }

  // ---- steps ------------------------------------------------------------------------------------------------------

  void start_carries() {
    for (std::size_t i = 0; i < view_.carry(); ++i) {
      const int32_t from = inputs_[view_.consts() + i], to = outputs_[i];
      const ArrayType& type = body_.type(body_.outputs()[i]);
      if (from == to || is_number(type)) continue;
      elements_loop([&](Value e) {
        store_element(builder_, type.dtype, in_block(to, e), load_element(builder_, type.dtype, in_block(from, e)));
      });
    }
  }

  Address in_block(int32_t buffer, Value e) const { return {buffer, 0, {{start_, 1}, {e, 1}}}; }

  // The address in the step that iteration `step` computes.
  Address in_step(const Sequence& sequence, Value step, Value e) const {
    const int64_t length = view_.length();
    const bool backwards = view_.reverse() != sequence.layout.reversed;
    const int64_t factor = sequence.number ? 1 : sequence.layout.columns ? tile_step() : size_;
    Address address{
        sequence.layout.columns ? sequence.tile : sequence.buffer, backwards ? (length - 1) * factor : 0, {}};
    address.terms.push_back({step, backwards ? -factor : factor});
    if (sequence.number) return address;
    if (!sequence.layout.columns) address.terms.push_back({start_, 1});
    address.terms.push_back({e, 1});
    return address;
  }

  using Known = std::unordered_map<int32_t, Element>;

  Element known(const Known& values, Atom atom) {
    if (!atom.is_literal()) return values.at(atom.code);
    const Array& literal = body_.literal(atom);
    return constant_element(builder_, literal.dtype(), literal.raw_data());
  }

  // Emits the equations of scalars, or those of arrays, which may read scalars.
  void write_equations(Known& values, bool numbers) {
    for (const Equation& equation : body_.equations()) {
      const Var output = equation.outputs[0];
      if (is_number(body_.type(output)) != numbers) continue;
      if (stretches(body_, equation)) {
        values[output.id] = known(values, equation.inputs[0]);
        continue;
      }
      std::vector<Element> inputs;
      std::vector<DType> dtypes;
      for (Atom input : equation.inputs) {
        inputs.push_back(known(values, input));
        dtypes.push_back(body_.type(input).dtype);
      }
      values[output.id] =
          apply_elementwise(builder_, equation.primitive, equation.attrs, dtypes, body_.type(output).dtype, inputs);
    }
  }

  void run_steps() {
    const std::size_t first_carry = view_.consts(), carry = view_.carry();
    auto type_of = [&](std::size_t input) -> const ArrayType& { return body_.type(body_.invars()[input]); };
    Known given;
    std::vector<Builder::Initial> initial;
    for (std::size_t i = 0; i < first_carry + carry; ++i) {
      if (!is_number(type_of(i))) continue;
      const Element number = load_element(builder_, type_of(i).dtype, {inputs_[i], 0, {}});
      if (i < first_carry)
        given[body_.invars()[i].id] = number;
      else
        initial.push_back({number.parts[0]});
    }
    const std::vector<Value> last =
        builder_.loop(view_.length(), {.poll = true}, initial, [&](Value step, std::span<const Value> carried) {
          Known values = given;
          std::size_t next = 0;
          for (std::size_t i = first_carry; i < first_carry + carry; ++i) {
            if (is_number(type_of(i))) values[body_.invars()[i].id] = Element(carried[next++]);
          }
          for (std::size_t i = 0; i < sequences_.size(); ++i) {
            if (!sequences_[i].number) continue;
            values[view_.xs(body_.invars())[i].id] =
                load_element(builder_, sequences_[i].dtype, in_step(sequences_[i], step, no_value));
          }
          write_equations(values, true);
          elements_loop([&](Value e) { write_step(values, step, e); });
          std::vector<Value> following;
          for (std::size_t i = 0; i < carry; ++i) {
            if (is_number(type_of(first_carry + i))) following.push_back(known(values, body_.outputs()[i]).parts[0]);
          }
          return following;
        });
    std::size_t next = 0;
    for (std::size_t i = 0; i < carry; ++i) {
      const ArrayType& type = type_of(first_carry + i);
      if (is_number(type)) store_element(builder_, type.dtype, {outputs_[i], 0, {}}, Element(last[next++]));
    }
  }

  // All reads precede all writes.
  void write_step(Known values, Value step, Value e) {
    const std::size_t first_xs = view_.first_xs(), carry = view_.carry();
    for (std::size_t i = 0; i < first_xs; ++i) {
      const Var input = body_.invars()[i];
      if (is_number(body_.type(input))) continue;
      const int32_t buffer = i < view_.consts() ? inputs_[i] : outputs_[i - view_.consts()];
      values[input.id] = load_element(builder_, body_.type(input).dtype, in_block(buffer, e));
    }
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      if (sequences_[i].number) continue;
      values[view_.xs(body_.invars())[i].id] =
          load_element(builder_, sequences_[i].dtype, in_step(sequences_[i], step, e));
    }
    write_equations(values, false);
    for (std::size_t i = 0; i < body_.outputs().size(); ++i) {
      const Atom output = body_.outputs()[i];
      const ArrayType& type = body_.type(output);
      if (is_number(type)) continue;
      if (i >= carry) {
        store_element(builder_, type.dtype, in_step(stacks_[i - carry], step, e), known(values, output));
      } else if (output != Atom(body_.invars()[view_.consts() + i])) {
        store_element(builder_, type.dtype, in_block(outputs_[i], e), known(values, output));
      }
    }
  }

  const ScanView view_;
  const Program& body_;
  const int64_t size_, block_;  // elements of a value, and of a block
  Function function_;
  Builder builder_;
  std::vector<int32_t> inputs_, outputs_;  // buffers of the body's inputs and outputs
  std::vector<Sequence> sequences_, stacks_;
  Value start_ = no_value, count_ = no_value;  // of the block; no count if all blocks are full
};

}  // namespace

Function write_scan_blocks(const Equation& scan, const std::vector<bool>& in_place) {
  return ScanBlocks(scan, in_place).write();
}

}  // namespace capibara::cpu
