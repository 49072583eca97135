// Factors, roots of unity and chirps of Fourier transforms.
#include "backends/cpu/kernels/fft/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <numbers>
#include <utility>

#include "backends/cpu/kernels/fft/fft_line.h"

namespace capibara::cpu::fft {

namespace {

// Larger primes are faster as convolutions.
constexpr int64_t max_radix = 47;
constexpr std::size_t max_plans = 64;
// Longer lines leave the L1 cache many times within one line; two passes over lanes leave it twice.
constexpr int64_t max_within = 4096;

std::vector<int64_t> factors_of(int64_t length) {
  std::vector<int64_t> factors;
  int64_t rest = length;
  while (rest % 8 == 0 && rest != 16) {
    factors.push_back(8);
    rest /= 8;
  }
  for (int64_t factor : {4, 2, 3, 5}) {
    for (; rest % factor == 0; rest /= factor) factors.push_back(factor);
  }
  for (int64_t factor = 7; rest > 1; factor += 2) {
    for (; rest % factor == 0; rest /= factor) factors.push_back(factor);
    if (factor * factor > rest && rest > 1) {
      factors.push_back(rest);
      break;
    }
  }
  return factors;
}

int64_t convolution_length(int64_t length) {
  int64_t best = 1;
  while (best < 2 * length - 1) best *= 2;
  for (int64_t odd : {3, 5, 9, 15}) {
    int64_t size = odd;
    while (size < 2 * length - 1) size *= 2;
    if (size < best && size % 16 == 0) best = size;
  }
  return best;
}

template <class R>
void push(std::vector<R>& pairs, Root value) {
  pairs.push_back(static_cast<R>(value.real));
  pairs.push_back(static_cast<R>(value.imag));
}

// The most recently used plans of one type; the least recently used one is evicted.
template <class Key, class Value>
class Cache {
 public:
  template <class Make>
  std::shared_ptr<const Value> find(const Key& key, Make&& make) {
    {
      std::lock_guard lock(lock_);
      for (auto it = entries_.begin(); it != entries_.end(); ++it) {
        if (it->first != key) continue;
        entries_.splice(entries_.begin(), entries_, it);
        return it->second;
      }
    }
    std::shared_ptr<const Value> made = make();
    std::lock_guard lock(lock_);
    entries_.emplace_front(key, made);
    if (entries_.size() > max_plans) entries_.pop_back();
    return made;
  }

 private:
  std::mutex lock_;
  std::list<std::pair<Key, std::shared_ptr<const Value>>> entries_;
};

// The number of rows for two passes: both sides near the square root, few lanes unused. 0: one pass is better.
int64_t rows_of(int64_t length, int64_t lanes) {
  constexpr int64_t min_length = 64;
  if (length < min_length) return 0;
  auto padded = [lanes](int64_t count) { return (count + lanes - 1) / lanes * lanes; };
  int64_t best = 0;
  // One pass uses all lanes for a single line; two passes do more work per element, the more the shorter the line.
  const double overhead = length < 256 ? 4 : length < 1024 ? 2 : 1.4;
  double least = static_cast<double>(lanes) / overhead;  // relative to a transform without waste
  for (int64_t rows = 2; rows * rows <= length; ++rows) {
    if (length % rows != 0) continue;
    for (const int64_t side : {rows, length / rows}) {
      const int64_t other = length / side;
      const double waste = static_cast<double>(padded(other)) / static_cast<double>(other) +
                           static_cast<double>(padded(side)) / static_cast<double>(side);
      // Long sides do not fit the cache.
      const double ratio = static_cast<double>(std::max(side, other)) / std::sqrt(static_cast<double>(length));
      const double cost = waste / 2 + 0.02 * ratio;
      if (cost < least) {
        least = cost;
        best = side;
      }
    }
  }
  return best;
}

}  // namespace

Root root(int64_t k, int64_t n) {
  k %= n;
  // Reduced to an eighth of the circle, where the argument is small.
  const int64_t quarter = (8 * k / n + 1) / 2 % 4;       // nearest multiple of pi / 2
  const int64_t rest = 4 * k - (8 * k / n + 1) / 2 * n;  // k - quarter n / 4, times 4
  const double angle = std::numbers::pi / 2 * (static_cast<double>(rest) / static_cast<double>(n));
  const double c = std::cos(angle), s = std::sin(angle);
  switch (quarter) {
    case 0:
      return {c, -s};
    case 1:
      return {-s, -c};
    case 2:
      return {-c, s};
    default:
      return {s, c};
  }
}

template <class R>
Plan<R>::Plan(int64_t length) : length(length) {
  const std::vector<int64_t> factors = factors_of(length);
  if (!factors.empty() && factors.back() > max_radix) {
    const int64_t size = convolution_length(length);
    inner = plan_for<R>(size);
    for (int64_t k = 0; k < length; ++k)
      push(chirp, root(static_cast<int64_t>(static_cast<__int128>(k) * k % (2 * length)), 2 * length));
    // The spectrum of the chirp, in double precision for any type; includes the scale of the inverse.
    std::vector<double> line(static_cast<std::size_t>(2 * size)), spectrum(line.size());
    for (int64_t k = 0; k < length; ++k) {
      const Root value = root(static_cast<int64_t>(static_cast<__int128>(k) * k % (2 * length)), 2 * length);
      for (int64_t at : {k, k == 0 ? 0 : size - k}) {
        line[static_cast<std::size_t>(2 * at)] = value.real;
        line[static_cast<std::size_t>(2 * at + 1)] = -value.imag;
      }
    }
    transform_line<double>(size, line.data(), spectrum.data());
    for (double value : spectrum) kernel.push_back(static_cast<R>(value / static_cast<double>(size)));
  }
  int64_t outer = 1;
  bases = {0};
  for (int64_t radix : is_convolution() ? std::vector<int64_t>() : factors) {
    const int64_t within = length / (outer * radix);
    stages.push_back({radix, within, outer, roots.size()});
    for (int64_t i = 0; i < within; ++i) {
      for (int64_t q = 1; q < radix; ++q) push(roots, root(q * i, radix * within));
    }
    for (int64_t q = 0; q < radix; ++q) push(roots, root(q, radix));
    if (within > 1) {
      std::vector<int32_t> next;
      for (int32_t base : bases) {
        for (int64_t q = 0; q < radix; ++q) next.push_back(base + static_cast<int32_t>(outer * q));
      }
      bases = std::move(next);
    }
    outer *= radix;
  }
  for (int64_t k = 0; k <= length; ++k) push(half_roots, root(k, 2 * length));
}

template <class R>
LongPlan<R>::LongPlan(int64_t length, int64_t rows, int64_t lanes)
    : length(length),
      rows(rows),
      columns(length / rows),
      padded_rows((rows + lanes - 1) / lanes * lanes),
      padded_columns((columns + lanes - 1) / lanes * lanes),
      along_columns(plan_for<R>(rows)),
      along_rows(plan_for<R>(columns)),
      real(static_cast<std::size_t>(rows * padded_columns)),
      imag(real.size()) {
  for (int64_t k = 0; k < rows; ++k) {
    for (int64_t j = 0; j < columns; ++j) {
      const Root value = root(k * j, length);
      real[static_cast<std::size_t>(k * padded_columns + j)] = static_cast<R>(value.real);
      imag[static_cast<std::size_t>(k * padded_columns + j)] = static_cast<R>(value.imag);
    }
  }
}

template <class R>
WithinPlan<R>::WithinPlan(int64_t length, int64_t lanes)
    : length(length), lanes(lanes), together(std::max<int64_t>(lanes * lanes / length, 1)) {
  const std::vector<int64_t> factors = factors_of(length / lanes);
  std::vector<R> numbers;
  int64_t outer = 1;
  std::vector<int32_t> positions = {0};  // of the results of the stages so far, in blocks
  for (int64_t radix : factors) {
    const int64_t within = length / (outer * radix), blocks = within / lanes;
    stages.push_back({radix, blocks, together * outer, numbers.size()});
    for (int64_t i = 0; i < blocks; ++i) {
      for (int64_t q = 1; q < radix; ++q) {
        for (const bool imag : {false, true}) {
          for (int64_t lane = 0; lane < lanes; ++lane) {
            const Root value = root(q * (i * lanes + lane), radix * within);
            numbers.push_back(static_cast<R>(imag ? value.imag : value.real));
          }
        }
      }
    }
    std::vector<int32_t> next;
    for (int64_t q = 0; q < radix; ++q) {
      for (int32_t position : positions) next.push_back(position + static_cast<int32_t>(q * blocks));
    }
    positions = std::move(next);
    outer *= radix;
  }
  for (int64_t line = 0; line < together; ++line) {
    for (int32_t position : positions) order.push_back(static_cast<int32_t>(line * (length / lanes)) + position);
  }
  lane_roots_begin = numbers.size();
  constexpr int64_t part = 16 / sizeof(R);
  for (int64_t q = 1; q < lanes / part; ++q) {
    for (const bool imag : {false, true}) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const Root value = root(q * (lane % part), lanes);
        numbers.push_back(static_cast<R>(imag ? value.imag : value.real));
      }
    }
  }
  half_roots_begin = numbers.size();
  for (const bool imag : {false, true}) {
    for (int64_t k = 0; k < length / 2; ++k) {
      const Root value = root(k, 2 * length);
      numbers.push_back(static_cast<R>((imag ? value.imag : value.real) / 2));
    }
  }
  constexpr std::size_t each = sizeof(AlignedNumbers<R>) / sizeof(R);
  roots.resize((numbers.size() + each - 1) / each);
  std::copy(numbers.begin(), numbers.end(), roots.front().numbers);
}

template <class R>
std::shared_ptr<const Plan<R>> plan_for(int64_t length) {
  static Cache<int64_t, Plan<R>> cache;
  return cache.find(length, [&] { return std::make_shared<const Plan<R>>(length); });
}

template <class R>
std::shared_ptr<const LongPlan<R>> long_plan_for(int64_t length, int64_t lanes) {
  const std::vector<int64_t> factors = factors_of(length);
  const int64_t rows = factors.empty() || factors.back() > max_radix ? 0 : rows_of(length, lanes);
  if (rows == 0) return nullptr;
  static Cache<std::pair<int64_t, int64_t>, LongPlan<R>> cache;
  return cache.find({length, lanes}, [&] { return std::make_shared<const LongPlan<R>>(length, rows, lanes); });
}

template <class R>
std::shared_ptr<const WithinPlan<R>> within_plan_for(int64_t length, int64_t lanes, bool may_be_several) {
  const bool several =
      may_be_several && lanes > 2 && (length == lanes * lanes / 2 || (length == lanes * lanes / 4 && lanes > 4));
  if (!several && (length % (lanes * lanes) != 0 || length > max_within)) return nullptr;
  const std::vector<int64_t> factors = factors_of(length / lanes);
  if (std::any_of(factors.begin(), factors.end(), [](int64_t factor) { return factor > 8; })) return nullptr;
  static Cache<std::pair<int64_t, int64_t>, WithinPlan<R>> cache;
  return cache.find({length, lanes}, [&] { return std::make_shared<const WithinPlan<R>>(length, lanes); });
}

template struct Plan<float>;
template struct Plan<double>;
template std::shared_ptr<const Plan<float>> plan_for(int64_t);
template std::shared_ptr<const Plan<double>> plan_for(int64_t);
template std::shared_ptr<const LongPlan<float>> long_plan_for(int64_t, int64_t);
template std::shared_ptr<const LongPlan<double>> long_plan_for(int64_t, int64_t);
template std::shared_ptr<const WithinPlan<float>> within_plan_for(int64_t, int64_t, bool);
template std::shared_ptr<const WithinPlan<double>> within_plan_for(int64_t, int64_t, bool);

}  // namespace capibara::cpu::fft
