// einsum_optimize: contractions whose intermediates stay within a limit, by reordering and, if no order does, slicing.
#include <capibara/control.h>
#include <capibara/kernels/dense.h>
#include <capibara/lax.h>
#include <capibara/remat.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "lax/operators/promote.h"
#include "lax/rules.h"
#include "library/kernels/precision.h"
#include "library/numpy/linalg/einsum_subscripts.h"

namespace capibara::kernels {

namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

constexpr std::size_t most_exact = 10;  // maximum number of operands for which every order is considered: 3^10 splits
constexpr double infinite = std::numeric_limits<double>::infinity();

// An order of contractions, its operations, and its largest intermediate, result and operands excluded.
struct Order {
  jnp::ContractionPath path;
  double operations = infinite;
  double largest = infinite;
};

// The labels of one einsum as bits, with sizes that slicing reduces.
class Planner {
 public:
  explicit Planner(const Subscripts& equation) : equation_(equation) {
    for (const auto& [label, size] : equation.sizes) {
      labels_.push_back(label);
      sizes_.push_back(static_cast<double>(size));
    }
    for (const Labels& input : equation.inputs) inputs_.push_back(set_of(input));
    output_ = set_of(equation.output);
  }

  const Labels& labels() const { return labels_; }
  double size(std::size_t label) const { return sizes_[label]; }
  void set_size(std::size_t label, double size) { sizes_[label] = size; }

  // The order with the fewest operations within the limit; if there is none, one with the smallest
  // intermediate.
  Order find(double limit) {
    if (inputs_.size() > most_exact) return greedy();
    Order best = search(limit);
    return best.operations < infinite ? best : search(smallest_limit());
  }

 private:
  using Bits = std::vector<bool>;
  using Set = std::uint32_t;  // of operands

  Bits set_of(const Labels& labels) const {
    Bits bits(labels_.size());
    for (std::size_t i = 0; i < labels_.size(); ++i) bits[i] = has(labels, labels_[i]);
    return bits;
  }
  double product(const Bits& bits) const {
    double size = 1;
    for (std::size_t i = 0; i < bits.size(); ++i) size *= bits[i] ? sizes_[i] : 1;
    return size;
  }

  // The labels that remain of each set of operands after contracting it.
  void survey() {
    const Set all = (Set{1} << inputs_.size()) - 1;
    remaining_.assign(all + 1, Bits(labels_.size()));
    for (Set set = 1; set <= all; ++set) {
      for (std::size_t label = 0; label < labels_.size(); ++label) {
        bool inside = false, outside = output_[label];
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
          if (inputs_[i][label]) ((set >> i & 1) ? inside : outside) = true;
        }
        remaining_[set][label] = inside && outside;
      }
    }
  }

  // The smallest L for which an order exists whose intermediates have at most L elements.
  double smallest_limit() {
    survey();
    const Set all = static_cast<Set>(remaining_.size() - 1);
    std::vector<double> peak(all + 1, 0);
    for (Set set = 1; set <= all; ++set) {
      if (std::has_single_bit(set)) continue;
      double best = infinite;
      each_split(set, [&](Set a, Set b) { best = std::min(best, std::max(peak[a], peak[b])); });
      peak[set] = set == all ? best : std::max(best, product(remaining_[set]));
    }
    return peak[all];
  }

  Order search(double limit) {
    survey();
    const Set all = static_cast<Set>(remaining_.size() - 1);
    std::vector<double> cost(all + 1, infinite), sizes(all + 1);
    std::vector<Set> chosen(all + 1);
    for (Set set = 1; set <= all; ++set) {
      sizes[set] = product(remaining_[set]);
      if (std::has_single_bit(set)) {
        cost[set] = 0;
        continue;
      }
      if (set != all && sizes[set] > limit) continue;
      each_split(set, [&](Set a, Set b) {
        if (cost[a] == infinite || cost[b] == infinite) return;
        Bits both = remaining_[a];
        for (std::size_t i = 0; i < both.size(); ++i) both[i] = both[i] || remaining_[b][i];
        const double own = cost[a] + cost[b] + product(both);
        if (own < cost[set]) {
          cost[set] = own;
          chosen[set] = a;
        }
      });
    }
    Order order;
    order.operations = cost[all];
    if (order.operations == infinite) return order;
    order.largest = 0;
    std::vector<Set> list;
    for (std::size_t i = 0; i < inputs_.size(); ++i) list.push_back(Set{1} << i);
    if (inputs_.size() == 1) order.path.push_back({0});
    append_steps(all, chosen, list, order, sizes, all);
    return order;
  }

  void append_steps(Set set, const std::vector<Set>& chosen, std::vector<Set>& list, Order& order,
                    const std::vector<double>& sizes, Set all) const {
    if (std::has_single_bit(set)) return;
    const Set a = chosen[set], b = set ^ a;
    append_steps(a, chosen, list, order, sizes, all);
    append_steps(b, chosen, list, order, sizes, all);
    const auto place = [&](Set one) { return std::find(list.begin(), list.end(), one) - list.begin(); };
    const std::ptrdiff_t first = place(a), second = place(b), low = std::min(first, second),
                         high = std::max(first, second);
    order.path.push_back({low, high});
    list.erase(list.begin() + high);
    list.erase(list.begin() + low);
    list.push_back(set);
    if (set != all) order.largest = std::max(order.largest, sizes[set]);
  }

  template <class F>
  static void each_split(Set set, F&& visit) {
    const Set lowest = set & (~set + 1), rest = set ^ lowest;
    for (Set part = (rest - 1) & rest;; part = (part - 1) & rest) {
      visit(lowest | part, rest ^ part);
      if (part == 0) break;
    }
  }

  // For many operands: einsum's own greedy order.
  Order greedy() const {
    Subscripts equation = equation_;
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      equation.sizes[labels_[i]] = static_cast<int64_t>(sizes_[i]);
      equation.elements[labels_[i]] = sizes_[i];
    }
    Order order{find_path("einsum_optimize", equation, {.optimize = std::string("greedy")}), 0, 0};
    const std::vector<Contraction> steps = contractions("einsum_optimize", equation, order.path);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Labels all;
      for (const Labels& input : steps[i].inputs) {
        for (char32_t label : input) {
          if (!has(all, label)) all.push_back(label);
        }
      }
      order.operations += equation.size_of(all);
      if (i + 1 < steps.size()) order.largest = std::max(order.largest, equation.size_of(steps[i].result));
    }
    return order;
  }

  const Subscripts& equation_;
  Labels labels_;
  std::vector<double> sizes_;
  std::vector<Bits> inputs_;
  Bits output_;
  std::vector<Bits> remaining_;
};

struct Slicing {
  char32_t label;
  int64_t step;  // positions of the label per slice; divides its size
};
struct Plan {
  Order order;
  std::vector<Slicing> slices;
};

// Slices along the label that makes an order possible with the fewest operations, or else along the one that minimizes
// the largest intermediate, until an order stays within the limit.
Plan find_plan(const Subscripts& equation, double limit) {
  Planner planner(equation);
  Plan plan{planner.find(limit), {}};
  while (plan.order.largest > limit) {
    std::size_t best = planner.labels().size();
    double best_score = infinite;
    bool best_fits = false;
    for (std::size_t i = 0; i < planner.labels().size(); ++i) {
      const double size = planner.size(i);
      if (size <= 1) continue;
      planner.set_size(i, 1);
      const Order order = planner.find(limit);
      planner.set_size(i, size);
      const bool fits = order.largest <= limit;
      const double score = fits ? order.operations * size : order.largest;
      if ((fits && !best_fits) || (fits == best_fits && score < best_score)) {
        best = i;
        best_score = score;
        best_fits = fits;
      }
    }
    if (best == planner.labels().size()) {
      throw ValueError(concat("einsum_optimize: expected at least ", plan.order.largest,
                              " elements (argument 'memory_limit'), got ", limit));
    }
    const auto whole = static_cast<int64_t>(planner.size(best));
    int64_t step = 1;
    for (int64_t candidate = whole / 2; best_fits && candidate > 1; --candidate) {
      if (whole % candidate != 0) continue;
      planner.set_size(best, static_cast<double>(candidate));
      if (planner.find(limit).largest <= limit) {
        step = candidate;
        break;
      }
    }
    planner.set_size(best, static_cast<double>(step));
    plan.slices.push_back({planner.labels()[best], step});
    plan.order = planner.find(limit);
  }
  return plan;
}

std::string equation_text(const Subscripts& equation) {
  std::string text;
  for (const Labels& input : equation.inputs) text += (text.empty() ? "" : ",") + to_text(input);
  return text + "->" + to_text(equation.output);
}

// The contraction of a plan, one slice at a time.
class Sliced {
 public:
  Sliced(const Subscripts& equation, const Plan& plan, std::string precision, DType dtype)
      : equation_(equation), plan_(plan), precision_(std::move(precision)), dtype_(dtype) {}

  Array run(const Arrays& operands, std::size_t depth = 0) const {
    if (depth == plan_.slices.size()) {
      return jnp::einsum(equation_text(equation_), operands,
                         {.optimize = plan_.order.path, .precision = precision_, .preferred_element_type = dtype_});
    }
    const auto [label, step] = plan_.slices[depth];
    const int64_t whole = equation_.sizes.at(label), count = whole / step;
    const std::size_t place = equation_.output.find(label);
    const auto part = [&, label = label, step = step](const Arrays& all, const Array& i) {
      const Array start = i * Array(step);
      Arrays parts;
      for (std::size_t k = 0; k < all.size(); ++k)
        parts.push_back(cut(all[k], equation_.inputs[k], label, step, start));
      return parts;
    };
    const Array numbers = lax::iota(DType::int32, count);
    const auto compute = [&](const Arrays& all, const Array& i) {
      return jax::checkpoint([&](const Arrays& parts) { return run(parts, depth + 1); })(part(all, i));
    };
    if (place == Labels::npos) {
      const auto add = [&](const Array& sum, const Array& i) {
        return std::pair(sum + compute(operands, i), std::monostate{});
      };
      return lax::scan(add, lax::zeros(sum_type(depth)), numbers).first;
    }
    const auto keep = [&](std::monostate none, const Array& i) { return std::pair(none, compute(operands, i)); };
    const Array stacked = lax::scan(keep, std::monostate{}, numbers).second;
    // [count, ..., step, ...] to [..., whole, ...]
    const Array moved = move_axis(stacked, 0, static_cast<int64_t>(place));
    Shape shape = moved.shape();
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(place));
    shape[place] = whole;
    return moved.reshape(shape);
  }

 private:
  static Array cut(Array x, const Labels& labels, char32_t label, int64_t step, const Array& start) {
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      const auto place = static_cast<int64_t>(axis);
      if (labels[axis] != label || x.shape(place) == 1) continue;
      x = lax::dynamic_slice_in_dim(x, start, step, place);
    }
    return x;
  }

  // The type of the result within the slices of the first `depth` labels.
  ArrayType sum_type(std::size_t depth) const {
    Shape shape;
    for (char32_t label : equation_.output) {
      int64_t size = equation_.sizes.at(label);
      for (std::size_t i = 0; i < depth; ++i) {
        if (plan_.slices[i].label == label) size = plan_.slices[i].step;
      }
      shape.push_back(size);
    }
    return scalar_of(dtype_, 0).type().strong().with_shape(shape);
  }

  const Subscripts& equation_;
  const Plan& plan_;
  std::string precision_;
  DType dtype_;
};

std::vector<Shape> shapes_of(const Arrays& operands) {
  std::vector<Shape> shapes;
  for (const Array& operand : operands) shapes.push_back(operand.shape());
  return shapes;
}

double limit_of(const Subscripts& equation, const EinsumOptimizeOptions& options) {
  if (options.memory_limit) {
    if (*options.memory_limit < 1)
      throw ValueError(concat("einsum_optimize: expected a positive number of elements (argument 'memory_limit'), got ",
                              *options.memory_limit));
    return static_cast<double>(*options.memory_limit);
  }
  double limit = equation.size_of(equation.output);
  for (const Labels& input : equation.inputs) limit = std::max(limit, equation.size_of(input));
  return std::max(limit, 1.0);
}

void check_limit(const EinsumOptimizeOptions& options) {
  if (options.memory_limit && !options.memory_efficient)
    throw ValueError("einsum_optimize: argument 'memory_limit' has a meaning with memory_efficient=True only");
}

}  // namespace

Array einsum_optimize(const std::string& equation, const Arrays& operands, const EinsumOptimizeOptions& options) {
  check_limit(options);
  if (operands.empty())
    throw ValueError("einsum_optimize: expected at least one array (argument 'operands'), got none");
  const DType dtype = result_type(operands).dtype;
  const Rounding rounding = rounding_of("einsum_optimize", options.precision, dtype);
  Arrays rounded = operands;
  if (rounding.operand) {
    for (Array& operand : rounded) operand = operand.astype(*rounding.operand);
  }
  const DType narrow = rounding.operand.value_or(dtype);
  const DType wide = is_floating(narrow) && bits(narrow) < 32 ? DType::float32 : narrow;
  if (!options.memory_efficient) {
    return jnp::einsum(equation, rounded,
                       {.optimize = options.optimize, .precision = rounding.precision, .preferred_element_type = wide})
        .astype(dtype);
  }
  const Subscripts parsed = parse_subscripts("einsum_optimize", equation, shapes_of(rounded));
  const Plan plan = find_plan(parsed, limit_of(parsed, options));
  return Sliced(parsed, plan, rounding.precision, wide).run(rounded).astype(dtype);
}

std::string einsum_plan(const std::string& equation, const std::vector<Shape>& shapes,
                        const EinsumOptimizeOptions& options) {
  check_limit(options);
  if (!options.memory_efficient) return jnp::einsum_path(equation, shapes, {.optimize = options.optimize}).text;
  const Subscripts parsed = parse_subscripts("einsum_plan", equation, shapes);
  const Plan plan = find_plan(parsed, limit_of(parsed, options));
  std::string text = concat("largest intermediate ", plan.order.largest, " elements\n");
  for (const Slicing& slice : plan.slices) {
    text += concat("sliced along ", to_text(Labels{slice.label}), " in steps of ", slice.step, " of ",
                   parsed.sizes.at(slice.label), "\n");
  }
  for (const Contraction& step : contractions("einsum_plan", parsed, plan.order.path)) {
    std::string inputs;
    for (const Labels& input : step.inputs) inputs += (inputs.empty() ? "" : ",") + to_text(input);
    text += inputs + "->" + to_text(step.result) + "\n";
  }
  return text;
}

}  // namespace capibara::kernels
