// Builder: value numbering, constant folding of integers, and nesting of blocks.
#include "backends/cpu/loops/builder.h"

#include <bit>
#include <utility>

namespace capibara::cpu {

namespace {

int width(Scalar type) { return type == Scalar::i1 ? 1 : 8 * byte_size(type); }

uint64_t masked(Scalar type, uint64_t bits) {
  int count = width(type);
  return count == 64 ? bits : bits & ((uint64_t{1} << count) - 1);
}

int64_t as_signed(Scalar type, uint64_t bits) {
  int unused = 64 - width(type);
  return static_cast<int64_t>(bits << unused) >> unused;
}

bool is_comparison(Op op) { return op >= Op::eq && op <= Op::ge_unsigned; }
bool commutes(Op op) {
  return op == Op::add || op == Op::mul || op == Op::bit_and || op == Op::bit_or || op == Op::bit_xor;
}

}  // namespace

std::size_t Builder::KeyHash::operator()(const Key& key) const {
  uint64_t hash = key.bits * 0x9e3779b97f4a7c15u;
  for (uint64_t part : {static_cast<uint64_t>(key.op), static_cast<uint64_t>(key.type), static_cast<uint64_t>(key.a),
                        static_cast<uint64_t>(key.b), static_cast<uint64_t>(key.c)}) {
    hash = (hash ^ part) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return static_cast<std::size_t>(hash);
}

void Builder::append(Statement statement) {
  ++statements_;
  scopes_.back().block->push_back(std::move(statement));
}

template <class Write>
void Builder::inside(Block& block, Write&& write) {
  scopes_.push_back({&block, {}});
  write();
  scopes_.pop_back();
}

Value Builder::emit(Op op, Scalar type, Value a, Value b, Value c, uint64_t bits) {
  if (commutes(op) && b < a) std::swap(a, b);
  Key key{op, type, a, b, c, bits};
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (auto it = scope->known.find(key); it != scope->known.end()) return it->second;
  }
  Value result = function_.value(type);
  append({Compute{result, op, a, b, c, bits}});
  scopes_.back().known.emplace(key, result);
  if (op == Op::constant) constants_.emplace(result, bits);
  return result;
}

const uint64_t* Builder::constant_of(Value value) const {
  auto it = constants_.find(value);
  return it == constants_.end() ? nullptr : &it->second;
}

Value Builder::constant_bits(Scalar type, uint64_t bits) {
  return emit(Op::constant, type, no_value, no_value, no_value, masked(type, bits));
}

Value Builder::constant(Scalar type, double value) {
  if (type == Scalar::f64) return constant_bits(type, std::bit_cast<uint64_t>(value));
  return constant_bits(type, std::bit_cast<uint32_t>(static_cast<float>(value)));
}

Value Builder::constant_int(Scalar type, int64_t value) { return constant_bits(type, static_cast<uint64_t>(value)); }

Value Builder::compute(Op op, Value a, Value b, Value c) {
  Scalar type = op == Op::select ? this->type(b) : this->type(a);
  if (op == Op::select) {
    if (b == c) return b;
    if (const uint64_t* known = constant_of(a)) return *known ? b : c;
  }
  if (!is_float(this->type(a)) && b != no_value && op != Op::select) {
    const uint64_t *x = constant_of(a), *y = constant_of(b);
    const Scalar operand = this->type(a);
    if (x && y) {
      const uint64_t u = *x, v = *y;
      const int64_t s = as_signed(operand, u), t = as_signed(operand, v);
      switch (op) {
        case Op::add:
          return constant_bits(type, u + v);
        case Op::sub:
          return constant_bits(type, u - v);
        case Op::mul:
          return constant_bits(type, u * v);
        case Op::bit_and:
          return constant_bits(type, u & v);
        case Op::bit_or:
          return constant_bits(type, u | v);
        case Op::bit_xor:
          return constant_bits(type, u ^ v);
        case Op::eq:
          return constant_bits(Scalar::i1, u == v);
        case Op::ne:
          return constant_bits(Scalar::i1, u != v);
        case Op::lt:
          return constant_bits(Scalar::i1, s < t);
        case Op::le:
          return constant_bits(Scalar::i1, s <= t);
        case Op::gt:
          return constant_bits(Scalar::i1, s > t);
        case Op::ge:
          return constant_bits(Scalar::i1, s >= t);
        case Op::lt_unsigned:
          return constant_bits(Scalar::i1, u < v);
        case Op::le_unsigned:
          return constant_bits(Scalar::i1, u <= v);
        case Op::gt_unsigned:
          return constant_bits(Scalar::i1, u > v);
        case Op::ge_unsigned:
          return constant_bits(Scalar::i1, u >= v);
        default:
          break;
      }
    }
    if (y && *y == 0 && (op == Op::add || op == Op::sub || op == Op::bit_or || op == Op::bit_xor)) return a;
    if (x && *x == 0 && (op == Op::add || op == Op::bit_or || op == Op::bit_xor)) return b;
    if (y && *y == 1 && op == Op::mul) return a;
    if (x && *x == 1 && op == Op::mul) return b;
    if (operand == Scalar::i1 && op == Op::bit_and) {
      if (x) return *x ? b : a;
      if (y) return *y ? a : b;
    }
  }
  const bool rounded = op == Op::mul && round_products_ && is_float(type);
  return emit(op, is_comparison(op) ? Scalar::i1 : type, a, b, c, rounded ? rounded_product : 0);
}

Value Builder::convert(Op op, Scalar to, Value a) {
  const Scalar from = type(a);
  if (from == to && op != Op::float_to_signed && op != Op::float_to_unsigned) return a;
  if (const uint64_t* known = constant_of(a); known && !is_float(from)) {
    switch (op) {
      case Op::sign_extend:
        return constant_int(to, as_signed(from, *known));
      case Op::zero_extend:
      case Op::narrow:
      case Op::bitcast:
        return constant_bits(to, *known);
      case Op::signed_to_float:
        return constant(to, static_cast<double>(as_signed(from, *known)));
      case Op::unsigned_to_float:
        return constant(to, static_cast<double>(*known));
      default:
        break;
    }
  }
  return emit(op, to, a, no_value, no_value, 0);
}

Value Builder::call(Math function, Value a, Value b) {
  return emit(Op::call, type(a), a, b, no_value, static_cast<uint64_t>(function));
}

Value Builder::apply(std::size_t formula, std::span<const Value> operands) {
  auto operand = [&](std::size_t i) { return i < operands.size() ? operands[i] : no_value; };
  return emit(Op::apply, type(operands[0]), operand(0), operand(1), operand(2), formula);
}

int32_t Builder::parameter(int64_t bytes, bool written) {
  function_.buffers.push_back({bytes, false, written});
  return static_cast<int32_t>(function_.buffers.size()) - 1;
}

int32_t Builder::local(int64_t bytes) {
  function_.buffers.push_back({bytes, true, true});
  return static_cast<int32_t>(function_.buffers.size()) - 1;
}

namespace {

// Folds terms with constant indices into the offset, and merges terms with equal indices.
Address tidy(Address address, const Builder& builder) {
  std::vector<Term> terms;
  for (const Term& term : address.terms) {
    if (term.factor == 0) continue;
    if (const uint64_t* known = builder.constant_of(term.index)) {
      address.offset += static_cast<int64_t>(*known) * term.factor;
      continue;
    }
    bool joined = false;
    for (Term& other : terms) {
      if (other.index != term.index) continue;
      other.factor += term.factor;
      joined = true;
    }
    if (!joined) terms.push_back(term);
  }
  address.terms = std::move(terms);
  return address;
}

}  // namespace

Value Builder::load(Scalar type, Address address) {
  Value result = function_.value(type);
  append({Load{result, tidy(std::move(address), *this)}});
  return result;
}

void Builder::store(Value value, Address address) {
  function_.buffers[static_cast<std::size_t>(address.buffer)].written = true;
  append({Store{value, tidy(std::move(address), *this)}});
}

std::vector<Value> Builder::loop(int64_t extent, LoopOptions options, std::span<const Initial> initial,
                                 const Body& body) {
  For loop;
  loop.index = function_.value(Scalar::i64);
  loop.extent = extent;
  loop.extent_value = options.extent_value;
  loop.lanes = options.lanes;
  loop.parallel = options.parallel;
  loop.poll = options.poll;
  std::vector<Value> inside_values, results;
  for (const Initial& start : initial) {
    Carry carry{start.value,   function_.value(type(start.value)),
                no_value,      function_.value(type(start.value)),
                start.combine, start.identity};
    inside_values.push_back(carry.inside);
    results.push_back(carry.result);
    loop.carries.push_back(carry);
  }
  inside(loop.body, [&] {
    std::vector<Value> next = body(loop.index, inside_values);
    for (std::size_t i = 0; i < next.size(); ++i) loop.carries[i].next = next[i];
  });
  if (options.parallel) {
    function_.parallel = true;
    function_.extent = extent;
  }
  append({std::move(loop)});
  return results;
}

std::vector<Value> Builder::repeat(std::span<const Value> initial, bool poll,
                                   const std::function<Value(std::span<const Value>)>& goes_on,
                                   const std::function<std::vector<Value>(std::span<const Value>)>& body) {
  While loop;
  loop.poll = poll;
  std::vector<Value> inside_values, results;
  for (Value start : initial) {
    Carry carry{start, function_.value(type(start)), no_value, function_.value(type(start))};
    inside_values.push_back(carry.inside);
    results.push_back(carry.result);
    loop.carries.push_back(carry);
  }
  inside(loop.condition, [&] { loop.go = goes_on(inside_values); });
  inside(loop.body, [&] {
    std::vector<Value> next = body(inside_values);
    for (std::size_t i = 0; i < next.size(); ++i) loop.carries[i].next = next[i];
  });
  append({std::move(loop)});
  return results;
}

std::vector<Value> Builder::branch(Value condition, const std::function<std::vector<Value>()>& yes,
                                   const std::function<std::vector<Value>()>& no) {
  Branch branch;
  branch.condition = condition;
  std::vector<Value> from_yes, from_no, results;
  inside(branch.yes, [&] { from_yes = yes(); });
  inside(branch.no, [&] { from_no = no(); });
  for (std::size_t i = 0; i < from_yes.size(); ++i) {
    results.push_back(function_.value(type(from_yes[i])));
    branch.results.push_back({from_yes[i], from_no[i], results.back()});
  }
  append({std::move(branch)});
  return results;
}

void Builder::invoke(int32_t function, std::vector<Argument> arguments) {
  append({Invoke{function, std::move(arguments)}});
}

void Builder::host(int32_t kernel, std::vector<Argument> arguments) { append({Host{kernel, std::move(arguments)}}); }

}  // namespace capibara::cpu
