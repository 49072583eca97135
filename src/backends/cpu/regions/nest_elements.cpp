// Elements of a nest: each is computed where its readers need it, from values in memory or in the frame.
#include <algorithm>

#include "backends/cpu/elements/number.h"
#include "backends/cpu/regions/nest.h"
#include "lax/math/threefry.h"
#include "program/ir/handles.h"

namespace capibara::cpu {

NestWriter::Key NestWriter::key_of(Var var, const Index& index) {
  std::vector<int64_t> words;
  for (const Affine& entry : index) {
    words.push_back(entry.constant);
    words.push_back(static_cast<int64_t>(entry.terms.size()));
    for (const auto& [symbol, factor] : entry.terms) words.insert(words.end(), {symbol, factor});
  }
  return {var.id, std::move(words)};
}

int NestWriter::own_result(Var var) const {
  const int definition = fusion_.definition[at(var.id)];
  return definition >= 0 && fusion_.home[at(definition)] == group_number_ ? definition : -1;
}

Element NestWriter::take(DType dtype, std::span<const Value> values, std::size_t& position) {
  Element element;
  element.count = part_count(dtype);
  for (int part = 0; part < element.count; ++part) element.parts[part] = values[position++];
  return element;
}

Element NestWriter::element(Atom atom, const Index& index) {
  if (atom.is_literal()) {
    const Array& literal = program_.literal(atom);
    return constant_element(builder_, literal.dtype(), literal.raw_data());
  }
  const Var var = atom.var();
  if (auto row = row_known_.find(var.id); row != row_known_.end()) return row->second;
  Key key = key_of(var, index);
  for (auto scope = memo_.rbegin(); scope != memo_.rend(); ++scope) {
    if (auto it = scope->find(key); it != scope->end()) return it->second;
  }
  const int own = own_result(var);
  Element found;
  if (std::optional<Element> kept = held(var, own, index))
    found = *kept;
  else if (own >= 0)
    found = element_of(equation(own), index);
  else
    found = read(var, linear(index, type(var).shape));
  memo_.back().emplace(std::move(key), found);
  return found;
}

namespace {

Element apply_inline(Builder& builder, const Primitive& primitive, const Attrs& attrs, std::span<const DType> in_types,
                     DType out_type, std::span<const Element> inputs) {
  return apply_elementwise(builder, primitive, attrs, in_types, out_type, inputs);
}

}  // namespace

Element NestWriter::read(Var var, const Affine& place) {
  Address from = address(var, place);
  from.ahead = ahead_of(var, place);
  return load_element(builder_, type(var).dtype, from);
}

Element NestWriter::element_of(const Equation& self, const Index& index) {
  const Var output = self.outputs[0];
  const DType dtype = type(output).dtype;
  if (self.primitive == prim::iota()) {
    return convert_element(builder_, DType::int64, dtype,
                           Element(value_of(index[at(self.attrs.integer("dimension"))])));
  }
  if (self.primitive == prim::random_bits()) return counted_bits(self, index);
  if (moves_elements(self.primitive)) {
    std::optional<Index> place = moved_index(self, index, program_.type(self.inputs[0]).shape, type(output).shape,
                                             [&](const Equation& slice, int64_t dimension, int64_t last) {
                                               return symbol(start_value(slice.inputs[at(dimension) + 1], last));
                                             });
    if (!place)
      throw InternalError(concat("cpu: ", self.primitive.name(), " was fused although its index is not a sum"));
    return element(self.inputs[0], *place);
  }
  if (self.primitive == prim::pad() || self.primitive == prim::concatenate()) return guarded(self, index);
  if (is_reduction(self.primitive)) return reduced(self, index);
  if (const std::optional<Var> sum = own_sum(self)) {
    const Value one = builder_.constant(computed_type(dtype), 1), total = row_known_.at(sum->id).parts[0];
    const Element value = element(self.inputs[0], stretched_index(index, program_.type(self.inputs[0]).shape));
    return rounded_element(builder_, dtype,
                           Element(builder_.compute(Op::mul, value.parts[0], builder_.compute(Op::div, one, total))));
  }
  std::vector<Element> inputs;
  std::vector<DType> dtypes;
  for (Atom input : self.inputs) {
    dtypes.push_back(program_.type(input).dtype);
    inputs.push_back(element(input, stretched_index(index, program_.type(input).shape)));
  }
  const auto apply = shared_.contains(&self.primitive.record()) ? apply_shared : apply_inline;
  // Several readers that could each fuse a product must all see it rounded: x - max(x) would be above 0 if only one of
  // the two were rounded.
  builder_.round_products(fusion_.shared[at(output.id)] && !is_expensive(self.primitive));
  const Element result = apply(builder_, self.primitive, self.attrs, dtypes, dtype, inputs);
  builder_.round_products(false);
  return result;
}

// Random bits: the words of the block that belongs to the element's position.
Element NestWriter::counted_bits(const Equation& self, const Index& index) {
  const ArrayType& bits = type(self.outputs[0]);
  const Element key = element(self.inputs[0], {});
  const Value counter = value_of(linear(index, bits.shape));
  auto word = [&](Value value) { return Word{&builder_, value}; };
  Value high = builder_.constant_int(Scalar::i32, 0);
  if (bits.size() > int64_t{1} << 32) {
    high = builder_.convert(Op::narrow, Scalar::i32,
                            builder_.compute(Op::shift_right_logical, counter, builder_.index(32)));
  }
  const Value low = builder_.convert(Op::narrow, Scalar::i32, counter);
  const auto words = math::threefry2x32<Word>({word(key.parts[0]), word(key.parts[1])}, {word(high), word(low)});
  const Scalar to = computed_type(bits.dtype);
  if (to == Scalar::i64) {
    const Value upper = builder_.convert(Op::zero_extend, to, words[0].value),
                lower = builder_.convert(Op::zero_extend, to, words[1].value);
    return Element(builder_.compute(Op::bit_or, builder_.compute(Op::shift_left, upper, builder_.index(32)), lower));
  }
  const Value mixed = builder_.compute(Op::bit_xor, words[0].value, words[1].value);
  return Element(to == Scalar::i32 ? mixed : builder_.convert(Op::narrow, to, mixed));
}

// The row sum by which this equation divides exponentials, if that is a
// softmax: exp(x - max x) / (sum of these). No element is above 1 and no sum
// below 1, so one reciprocal per row is as accurate as a division per element.
std::optional<Var> NestWriter::own_sum(const Equation& self) const {
  if (self.primitive != prim::div() || !is_floating(type(self.outputs[0]).dtype)) return std::nullopt;
  auto maker = [&](Atom atom) -> const Equation* {
    const int definition = atom.is_literal() ? -1 : fusion_.definition[at(atom.code)];
    return definition < 0 ? nullptr : &equation(definition);
  };
  // The equation before changes of shape and bounds by a number.
  auto source = [&](Atom atom) {
    const Equation* found = maker(atom);
    while (found) {
      const bool bounds =
          found->primitive == prim::max() && (found->inputs[0].is_literal() || found->inputs[1].is_literal());
      if (!bounds && !moves_elements(found->primitive)) break;
      found = maker(found->inputs[bounds && found->inputs[0].is_literal() ? 1 : 0]);
    }
    return found;
  };
  // Sums of bfloat16 accumulate in float32. Quotients of its 8-bit significands are never near the midpoint between two
  // numbers, so the product rounds to the same value; those of float16 can be.
  const DType dtype = type(self.outputs[0]).dtype;
  if (bits(dtype) < 32 && dtype != DType::bfloat16) return std::nullopt;
  const Equation *above = maker(self.inputs[0]), *sum = source(self.inputs[1]), *rounded = sum;
  if (sum && dtype == DType::bfloat16 && sum->primitive == prim::convert_element_type()) sum = source(sum->inputs[0]);
  if (!above || above->primitive != prim::exp() || !sum || sum->primitive != prim::reduce_sum()) return std::nullopt;
  const Equation* widened = rounded == sum ? nullptr : maker(sum->inputs[0]);
  const bool same = widened ? widened->primitive == prim::convert_element_type() && widened->inputs[0] == self.inputs[0]
                            : sum->inputs[0] == self.inputs[0];
  if (!same) return std::nullopt;
  const Equation* difference = maker(above->inputs[0]);
  const Equation* greatest =
      difference && difference->primitive == prim::sub() ? source(difference->inputs[1]) : nullptr;
  if (!greatest || greatest->primitive != prim::reduce_max() || greatest->inputs[0] != difference->inputs[0])
    return std::nullopt;
  const Var total = rounded->outputs[0];
  return row_known_.count(total.id) ? std::optional(total) : std::nullopt;
}

// ---- pads and concatenations --------------------------------------------------------------------------------------

// The minimum and the maximum of an index; nullopt if it depends on numbers known only at run time.
std::optional<std::pair<int64_t, int64_t>> NestWriter::range_of(const Affine& place) const {
  int64_t least = place.constant, most = place.constant;
  for (const auto& [symbol, factor] : place.terms) {
    if (at(symbol) >= extents_.size()) return std::nullopt;
    const int64_t first = offsets_[at(symbol)] * factor,
                  last = (offsets_[at(symbol)] + extents_[at(symbol)] - 1) * factor;
    least += std::min(first, last);
    most += std::max(first, last);
  }
  return std::pair(least, most);
}

// The clamped position inside a part along one dimension; `inside` tells if it was in range.
Affine NestWriter::bounded(const Affine& place, int64_t size, Value& inside) {
  const Value position = value_of(place), zero = builder_.index(0), last = builder_.index(size - 1);
  const Value below = builder_.compute(Op::lt, position, zero), above = builder_.compute(Op::gt, position, last);
  const Value out = builder_.compute(Op::bit_or, below, above);
  const Value in = builder_.compute(Op::bit_xor, out, builder_.constant_int(Scalar::i1, 1));
  inside = inside == no_value ? in : builder_.compute(Op::bit_and, inside, in);
  return Affine::of(
      symbol(builder_.compute(Op::select, below, zero, builder_.compute(Op::select, above, last, position))));
}

// Selects the part that the index is in.
Element NestWriter::guarded(const Equation& self, const Index& index) {
  std::optional<Element> value;
  if (self.primitive == prim::pad()) value = element(self.inputs[1], {});
  for (const GuardedPart& part : guarded_parts(program_, self)) {
    const Shape& own = program_.type(self.inputs[part.operand]).shape;
    Index place = index;
    Value inside = no_value;
    bool outside = false;
    for (std::size_t d = 0; d < own.size() && !outside; ++d) {
      place[d].constant -= part.begin[d];
      if (own[d] == type(self.outputs[0]).shape[d]) continue;
      const auto range = range_of(place[d]);
      if (own[d] == 0 || (range && (range->second < 0 || range->first >= own[d])))
        outside = true;
      else if (!range || range->first < 0 || range->second >= own[d])
        place[d] = bounded(place[d], own[d], inside);
    }
    if (outside) continue;
    const Element found = element(self.inputs[part.operand], place);
    value = inside == no_value || !value ? found : select_element(builder_, inside, found, *value);
  }
  return *value;
}

// ---- reductions over loops of their own, inside those of the group ------------------------------------------------

Element NestWriter::reduced(const Equation& self, const Index& index) {
  const DType dtype = type(self.outputs[0]).dtype;
  const Shape& shape = program_.type(self.inputs[0]).shape;
  const std::vector<bool> kept = kept_dimensions(program_, self);
  Index place(shape.size());
  std::vector<std::size_t> loops;
  std::size_t next = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (kept[d])
      place[d] = index[next++];
    else
      loops.push_back(d);
  }
  const Element identity = identity_element(builder_, *self.primitive->traits.monoid, dtype);
  std::vector<Value> initial(identity.parts, identity.parts + identity.count);
  std::vector<Value> sums = reduce_nest(self, dtype, loops, 0, shape, place, initial);
  std::size_t position = 0;
  return rounded_element(builder_, dtype, take(dtype, sums, position));
}

std::vector<Value> NestWriter::reduce_nest(const Equation& self, DType dtype, const std::vector<std::size_t>& loops,
                                           std::size_t depth, const Shape& shape, Index place,
                                           const std::vector<Value>& initial) {
  if (depth == loops.size()) {
    std::size_t position = 0;
    const Element sum = take(dtype, initial, position);
    const Element joined =
        combine(builder_, *self.primitive->traits.monoid, dtype, sum, element(self.inputs[0], place));
    return {joined.parts, joined.parts + joined.count};
  }
  std::vector<Builder::Initial> carried;
  for (Value value : initial) carried.push_back({value});
  return builder_.loop(shape[loops[depth]], {}, carried, [&](Value position, std::span<const Value> values) {
    Scoped scope(*this);
    symbols_.push_back(position);
    place[loops[depth]] = Affine::of(static_cast<Symbol>(symbols_.size()) - 1);
    return reduce_nest(self, dtype, loops, depth + 1, shape, place, {values.begin(), values.end()});
  });
}

}  // namespace capibara::cpu
