// The order in which einsum contracts its operands: sets of labels as bits, exhaustive search for few operands, and for
// many a greedy order, improved part by part.
#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <set>

#include "lax/shape/shape.h"
#include "library/numpy/linalg/einsum_subscripts.h"

namespace capibara {

using jax::numpy::ContractionPath;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// A set of more labels than fit in a word.
class WideBits {
 public:
  WideBits() = default;
  explicit WideBits(std::size_t labels) : words_((labels + 63) / 64) {}
  void insert(std::size_t label) { words_[label / 64] |= uint64_t{1} << (label % 64); }
  template <class F>
  void each(F&& f) const {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t word = words_[w]; word != 0; word &= word - 1)
        f(64 * w + static_cast<std::size_t>(std::countr_zero(word)));
    }
  }
  bool any() const {
    return std::any_of(words_.begin(), words_.end(), [](uint64_t word) { return word != 0; });
  }
  friend WideBits operator&(WideBits a, const WideBits& b) {
    return a.combine(b, [](uint64_t x, uint64_t y) { return x & y; });
  }
  friend WideBits operator|(WideBits a, const WideBits& b) {
    return a.combine(b, [](uint64_t x, uint64_t y) { return x | y; });
  }
  friend WideBits minus(WideBits a, const WideBits& b) {
    return a.combine(b, [](uint64_t x, uint64_t y) { return x & ~y; });
  }

 private:
  template <class F>
  WideBits& combine(const WideBits& other, F&& f) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] = f(words_[w], other.words_[w]);
    return *this;
  }
  std::vector<uint64_t> words_;
};

// A set of at most 64 labels.
class Bits {
 public:
  Bits() = default;
  explicit Bits(std::size_t) {}
  void insert(std::size_t label) { word_ |= uint64_t{1} << label; }
  template <class F>
  void each(F&& f) const {
    for (uint64_t word = word_; word != 0; word &= word - 1) f(static_cast<std::size_t>(std::countr_zero(word)));
  }
  bool any() const { return word_ != 0; }
  uint64_t word() const { return word_; }
  friend Bits operator&(Bits a, const Bits& b) { return Bits(a.word_ & b.word_, true); }
  friend Bits operator|(Bits a, const Bits& b) { return Bits(a.word_ | b.word_, true); }
  friend Bits minus(Bits a, const Bits& b) { return Bits(a.word_ & ~b.word_, true); }

 private:
  Bits(uint64_t word, bool) : word_(word) {}
  uint64_t word_ = 0;
};

// The number of elements of an array with these labels.
template <class Set>
class Sizes;
template <>
class Sizes<WideBits> {
 public:
  explicit Sizes(std::vector<double> sizes) : sizes_(std::move(sizes)) {}
  double operator()(const WideBits& labels) const {
    double size = 1;
    labels.each([&](std::size_t label) { size *= sizes_[label]; });
    return size;
  }

 private:
  std::vector<double> sizes_;
};
template <>
class Sizes<Bits> {  // with precomputed products of all subsets of every eight labels
 public:
  explicit Sizes(const std::vector<double>& sizes) : tables_((sizes.size() + 7) / 8 * 256) {
    for (std::size_t first = 0; first < tables_.size(); first += 256) {
      double* table = tables_.data() + first;
      table[0] = 1;
      for (std::size_t set = 1; set < 256; ++set) {
        const std::size_t label = first / 32 + static_cast<std::size_t>(std::countr_zero(set));
        table[set] = table[set & (set - 1)] * (label < sizes.size() ? sizes[label] : 1);
      }
    }
  }
  double operator()(const Bits& labels) const {
    double size = 1;
    uint64_t word = labels.word();
    for (const double* table = tables_.data(); word != 0; word >>= 8, table += 256) size *= table[word & 255];
    return size;
  }

 private:
  std::vector<double> tables_;
};

// Pairs of operands by number: inputs first, then the result of each step.
using Steps = std::vector<std::pair<int, int>>;

template <class Set>
class Planner {
 public:
  Planner(std::vector<Set> inputs, Set output, std::size_t labels, const std::vector<double>& sizes)
      : inputs_(std::move(inputs)),
        output_(std::move(output)),
        labels_(labels),
        size_(sizes),
        count_(static_cast<int>(inputs_.size())) {}

  // Tries every order, except those that already cost more than the best one found.
  Steps search_all() {
    operands_ = inputs_;
    best_ = infinite;
    std::vector<int> remaining(static_cast<std::size_t>(count_));
    std::iota(remaining.begin(), remaining.end(), 0);
    search_from(remaining, 0);
    return best_steps_;
  }

  // The optimal order: the best of each set of operands, from small sets to large ones.
  Steps best_order() const {
    Steps steps;
    int next = count_;
    std::vector<int> numbers(inputs_.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    append_best(inputs_, output_, numbers, next, steps);
    return steps;
  }

  // At each step the pair with the lowest score: the size of its result, minus the sizes of its operands.
  Steps greedy() const {
    std::vector<int> held(labels_, 0);  // number of operands that have the label
    Set once(labels_), twice(labels_);
    std::vector<Set> operands = inputs_;
    operands.reserve(inputs_.size() * 2);
    std::vector<double> sizes;
    sizes.reserve(inputs_.size() * 2);
    for (const Set& input : operands) {
      sizes.push_back(size_(input));
      input.each([&](std::size_t label) { ++held[label]; });
    }
    for (std::size_t label = 0; label < labels_; ++label) {
      if (held[label] == 1) once.insert(label);
      if (held[label] == 2) twice.insert(label);
    }
    struct Candidate {
      double score, cost;
      int a, b;
      bool operator<(const Candidate& other) const {
        return score != other.score ? score < other.score : cost < other.cost;
      }
    };
    std::vector<Candidate> candidates;
    std::vector<int> remaining(inputs_.size());
    std::iota(remaining.begin(), remaining.end(), 0);
    auto consider = [&](int a, int b, bool apart) {
      const Set &x = operands[static_cast<std::size_t>(a)], &y = operands[static_cast<std::size_t>(b)];
      const Set both = x & y;
      if (!apart && !both.any()) return;
      const Set either = x | y;
      const Set gone = minus((both & twice) | (minus(either, both) & once), output_);
      candidates.push_back(
          {size_(minus(either, gone)) - sizes[static_cast<std::size_t>(a)] - sizes[static_cast<std::size_t>(b)],
           size_(either), a, b});
    };
    for (int a = 0; a < count_; ++a) {
      for (int b = a + 1; b < count_; ++b) consider(a, b, false);
    }
    Steps steps;
    while (remaining.size() > 1) {
      if (candidates.empty()) {  // no common labels: outer products
        for (std::size_t i = 0; i < remaining.size(); ++i) {
          for (std::size_t j = i + 1; j < remaining.size(); ++j) consider(remaining[i], remaining[j], true);
        }
      }
      const Candidate chosen = *std::min_element(candidates.begin(), candidates.end());
      const Set &x = operands[static_cast<std::size_t>(chosen.a)], &y = operands[static_cast<std::size_t>(chosen.b)];
      const Set both = x & y, either = x | y;
      const Set gone = minus((both & twice) | (minus(either, both) & once), output_);
      // Labels of both operands now occur in one operand less.
      Set fewer_once(labels_), fewer_twice(labels_);
      both.each([&](std::size_t label) {
        --held[label];
        if (held[label] == 1) fewer_once.insert(label);
        if (held[label] == 2) fewer_twice.insert(label);
      });
      once = minus(once | fewer_once, gone);
      twice = minus(twice, both) | fewer_twice;
      const int made = static_cast<int>(operands.size());
      operands.push_back(minus(either, gone));
      sizes.push_back(size_(operands.back()));
      steps.emplace_back(chosen.a, chosen.b);
      std::erase_if(remaining, [&](int other) { return other == chosen.a || other == chosen.b; });
      std::erase_if(candidates, [&](const Candidate& c) {
        return c.a == chosen.a || c.b == chosen.a || c.a == chosen.b || c.b == chosen.b;
      });
      for (int other : remaining) consider(other, made, false);
      remaining.push_back(made);
    }
    return steps;
  }

  // The labels of each operand and of each result of an order.
  std::vector<Set> results_of(const Steps& steps) const {
    std::vector<int> held(labels_, 0);
    std::vector<Set> operands = inputs_;
    operands.reserve(inputs_.size() * 2);
    for (const Set& input : operands) input.each([&](std::size_t label) { ++held[label]; });
    output_.each([&](std::size_t label) { ++held[label]; });
    for (const auto& [a, b] : steps) {
      const Set &x = operands[static_cast<std::size_t>(a)], &y = operands[static_cast<std::size_t>(b)];
      Set kept(labels_);
      x.each([&](std::size_t label) { --held[label]; });
      y.each([&](std::size_t label) { --held[label]; });
      (x | y).each([&](std::size_t label) {
        if (held[label] > 0) kept.insert(label), ++held[label];
      });
      operands.push_back(kept);
    }
    return operands;
  }

  // Replaces parts of an order, of `width` operands or results each, by their optimal order.
  Steps improved(const Steps& steps, std::size_t width) const {
    std::vector<Set> results = results_of(steps);
    std::vector<std::pair<int, int>> tree(results.size(), {-1, -1});
    for (std::size_t i = 0; i < steps.size(); ++i) tree[inputs_.size() + i] = steps[i];
    for (std::size_t top = results.size(); top-- > inputs_.size();) {
      // Expands the largest results below this one until there are enough parts.
      std::vector<int> parts{tree[top].first, tree[top].second}, opened;
      while (parts.size() < width) {
        auto greatest = parts.end();
        double most = -1;
        for (auto part = parts.begin(); part != parts.end(); ++part) {
          if (*part < count_) continue;
          const double size = size_(results[static_cast<std::size_t>(*part)]);
          if (size > most) most = size, greatest = part;
        }
        if (greatest == parts.end()) break;
        const int one = *greatest;
        opened.push_back(one);
        *greatest = tree[static_cast<std::size_t>(one)].first;
        parts.push_back(tree[static_cast<std::size_t>(one)].second);
      }
      if (parts.size() < 3) continue;
      std::vector<Set> sets;
      for (int part : parts) sets.push_back(results[static_cast<std::size_t>(part)]);
      double before = size_(results[static_cast<std::size_t>(tree[top].first)] |
                            results[static_cast<std::size_t>(tree[top].second)]);
      for (int one : opened) {
        const auto& [a, b] = tree[static_cast<std::size_t>(one)];
        before += size_(results[static_cast<std::size_t>(a)] | results[static_cast<std::size_t>(b)]);
      }
      Steps order;
      std::vector<int> numbers = parts;
      int next = static_cast<int>(results.size());  // temporary numbers
      const int base = next;
      if (append_best(sets, results[top], numbers, next, order, before) >= before) continue;
      // The expanded results replace the new ones.
      auto renumbered = [&](int number) {
        return number < base ? number : opened[static_cast<std::size_t>(number - base)];
      };
      for (std::size_t i = 0; i < order.size(); ++i) {
        const int place = i + 1 == order.size() ? static_cast<int>(top) : opened[i];
        const int a = renumbered(order[i].first), b = renumbered(order[i].second);
        tree[static_cast<std::size_t>(place)] = {a, b};
        if (i + 1 < order.size()) {
          Set others = results[top];
          std::vector<int> below;
          members(order, i, base, below);
          for (std::size_t p = 0; p < parts.size(); ++p) {
            if (std::find(below.begin(), below.end(), parts[p]) == below.end()) others = others | sets[p];
          }
          results[static_cast<std::size_t>(place)] =
              (results[static_cast<std::size_t>(a)] | results[static_cast<std::size_t>(b)]) & others;
        }
      }
    }
    // From a tree to steps: each result after its operands.
    Steps out;
    int next = count_;
    number_steps(tree, static_cast<int>(results.size()) - 1, next, out);
    return out;
  }

 private:
  static void members(const Steps& order, std::size_t step, int base, std::vector<int>& out) {
    for (int number : {order[step].first, order[step].second}) {
      if (number < base)
        out.push_back(number);
      else
        members(order, static_cast<std::size_t>(number - base), base, out);
    }
  }

  int number_steps(const std::vector<std::pair<int, int>>& tree, int node, int& next, Steps& out) const {
    if (node < count_) return node;
    const int a = number_steps(tree, tree[static_cast<std::size_t>(node)].first, next, out);
    const int b = number_steps(tree, tree[static_cast<std::size_t>(node)].second, next, out);
    out.emplace_back(std::min(a, b), std::max(a, b));
    return next++;
  }

  // Appends the optimal order of these operands, identified by `numbers`, to the steps if its cost is below `limit`.
  // Returns the cost, infinite otherwise.
  double append_best(const std::vector<Set>& operands, const Set& output, const std::vector<int>& numbers, int& next,
                     Steps& steps, double limit = infinite) const {
    const std::size_t count = operands.size(), all = (std::size_t{1} << count) - 1;
    struct Part {
      Set held;  // the labels left after contracting all operands of the set
      double cost = infinite;
      std::size_t left = 0;
    };
    std::vector<Set> together(all + 1, Set(labels_));
    for (std::size_t set = 1; set <= all; ++set)
      together[set] = together[set & (set - 1)] | operands[static_cast<std::size_t>(std::countr_zero(set))];
    std::vector<Part> parts(all + 1);
    for (std::size_t set = 1; set <= all; ++set) {
      Part& part = parts[set];
      if ((set & (set - 1)) == 0) {
        part.held = together[set];
        part.cost = 0;
        continue;
      }
      part.held = together[set] & (together[all ^ set] | output);
      const std::size_t first = set & (~set + 1), others = set ^ first;
      double least = limit;
      // The lowest operand is on the left, with any subset of the others.
      for (std::size_t beside = (others - 1) & others;; beside = (beside - 1) & others) {
        const Part &left = parts[first | beside], &right = parts[others ^ beside];
        const double before = left.cost + right.cost;
        if (before < least) {
          const double cost = before + size_(left.held | right.held);
          if (cost < least) {
            least = cost;
            part.cost = cost;
            part.left = first | beside;
          }
        }
        if (beside == 0) break;
      }
    }
    if (parts[all].cost < limit) append_parts(parts, all, numbers, next, steps);
    return parts[all].cost;
  }
  template <class Parts>
  static int append_parts(const Parts& parts, std::size_t set, const std::vector<int>& numbers, int& next,
                          Steps& steps) {
    if ((set & (set - 1)) == 0) return numbers[static_cast<std::size_t>(std::countr_zero(set))];
    const int a = append_parts(parts, parts[set].left, numbers, next, steps),
              b = append_parts(parts, set ^ parts[set].left, numbers, next, steps);
    steps.emplace_back(std::min(a, b), std::max(a, b));
    return next++;
  }

  void search_from(const std::vector<int>& remaining, double cost) {
    if (remaining.size() == 1) {
      best_ = cost;
      best_steps_ = steps_;
      return;
    }
    for (std::size_t a = 0; a < remaining.size(); ++a) {
      for (std::size_t b = a + 1; b < remaining.size(); ++b) {
        Set needed = output_;
        std::vector<int> next;
        for (std::size_t other = 0; other < remaining.size(); ++other) {
          if (other == a || other == b) continue;
          next.push_back(remaining[other]);
          needed = needed | operands_[static_cast<std::size_t>(remaining[other])];
        }
        const Set &x = operands_[static_cast<std::size_t>(remaining[a])],
                  &y = operands_[static_cast<std::size_t>(remaining[b])];
        const Set either = x | y;
        const bool inner = minus(x & y, needed).any();
        const double step = size_(either) * (inner ? 2 : 1);
        if (cost + step >= best_) continue;
        next.push_back(static_cast<int>(operands_.size()));
        operands_.push_back(either & needed);
        steps_.emplace_back(remaining[a], remaining[b]);
        search_from(next, cost + step);
        steps_.pop_back();
        operands_.pop_back();
      }
    }
  }

  std::vector<Set> inputs_, operands_;
  Set output_;
  std::size_t labels_;
  Sizes<Set> size_;
  int count_;
  double best_ = infinite;
  Steps steps_, best_steps_;
};

// Maps fixed operand numbers to positions in the list, which shrinks at every step.
ContractionPath as_places(std::size_t count, const Steps& steps) {
  std::vector<int> list(count);
  std::iota(list.begin(), list.end(), 0);
  ContractionPath path;
  path.reserve(steps.size());
  int next = static_cast<int>(count);
  for (const auto& [a, b] : steps) {
    const auto first = std::find(list.begin(), list.end(), a), second = std::find(list.begin(), list.end(), b);
    const auto low = std::min(first, second), high = std::max(first, second);
    path.push_back({low - list.begin(), high - list.begin()});
    list.erase(high);
    list.erase(low);
    list.push_back(next++);
  }
  return path;
}

constexpr std::size_t every_order = 4, every_set = 8, every_set_if_requested = 13;  // operands

template <class Set>
Steps plan(const std::string& method, std::vector<Set> inputs, Set output, std::size_t labels,
           const std::vector<double>& sizes) {
  const std::size_t count = inputs.size();
  Planner<Set> planner(std::move(inputs), std::move(output), labels, sizes);
  if (method == "greedy" || method == "eager" || method == "opportunistic") return planner.greedy();
  if (count <= every_order) return planner.search_all();
  const bool requested = method == "optimal" || method == "dp" || method == "dynamic-programming";
  if (count <= (requested ? every_set_if_requested : every_set)) return planner.best_order();
  return planner.improved(planner.greedy(), 5);
}

}  // namespace

ContractionPath find_path(const char* name, const Subscripts& equation, const jax::numpy::EinsumOptions& options) {
  if (const auto* path = std::get_if<ContractionPath>(&options.optimize)) return *path;
  const std::string& method = std::get<std::string>(options.optimize);
  const std::size_t count = equation.inputs.size();
  if (count <= 2) return {range(static_cast<int64_t>(count))};
  if (method == "unoptimized") return ContractionPath(count - 1, Ints{0, 1});
  static const std::set<std::string> methods = {
      "auto",         "auto-hq",    "optimal",  "dp",       "dynamic-programming", "greedy",
      "eager",        "branch-all", "branch-1", "branch-2", "random-greedy",       "random-greedy-128",
      "opportunistic"};
  if (!methods.count(method)) {
    throw ValueError(
        concat(name, ": optimize must be True, False, a path, 'auto', 'optimal' or 'greedy', got '", method, "'"));
  }
  LabelTable<std::size_t> numbers;
  std::vector<double> sizes;
  for (const auto& [label, size] : equation.sizes) {
    numbers[label] = sizes.size();
    sizes.push_back(static_cast<double>(size));
  }
  auto planned = [&]<class Set>(Set) {
    auto set_of = [&](const Labels& labels) {
      Set set(sizes.size());
      for (char32_t label : labels) set.insert(numbers.at(label));
      return set;
    };
    std::vector<Set> inputs;
    for (const Labels& input : equation.inputs) inputs.push_back(set_of(input));
    return plan<Set>(method, std::move(inputs), set_of(equation.output), sizes.size(), sizes);
  };
  return as_places(count, sizes.size() <= 64 ? planned(Bits()) : planned(WideBits()));
}

std::vector<Contraction> contractions(const char* name, const Subscripts& equation, const ContractionPath& path) {
  LabelTable<std::pair<int, std::size_t>> held;  // in how many terms and the output; the last step that listed it
  for (const Labels& term : equation.inputs) {
    for (char32_t label : term) ++held[label].first;
  }
  for (char32_t label : equation.output) ++held[label].first;
  std::vector<Labels> terms = equation.inputs;
  std::vector<Contraction> steps;
  steps.reserve(path.size());
  for (std::size_t s = 0; s < path.size(); ++s) {
    Contraction step;
    step.places = path[s];
    std::sort(step.places.rbegin(), step.places.rend());
    for (int64_t place : step.places) {
      if (place < 0 || place >= static_cast<int64_t>(terms.size())) {
        throw IndexError(
            concat(name, ": the path names operand ", place, " of ", terms.size(), " (argument 'optimize')"));
      }
      step.inputs.push_back(std::move(terms[static_cast<std::size_t>(place)]));
      terms.erase(terms.begin() + place);
      for (char32_t label : step.inputs.back()) --held[label].first;
    }
    for (const Labels& input : step.inputs) {
      for (char32_t label : input) {
        auto& [holders, listed] = held[label];
        if (listed == s + 1) continue;
        listed = s + 1;
        (holders > 0 ? step.result : step.removed).push_back(label);
      }
    }
    if (s + 1 == path.size()) step.result = equation.output;
    for (char32_t label : step.result) ++held[label].first;
    terms.push_back(step.result);
    steps.push_back(std::move(step));
  }
  if (terms.size() != 1) {
    throw ValueError(concat(name, ": the path leaves ", terms.size(), " operands uncontracted (argument 'optimize')"));
  }
  return steps;
}

}  // namespace capibara
