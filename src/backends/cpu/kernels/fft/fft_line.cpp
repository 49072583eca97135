// One line: within the L1 cache if its length allows it, else as a matrix: transforms of its columns, roots,
// transforms of its rows. The first of these passes transposes its results, so that both read and write whole vectors.
#include "backends/cpu/kernels/fft/fft_line.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/fft/fft_lanes.h"
#include "backends/cpu/kernels/fft/fft_within.h"
#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu::fft {

namespace {

// Estimated cost of one group of lanes.
template <class R>
double group_nanoseconds(const Plan<R>& plan) {
  const auto length = static_cast<double>(plan.work_length());
  return length * (1.5 + 0.7 * std::log2(length + 1)) * (plan.is_convolution() ? 2 : 1);
}

template <class R>
void in_two_passes(const LongPlan<R>& plan, const R* in, R* out, bool inverse, R scale) {
  const Lanes<R>& code = lanes<R>();
  const int64_t count = code.count, plane = plan.padded_rows * plan.padded_columns;
  Scratch<R> between(2 * plane, "fft");
  R *real = between.data(), *imag = real + plane;
  parallel_for_cost(
      plan.padded_columns / count, group_nanoseconds(*plan.along_columns), [&](int64_t begin, int64_t end) {
        Scratch<R> work(code.work_size(*plan.along_columns), "fft");
        for (int64_t g = begin; g < end; ++g) {
          const int64_t first = g * count;
          Group<R> group{
              plan.along_columns.get(),
              {Form::columns, const_cast<R*>(in) + 2 * first, 2 * plan.columns},
              {Form::turned, real + first * plan.padded_rows, plan.padded_rows, imag + first * plan.padded_rows},
              std::min(count, plan.columns - first)};
          group.swap_in = inverse;
          group.real = plan.real.data() + first;
          group.imag = plan.imag.data() + first;
          group.roots_step = plan.padded_columns;
          group.work = work.data();
          code.transform(group);
        }
        return 0;
      });
  parallel_for_cost(plan.padded_rows / count, group_nanoseconds(*plan.along_rows), [&](int64_t begin, int64_t end) {
    Scratch<R> work(code.work_size(*plan.along_rows), "fft");
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g * count;
      Group<R> group{plan.along_rows.get(),
                     {Form::planes, real + first, plan.padded_rows, imag + first},
                     {Form::columns, out + 2 * first, 2 * plan.rows},
                     std::min(count, plan.rows - first)};
      group.swap_out = inverse;
      group.scale = scale;
      group.work = work.data();
      code.transform(group);
    }
    return 0;
  });
}

template <class R>
void in_one_piece(const WithinPlan<R>& plan, const R* in, R* out, bool inverse, R scale) {
  Scratch<R> work(plan.work_size(), "fft");
  transform_within(plan, {in, out, 0, 0, 1, inverse, Kind::complex, scale, work.data()});
}

template <class R>
void in_one_lane(const Plan<R>& plan, const R* in, R* out, bool inverse, R scale) {
  const Lanes<R>& code = lanes<R>();
  Scratch<R> work(code.work_size(plan), "fft");
  Group<R> group{&plan, {Form::rows, const_cast<R*>(in), 0}, {Form::rows, out, 0}, 1};
  group.swap_in = group.swap_out = inverse;
  group.scale = scale;
  group.work = work.data();
  code.transform(group);
}

// A convolution with a chirp, whose transforms are lines themselves.
template <class R>
void by_convolution(const Plan<R>& plan, const R* in, R* out, bool inverse, R scale) {
  const int64_t n = plan.length, size = plan.inner->length;
  Scratch<R> line(2 * size, "fft"), spectrum(2 * size, "fft");
  R *a = line.data(), *b = spectrum.data();
  const R* chirp = plan.chirp.data();
  const int real = inverse ? 1 : 0, imag = 1 - real;
  for (int64_t k = 0; k < n; ++k) {
    const R x = in[2 * k + real], y = in[2 * k + imag], c = chirp[2 * k], s = chirp[2 * k + 1];
    a[2 * k] = x * c - y * s;
    a[2 * k + 1] = x * s + y * c;
  }
  std::fill(a + 2 * n, a + 2 * size, R{});
  transform_line<R>(size, a, b);
  const R* kernel = plan.kernel.data();
  for (int64_t k = 0; k < size; ++k) {
    const R x = b[2 * k], y = b[2 * k + 1], c = kernel[2 * k], s = kernel[2 * k + 1];
    b[2 * k] = x * c - y * s;
    b[2 * k + 1] = x * s + y * c;
  }
  transform_line<R>(size, b, a, true);
  for (int64_t k = 0; k < n; ++k) {
    const R x = a[2 * k] * scale, y = a[2 * k + 1] * scale, c = chirp[2 * k], s = chirp[2 * k + 1];
    out[2 * k + real] = x * c - y * s;
    out[2 * k + imag] = x * s + y * c;
  }
}

}  // namespace

template <class R>
void transform_line(int64_t length, const R* in, R* out, bool inverse, R scale) {
  if (const auto plan = within_plan_for<R>(length, lanes<R>().count, false))
    return in_one_piece(*plan, in, out, inverse, scale);
  if (const auto plan = long_plan_for<R>(length, lanes<R>().count))
    return in_two_passes(*plan, in, out, inverse, scale);
  const auto plan = plan_for<R>(length);
  if (plan->is_convolution()) return by_convolution(*plan, in, out, inverse, scale);
  in_one_lane(*plan, in, out, inverse, scale);
}

template void transform_line<float>(int64_t, const float*, float*, bool, float);
template void transform_line<double>(int64_t, const double*, double*, bool, double);

}  // namespace capibara::cpu::fft
