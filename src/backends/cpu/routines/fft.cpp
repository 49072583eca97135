// Fourier transforms in Stockham's order: each factor of the length is one pass from one array to another.
//
// A pass of radix r over n elements, s elements apart, n = r m:
//   for p < m, q < s: y[q + s (r p + k)] = w^(p k) sum_j x[q + s (p + m j)] exp(-2 pi i j k / r),   w = exp(-2 pi i /
//   n)
// and continues with n / r and s r. Dimensions after the transformed one are part of s from the start. Prime factors
// up to 13 are unrolled; larger ones are sums in a loop, whose time grows with their square.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "backends/cpu/routines/linalg.h"
#include "backends/cpu/routines/routine.h"
#include "core/array/byte_count.h"

namespace capibara::cpu::routines {

namespace {

enum Kind : int64_t { forward = 0, inverse = 1, real_forward = 2, real_inverse = 3 };  // as jax numbers them

constexpr int64_t max_written_out = 13;
constexpr int64_t min_lanes = 8;

std::vector<int64_t> radices_of(int64_t length) {
  std::vector<int64_t> radices;
  while (length % 8 == 0 && length != 16) {
    radices.push_back(8);
    length /= 8;
  }
  for (int64_t factor : {4, 2, 3, 5}) {
    for (; length % factor == 0; length /= factor) radices.push_back(factor);
  }
  for (int64_t factor = 7; length > 1; factor += 2) {
    if (factor * factor > length) factor = length;
    for (; length % factor == 0; length /= factor) radices.push_back(factor);
  }
  return radices;
}

struct Root {
  double real, imaginary;
};
// exp(-2 pi i k / n), reduced to the first eighth of the circle.
Root root_of_unity(int64_t k, int64_t n) {
  k = (k % n + n) % n;
  if (8 * k > 4 * n) {
    const Root other = root_of_unity(n - k, n);
    return {other.real, -other.imaginary};
  }
  if (8 * k > 2 * n) {  // beyond a quarter: rotated back by one
    const Root other = root_of_unity(4 * k - n, 4 * n);
    return {other.imaginary, -other.real};
  }
  if (8 * k > n) {
    const Root other = root_of_unity(n - 4 * k, 4 * n);
    return {-other.imaginary, -other.real};
  }
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

// The real parts of all n roots, then the imaginary ones.
template <class Number>
Array table_of_roots(DType dtype, int64_t n) {
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(2 * n) * sizeof(Number));
  auto* values = reinterpret_cast<Number*>(buffer.mutable_data());
  for (int64_t k = 0; k < n; ++k) {
    const Root root = root_of_unity(k, n);
    values[k] = static_cast<Number>(root.real);
    values[n + k] = static_cast<Number>(root.imaginary);
  }
  return Array::from_buffer(scalar_type(dtype).with_shape({2 * n}), std::move(buffer));
}

class Transform {
 public:
  // `count`: transforms of `length` elements, `inner` apart, which share scratch memory.
  Transform(Algebra& algebra, bool is_inverse, int32_t scratch, int64_t length, int64_t inner, int32_t table,
            int64_t table_length)
      : x(algebra),
        inverse_(is_inverse),
        scratch_(scratch),
        length_(length),
        inner_(inner),
        table_(table),
        table_step_(table_length / length),
        table_length_(table_length) {}

  using Read = std::function<Element(const Position& i)>;
  using Write = std::function<void(const Position& i, const Element& element)>;

  // Elements are indexed among length * inner ones. `in_place`: reads and writes the same memory.
  void run(Read read, const Write& write, bool in_place) {
    const std::vector<int64_t> radices = radices_of(length_);
    const int64_t size = length_ * inner_;
    const Element factor = Element(x.number(1.0 / static_cast<double>(length_)));
    const Write finish = [&](const Position& i, const Element& element) {
      write(i, inverse_ ? x.scale(element, factor.parts[0]) : element);
    };
    if (radices.empty()) {
      x.lanes(0, size, [&](const Position& i) { write(i, read(i)); });
      return;
    }
    int buffer = 0;
    if (radices[0] > max_written_out && in_place) {
      x.lanes(0, size, [&](const Position& i) { store(0, i, read(i)); });
      read = [this](const Position& i) { return load(0, i); };
      buffer = 1;
    }
    int64_t n = length_, s = inner_;
    for (std::size_t pass = 0; pass < radices.size(); ++pass) {
      const int64_t r = radices[pass], m = n / r;
      const Write to = pass + 1 == radices.size()
                           ? finish
                           : Write([this, buffer](const Position& i, const Element& e) { store(buffer, i, e); });
      if (r > max_written_out)
        pass_by_sums(r, m, s, read, to);
      else
        pass_written_out(r, m, s, read, to);
      read = [this, buffer](const Position& i) { return load(buffer, i); };
      buffer = 1 - buffer;
      n = m;
      s *= r;
    }
  }

  // Scratch memory: two arrays for the passes and a third one, each with separate real and imaginary parts.
  static int64_t scratch_elements(int64_t length, int64_t inner) { return 6 * length * inner; }

  Element load(int buffer, const Position& i) {
    const int64_t size = length_ * inner_;
    const Matrix real{scratch_, 2 * buffer * size, 1, 0}, imaginary{scratch_, (2 * buffer + 1) * size, 1, 0};
    return {x.load_real(real, i), x.load_real(imaginary, i)};
  }
  void store(int buffer, const Position& i, const Element& element) {
    const int64_t size = length_ * inner_;
    const Matrix real{scratch_, 2 * buffer * size, 1, 0}, imaginary{scratch_, (2 * buffer + 1) * size, 1, 0};
    x.store_real(real, i, 0, element.parts[0]);
    x.store_real(imaginary, i, 0, element.parts[1]);
  }

  // Root k of the transform's length, or its conjugate for the inverse.
  Element root(const Position& k) {
    const Matrix real{table_, 0, table_step_, 0}, imaginary{table_, table_length_, table_step_, 0};
    const Element own{x.load_real(real, k), x.load_real(imaginary, k)};
    return inverse_ ? x.conjugate(own) : own;
  }

 private:
  // Times -i, or i for the inverse.
  Element quarter(const Element& a) {
    Builder& b = x.builder();
    if (inverse_) return {b.compute(Op::neg, a.parts[1]), a.parts[0]};
    return {a.parts[1], b.compute(Op::neg, a.parts[0])};
  }

  void pass_written_out(int64_t r, int64_t m, int64_t s, const Read& read, const Write& write) {
    const auto butterfly = [&](const Position& p, const Position& q) {
      std::vector<Element> points;
      for (int64_t j = 0; j < r; ++j) points.push_back(read(q + (p + m * j) * s));
      points = small_transform(points);
      for (int64_t k = 0; k < r; ++k) {
        Element& point = points[static_cast<std::size_t>(k)];
        if (k > 0 && m > 1) point = x.multiply(point, root(p * (k * s / inner_)));
        write(q + (p * r + k) * s, point);
      }
    };
    if (s >= min_lanes || m == 1) {
      x.range(0, m, [&](const Position& p) { x.lanes(0, s, [&](const Position& q) { butterfly(p, q); }); });
    } else {
      x.range(0, s, [&](const Position& q) { x.lanes(0, m, [&](const Position& p) { butterfly(p, q); }); });
    }
  }

  void pass_by_sums(int64_t r, int64_t m, int64_t s, const Read& read, const Write& write) {
    Builder& b = x.builder();
    const auto sums = [&](const Position& p, const Position& q) {
      x.range(0, r, [&](const Position& k) {
        const Element zero = x.zero();
        // The index of the root for j k, kept below r.
        const std::vector<Value> sum =
            x.carry(0, r, {zero.parts[0], zero.parts[1], b.index(0)}, [&](const Position& j, auto before) {
              const Position number = Position::of(before[2]);
              const Element term = x.multiply(read(q + (p + j * m) * s), root(number * (length_ / r)));
              const Value next = x.value(number + k);
              const Value beyond = b.compute(Op::ge, next, b.index(r));
              return std::vector<Value>{x.plus(before[0], term.parts[0]), x.plus(before[1], term.parts[1]),
                                        b.compute(Op::select, beyond, b.compute(Op::sub, next, b.index(r)), next)};
            });
        Element point{sum[0], sum[1]};
        if (m > 1) {
          const Value twiddle = b.compute(Op::mul, x.value(p), x.value(k * (s / inner_)));
          point = x.multiply(point, root(Position::of(twiddle)));
        }
        write(q + (p * r + k) * s, point);
      });
    };
    x.range(0, m, [&](const Position& p) {
      if (s >= min_lanes)
        x.lanes(0, s, [&](const Position& q) { sums(p, q); });
      else
        x.range(0, s, [&](const Position& q) { sums(p, q); });
    });
  }

  std::vector<Element> small_transform(const std::vector<Element>& v) {
    const std::size_t r = v.size();
    if (r == 1) return v;
    if (r == 2) return {x.add(v[0], v[1]), x.subtract(v[0], v[1])};
    if (r % 2 == 0) return halves(v);
    // Pairs of points that have conjugate roots.
    std::vector<Element> sums, differences, result(r);
    Element total = v[0];
    for (std::size_t j = 1; j <= r / 2; ++j) {
      sums.push_back(x.add(v[j], v[r - j]));
      differences.push_back(quarter(x.subtract(v[j], v[r - j])));
      total = x.add(total, sums.back());
    }
    result[0] = total;
    for (std::size_t k = 1; k <= r / 2; ++k) {
      Element even = v[0];
      Element odd;
      for (std::size_t j = 1; j <= r / 2; ++j) {
        const Root root = root_of_unity(static_cast<int64_t>(j * k), static_cast<int64_t>(r));
        even = x.add(even, x.scale(sums[j - 1], x.number(root.real)));
        const Element part = x.scale(differences[j - 1], x.number(-root.imaginary));
        odd = j == 1 ? part : x.add(odd, part);
      }
      result[k] = x.add(even, odd);
      result[r - k] = x.subtract(even, odd);
    }
    return result;
  }

  // Combines points at even and at odd indices.
  std::vector<Element> halves(const std::vector<Element>& v) {
    const std::size_t r = v.size(), half = r / 2;
    std::vector<Element> even, odd, result(r);
    for (std::size_t j = 0; j < half; ++j) {
      even.push_back(v[2 * j]);
      odd.push_back(v[2 * j + 1]);
    }
    even = small_transform(even);
    odd = small_transform(odd);
    for (std::size_t k = 0; k < half; ++k) {
      Element turned = odd[k];
      if (4 * k == r) {
        turned = quarter(turned);
      } else if (k > 0) {
        const Root root = root_of_unity(static_cast<int64_t>(k), static_cast<int64_t>(r));
        const double sign = inverse_ ? -1 : 1;
        turned = x.multiply(turned, Element(x.number(root.real), x.number(sign * root.imaginary)));
      }
      result[k] = x.add(even[k], turned);
      result[k + half] = x.subtract(even[k], turned);
    }
    return result;
  }

  Algebra& x;
  bool inverse_;
  int32_t scratch_;
  int64_t length_, inner_;
  int32_t table_;
  int64_t table_step_, table_length_;
};

// ---- real lines -----------------------------------------------------------------------------------------------------

// Computes all of an odd-length spectrum, and keeps the first half.
void whole_forward(Algebra& x, Transform& line, const Matrix& from, const Matrix& to, int64_t length) {
  line.run([&](const Position& i) { return x.element(x.load_real(from, i)); },
           [&](const Position& i, const Element& element) { line.store(2, i, element); }, false);
  x.lanes(0, length / 2 + 1, [&](const Position& i) { x.store(to, i, 0, line.load(2, i)); });
}

// The other half of an odd-length spectrum is the conjugate; the imaginary part of the first element is ignored.
void whole_inverse(Algebra& x, Transform& line, const Matrix& from, const Matrix& to, int64_t length) {
  const int64_t given = length / 2 + 1;
  x.lanes(0, given, [&](const Position& i) { line.store(2, i, x.load(from, i)); });
  x.lanes(given, length, [&](const Position& i) { line.store(2, i, x.conjugate(x.load(from, Position(length) - i))); });
  line.store(2, 0, x.element(line.load(2, 0).parts[0]));
  line.run([&](const Position& i) { return line.load(2, i); },
           [&](const Position& i, const Element& element) { x.store_real(to, i, 0, element.parts[0]); }, false);
}

// Even elements as real parts and odd ones as imaginary parts: a transform z of half the length m.
//   E = (z[k] + conj(z[m-k])) / 2, O = (z[k] - conj(z[m-k])) / 2i, X[k] = E + w^k O, w = exp(-2 pi i / n)
void halved_forward(Algebra& x, Transform& line, Transform& half, const Matrix& from, const Matrix& to,
                    int64_t length) {
  const int64_t m = length / 2;
  half.run([&](const Position& i) { return Element(x.load_real(from, i * 2), x.load_real(from, i * 2 + 1)); },
           [&](const Position& i, const Element& element) { half.store(2, i, element); }, false);
  const Element first = half.load(2, 0);
  x.store(to, 0, 0, x.element(x.plus(first.parts[0], first.parts[1])));
  x.store(to, m, 0, x.element(x.minus(first.parts[0], first.parts[1])));
  x.lanes(1, m, [&](const Position& k) {
    const Value share = x.number(0.5);
    const Element z = half.load(2, k), mirrored = x.conjugate(half.load(2, Position(m) - k));
    const Element even = x.scale(x.add(z, mirrored), share), other = x.scale(x.subtract(z, mirrored), share);
    const Element odd{other.parts[1], x.builder().compute(Op::neg, other.parts[0])};
    x.store(to, k, 0, x.add(even, x.multiply(line.root(k), odd)));
  });
}

void halved_inverse(Algebra& x, Transform& line, Transform& half, const Matrix& from, const Matrix& to,
                    int64_t length) {
  const int64_t m = length / 2;
  const Value share = x.number(0.5);
  const Value first = x.load(from, 0).parts[0], last = x.load(from, m).parts[0];
  half.store(2, 0, {x.times(x.plus(first, last), share), x.times(x.minus(first, last), share)});
  x.lanes(1, m, [&](const Position& k) {
    const Element own = x.load(from, k), mirrored = x.conjugate(x.load(from, Position(m) - k));
    const Element even = x.scale(x.add(own, mirrored), share);
    const Element odd = x.multiply(line.root(k), x.scale(x.subtract(own, mirrored), share));
    half.store(2, k, {x.minus(even.parts[0], odd.parts[1]), x.plus(even.parts[1], odd.parts[0])});
  });
  half.run([&](const Position& i) { return half.load(2, i); },
           [&](const Position& i, const Element& element) {
             x.store_real(to, i * 2, 0, element.parts[0]);
             x.store_real(to, i * 2 + 1, 0, element.parts[1]);
           },
           false);
}

int64_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  int64_t size = 1;
  for (std::size_t d = begin; d < end; ++d) size *= shape[d];
  return size;
}

}  // namespace

Routine fft(const Types& inputs, const Types& outputs, const Attrs& attrs) {
  Routine routine;
  Builder b(routine.function);
  const auto kind = static_cast<Kind>(attrs.integer("fft_type"));
  const Ints& lengths = attrs.ints("fft_lengths");
  const ArrayType &in_type = inputs[0], &out_type = outputs[0];
  const std::size_t rank = in_type.shape.size(), first = rank - lengths.size();
  Algebra x(b, complex_dtype(in_type.dtype));
  const int32_t in = parameter_for(b, in_type, false), out = parameter_for(b, out_type, true);
  if (out_type.size() == 0) return routine;

  // One table of roots for each length.
  std::vector<int32_t> tables;
  for (int64_t length : lengths) {
    const DType real = x.real_dtype();
    routine.tables.push_back(real == DType::float64 ? table_of_roots<double>(real, length)
                                                    : table_of_roots<float>(real, length));
    tables.push_back(parameter_for(b, routine.tables.back().type(), false));
  }
  // A buffer for the spectrum after all dimensions but the last are transformed, and scratch memory for the passes.
  const bool halved = kind == real_inverse;
  const ArrayType& spectrum = halved ? in_type : out_type;
  const int64_t real_bytes = byte_size(computed_type(x.real_dtype()));
  const bool copies = halved && lengths.size() > 1;
  const int32_t copy = copies ? b.parameter(static_cast<int64_t>(byte_count(in_type)), true) : -1;
  int64_t scratch_elements = Transform::scratch_elements(lengths.back(), 1);
  for (std::size_t d = first; d + 1 < rank; ++d) {
    scratch_elements = std::max(scratch_elements,
                                Transform::scratch_elements(lengths[d - first], product(spectrum.shape, d + 1, rank)));
  }
  const int32_t scratch = b.parameter(scratch_elements * real_bytes, true);
  const bool back = kind == inverse || kind == real_inverse;

  // Transforms along dimension d of the spectrum, in `buffer`, in place.
  const auto along = [&](int32_t buffer, std::size_t d) {
    const int64_t length = lengths[d - first], inner = product(spectrum.shape, d + 1, rank), size = length * inner;
    each_matrix(b, product(spectrum.shape, 0, d), [&](const Position& number) {
      const Matrix whole{buffer, number * size, 1, 0};
      Transform(x, back, scratch, length, inner, tables[d - first], length)
          .run([&](const Position& i) { return x.load(whole, i); },
               [&](const Position& i, const Element& element) { x.store(whole, i, 0, element); }, true);
    });
  };
  const int64_t length = lengths.back(), lines = product(in_type.shape, 0, rank - 1);
  const int64_t in_length = in_type.shape.back(), out_length = out_type.shape.back();

  int32_t source = in;
  if (copies) {
    source = copy;
    x.lanes(0, in_type.size(), [&](const Position& i) { x.store({copy, 0, 1, 0}, i, 0, x.load({in, 0, 1, 0}, i)); });
    for (std::size_t d = first; d + 1 < rank; ++d) along(copy, d);
  }
  each_matrix(b, lines, [&](const Position& number) {
    const Matrix from{source, number * in_length, 1, 0}, to{out, number * out_length, 1, 0};
    Transform line(x, back, scratch, length, 1, tables.back(), length);
    Transform half(x, back, scratch, std::max<int64_t>(length / 2, 1), 1, tables.back(), length);
    const auto write = [&](const Position& i, const Element& element) { x.store(to, i, 0, element); };
    switch (kind) {
      case forward:
      case inverse:
        line.run([&](const Position& i) { return x.load(from, i); }, write, false);
        break;
      case real_forward:
        length % 2 == 0 ? halved_forward(x, line, half, from, to, length) : whole_forward(x, line, from, to, length);
        break;
      case real_inverse:
        length % 2 == 0 ? halved_inverse(x, line, half, from, to, length) : whole_inverse(x, line, from, to, length);
        break;
    }
  });
  if (kind != real_inverse) {
    for (std::size_t d = first; d + 1 < rank; ++d) along(out, d);
  }
  return routine;
}

}  // namespace capibara::cpu::routines
