// Reference kernels of reductions: named folds, positions of extremes, and folds by a region.
#include <algorithm>
#include <cstring>

#include "backends/reference/regions.h"
#include "core/runtime/thread_pool.h"
#include "lax/math/denormals.h"

namespace capibara::reference {

namespace {

// Visits the elements in memory order. `step(position, count, target, target_step)` gets a run of elements whose
// results are at target, target + target_step, ...; a target_step of 0 folds the run into one result.
void for_each_run(const Shape& shape, const Ints& axes,
                  FunctionRef<void(int64_t position, int64_t count, int64_t target, int64_t target_step)> step) {
  if (shape.empty()) return step(0, 1, 0, 0);
  std::vector<bool> reduced(shape.size(), false);
  for (int64_t axis : axes) reduced[static_cast<std::size_t>(axis)] = true;
  Ints out_strides(shape.size(), 0);
  int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (reduced[d]) continue;
    out_strides[d] = stride;
    stride *= shape[d];
  }
  // Trailing dimensions of one kind, reduced or kept, form one long run.
  std::size_t split = shape.size() - 1;
  while (split > 0 && reduced[split - 1] == reduced.back()) --split;
  int64_t run = 1;
  for (std::size_t d = split; d < shape.size(); ++d) run *= shape[d];
  Shape outer(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(split));
  Ints index(outer.size(), 0);
  int64_t position = 0;
  do {
    int64_t target = 0;
    for (std::size_t d = 0; d < index.size(); ++d) target += index[d] * out_strides[d];
    step(position, run, target, reduced.back() ? 0 : 1);
    position += run;
  } while (next_index(index, outer));
}

Array fold_axes(Monoid monoid, const Array& x, const Array& init, const Ints& axes, const ArrayType& out_type) {
  Output out = allocate(out_type);
  int64_t results = out_type.size();
  if (results == 0) return out.array;
  visit_compute(x.dtype(), [&]<class C>(Type<C>) {
    auto values = read_all<C>(x.dtype(), x.raw_data(), x.size());
    Elements<C> rounded(results);
    visit_monoid(monoid, [&]<Monoid M>(MonoidTag<M>) {
      if constexpr (folds<M, C>) {
        using A = Accumulator<M, C>;
        Elements<A> totals(results);
        std::fill(totals.begin(), totals.end(), static_cast<A>(load_as<C>(init.dtype(), init.raw_data(), 0)));
        if (x.size() != 0) {
          for_each_run(x.shape(), axes, [&](int64_t position, int64_t run, int64_t target, int64_t target_step) {
            const C* element = values.data() + position;
            if (target_step == 0) {
              A total = totals[target];
              for (int64_t i = 0; i < run; ++i) total = combine<M>(total, static_cast<A>(element[i]));
              totals[target] = total;
            } else {
              A* total = totals.data() + target;
              for (int64_t i = 0; i < run; ++i) total[i] = combine<M>(total[i], static_cast<A>(element[i]));
            }
          });
        }
        for (int64_t i = 0; i < results; ++i) rounded[i] = static_cast<C>(totals[i]);
      }
    });
    store_all<C>(out_type.dtype, out.data, rounded);
  });
  return out.array;
}

template <Monoid M>
Arrays named_reduction(const KernelArgs& args) {
  const Array& x = args.inputs[0];
  // The sum of a single element is the element, with its sign of zero, as in jax. Complex products are excluded:
  // infinity times one contains NaN.
  if ((M == Monoid::add || !is_complex(x.dtype())) && x.size() == args.output_types[0].size())
    return {Array::from_buffer(args.output_types[0], x.buffer())};
  return {fold_axes(M, x, identity_element(M, x.dtype()), args.attrs.ints("axes"), args.output_types[0])};
}

template <bool Highest>
Arrays arg_reduction(const KernelArgs& args) {
  const Array& x = args.inputs[0];
  const ArrayType& out_type = args.output_types[0];
  Output out = allocate(out_type);
  if (out_type.size() == 0) return {out.array};
  int64_t axis = args.attrs.ints("axes")[0];
  int64_t n = x.shape(axis), inner = 1;
  for (int64_t d = axis + 1; d < x.ndim(); ++d) inner *= x.shape(d);
  int64_t outer = x.size() / (n * inner);
  Elements<int64_t> positions(out_type.size());
  const math::FlushDenormals flush;  // comparisons treat denormals as zero
  visit_compute(x.dtype(), [&]<class C>(Type<C>) {
    if constexpr (!is_complex_number<C>) {
      auto values = read_all<C>(x.dtype(), x.raw_data(), x.size());
      for (int64_t o = 0; o < outer; ++o) {
        const C* block = values.data() + o * n * inner;
        int64_t* best = positions.data() + o * inner;
        for (int64_t i = 1; i < n; ++i) {
          for (int64_t k = 0; k < inner; ++k) {
            C held = block[best[k] * inner + k], candidate = block[i * inner + k];
            bool better = Highest ? candidate > held : candidate < held;
            if constexpr (std::is_floating_point_v<C>) better = better || (candidate != candidate);
            if constexpr (std::is_floating_point_v<C>) better = better && held == held;
            if (better) best[k] = i;
          }
        }
      }
    }
  });
  store_all<int64_t>(out_type.dtype, out.data, positions);
  return {out.array};
}

// Folds the leading dimension of [rows, lanes] arrays, row after row.
Arrays fold_rows(const Region& region, const Arrays& rows, Arrays totals, int64_t count, const Shape& lanes) {
  for (int64_t i = 0; i < count; ++i) {
    for (const Array& x : rows) totals.push_back(take_row(x, i, lanes));
    totals = region(totals);
  }
  return totals;
}

Arrays fold_by_region(const KernelArgs& args, const Region& region) {
  std::size_t n = args.inputs.size() / 2;
  const Ints& dimensions = args.attrs.ints("dimensions");
  // Reduced dimensions first, in row-major order.
  const Shape& shape = args.inputs[0].shape();
  Ints permutation = dimensions;
  std::sort(permutation.begin(), permutation.end());
  int64_t count = 1;
  for (int64_t d : permutation) count *= shape[static_cast<std::size_t>(d)];
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    if (std::find(dimensions.begin(), dimensions.end(), d) == dimensions.end()) permutation.push_back(d);
  }
  int64_t lanes = args.output_types[0].size();
  if (lanes == 0) {
    Arrays empty;
    for (const ArrayType& type : args.output_types) empty.push_back(allocate(type).array);
    return empty;
  }
  Arrays rows, totals;
  for (std::size_t i = 0; i < n; ++i) rows.push_back(reshaped(permute(args.inputs[i], permutation), {count, lanes}));
  // Very long folds with few lanes: neighbouring runs are folded in parallel first. This relies on associativity only.
  constexpr int64_t longest = 1 << 14, run = 128;
  if (count > longest && lanes < 64) {
    int64_t blocks = count / run;
    Arrays heads, tail_rows, runs;
    for (const Array& x : rows) {
      auto bytes = static_cast<std::size_t>(blocks * run * lanes * storage_size(x.dtype()));
      Output head = allocate(x.type().with_shape({blocks * run * lanes}));
      std::memcpy(head.data, x.raw_data(), bytes);
      // [blocks, run, lanes] -> [run, blocks, lanes]
      runs.push_back(reshaped(permute(reshaped(head.array, {blocks, run, lanes}), {1, 0, 2}), {run, blocks * lanes}));
      Output tail = allocate(x.type().with_shape({count - blocks * run, lanes}));
      std::memcpy(tail.data, x.raw_data() + bytes,
                  static_cast<std::size_t>((count - blocks * run) * lanes * storage_size(x.dtype())));
      tail_rows.push_back(tail.array);
    }
    for (const Array& x : runs) heads.push_back(take_row(x, 0, {blocks * lanes}));
    for (int64_t i = 1; i < run; ++i) {
      for (const Array& x : runs) heads.push_back(take_row(x, i, {blocks * lanes}));
      heads = region(heads);
    }
    for (Array& x : heads) x = reshaped(x, {blocks, lanes});
    for (std::size_t i = 0; i < n; ++i) totals.push_back(repeat(args.inputs[n + i], {lanes}));
    totals = fold_rows(region, heads, totals, blocks, {lanes});
    totals = fold_rows(region, tail_rows, totals, count - blocks * run, {lanes});
  } else {
    for (std::size_t i = 0; i < n; ++i) totals.push_back(repeat(args.inputs[n + i], {lanes}));
    totals = fold_rows(region, rows, totals, count, {lanes});
  }
  for (std::size_t i = 0; i < n; ++i) totals[i] = Array::from_buffer(args.output_types[i], totals[i].buffer());
  return totals;
}

Arrays general_reduction(const KernelArgs& args) {
  Region region(args.attrs.program("jaxpr"));
  if (args.inputs.size() == 2 && region.monoid()) {
    return {fold_axes(*region.monoid(), args.inputs[0], args.inputs[1], args.attrs.ints("dimensions"),
                      args.output_types[0])};
  }
  return fold_by_region(args, region);
}

}  // namespace

KernelList reduce_kernels() {
  return {
      {"reduce_sum", named_reduction<Monoid::add>},
      {"reduce_prod", named_reduction<Monoid::mul>},
      {"reduce_max", named_reduction<Monoid::max>},
      {"reduce_min", named_reduction<Monoid::min>},
      {"reduce_and", named_reduction<Monoid::bit_and>},
      {"reduce_or", named_reduction<Monoid::bit_or>},
      {"reduce_xor", named_reduction<Monoid::bit_xor>},
      {"argmax", arg_reduction<true>},
      {"argmin", arg_reduction<false>},
      {"reduce", general_reduction},
  };
}

}  // namespace capibara::reference
