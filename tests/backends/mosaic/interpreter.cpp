// Runs the text of a TPU kernel on the host: the meaning of each operation, and the grid.
#include "interpreter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>

namespace capibara::mosaic {

namespace {

using Shape = std::vector<int64_t>;

constexpr double poisoned_integer = -1073741789;  // far from every index and segment

// The inner text of key<...> or key = [...] lists: array<i64: 1, 2> gives 1, 2.
std::vector<int64_t> array_of(const Operation& operation, const std::string& key) {
  const auto found = operation.attributes.find(key);
  if (found == operation.attributes.end()) fail(operation.name + " has no " + key);
  const std::size_t colon = found->second.find(':');
  return numbers_in(colon == std::string::npos ? found->second.find("array<") == 0 ? "" : found->second
                                               : found->second.substr(colon + 1));
}

int64_t integer_of(const Operation& operation, const std::string& key) {
  const std::vector<int64_t> numbers = numbers_in(operation.attributes.count(key) ? operation.attributes.at(key) : "");
  if (numbers.empty()) fail(operation.name + " has no number " + key);
  return numbers[0];
}

double literal(const std::string& text, const std::string& element) {
  if (text == "true" || text == "false") return text == "true";
  if (text.rfind("0x", 0) == 0) {
    const uint32_t bits = static_cast<uint32_t>(std::strtoul(text.c_str(), nullptr, 16));
    return std::bit_cast<float>(element == "bf16" ? bits << 16 : bits);
  }
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) fail("'" + text + "' is no number");
  return rounded_to(element, value);
}

// ---- values ---------------------------------------------------------------------------------------------------------

bool is_float(const std::string& element) { return element == "f32" || element == "bf16"; }
double poison(const std::string& element) {
  return is_float(element) ? std::numeric_limits<double>::quiet_NaN() : element == "i1" ? 1 : poisoned_integer;
}

// A buffer in memory: a window, scratch, or a prefetched array.
struct Buffer {
  Tensor tensor;
  std::vector<bool> written;  // of scratch; empty: all of it may be read
};

struct Value {
  std::shared_ptr<const Tensor> tensor;
  Buffer* buffer = nullptr;    // of a memref
  std::string unwritten = {};  // the scratch it was read from before that was written; nothing may use it
};

using Frame = std::map<std::string, Value>;

Value scalar(const std::string& element, double value) {
  return {std::make_shared<const Tensor>(Tensor{element, {}, {value}})};
}

double wrapped_truncation(double value) {
  return std::abs(value) < 2147483648.0 ? std::trunc(value) : poisoned_integer;
}

double wrapped(double value) {  // to 32 bits
  if (!std::isfinite(value)) return poisoned_integer;
  return static_cast<double>(static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(value))));
}

double shifted(double value, double bits, bool left) {
  if (!(bits >= 0 && bits < 32)) fail("a shift is by 32 bits or more");
  const uint32_t word = static_cast<uint32_t>(static_cast<int64_t>(value)), count = static_cast<uint32_t>(bits);
  return static_cast<double>(static_cast<int32_t>(left ? word << count : word >> count));
}

Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// Calls body(index) for every index of a shape, in row-major order.
template <class Body>
void for_each_index(const Shape& shape, Body&& body) {
  Shape index(shape.size(), 0);
  for (int64_t left = count_of(shape); left > 0; --left) {
    body(index);
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
}

int64_t offset_of(const Shape& index, const Shape& strides) {
  return std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
}

class Machine {
 public:
  // The results of a function's or region's terminator.
  std::vector<Value> run(const Block& block, Frame& frame) {
    for (const Operation& operation : block.operations) {
      if (operation.name == "func.return" || operation.name == "scf.yield") {
        std::vector<Value> values;
        for (const std::string& name : operation.operands) values.push_back(value(frame, name));
        return values;
      }
      const std::vector<Value> results = execute(operation, frame);
      if (results.size() != operation.results.size()) fail(operation.name + ": the number of results is wrong");
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i].tensor) {
          const Type stated = type_of(operation.result_types[i]);
          if (stated.element != results[i].tensor->element || stated.shape != results[i].tensor->shape)
            fail(operation.name + ": a result is not of the stated type " + operation.result_types[i]);
        }
        frame[operation.results[i]] = results[i];
      }
    }
    fail("a block has no terminator");
  }

 private:
  static const Value& value(const Frame& frame, const std::string& name) {
    const auto found = frame.find(name);
    if (found == frame.end()) fail("value " + name + " is not defined");
    return found->second;
  }
  static const Tensor& tensor(const Frame& frame, const Operation& operation, std::size_t i) {
    if (i >= operation.operands.size()) fail(operation.name + " has too few operands");
    const Value& found = value(frame, operation.operands[i]);
    if (!found.tensor) fail(operation.name + ": a memref is no value");
    if (!found.unwritten.empty() && operation.name != "vector.shape_cast")
      fail("scratch " + found.unwritten + " is read before it is written");
    const Type stated = type_of(operation.operand_types[i]);
    if (stated.element != found.tensor->element || stated.shape != found.tensor->shape)
      fail(operation.name + ": operand " + std::to_string(i) + " is not of the stated type");
    return *found.tensor;
  }
  static Buffer& buffer(const Frame& frame, const Operation& operation, std::size_t i) {
    if (i >= operation.operands.size()) fail(operation.name + " has too few operands");
    const Value& found = value(frame, operation.operands[i]);
    if (!found.buffer) fail(operation.name + ": expected a memref");
    return *found.buffer;
  }
  static std::vector<Value> one(Tensor tensor) {
    if (static_cast<int64_t>(tensor.data.size()) != count_of(tensor.shape)) fail("a value has a wrong size");
    return {{std::make_shared<const Tensor>(std::move(tensor))}};
  }

  std::vector<Value> execute(const Operation& operation, Frame& frame) {
    const std::string& name = operation.name;
    if (name == "scf.if") {
      if (operation.regions.size() != 2) fail("scf.if needs two regions");
      return run(operation.regions[tensor(frame, operation, 0).data[0] != 0 ? 0 : 1], frame);
    }
    if (name == "scf.for") return loop(operation, frame);
    if (name == "vector.load" || name == "memref.load") return load(operation, frame);
    if (name == "tpu.vector_store" || name == "memref.store") return store(operation, frame);
    if (name == "arith.constant") return constant(operation);
    if (operation.results.size() != 1) fail(name + ": expected one result");
    const Type result = type_of(operation.result_types[0]);
    if (name == "tpu.iota") {
      const std::vector<int64_t> axes = array_of(operation, "dimensions");
      if (axes.size() != 1 || axes[0] < 0 || axes[0] >= static_cast<int64_t>(result.shape.size()))
        fail("tpu.iota has no such dimension");
      Tensor out{result.element, result.shape, {}};
      for_each_index(result.shape,
                     [&](const Shape& index) { out.data.push_back(double(index[static_cast<std::size_t>(axes[0])])); });
      return one(std::move(out));
    }
    const Tensor& x = tensor(frame, operation, 0);
    if (name == "vector.shape_cast") {
      std::vector<Value> values = one({x.element, result.shape, x.data});
      values[0].unwritten = value(frame, operation.operands[0]).unwritten;
      return values;
    }
    if (name == "vector.broadcast") return broadcast(x, result.shape);
    if (name == "tpu.transpose") return transpose(x, array_of(operation, "permutation"));
    if (name == "vector.extract_strided_slice") return slice(operation, x, result.shape);
    if (name == "vector.multi_reduction") return reduce(operation, x, tensor(frame, operation, 1));
    if (name == "tpu.matmul") return matmul(operation, x, tensor(frame, operation, 1), tensor(frame, operation, 2));
    return elementwise(operation, frame, x, result);
  }

  std::vector<Value> loop(const Operation& operation, Frame& frame) {
    const auto bound = [&](std::size_t i) { return static_cast<int64_t>(tensor(frame, operation, i).data[0]); };
    const int64_t step = bound(2);
    if (step < 1 || operation.regions.size() != 1) fail("scf.for is malformed");
    std::vector<Value> carry;
    for (std::size_t i = 3; i < operation.operands.size(); ++i) carry.push_back(value(frame, operation.operands[i]));
    const Block& body = operation.regions[0];
    if (body.arguments.size() != carry.size() + 1) fail("scf.for: the arguments of its body do not fit");
    for (int64_t at = bound(0), last = bound(1), trips = 0; at < last; at += step) {
      if (++trips > (1 << 20)) fail("scf.for runs too long");
      frame[body.arguments[0].first] = scalar(type_of(body.arguments[0].second).element, double(at));
      for (std::size_t i = 0; i < carry.size(); ++i) frame[body.arguments[i + 1].first] = carry[i];
      carry = run(body, frame);
      if (carry.size() + 1 != body.arguments.size()) fail("scf.for: its body yields a wrong number of values");
    }
    return carry;
  }

  std::vector<Value> constant(const Operation& operation) {
    const auto found = operation.attributes.find("value");
    if (found == operation.attributes.end() || operation.results.size() != 1) fail("arith.constant has no value");
    const Type type = type_of(operation.result_types[0]);
    std::string text = found->second;
    if (text.rfind("dense<", 0) == 0) text = text.substr(6, text.find('>') - 6);
    const double number = literal(text.substr(0, text.find(' ')), type.element);
    return one({type.element, type.shape, std::vector<double>(static_cast<std::size_t>(count_of(type.shape)), number)});
  }

  // The element offsets of an access of `shape` at indices given by operands from `first`.
  static std::vector<int64_t> offsets(const Operation& operation, const Frame& frame, std::size_t first,
                                      const Buffer& memory, Shape shape) {
    const Shape& whole = memory.tensor.shape;
    if (operation.operands.size() != first + whole.size()) fail(operation.name + ": the number of indices is wrong");
    if (shape.empty()) shape.assign(whole.size(), 1);
    if (shape.size() != whole.size()) fail(operation.name + ": the rank of the vector is not that of the memory");
    Shape start;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      start.push_back(static_cast<int64_t>(tensor(frame, operation, first + i).data[0]));
      if (start[i] < 0 || start[i] + shape[i] > whole[i]) fail(operation.name + " reaches outside of its memory");
    }
    const Shape strides = strides_of(whole);
    std::vector<int64_t> all;
    const int64_t base = offset_of(start, strides);
    for_each_index(shape, [&](const Shape& index) { all.push_back(base + offset_of(index, strides)); });
    return all;
  }

  std::vector<Value> load(const Operation& operation, Frame& frame) {
    Buffer& memory = buffer(frame, operation, 0);
    if (operation.results.size() != 1) fail(operation.name + ": expected one result");
    const Type type = type_of(operation.result_types[0]);
    Tensor out{memory.tensor.element, type.shape, {}};
    bool unwritten = false;
    for (const int64_t at : offsets(operation, frame, 1, memory, type.shape)) {
      unwritten |= !memory.written.empty() && !memory.written[static_cast<std::size_t>(at)];
      out.data.push_back(memory.tensor.data[static_cast<std::size_t>(at)]);
    }
    std::vector<Value> values = one(std::move(out));
    if (unwritten) values[0].unwritten = operation.operands[0];
    return values;
  }

  std::vector<Value> store(const Operation& operation, Frame& frame) {
    const Tensor& x = tensor(frame, operation, 0);
    Buffer& memory = buffer(frame, operation, 1);
    if (x.element != memory.tensor.element) fail(operation.name + ": element types differ");
    std::size_t i = 0;
    for (const int64_t at : offsets(operation, frame, 2, memory, x.shape)) {
      memory.tensor.data[static_cast<std::size_t>(at)] = x.data[i++];
      if (!memory.written.empty()) memory.written[static_cast<std::size_t>(at)] = true;
    }
    return {};
  }

  std::vector<Value> broadcast(const Tensor& x, const Shape& shape) {
    if (x.shape.size() > shape.size()) fail("vector.broadcast: the rank shrinks");
    const std::size_t added = shape.size() - x.shape.size();
    Shape strides(shape.size(), 0);
    const Shape own = strides_of(x.shape);
    for (std::size_t i = 0; i < x.shape.size(); ++i) {
      if (x.shape[i] != shape[i + added] && x.shape[i] != 1) fail("vector.broadcast: shapes do not fit");
      strides[i + added] = x.shape[i] == 1 ? 0 : own[i];
    }
    Tensor out{x.element, shape, {}};
    for_each_index(shape, [&](const Shape& index) {
      out.data.push_back(x.data.at(static_cast<std::size_t>(offset_of(index, strides))));
    });
    return one(std::move(out));
  }

  std::vector<Value> transpose(const Tensor& x, const std::vector<int64_t>& order) {
    const Shape own = strides_of(x.shape);
    Shape shape, strides;
    if (order.size() != x.shape.size()) fail("tpu.transpose: the permutation does not fit");
    std::vector<bool> seen(order.size(), false);
    for (const int64_t axis : order) {
      if (axis < 0 || axis >= static_cast<int64_t>(own.size()) || seen[static_cast<std::size_t>(axis)])
        fail("tpu.transpose: the permutation does not fit");
      seen[static_cast<std::size_t>(axis)] = true;
      shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
      strides.push_back(own[static_cast<std::size_t>(axis)]);
    }
    Tensor out{x.element, shape, {}};
    for_each_index(shape, [&](const Shape& index) {
      out.data.push_back(x.data[static_cast<std::size_t>(offset_of(index, strides))]);
    });
    return one(std::move(out));
  }

  std::vector<Value> slice(const Operation& operation, const Tensor& x, const Shape& shape) {
    const std::vector<int64_t> start = array_of(operation, "offsets"), sizes = array_of(operation, "sizes");
    if (start.size() != x.shape.size() || sizes != shape || shape.size() != x.shape.size())
      fail("vector.extract_strided_slice is malformed");
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (start[i] < 0 || start[i] + shape[i] > x.shape[i]) fail("vector.extract_strided_slice reaches outside");
    }
    const Shape strides = strides_of(x.shape);
    Tensor out{x.element, shape, {}};
    for_each_index(shape, [&](const Shape& index) {
      out.data.push_back(x.data[static_cast<std::size_t>(offset_of(index, strides) + offset_of(start, strides))]);
    });
    return one(std::move(out));
  }

  std::vector<Value> reduce(const Operation& operation, const Tensor& x, const Tensor& start) {
    const std::string kind = operation.attributes.count("kind") ? operation.attributes.at("kind") : "";
    const bool add = kind.find("<add>") != std::string::npos, max = kind.find("<maximumf>") != std::string::npos;
    if (!add && !max) fail("vector.multi_reduction of an unknown kind " + kind);
    std::vector<bool> reduced(x.shape.size(), false);
    for (const int64_t axis : array_of(operation, "reduction_dims")) {
      if (axis < 0 || axis >= static_cast<int64_t>(reduced.size()))
        fail("vector.multi_reduction has no such dimension");
      reduced[static_cast<std::size_t>(axis)] = true;
    }
    Shape shape, strides(x.shape.size(), 0);
    for (std::size_t i = 0; i < x.shape.size(); ++i) {
      if (!reduced[i]) shape.push_back(x.shape[i]);
    }
    if (shape != start.shape) fail("vector.multi_reduction: the accumulator does not fit");
    const Shape kept = strides_of(shape);
    for (std::size_t i = 0, k = 0; i < x.shape.size(); ++i) {
      if (!reduced[i]) strides[i] = kept[k++];
    }
    Tensor out = start;
    std::size_t at = 0;
    for_each_index(x.shape, [&](const Shape& index) {
      double& into = out.data[static_cast<std::size_t>(offset_of(index, strides))];
      const double own = x.data[at++];
      into = add ? into + own : std::isnan(own) || std::isnan(into) ? NAN : std::max(into, own);
    });
    for (double& number : out.data) number = rounded_to(x.element, number);
    return one(std::move(out));
  }

  std::vector<Value> matmul(const Operation& operation, const Tensor& a, const Tensor& b, const Tensor& start) {
    const auto found = operation.attributes.find("dimension_numbers");
    const std::vector<int64_t> axes = numbers_in(found == operation.attributes.end() ? "" : found->second);
    if (axes.size() != 8 || a.shape.size() != 2 || b.shape.size() != 2) fail("tpu.matmul needs two matrices");
    const auto axis = [](int64_t number) { return static_cast<std::size_t>(number & 1); };
    const std::size_t ka = axis(axes[0]), kb = axis(axes[1]);
    const int64_t inner = a.shape[ka], rows = a.shape[1 - ka], columns = b.shape[1 - kb];
    if (b.shape[kb] != inner || start.shape != Shape{rows, columns}) fail("tpu.matmul: shapes do not fit");
    if (a.element != b.element || !is_float(a.element)) fail("tpu.matmul: element types do not fit");
    const Shape sa = strides_of(a.shape), sb = strides_of(b.shape);
    Tensor out = start;
    std::vector<double> row(static_cast<std::size_t>(columns));
    for (int64_t i = 0; i < rows; ++i) {
      std::fill(row.begin(), row.end(), 0.0);
      for (int64_t k = 0; k < inner; ++k) {
        const double left = a.data[static_cast<std::size_t>(i * sa[1 - ka] + k * sa[ka])];
        const double* right = b.data.data() + k * sb[kb];
        for (int64_t j = 0; j < columns; ++j) row[static_cast<std::size_t>(j)] += left * right[j * sb[1 - kb]];
      }
      for (int64_t j = 0; j < columns; ++j) {
        double& into = out.data[static_cast<std::size_t>(i * columns + j)];
        into = rounded_to(out.element, into + row[static_cast<std::size_t>(j)]);
      }
    }
    return one(std::move(out));
  }

  // ---- elementwise ----

  using Unary = double (*)(double);
  using Binary = double (*)(double, double);

  static bool compares(const Operation& operation, double a, double b) {
    const int64_t predicate = integer_of(operation, "predicate");
    if (operation.name == "arith.cmpi") {
      switch (predicate) {
        case 0:
          return a == b;
        case 1:
          return a != b;
        case 2:
          return a < b;
        case 3:
          return a <= b;
        case 4:
          return a > b;
        case 5:
          return a >= b;
        default:
          fail("arith.cmpi: unsigned comparisons are not supported");
      }
    }
    const bool unordered = std::isnan(a) || std::isnan(b);
    switch (predicate) {
      case 1:
        return a == b;
      case 2:
        return a > b;
      case 3:
        return a >= b;
      case 4:
        return a < b;
      case 5:
        return a <= b;
      case 6:
        return !unordered && a != b;
      case 13:
        return unordered || a != b;
      default:
        fail("arith.cmpf: predicate " + std::to_string(predicate) + " is not supported");
    }
  }

  std::vector<Value> elementwise(const Operation& operation, const Frame& frame, const Tensor& x, const Type& result) {
    static const std::map<std::string, Unary> unary = {
        {"math.exp", [](double a) { return std::exp(a); }},   {"math.log", [](double a) { return std::log(a); }},
        {"math.exp2", [](double a) { return std::exp2(a); }}, {"math.rsqrt", [](double a) { return 1 / std::sqrt(a); }},
        {"math.sqrt", [](double a) { return std::sqrt(a); }}, {"math.tanh", [](double a) { return std::tanh(a); }},
        {"math.absf", [](double a) { return std::fabs(a); }}, {"math.log1p", [](double a) { return std::log1p(a); }},
        {"arith.negf", [](double a) { return -a; }},          {"arith.extf", [](double a) { return a; }},
        {"arith.truncf", [](double a) { return a; }},         {"arith.extui", [](double a) { return a; }},
        {"arith.extsi", [](double a) { return a; }},          {"arith.sitofp", [](double a) { return a; }},
        {"arith.index_cast", [](double a) { return a; }},     {"arith.fptosi", wrapped_truncation},
    };
    static const std::map<std::string, Binary> binary = {
        {"arith.addf", [](double a, double b) { return a + b; }},
        {"arith.subf", [](double a, double b) { return a - b; }},
        {"arith.mulf", [](double a, double b) { return a * b; }},
        {"arith.divf", [](double a, double b) { return a / b; }},
        {"arith.maximumf", [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }},
        {"arith.minimumf", [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); }},
        {"arith.addi", [](double a, double b) { return wrapped(a + b); }},
        {"arith.subi", [](double a, double b) { return wrapped(a - b); }},
        {"arith.muli", [](double a, double b) { return wrapped(a * b); }},
        {"arith.divsi",
         [](double a, double b) {
           if (b == 0) fail("arith.divsi by zero");
           return std::trunc(a / b);
         }},
        {"arith.remsi",
         [](double a, double b) {
           if (b == 0) fail("arith.remsi by zero");
           return std::fmod(a, b);
         }},
        {"arith.maxsi", [](double a, double b) { return std::max(a, b); }},
        {"arith.minsi", [](double a, double b) { return std::min(a, b); }},
        {"arith.andi", [](double a, double b) { return double(static_cast<int32_t>(a) & static_cast<int32_t>(b)); }},
        {"arith.ori", [](double a, double b) { return double(static_cast<int32_t>(a) | static_cast<int32_t>(b)); }},
        {"arith.shli", [](double a, double b) { return shifted(a, b, true); }},
        {"arith.shrui", [](double a, double b) { return shifted(a, b, false); }},
        {"arith.xori", [](double a, double b) { return double(static_cast<int32_t>(a) ^ static_cast<int32_t>(b)); }},
    };
    const std::string& name = operation.name;
    Tensor out{result.element, x.shape, {}};
    if (const auto one_operand = unary.find(name); one_operand != unary.end()) {
      for (const double number : x.data) out.data.push_back(rounded_to(out.element, one_operand->second(number)));
      return one(std::move(out));
    }
    const Tensor& y = tensor(frame, operation, 1);
    if (name == "arith.select") {
      const Tensor& z = tensor(frame, operation, 2);
      if (x.element != "i1" || y.shape != z.shape || y.element != z.element || (!x.shape.empty() && x.shape != y.shape))
        fail("arith.select: operands do not fit");
      out.shape = y.shape;
      for (std::size_t i = 0; i < y.data.size(); ++i)
        out.data.push_back((x.shape.empty() ? x.data[0] : x.data[i]) != 0 ? y.data[i] : z.data[i]);
      return one(std::move(out));
    }
    if (x.shape != y.shape || x.element != y.element) fail(name + ": operands do not fit");
    const bool compared = name == "arith.cmpi" || name == "arith.cmpf";
    const auto two_operands = binary.find(name);
    if (!compared && two_operands == binary.end()) fail("operation " + name + " is not known");
    for (std::size_t i = 0; i < x.data.size(); ++i) {
      const double number =
          compared ? double(compares(operation, x.data[i], y.data[i])) : two_operands->second(x.data[i], y.data[i]);
      out.data.push_back(compared ? number : rounded_to(out.element, number));
    }
    return one(std::move(out));
  }
};

// ---- the grid
// ---------------------------------------------------------------------------------------------------------

struct Window {
  const Tensor* array;
  Tensor* result = nullptr;  // of an output
  const Block* transform;
  Shape bounds;
  Buffer buffer;
  std::optional<Shape> at;  // the block in the buffer
  std::vector<bool> visited;
};

const Block& body_of(const Operation& function) {
  if (function.regions.size() != 1) fail("a function has no body");
  return function.regions[0];
}

class Run {
 public:
  Run(const std::string& text, const std::vector<Tensor>& operands, std::vector<Tensor>& results, uint32_t seed)
      : module_(read_kernel(text)), random_(seed) {
    if (module_.regions.size() != 1) fail("the module has no body");
    std::map<std::string, const Operation*> functions;
    for (Operation& operation : module_.regions[0].operations) {
      if (operation.name != "func.func" || !operation.attributes.count("sym_name")) fail("expected functions");
      const std::string& name = operation.attributes.at("sym_name");
      if (name.size() < 2) fail("a function has no name");
      functions[name.substr(1, name.size() - 2)] = &operation;
      if (operation.attributes.count("tpu.core_type")) kernel_ = &operation;
    }
    if (!kernel_) fail("no function has tpu.core_type");
    bounds_ = array_of(*kernel_, "iteration_bounds");
    const std::string& semantics = kernel_->attributes["dimension_semantics"];
    for (std::size_t at = 0; (at = semantics.find("semantics<", at)) != std::string::npos; ++at)
      parallel_.push_back(semantics.compare(at + 10, 8, "parallel") == 0);
    if (parallel_.size() != bounds_.size()) fail("dimension_semantics is required when iteration_bounds are specified");
    bind(functions, operands, results);
  }

  void run() {
    std::vector<Shape> orders;
    int64_t steps = 1;
    for (std::size_t i = 0; i < bounds_.size(); ++i) {
      if (bounds_[i] < 1 || (steps *= bounds_[i]) > (1 << 20)) fail("the grid is empty or too large");
      Shape order(static_cast<std::size_t>(bounds_[i]));
      std::iota(order.begin(), order.end(), 0);
      if (parallel_[i]) std::shuffle(order.begin(), order.end(), random_);
      orders.push_back(std::move(order));
    }
    Shape before;
    for_each_index(bounds_, [&](const Shape& index) {
      Shape point, core;
      for (std::size_t i = 0; i < index.size(); ++i) {
        point.push_back(orders[i][static_cast<std::size_t>(index[i])]);
        if (parallel_[i]) core.push_back(point.back());
      }
      // Another core may run the steps of another index of a parallel dimension.
      if (core != before || scratch_first_) forget_scratch();
      scratch_first_ = false;
      before = core;
      step(point);
    });
    for (Window& window : windows_) flush(window);
  }

 private:
  void bind(const std::map<std::string, const Operation*>& functions, const std::vector<Tensor>& operands,
            std::vector<Tensor>& results) {
    const auto& arguments = body_of(*kernel_).arguments;
    const auto prefetched = static_cast<std::size_t>(integer_of(*kernel_, "scalar_prefetch"));
    const std::size_t total = operands.size() + results.size();
    if (prefetched > operands.size() || arguments.size() < bounds_.size() + total)
      fail("the kernel has too few arguments");
    buffers_.resize(prefetched);
    for (std::size_t i = 0; i < prefetched; ++i) {
      buffers_[i].tensor = operands[i];
      expect_type(arguments[bounds_.size() + i].second, operands[i].element, operands[i].shape);
    }
    const std::string& params = kernel_->attributes["window_params"];
    std::size_t at = 0;
    for (std::size_t i = prefetched; i < total; ++i) {
      const std::size_t name = params.find('@', at), end = params.find_first_of(",}", name);
      const std::size_t open = params.find("array<i64", end), close = params.find('>', open);
      if (name == std::string::npos || end == std::string::npos || open == std::string::npos ||
          close == std::string::npos)
        fail("window_params has too few windows");
      at = close;
      const auto function = functions.find(params.substr(name + 1, end - name - 1));
      if (function == functions.end()) fail("a window has no transform");
      const bool output = i >= operands.size();
      Window window{output ? &results[i - operands.size()] : &operands[i],
                    nullptr,
                    &body_of(*function->second),
                    numbers_in(params.substr(open + 9, close - open - 9)),
                    {},
                    {},
                    {}};
      if (output) window.result = &results[i - operands.size()];
      if (window.bounds.size() != window.array->shape.size()) fail("a window has the wrong rank");
      Shape blocks;
      for (std::size_t k = 0; k < window.bounds.size(); ++k) {
        if (window.bounds[k] < 1) fail("a window is empty");
        blocks.push_back((window.array->shape[k] + window.bounds[k] - 1) / window.bounds[k]);
      }
      window.visited.resize(static_cast<std::size_t>(count_of(blocks)));
      window.buffer.tensor = {window.array->element, window.bounds, {}};
      expect_type(arguments[bounds_.size() + i].second, window.array->element, window.bounds);
      windows_.push_back(std::move(window));
    }
    for (std::size_t i = bounds_.size() + total; i < arguments.size(); ++i) {
      const Type type = type_of(arguments[i].second);
      Buffer scratch;
      scratch.tensor = {type.element, type.shape, {}};
      scratch_.push_back(std::move(scratch));
    }
    for (Tensor& result : results)
      result.data.assign(static_cast<std::size_t>(count_of(result.shape)), poison(result.element));
  }

  static void expect_type(const std::string& text, const std::string& element, const Shape& shape) {
    const Type type = type_of(text);
    if (type.kind != "memref" || type.element != element || type.shape != shape)
      fail("an argument of type " + text + " is not what the call gives");
  }

  void forget_scratch() {
    for (Buffer& scratch : scratch_) {
      const auto count = static_cast<std::size_t>(count_of(scratch.tensor.shape));
      scratch.tensor.data.assign(count, poison(scratch.tensor.element));
      scratch.written.assign(count, false);
    }
  }

  // Calls body(offset in the buffer, offset in the array or -1 beyond it) for a window at a block.
  template <class Body>
  static void for_each_element(const Window& window, const Shape& block, Body&& body) {
    const Shape strides = strides_of(window.array->shape);
    std::size_t at = 0;
    for_each_index(window.bounds, [&](const Shape& index) {
      int64_t offset = 0;
      for (std::size_t i = 0; i < index.size(); ++i) {
        const int64_t position = block[i] * window.bounds[i] + index[i];
        if (position >= window.array->shape[i]) return body(at++, -1);
        offset += position * strides[i];
      }
      body(at++, offset);
    });
  }

  void flush(Window& window) {
    if (!window.result || !window.at) return;
    for_each_element(window, *window.at, [&](std::size_t from, int64_t to) {
      if (to >= 0) window.result->data[static_cast<std::size_t>(to)] = window.buffer.tensor.data[from];
    });
  }

  void move(Window& window, const Shape& point) {
    Frame frame;
    bind_point(*window.transform, frame, point, true);
    Shape block;
    for (const Value& index : Machine().run(*window.transform, frame)) {
      if (!index.tensor) fail("a transform returns a memref");
      block.push_back(static_cast<int64_t>(index.tensor->data.at(0)));
    }
    if (block.size() != window.bounds.size()) fail("a transform returns a wrong number of indices");
    Shape blocks;
    for (std::size_t i = 0; i < block.size(); ++i) {
      blocks.push_back((window.array->shape[i] + window.bounds[i] - 1) / window.bounds[i]);
      if (block[i] < 0 || block[i] >= blocks[i]) fail("a window lies outside of its array");
    }
    if (window.at == block) return;
    flush(window);
    window.at = block;
    const std::size_t number = static_cast<std::size_t>(offset_of(block, strides_of(blocks)));
    if (window.result && window.visited[number]) fail("an output block is visited again after it was left");
    window.visited[number] = true;
    window.buffer.tensor.data.assign(static_cast<std::size_t>(count_of(window.bounds)), poison(window.array->element));
    if (window.result) return;
    for_each_element(window, block, [&](std::size_t to, int64_t from) {
      if (from >= 0) window.buffer.tensor.data[to] = window.array->data.at(static_cast<std::size_t>(from));
    });
  }

  void bind_point(const Block& block, Frame& frame, const Shape& point, bool transform) {
    if (transform && block.arguments.size() != point.size() + buffers_.size()) fail("a transform has wrong arguments");
    for (std::size_t i = 0; i < point.size(); ++i) frame[block.arguments[i].first] = scalar("i32", double(point[i]));
    std::size_t at = point.size();
    for (Buffer& buffer : buffers_) frame[block.arguments[at++].first] = {nullptr, &buffer};
    if (transform) return;
    for (Window& window : windows_) frame[block.arguments[at++].first] = {nullptr, &window.buffer};
    for (Buffer& scratch : scratch_) frame[block.arguments[at++].first] = {nullptr, &scratch};
  }

  void step(const Shape& point) {
    for (Window& window : windows_) move(window, point);
    Frame frame;
    bind_point(body_of(*kernel_), frame, point, false);
    Machine().run(body_of(*kernel_), frame);
  }

  Operation module_;
  std::mt19937 random_;
  Operation* kernel_ = nullptr;
  Shape bounds_;
  std::vector<bool> parallel_;
  std::vector<Buffer> buffers_, scratch_;
  std::vector<Window> windows_;
  bool scratch_first_ = true;
};

}  // namespace

double rounded_to(const std::string& element, double value) {
  if (element == "f32") return static_cast<double>(static_cast<float>(value));
  if (element != "bf16") return value;
  const float single = static_cast<float>(value);
  if (std::isnan(single)) return value;
  uint32_t bits = std::bit_cast<uint32_t>(single);
  bits += 0x7fff + ((bits >> 16) & 1);
  return static_cast<double>(std::bit_cast<float>(bits & 0xffff0000u));
}

std::vector<Tensor> run_kernel(const std::string& text, const std::vector<Tensor>& operands,
                               const std::vector<Tensor>& results, uint32_t seed) {
  std::vector<Tensor> written = results;
  try {
    Run(text, operands, written, seed).run();
  } catch (const std::out_of_range& error) {  // of at() and substr()
    fail(error.what());
  }
  return written;
}

}  // namespace capibara::mosaic
