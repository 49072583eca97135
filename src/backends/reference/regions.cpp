// Regions of scalars evaluated on whole arrays at once, and the folds of the recognised ones.
#include "backends/reference/regions.h"

#include <cstring>
#include <numeric>

#include "backends/reference/running_folds.h"
#include "core/runtime/interrupt.h"
#include "lax/math/denormals.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

namespace capibara::reference {

namespace {

// Operations that are the identity on scalars.
bool is_scalar_identity(const Equation& equation, const Program& program) {
  return equation.inputs.size() == 1 && equation.primitive->traits.moves == Moves::index &&
         program.type(equation.inputs[0]).rank() == 0;
}

// bitcast_convert_type may add or remove dimensions, but not between scalars.
bool is_elementwise(const Primitive& primitive) {
  return primitive->traits.elementwise != Elementwise::no || primitive == prim::bitcast_convert_type();
}

bool is_elementwise(const Program& program) {
  for (const ArrayType& type : program.body().var_types) {
    if (type.rank() != 0) return false;
  }
  for (const Equation& equation : program.equations()) {
    if (is_scalar_identity(equation, program)) continue;
    if (const Program* called = called_program(equation)) {
      if (!is_elementwise(*called)) return false;
    } else if (!is_elementwise(equation.primitive) || !find_kernel(equation.primitive)) {
      return false;
    }
  }
  return true;
}

}  // namespace

Region::Region(Program program) : program_(std::move(program)) {
  monoid_ = recognise_monoid(program_);
  elementwise_ = is_elementwise(program_);
}

Arrays Region::operator()(std::span<const Array> inputs) const {
  const Shape& shape = inputs[0].shape();
  if (shape.empty()) return interpret(program_, inputs);
  return elementwise_ ? apply_wide(program_, inputs, shape) : apply_each(inputs, shape);
}

Array Region::widened(const Array& constant, const Shape& shape) const {
  return constant.ndim() == 0 ? repeat(constant, shape) : constant;
}

Arrays Region::apply_wide(const Program& program, std::span<const Array> inputs, const Shape& shape) const {
  Arrays values(static_cast<std::size_t>(program.var_count()));
  auto at = [&](Var var) -> Array& { return values[static_cast<std::size_t>(var.id)]; };
  auto read = [&](Atom atom) { return atom.is_literal() ? widened(program.literal(atom), shape) : at(atom.var()); };
  for (std::size_t i = 0; i < program.constvars().size(); ++i) {
    at(program.constvars()[i]) = widened(program.constants()[i], shape);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) at(program.invars()[i]) = inputs[i];
  for (const Equation& equation : program.equations()) {
    Arrays operands;
    for (Atom atom : equation.inputs) operands.push_back(read(atom));
    Arrays results;
    if (is_scalar_identity(equation, program)) {
      results = std::move(operands);
    } else if (const Program* called = called_program(equation)) {
      results = apply_wide(*called, operands, shape);
    } else {
      Types types;
      for (Var var : equation.outputs) {
        ArrayType type = var.dropped() ? ArrayType() : program.type(var);
        types.push_back(type.with_shape(shape));
      }
      results = find_kernel(equation.primitive)({operands, types, equation.attrs});
    }
    for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
      if (!equation.outputs[i].dropped()) at(equation.outputs[i]) = results[i];
    }
  }
  Arrays outputs;
  for (Atom atom : program.outputs()) outputs.push_back(read(atom));
  return outputs;
}

Arrays Region::apply_each(std::span<const Array> inputs, const Shape& shape) const {
  Types types = program_.output_types();
  std::vector<Output> outputs;
  for (const ArrayType& type : types) outputs.push_back(allocate(type.with_shape(shape)));
  int64_t count = element_count(shape);
  for (int64_t i = 0; i < count; ++i) {
    poll_stop();
    Arrays scalars;
    for (const Array& input : inputs) {
      auto size = static_cast<std::size_t>(storage_size(input.dtype()));
      Output scalar = allocate(scalar_type(input.dtype()));
      std::memcpy(scalar.data, input.raw_data() + static_cast<std::size_t>(i) * size, size);
      scalars.push_back(scalar.array);
    }
    Arrays results = interpret(program_, scalars);
    for (std::size_t k = 0; k < results.size(); ++k) {
      auto size = static_cast<std::size_t>(storage_size(types[k].dtype));
      std::memcpy(outputs[k].data + static_cast<std::size_t>(i) * size, results[k].raw_data(), size);
    }
  }
  Arrays arrays;
  for (Output& output : outputs) arrays.push_back(output.array);
  return arrays;
}

Array converted(const Array& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Output out = allocate(x.type().with_dtype(dtype));
  convert_elements(x.dtype(), x.raw_data(), dtype, out.data, x.size());
  return out.array;
}

Array permute(const Array& x, const Ints& permutation) {
  Ints identity(permutation.size());
  std::iota(identity.begin(), identity.end(), int64_t{0});
  if (permutation == identity) return x;
  Ints strides = row_major_strides(x.shape()), steps;
  Shape shape;
  for (int64_t d : permutation) {
    shape.push_back(x.shape()[static_cast<std::size_t>(d)]);
    steps.push_back(strides[static_cast<std::size_t>(d)]);
  }
  Output out = allocate(x.type().with_shape(shape));
  if (element_count(shape) == 0) return out.array;
  auto size = static_cast<std::size_t>(storage_size(x.dtype()));
  const std::byte* source = x.raw_data();
  std::byte* target = out.data;
  int64_t inner = shape.back(), inner_step = steps.back();
  Shape outer(shape.begin(), shape.end() - 1);
  Ints index(outer.size(), 0);
  do {
    int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * steps[d];
    if (inner_step == 1) {
      std::memcpy(target, source + static_cast<std::size_t>(offset) * size, static_cast<std::size_t>(inner) * size);
      target += static_cast<std::size_t>(inner) * size;
    } else {
      for (int64_t i = 0; i < inner; ++i, target += size) {
        std::memcpy(target, source + static_cast<std::size_t>(offset + i * inner_step) * size, size);
      }
    }
  } while (next_index(index, outer));
  return out.array;
}

Array reshaped(const Array& x, Shape shape) {
  return Array::from_buffer(x.type().with_shape(std::move(shape)), x.buffer());
}

Array take_row(const Array& x, int64_t row, const Shape& row_shape) {
  Output out = allocate(x.type().with_shape(row_shape));
  auto bytes = static_cast<std::size_t>(element_count(row_shape) * storage_size(x.dtype()));
  if (bytes != 0) std::memcpy(out.data, x.raw_data() + static_cast<std::size_t>(row) * bytes, bytes);
  return out.array;
}

Array repeat(const Array& scalar, const Shape& shape) {
  Output out = allocate(scalar.type().with_shape(shape));
  auto size = static_cast<std::size_t>(storage_size(scalar.dtype()));
  auto count = static_cast<std::size_t>(element_count(shape));
  for (std::size_t i = 0; i < count; ++i) std::memcpy(out.data + i * size, scalar.raw_data(), size);
  return out.array;
}

Array running_fold(Monoid monoid, const Array& x, int64_t axis, bool reverse, const ArrayType& out_type) {
  Output out = allocate(out_type);
  if (x.size() == 0) return out.array;
  int64_t n = x.shape(axis), inner = 1;
  for (int64_t d = axis + 1; d < x.ndim(); ++d) inner *= x.shape(d);
  int64_t outer = x.size() / (n * inner);
  const math::FlushDenormals flush;
  visit_compute(x.dtype(), [&]<class C>(Type<C>) {
    auto values = read_all<C>(x.dtype(), x.raw_data(), x.size());
    Elements<C> results(x.size());
    visit_monoid(monoid, [&]<Monoid M>(MonoidTag<M>) {
      if constexpr (folds<M, C>) {
        Elements<C> running(inner);  // rounded at each step, as in XLA
        for (int64_t o = 0; o < outer; ++o) {
          for (int64_t step = 0; step < n; ++step) {
            poll_stop();
            int64_t i = reverse ? n - 1 - step : step;
            const C* row = values.data() + (o * n + i) * inner;
            C* target = results.data() + (o * n + i) * inner;
            for (int64_t k = 0; k < inner; ++k) {
              running[k] = n == 1 ? row[k] : step == 0 ? first_of_fold<M>(row[k]) : folded<M>(running[k], row[k]);
              target[k] = running[k];
            }
          }
        }
      }
    });
    store_all<C>(out_type.dtype, out.data, results);
  });
  return out.array;
}

}  // namespace capibara::reference
