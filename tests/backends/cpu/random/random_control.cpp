// The control flow of random programs: scans, while loops, branches and calls, nested up to two deep.
#include "backends/cpu/random/random_generator.h"

#include "program/trace/stage.h"

#include <algorithm>
#include <cmath>

namespace capibara::random_programs {

namespace {

std::size_t at(int64_t position) { return static_cast<std::size_t>(position); }

constexpr double carry_bound = 4;

Arrays arrays_of(const std::vector<Value>& values) {
  Arrays arrays;
  for (const Value& value : values) arrays.push_back(value.array);
  return arrays;
}

}  // namespace

Value Generator::control(const Value& x) {
  require(scope_->depth < max_nesting && equations_ + 4 < max_equations_);
  switch (dice_.below(11)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return scan(x);
    case 4:
    case 5:
      return while_loop(x);
    case 6:
    case 7:
    case 8:
      return branches(x);
    case 9:
      return buffer_loop(x);
    default:
      return call(x);
  }
}

// Enters a scope inside the current one; it sees a few of the enclosing values.
void Generator::enter(Scope& inner, Scope& outer, int64_t repeats) {
  inner.depth = outer.depth + 1;
  inner.repeats = outer.repeats * std::max<int64_t>(1, repeats);
  const int64_t captured = dice_.between(0, 3);
  for (int64_t i = 0; i < captured; ++i) {
    Value value = pick();
    if (element_count(value.shape()) * inner.repeats > max_elements_) continue;
    inner.pool.push_back(value);
    inner.uses.push_back(0);
  }
}

std::vector<Generator::Carry> Generator::carries(const Value& x) {
  std::vector<Carry> list;
  // A few of any size, or many that fit in registers.
  static const std::vector<Shape> small_shapes = {{}, {}, {}, {3}, {3, 3}, {2, 5}, {4}};
  const bool small = dice_.chance(25);
  const int64_t count = small ? dice_.between(2, 14) : dice_.between(1, 4);
  for (int64_t i = 0; i < count; ++i) {
    Value init = i == 0 ? x : pick();
    if (small) init = shaped(init, dice_.pick(small_shapes));
    const bool inexact = is_inexact(init.dtype());
    const double bound = inexact ? carry_bound : std::exp2(bits(init.dtype()));
    if (inexact) init = tame(init, bound);
    list.push_back({init, bound, !inexact || (init.exact() && dice_.chance(50))});
  }
  return list;
}

Value Generator::carried(const Carry& carry, const Array& array) const {
  Value value{array, carry.bound, {}, carry.init.product};
  if (!carry.exact) value.error.gain[at(scope_->depth - 1)] = 1;
  return value;
}

// A value of the carry's type, within its bound, that does not amplify the carry's error.
Value Generator::next_carry(const Carry& carry, const Value& now) {
  const DType dtype = now.dtype();
  const std::size_t level = at(scope_->depth - 1);
  Value next = now;
  for (int tries = 0; tries < 8; ++tries) {
    try {
      next = shaped(pick_of(dtype, carry.exact), now.shape());
      if (carry.exact && !next.exact()) continue;
      if (dice_.chance(35) && !is_bool(dtype)) {
        Value total = summed(lax::add(next.array, now.array), next, now);
        if (total.exact() || !carry.exact) next = total;
      }
      break;
    } catch (const Unfit&) {
    }
  }
  if (carry.exact && !next.exact()) next = now;
  if (!is_inexact(dtype)) return next;
  next = tame(next, carry.bound);
  const double gain = next.error.gain[level];
  if (gain > 1) {
    const double factor = std::exp2(-std::ceil(std::log2(gain)));
    next = rounds(lax::mul(next.array, number(dtype, factor)), next.bound * factor, factor * next.error);
  }
  const double precision = finfo(real_dtype(dtype)).eps;
  if (next.error.own > 64 * precision * carry.bound) {
    // Each iteration would add too much error.
    next = carry.exact ? now : rounds(lax::mul(now.array, number(dtype, 0.5)), now.bound / 2, 0.5 * now.error);
  }
  return next;
}

// The carries after `trips` iterations: each adds its own error and propagates the error of the previous carries.
std::vector<Value> Generator::after_loop(const std::vector<Carry>& carries, const std::vector<Value>& next,
                                         const Arrays& arrays, int64_t trips, Error& greatest_carry) {
  const std::size_t level = at(scope_->depth);
  Error start, added;
  double gain = 0;
  for (std::size_t i = 0; i < carries.size(); ++i) {
    start = greatest(start, carries[i].init.error);
    Error own = next[i].error;
    gain = std::max(gain, own.gain[level]);
    own.gain[level] = 0;
    added = greatest(added, own);
  }
  Error error = start;
  greatest_carry = start;
  for (int64_t i = 0; i < trips; ++i) {
    error = added + gain * error;
    greatest_carry = greatest(greatest_carry, error);
  }
  std::vector<Value> results;
  for (std::size_t i = 0; i < carries.size(); ++i) {
    results.push_back(made(arrays[i], carries[i].bound, carries[i].exact ? Error{} : greatest_carry));
    results.back().product = next[i].product || carries[i].init.product;  // a loop of one iteration is unrolled
  }
  return results;
}

Value Generator::scan(const Value& x) {
  Scope& outer = *scope_;
  int64_t length = dice_.pick(Ints{1, 2, 3, 5, 7, 17});
  if (dice_.chance(4)) length = 0;
  if (dice_.chance(5)) length = 200;
  std::vector<Value> slices;
  const int64_t count = dice_.between(0, 3);
  for (int64_t i = 0; i < count; ++i) {
    Value value = pick();
    if (i == 0 && value.rank() > 0 && value.shape()[0] <= 300) {
      length = value.shape()[0];
    } else {
      Shape shape = value.shape();
      if (shape.empty()) shape.push_back(length);
      shape[0] = length;
      value = shaped(value, shape);
    }
    slices.push_back(value);
  }
  std::vector<Carry> list = carries(x);
  Arrays init;
  for (const Carry& carry : list) {
    require(carry.init.size() * outer.repeats * std::max<int64_t>(1, length) <= max_elements_);
    init.push_back(carry.init.array);
  }
  for (const Value& slice : slices) require(slice.size() * outer.repeats <= max_elements_);

  std::vector<Value> next, stacked;
  auto body = [&](std::span<const Array> in) {
    Scope inner;
    enter(inner, outer, length);
    scope_ = &inner;
    std::vector<Value> now;
    for (std::size_t i = 0; i < in.size(); ++i) {
      Value value = i < list.size() ? carried(list[i], in[i])
                                    : Value{in[i], slices[i - list.size()].bound, slices[i - list.size()].error,
                                            slices[i - list.size()].product};
      inner.pool.push_back(value);
      inner.uses.push_back(0);
      now.push_back(value);
    }
    steps(static_cast<int>(dice_.between(2, 9)));
    next.clear();
    stacked.clear();
    for (std::size_t i = 0; i < list.size(); ++i) next.push_back(next_carry(list[i], now[i]));
    const int64_t outputs = dice_.between(0, 3);
    for (int64_t i = 0; i < outputs; ++i) stacked.push_back(pick());
    scope_ = &outer;
    Arrays results = arrays_of(next);
    for (const Value& value : stacked) results.push_back(value.array);
    return results;
  };
  Arrays results =
      lax::detail::scan_flat(body, init, arrays_of(slices), length, dice_.chance(40), dice_.chance(10) ? 2 : 1);

  Error greatest_carry;
  std::vector<Value> last = after_loop(list, next, results, length, greatest_carry);
  const std::size_t level = at(outer.depth);
  for (std::size_t i = 0; i < stacked.size(); ++i) {
    Error error = stacked[i].error;
    const double gain = error.gain[level];
    error.gain[level] = 0;
    Value rows = made(results[list.size() + i], stacked[i].bound, error + gain * greatest_carry);
    rows.product = stacked[i].product;
    keep(rows);
  }
  for (std::size_t i = 1; i < last.size(); ++i) keep(last[i]);
  return last[0];
}

Value Generator::while_loop(const Value& x) {
  Scope& outer = *scope_;
  const int64_t max_trips = dice_.pick(Ints{1, 2, 3, 5, 9});
  std::vector<Carry> list = carries(x);
  Arrays init = {number(DType::int32, 0)};
  for (const Carry& carry : list) {
    require(carry.init.size() * outer.repeats * max_trips <= max_elements_);
    init.push_back(carry.init.array);
  }
  // The trip count is static, or depends on a value.
  Array limit = number(DType::int32, static_cast<double>(max_trips));
  if (dice_.chance(60))
    limit = lax::rem(lax::abs(index_number().array), number(DType::int32, static_cast<double>(max_trips + 1)));
  int watched = -1;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].exact && list[i].init.rank() == 0 && !is_complex(list[i].init.dtype()) && dice_.chance(50))
      watched = static_cast<int>(i);
  }
  auto condition = [&](std::span<const Array> in) {
    Array go = lax::lt(in[0], limit);
    if (watched >= 0) {
      const Array& seen = in[at(watched) + 1];
      go = lax::bitwise_and(go, lax::ne(seen, number(seen.dtype(), 1)));
    }
    return Arrays{go};
  };
  std::vector<Value> next;
  auto body = [&](std::span<const Array> in) {
    Scope inner;
    enter(inner, outer, max_trips);
    scope_ = &inner;
    inner.pool.push_back({in[0], 16, {}});
    inner.uses.push_back(0);
    std::vector<Value> now;
    for (std::size_t i = 0; i < list.size(); ++i) {
      now.push_back(carried(list[i], in[i + 1]));
      inner.pool.push_back(now.back());
      inner.uses.push_back(0);
    }
    steps(static_cast<int>(dice_.between(2, 8)));
    next.clear();
    for (std::size_t i = 0; i < list.size(); ++i) next.push_back(next_carry(list[i], now[i]));
    scope_ = &outer;
    Arrays results = {lax::add(in[0], number(DType::int32, 1))};
    for (const Value& value : next) results.push_back(value.array);
    return results;
  };
  Arrays results = lax::detail::while_flat(condition, body, init);
  keep(made(results[0], 16, {}));
  results.erase(results.begin());
  Error greatest_carry;
  std::vector<Value> last = after_loop(list, next, results, max_trips, greatest_carry);
  for (std::size_t i = 1; i < last.size(); ++i) keep(last[i]);
  return last[0];
}

Value Generator::branches(const Value& x) {
  Scope& outer = *scope_;
  const std::size_t count = dice_.chance(60) ? 2 : at(dice_.between(1, 4));
  Array selector = count == 2 ? lax::detail::predicate_index(converted(index_number(), DType::bool_).array)
                              : lax::detail::branch_index(index_number().array, count);
  std::vector<Value> operands = {x};
  const int64_t more = dice_.between(0, 2);
  for (int64_t i = 0; i < more; ++i) operands.push_back(pick());
  std::vector<ArrayType> types;
  const int64_t outputs = dice_.between(1, 3);
  for (int64_t i = 0; i < outputs; ++i) types.push_back(i == 0 ? x.array.type() : pick().array.type());

  std::vector<Value> either(types.size());
  auto branch = [&](std::span<const Array> in) {
    Scope inner;
    enter(inner, outer, 1);
    scope_ = &inner;
    for (std::size_t i = 0; i < in.size(); ++i) {
      inner.pool.push_back({in[i], operands[i].bound, operands[i].error, operands[i].product});
      inner.uses.push_back(0);
    }
    steps(static_cast<int>(dice_.between(0, 6)));
    Arrays results;
    for (std::size_t i = 0; i < types.size(); ++i) {
      Value result;
      try {
        result = like(types[i].shape, types[i].dtype);
      } catch (const Unfit&) {
        result = constant(types[i].dtype, types[i].shape);
      }
      either[i] = joined(result.array, {either[i], result});
      results.push_back(result.array);
    }
    scope_ = &outer;
    return results;
  };
  Arrays results =
      lax::detail::cond_flat(selector, std::vector<lax::detail::FlatFunction>(count, branch), arrays_of(operands));
  for (std::size_t i = 1; i < results.size(); ++i) keep(moved(results[i], either[i]));
  return moved(results[0], either[0]);
}

// A loop that fills an array row by row and may read earlier rows: its carry should be updated in place.
Value Generator::buffer_loop(const Value& x) {
  Scope& outer = *scope_;
  require(x.rank() > 0 && x.rank() < 4 && x.shape()[0] > 0 && x.shape()[0] <= 64);
  require(x.size() * outer.repeats * x.shape()[0] <= 8 * max_elements_);
  const int64_t rows = x.shape()[0];
  Shape row_shape = x.shape();
  row_shape[0] = 1;
  Value init = is_inexact(x.dtype()) ? tame(x, carry_bound) : x;
  const bool backwards = dice_.chance(40);
  auto body = [&](std::span<const Array> in) {
    const Array& iteration = in[0];
    Array place = backwards ? lax::sub(number(DType::int32, static_cast<double>(rows - 1)), iteration) : iteration;
    Array before = lax::sub(place, number(DType::int32, static_cast<double>(dice_.between(-1, 1))));
    Array row = lax::dynamic_slice_in_dim(in[1], before, 1, 0, dice_.chance(50));
    Array changed = is_bool(x.dtype())      ? lax::bitwise_not(row)
                    : is_integer(x.dtype()) ? lax::add(row, number(x.dtype(), 3))
                                            : lax::mul(row, number(x.dtype(), 0.5));
    Array updated = lax::dynamic_update_slice_in_dim(in[1], changed, place, 0, dice_.chance(50));
    Arrays results = {lax::add(iteration, number(DType::int32, 1)), updated};
    // Reads of the updated array and of the old carry must not be mixed up.
    if (dice_.chance(50))
      results.push_back(lax::dynamic_slice_in_dim(dice_.chance(50) ? in[1] : updated, place, 1, 0, true));
    return results;
  };
  Arrays results = lax::detail::scan_flat(body, {number(DType::int32, 0), init.array}, {}, rows, false, 1);
  const Error error = init.exact() ? Error{} : init.error;
  const double units = init.exact() ? 0 : 2;
  const double bound = is_integer(x.dtype()) ? std::exp2(bits(x.dtype())) : init.bound;
  equations_ += 5;
  if (results.size() > 2) keep(made(results[2], bound, error, units));
  return made(results[1], bound, error, units);
}

Value Generator::call(const Value& x) {
  Scope& outer = *scope_;
  Value result;
  auto body = [&](std::span<const Array> in) {
    Scope inner;
    enter(inner, outer, 1);
    scope_ = &inner;
    inner.pool.push_back({in[0], x.bound, x.error, x.product});
    inner.uses.push_back(0);
    steps(static_cast<int>(dice_.between(1, 5)));
    result = pick();
    scope_ = &outer;
    return Arrays{result.array};
  };
  const ArrayType type = x.array.type();
  Staged staged = stage_open(body, std::span(&type, 1), "called");
  Arrays operands = staged.captured;
  operands.push_back(x.array);
  static const Primitive jit = primitive("jit");
  Arrays results = capibara::bind(jit, operands, {{"jaxpr", staged.program}, {"name", "called"}});
  return moved(results[0], result);
}

}  // namespace capibara::random_programs
