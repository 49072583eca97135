// Fourier transforms: one dimension after another; many lines in groups of lanes, few and long lines one by one.
// float32 is computed in float32. The grouping of lines does not depend on the number of threads.
#include "backends/cpu/kernels/fft/fft.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/fft/fft_lanes.h"
#include "backends/cpu/kernels/fft/fft_line.h"
#include "backends/cpu/kernels/fft/fft_within.h"
#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

using fft::Form;
using fft::Group;
using fft::Kind;

constexpr int64_t max_work_bytes = 384 << 10;  // of a group: larger ones do not fit the L2 cache

template <class R>
class Transform {
 public:
  Transform(Shape in, Shape out, Ints lengths, int64_t kind)
      : in_(std::move(in)), out_(std::move(out)), lengths_(std::move(lengths)), kind_(kind) {
    if (is_inverse()) {
      for (int64_t length : lengths_) scale_ /= static_cast<double>(length);
    }
  }

  void operator()(std::byte* const* buffers) const {
    const R* in = reinterpret_cast<const R*>(buffers[0]);
    R* out = reinterpret_cast<R*>(buffers[1]);
    const int64_t size = count_of(out_);
    if (size == 0) return;
    if (kind_ == 3)
      inverse_real(in, out);
    else
      from_last(in, out);
  }

 private:
  bool is_inverse() const { return kind_ == 1 || kind_ == 3; }
  static int64_t count_of(const Shape& shape) {
    int64_t count = 1;
    for (int64_t size : shape) count *= size;
    return count;
  }

  static int64_t inner_of(const Shape& shape, std::size_t d) {
    int64_t count = 1;
    for (std::size_t k = d + 1; k < shape.size(); ++k) count *= shape[k];
    return count;
  }

  // ---- several dimensions ------------------------------------------------------------------------------------------

  // The last two dimensions form slabs. If there are many, each goes through both transforms while it is in
  // the cache. Shapes alone decide, since some lengths use other algorithms when there are few lines.
  static constexpr int64_t min_slabs = 16, max_slab_bytes = 256 << 10;
  bool in_slabs(const Shape& shape) const {
    const std::size_t dims = shape.size();
    if (lengths_.size() < 2) return false;
    const int64_t slab = shape[dims - 2] * shape[dims - 1];
    return count_of(shape) / slab >= min_slabs && 2 * slab * static_cast<int64_t>(sizeof(R)) <= max_slab_bytes;
  }
  template <class Body>
  static void each_slab(const Shape& shape, const Body& body) {
    const int64_t slab = shape[shape.size() - 2] * shape[shape.size() - 1];
    parallel_for_cost(count_of(shape) / slab, static_cast<double>(2 * slab), [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        poll_stop();
        body(s);
      }
      return 0;
    });
  }

  void from_last(const R* in, R* out) const {
    const std::size_t last = out_.size() - 1, first = out_.size() - lengths_.size();
    const auto scale_of = [&](std::size_t d) { return d == first ? static_cast<R>(scale_) : 1; };
    const int64_t n = lengths_.back(), kept = out_[last], lines = count_of(out_) / kept;
    const auto lines_along_last = [&](int64_t begin, int64_t count) {
      if (kind_ == 2)
        from_real(in + begin * n, out + 2 * begin * kept, count);
      else
        rows(in + 2 * begin * n, out + 2 * begin * n, count, scale_of(last));
    };
    std::size_t d = last;
    if (in_slabs(out_)) {
      const int64_t side = out_[--d];
      each_slab(out_, [&](int64_t s) {
        lines_along_last(s * side, side);
        R* slab = out + 2 * s * side * kept;
        along(1, side, kept, slab, slab, scale_of(d));
      });
    } else {
      lines_along_last(0, lines);
    }
    while (d-- > first) along(out_, d, out, out, scale_of(d));
  }

  void inverse_real(const R* in, R* out) const {
    const std::size_t last = out_.size() - 1, first = out_.size() - lengths_.size();
    const int64_t n = lengths_.back(), kept = in_[last], lines = count_of(out_) / n;
    if (first == last) return to_real(in, out, lines);
    const Scratch<R> between(2 * count_of(in_), "fft");
    const bool slabs = in_slabs(in_);
    const R* from = in;
    for (std::size_t d = first; d < (slabs ? last - 1 : last); ++d) {
      along(in_, d, from, between.data(), 1);
      from = between.data();
    }
    if (!slabs) return to_real(between.data(), out, lines);
    const int64_t side = in_[last - 1];
    each_slab(in_, [&](int64_t s) {
      R* slab = between.data() + 2 * s * side * kept;
      along(1, side, kept, from + 2 * s * side * kept, slab, 1);
      to_real(slab, out + s * side * n, side);
    });
  }

  // ---- lines of one dimension --------------------------------------------------------------------------------------

  // True if lines are transformed one after another.
  static bool one_by_one(int64_t lines, int64_t length) {
    const auto& code = fft::lanes<R>();
    const bool waits = length >= 256 && 2 * lines <= code.count;
    // Convolutions need lengths up to four times as long.
    return waits || 4 * code.count * length * static_cast<int64_t>(sizeof(R)) > max_work_bytes;
  }

  // Transforms groups of lines; `place` sets the position of a group's first line.
  template <class Place>
  void groups(const fft::Plan<R>& plan, int64_t lines, const Place& place) const {
    const auto& code = fft::lanes<R>();
    const auto length = static_cast<double>(plan.work_length());
    const double cost = length * (2.5 + 0.7 * std::log2(length + 1)) * (plan.is_convolution() ? 2 : 1);
    parallel_for_cost((lines + code.count - 1) / code.count, cost, [&](int64_t begin, int64_t end) {
      Scratch<R> work(code.work_size(plan), "fft");
      for (int64_t g = begin; g < end; ++g) {
        poll_stop();
        const int64_t line = g * code.count;
        Group<R> group{&plan, {}, {}, std::min(code.count, lines - line)};
        group.swap_in = group.swap_out = is_inverse();
        group.work = work.data();
        place(line, group);
        code.transform(group);
      }
      return 0;
    });
  }

  // Vectors within lines, one line after another; false if other algorithms are faster for their length. Several lines
  // may be transformed at once if they are contiguous.
  bool within(int64_t length, int64_t lines, bool may_be_several, fft::Lines<R> all) const {
    const auto plan = fft::within_plan_for<R>(length, fft::lanes<R>().count, may_be_several);
    if (!plan || lines < plan->together) return false;
    const auto size = static_cast<double>(length);
    const double cost = size * (0.3 + 0.05 * std::log2(size));
    const int64_t together = plan->together, parts = (lines + together - 1) / together;
    all.inverse = is_inverse();
    parallel_for_cost(parts, cost * static_cast<double>(together), [&](int64_t begin, int64_t end) {
      Scratch<R> work(plan->work_size(), "fft");
      fft::Lines<R> some = all;
      some.work = work.data();
      some.in += begin * together * all.in_step;
      some.out += begin * together * all.out_step;
      const int64_t count = std::min(end * together, lines) - begin * together, left = count % together;
      some.count = count - left;
      poll_stop();
      fft::transform_within(*plan, some);
      if (left == 0) return 0;
      const int64_t numbers = 2 * together * length;
      Scratch<R> padded(numbers, "fft"), results(numbers, "fft");
      std::fill(std::copy_n(some.in + some.count * all.in_step, 2 * left * length, padded.data()),
                padded.data() + numbers, R{});
      R* out = some.out + some.count * all.out_step;
      some.in = padded.data();
      some.out = results.data();
      some.count = together;
      fft::transform_within(*plan, some);
      std::copy_n(results.data(), 2 * left * length, out);
      return 0;
    });
    return true;
  }

  // Lines one after another; several in parallel if there are many.
  template <class Line>
  static void each_line(int64_t lines, int64_t length, const Line& line) {
    const double cost = static_cast<double>(length) * 3;
    if (lines == 1 || cost > 1e6) {
      for (int64_t i = 0; i < lines; ++i) {
        poll_stop();
        line(i);
      }
      return;
    }
    parallel_for_cost(lines, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) line(i);
      return 0;
    });
  }

  void rows(const R* in, R* out, int64_t lines, R scale) const {
    const int64_t n = lengths_.back();
    if (within(n, lines, true, {in, out, 2 * n, 2 * n, 0, false, Kind::complex, scale})) return;
    if (one_by_one(lines, n)) {
      return each_line(lines, n, [&](int64_t i) {
        fft::transform_line<R>(n, in + 2 * i * n, out + 2 * i * n, is_inverse(), scale);
      });
    }
    const auto plan = fft::plan_for<R>(n);
    groups(*plan, lines, [&](int64_t line, Group<R>& group) {
      group.in = {Form::rows, const_cast<R*>(in) + 2 * line * n, 2 * n};
      group.out = {Form::rows, out + 2 * line * n, 2 * n};
      group.scale = scale;
    });
  }

  // Along a dimension other than the last, possibly in place.
  void along(const Shape& shape, std::size_t d, const R* in, R* out, R scale) const {
    const int64_t n = shape[d], inner = inner_of(shape, d);
    along(count_of(shape) / (n * inner), n, inner, in, out, scale);
  }
  void along(int64_t outer, int64_t n, int64_t inner, const R* in, R* out, R scale) const {
    const auto plan = fft::plan_for<R>(n);
    const int64_t count = fft::lanes<R>().count, blocks = (inner + count - 1) / count;
    groups(*plan, outer * blocks * count, [&](int64_t line, Group<R>& group) {
      const int64_t block = line / count, column = block % blocks * count;
      const int64_t first = 2 * (block / blocks * n * inner + column);
      group.in = {Form::columns, const_cast<R*>(in) + first, 2 * inner};
      group.out = {Form::columns, out + first, 2 * inner};
      group.lanes = std::min(count, inner - column);
      group.scale = scale;
    });
  }

  void from_real(const R* in, R* out, int64_t lines) const {
    const int64_t n = lengths_.back(), kept = n / 2 + 1;
    const bool even = n % 2 == 0;
    const int64_t length = even ? n / 2 : n;
    if (even && within(length, lines, false, {in, out, n, 2 * kept, 0, false, Kind::real_even})) return;
    if (one_by_one(lines, length)) {
      return each_line(lines, n, [&](int64_t i) { line_from_real(n, in + i * n, out + 2 * i * kept); });
    }
    const auto plan = fft::plan_for<R>(length);
    groups(*plan, lines, [&](int64_t line, Group<R>& group) {
      group.in = {even ? Form::rows : Form::real_rows, const_cast<R*>(in) + line * n, n};
      group.out = {Form::rows, out + 2 * line * kept, 2 * kept};
      group.kind = even ? Kind::real_even : Kind::real_odd;
    });
  }

  void to_real(const R* in, R* out, int64_t lines) const {
    const int64_t n = lengths_.back(), kept = n / 2 + 1;
    const bool even = n % 2 == 0;
    const int64_t length = even ? n / 2 : n;
    const R scale = static_cast<R>(scale_);
    if (even && within(length, lines, false, {in, out, 2 * kept, n, 0, false, Kind::to_real_even, scale})) return;
    if (one_by_one(lines, length)) {
      return each_line(lines, n, [&](int64_t i) { line_to_real(n, in + 2 * i * kept, out + i * n, scale); });
    }
    const auto plan = fft::plan_for<R>(length);
    groups(*plan, lines, [&](int64_t line, Group<R>& group) {
      group.in = {Form::rows, const_cast<R*>(in) + 2 * line * kept, 2 * kept};
      group.out = {even ? Form::rows : Form::real_rows, out + line * n, n};
      group.kind = even ? Kind::to_real_even : Kind::to_real_odd;
      group.scale = scale;
    });
  }

  static void line_from_real(int64_t n, const R* in, R* out) {
    if (n % 2 != 0) {
      Scratch<R> line(2 * n, "fft"), spectrum(2 * n, "fft");
      for (int64_t k = 0; k < n; ++k) {
        line[2 * k] = in[k];
        line[2 * k + 1] = 0;
      }
      fft::transform_line<R>(n, line.data(), spectrum.data());
      std::copy_n(spectrum.data(), 2 * (n / 2 + 1), out);
      return;
    }
    const int64_t m = n / 2;
    fft::transform_line<R>(m, in, out);
    const auto plan = fft::plan_for<R>(m);
    const R* roots = plan->half_roots.data();
    const R first = out[0], second = out[1];
    out[2 * m] = first - second;
    out[2 * m + 1] = out[1] = 0;
    out[0] = first + second;
    const R half = static_cast<R>(0.5);
    for (int64_t k = 1; 2 * k <= m; ++k) {
      R *low = out + 2 * k, *high = out + 2 * (m - k);
      const R sum_re = low[0] + high[0], sum_im = low[1] - high[1], re = low[1] + high[1], im = high[0] - low[0];
      const R c = roots[2 * k], s = roots[2 * k + 1];
      const R turned_re = re * c - im * s, turned_im = re * s + im * c;
      low[0] = (sum_re + turned_re) * half;
      low[1] = (sum_im + turned_im) * half;
      high[0] = (sum_re - turned_re) * half;
      high[1] = -(sum_im - turned_im) * half;
    }
  }

  static void line_to_real(int64_t n, const R* in, R* out, R scale) {
    const int64_t m = n % 2 == 0 ? n / 2 : n;
    Scratch<R> line(2 * m, "fft");
    R* z = line.data();
    if (n % 2 != 0) {
      Scratch<R> whole(2 * n, "fft");
      z[0] = in[0];
      z[1] = 0;
      for (int64_t k = 1; 2 * k < n; ++k) {
        z[2 * k] = z[2 * (n - k)] = in[2 * k];
        z[2 * k + 1] = in[2 * k + 1];
        z[2 * (n - k) + 1] = -in[2 * k + 1];
      }
      fft::transform_line<R>(n, z, whole.data(), true, scale);
      for (int64_t k = 0; k < n; ++k) out[k] = whole[2 * k];
      return;
    }
    const auto plan = fft::plan_for<R>(m);
    const R* roots = plan->half_roots.data();
    z[0] = in[0] + in[2 * m];
    z[1] = in[0] - in[2 * m];
    for (int64_t k = 1; 2 * k <= m; ++k) {
      const R *low = in + 2 * k, *high = in + 2 * (m - k);
      const R sum_re = low[0] + high[0], sum_im = low[1] - high[1], re = low[0] - high[0], im = low[1] + high[1];
      const R c = roots[2 * k], s = -roots[2 * k + 1];
      const R turned_re = re * c - im * s, turned_im = re * s + im * c;
      z[2 * k] = sum_re - turned_im;
      z[2 * k + 1] = sum_im + turned_re;
      z[2 * (m - k)] = sum_re + turned_im;
      z[2 * (m - k) + 1] = -(sum_im - turned_re);
    }
    fft::transform_line<R>(m, z, out, true, scale);
  }

  Shape in_, out_;
  Ints lengths_;
  int64_t kind_;
  double scale_ = 1;
};

HostKernel fft_kernel(const KernelRequest& request) {
  const ArrayType &in = request.inputs[0], &out = request.outputs[0];
  const Ints& lengths = request.attrs.ints("fft_lengths");
  const int64_t kind = request.attrs.integer("fft_type");
  if (lengths.empty() || std::find(lengths.begin(), lengths.end(), 0) != lengths.end()) return {};
  const DType real = real_dtype(in.dtype);
  if (real == DType::float32) return Transform<float>(in.shape, out.shape, lengths, kind);
  if (real == DType::float64) return Transform<double>(in.shape, out.shape, lengths, kind);
  return {};
}

}  // namespace

KernelMakers fft_makers() { return {{"fft", fft_kernel}}; }

}  // namespace capibara::cpu
