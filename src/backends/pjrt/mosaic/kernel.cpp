// Builds a TPU kernel: operations as lines of text, the checks of windows and memory, the attributes of the call.
#include "backends/pjrt/mosaic/kernel.h"

#include <capibara/error.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "io/files/base64.h"

namespace capibara::mosaic {

namespace {

bool is_float(Element element) { return element == Element::f32 || element == Element::bf16; }

std::string shape_text(const Shape& shape) {
  std::string text;
  for (const int64_t size : shape) text += std::to_string(size) + "x";
  return text;
}

std::string window_text(const Shape& shape) {  // without the x that precedes an element type
  const std::string text = shape_text(shape);
  return text.substr(0, text.empty() ? 0 : text.size() - 1);
}

std::string type_text(const Value& value) {
  const std::string element = name_of(value.element);
  return value.shape ? "vector<" + shape_text(*value.shape) + element + ">" : element;
}

std::string type_text(const Ref& ref) {
  const char* memory = ref.memory == Memory::vmem ? "vmem" : "smem";
  return concat("memref<", shape_text(ref.shape), name_of(ref.element), ", #tpu.memory_space<", memory, ">>");
}

// MLIR requires a decimal point, and hexadecimal bits for values that are not finite.
std::string number_text(double value, Element element) {
  if (!is_float(element)) return std::to_string(static_cast<int64_t>(value));
  if (std::isfinite(value)) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9e", value);
    return text;
  }
  const bool wide = element == Element::f32;
  if (std::isnan(value)) return wide ? "0x7FC00000" : "0x7FC0";
  return value > 0 ? (wide ? "0x7F800000" : "0x7F80") : (wide ? "0xFF800000" : "0xFF80");
}

std::string list_of(const std::vector<Value>& values, bool types) {
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : ", ") + (types ? type_text(value) : value.name);
  return text;
}

// The trailing dimensions that a load keeps: without leading ones of size 1, at least two where there are two.
Shape matrix_shape(const Shape& shape) {
  std::size_t leading = 0;
  while (leading + 2 < shape.size() && shape[leading] == 1) ++leading;
  return Shape(shape.begin() + static_cast<std::ptrdiff_t>(leading), shape.end());
}

// With the prefix under which libtpu keeps reading operations of older versions; "builtin.module" has none.
std::string stable(const std::string& text) {
  constexpr std::string_view dialects[] = {"arith.", "func.", "math.", "memref.", "scf.", "tpu.", "vector."};
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] != '"') continue;
    for (const std::string_view dialect : dialects) {
      if (text.compare(i + 1, dialect.size(), dialect) == 0) out += "stable_mosaic.";
    }
  }
  return out;
}

// Bytes in VMEM: the last two dimensions are padded to whole tiles.
int64_t padded_bytes(const Ref& ref) {
  const int64_t bytes = bytes_of(ref.element), rows = sublanes * 4 / bytes;
  int64_t count = 1;
  for (std::size_t i = 0; i < ref.shape.size(); ++i) {
    const std::size_t from_end = ref.shape.size() - i;
    const int64_t tile = from_end == 1 ? lanes : from_end == 2 ? rows : 1;
    count *= (ref.shape[i] + tile - 1) / tile * tile;
  }
  return count * bytes;
}

}  // namespace

const char* name_of(Element element) {
  constexpr const char* names[] = {"f32", "bf16", "i32", "i8", "i1", "index"};
  return names[static_cast<std::size_t>(element)];
}

int64_t bytes_of(Element element) { return element == Element::bf16 ? 2 : element == Element::i8 ? 1 : 4; }

std::optional<Element> element_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return Element::f32;
    case DType::bfloat16:
      return Element::bf16;
    case DType::int32:
      return Element::i32;
    case DType::int8:
      return Element::i8;
    default:
      return std::nullopt;
  }
}

std::string to_string(const Value& value) { return type_text(value); }

Value like(const Value& value, double number) { return value.kernel->constant(number, value.element); }

Kernel::Kernel(std::string name, std::vector<Dimension> grid) : name_(std::move(name)), grid_(std::move(grid)) {
  for (const Dimension& dimension : grid_) {
    if (dimension.size < 1) refuse(concat("expected a grid of 1 or more in every dimension, got ", dimension.size));
  }
}

void Kernel::refuse(const std::string& what) const { throw ValueError(concat("TPU kernel ", name_, ": ", what)); }

// ---- operands -----------------------------------------------------------------------------------------------------

Ref Kernel::window(const std::string& name, const ArrayType& type, Shape block, BlockIndex index, bool is_output) {
  const std::optional<Element> element = element_of(type.dtype);
  if (!element) {
    refuse(concat("operand '", name, "': expected float32, bfloat16, int32 or int8, got ", capibara::to_string(type),
                  "\nHint: convert it, or compile the plain program (CAPIBARA_TPU_KERNELS=0)"));
  }
  if (block.size() != type.shape.size() || block.size() < 2) {
    refuse(concat("operand '", name, "': expected a window of rank ", type.rank(), ", 2 or more, got one of rank ",
                  block.size()));
  }
  Ref ref{"%" + name, *element, std::move(block), Memory::vmem};
  (is_output ? outputs_ : inputs_).push_back({ref, type.strong(), std::move(index)});
  return ref;
}

Ref Kernel::input(const std::string& name, const ArrayType& type, Shape block, BlockIndex index) {
  return window(name, type, std::move(block), std::move(index), false);
}

Ref Kernel::output(const std::string& name, const ArrayType& type, Shape block, BlockIndex index) {
  return window(name, type, std::move(block), std::move(index), true);
}

Ref Kernel::prefetch(const std::string& name, const ArrayType& type) {
  if (type.dtype != DType::int32 || type.rank() != 1) {
    refuse(concat("operand '", name, "': expected a prefetched vector of int32, got ", capibara::to_string(type)));
  }
  prefetched_types_.push_back(type);
  return prefetched_.emplace_back(Ref{"%" + name, Element::i32, type.shape, Memory::smem});
}

Ref Kernel::scratch(const std::string& name, Element element, Shape shape) {
  return scratch_.emplace_back(Ref{"%" + name, element, std::move(shape), Memory::vmem});
}

// ---- operations ---------------------------------------------------------------------------------------------------

void Kernel::line(const std::string& text) {
  body_.append(static_cast<std::size_t>(2 * indent_), ' ');
  body_ += text;
  body_ += '\n';
}

Value Kernel::emit(const std::string& operation, const std::vector<Value>& inputs, Element element,
                   std::optional<Shape> shape, const std::string& attributes) {
  Value result{this, fresh(), element, std::move(shape)};
  line(concat(result.name, " = \"", operation, "\"(", list_of(inputs, false), ")",
              attributes.empty() ? "" : " {" + attributes + "}", " : (", list_of(inputs, true), ") -> ",
              type_text(result)));
  return result;
}

Value Kernel::point(std::size_t dimension) {
  return {this, "%at" + std::to_string(dimension), Element::i32, std::nullopt};
}

Value Kernel::constant(double value, Element element) {
  return emit("arith.constant", {}, element, std::nullopt,
              concat("value = ", number_text(value, element), " : ", name_of(element)));
}

Value Kernel::integer(int64_t value, Element element) { return constant(static_cast<double>(value), element); }

Value Kernel::filled(double value, Element element, Shape shape) {
  const Value type{this, "", element, shape};
  return emit("arith.constant", {}, element, std::move(shape),
              concat("value = dense<", number_text(value, element), "> : ", type_text(type)));
}

Value Kernel::iota(Shape shape, int64_t axis) {
  return emit("tpu.iota", {}, Element::i32, std::move(shape), concat("dimensions = array<i32: ", axis, ">"));
}

Value Kernel::shape_cast(const Value& value, const Shape& shape) {
  return value.shape == shape ? value : emit("vector.shape_cast", {value}, value.element, shape);
}

Kernel::Access Kernel::access(const Ref& ref, std::optional<std::size_t> dimension, const Value* index) {
  if (dimension && *dimension + 1 >= ref.shape.size())
    refuse(concat("'", ref.name.substr(1), "': expected a dimension other than the last, got ", *dimension));
  const Value zero = integer(0, Element::index);
  Access part{ref.shape, "", ""};
  for (std::size_t i = 0; i < ref.shape.size(); ++i) {
    const bool moved = dimension == i;
    if (moved) part.shape[i] = 1;
    part.indices += ", " + (moved ? emit("arith.index_cast", {*index}, Element::index, std::nullopt) : zero).name;
    part.types += ", index";
  }
  return part;
}

Value Kernel::load_part(const Ref& ref, const Access& part) {
  Value whole{this, fresh(), ref.element, part.shape};
  line(concat(whole.name, " = \"vector.load\"(", ref.name, part.indices, ") : (", type_text(ref), part.types, ") -> ",
              type_text(whole)));
  return shape_cast(whole, matrix_shape(part.shape));
}

Value Kernel::load(const Ref& ref) { return load_part(ref, access(ref, std::nullopt, nullptr)); }

Value Kernel::load(const Ref& ref, std::size_t dimension, const Value& index) {
  return load_part(ref, access(ref, dimension, &index));
}

Value Kernel::load(const Ref& ref, const Value& index) {
  const Value at = emit("arith.index_cast", {index}, Element::index, std::nullopt);
  Value result{this, fresh(), ref.element, std::nullopt};
  line(concat(result.name, " = \"memref.load\"(", ref.name, ", ", at.name, ") : (", type_text(ref), ", index) -> ",
              name_of(ref.element)));
  return result;
}

void Kernel::store_part(const Value& value, const Ref& ref, const Access& part) {
  const Shape expected = matrix_shape(part.shape);
  if (value.element != ref.element || value.shape != expected) {
    refuse(concat("store to '", ref.name.substr(1), "': expected ", type_text(Value{this, "", ref.element, expected}),
                  ", got ", type_text(value)));
  }
  const Value whole = shape_cast(value, part.shape);
  line(concat("\"tpu.vector_store\"(", whole.name, ", ", ref.name, part.indices,
              ") {add = false, operandSegmentSizes = array<i32: 1, 1, ", ref.shape.size(),
              ", 0>, strides = array<i32>} : (", type_text(whole), ", ", type_text(ref), part.types, ") -> ()"));
}

void Kernel::store(const Value& value, const Ref& ref) { store_part(value, ref, access(ref, std::nullopt, nullptr)); }

void Kernel::store(const Value& value, const Ref& ref, std::size_t dimension, const Value& index) {
  store_part(value, ref, access(ref, dimension, &index));
}

Value Kernel::convert(const Value& value, Element element) {
  const Element from = value.element;
  if (from == element) return value;
  const char* operation = nullptr;
  if (from == Element::bf16 && element == Element::f32) operation = "arith.extf";
  if (from == Element::f32 && element == Element::bf16) operation = "arith.truncf";
  if (from == Element::i1 && element == Element::i32) operation = "arith.extui";
  if (from == Element::i32 && element == Element::f32) operation = "arith.sitofp";
  if (from == Element::f32 && element == Element::i32) operation = "arith.fptosi";
  if (from == Element::i8 && element == Element::i32) operation = "arith.extsi";
  if (from == Element::i8 && is_float(element))
    return convert(convert(convert(value, Element::i32), Element::f32), element);
  if (!operation) refuse(concat("no conversion of ", name_of(from), " to ", name_of(element)));
  return emit(operation, {value}, element, value.shape);
}

Value Kernel::broadcast(const Value& value, const Shape& shape) {
  if (value.shape == shape) return value;
  bool fits = !value.shape || value.shape->size() == shape.size();
  for (std::size_t i = 0; fits && value.shape && i < shape.size(); ++i)
    fits = (*value.shape)[i] == 1 || (*value.shape)[i] == shape[i];
  if (!fits) refuse(concat("broadcast: expected a shape that fits ", window_text(shape), ", got ", type_text(value)));
  return emit("vector.broadcast", {value}, value.element, shape);
}

Value Kernel::transpose(const Value& value) {
  const Shape& from = value.shape.value();
  return emit("tpu.transpose", {value}, value.element, Shape{from[1], from[0]}, "permutation = array<i64: 1, 0>");
}

Value Kernel::first_rows(const Value& value, int64_t rows) {
  const int64_t columns = value.shape.value()[1];
  return emit("vector.extract_strided_slice", {value}, value.element, Shape{rows, columns},
              concat("offsets = [0, 0], sizes = [", rows, ", ", columns, "], strides = [1, 1]"));
}

Value Kernel::first_columns(const Value& value, int64_t columns) {
  const int64_t rows = value.shape.value()[0];
  return emit("vector.extract_strided_slice", {value}, value.element, Shape{rows, columns},
              concat("offsets = [0, 0], sizes = [", rows, ", ", columns, "], strides = [1, 1]"));
}

Value Kernel::reduce(Reduction kind, const Value& value, int64_t axis) {
  const Shape& shape = value.shape.value();
  if (value.element != Element::f32 || shape.size() != 2)
    refuse(concat("reduce: expected a matrix of f32, got ", type_text(value)));
  const Shape reduced{shape[axis == 0 ? 1 : 0]};
  const bool add = kind == Reduction::add;
  const Value start = filled(add ? 0 : -INFINITY, Element::f32, reduced);
  const Value row =
      emit("vector.multi_reduction", {value, start}, Element::f32, reduced,
           concat("kind = #vector.kind<", add ? "add" : "maximumf", ">, reduction_dims = array<i64: ", axis, ">"));
  return shape_cast(row, axis == 0 ? Shape{1, shape[1]} : Shape{shape[0], 1});
}

Value Kernel::matmul(const Value& a, int64_t a_inner, const Value& b, int64_t b_inner, bool exact) {
  const Shape &left = a.shape.value(), &right = b.shape.value();
  const auto size = [](const Shape& shape, int64_t axis) { return shape[static_cast<std::size_t>(axis)]; };
  if (a.element != b.element || left.size() != 2 || right.size() != 2 || size(left, a_inner) != size(right, b_inner))
    refuse(concat("matmul: expected matrices with one inner size and element type, got ", type_text(a), " and ",
                  type_text(b)));
  const Shape shape{size(left, 1 - a_inner), size(right, 1 - b_inner)};
  const Value zero = filled(0, Element::f32, shape);
  const char* precision = exact && a.element == Element::f32 ? ", precision = #tpu.contract_precision<fp32>" : "";
  return emit("tpu.matmul", {a, b, zero}, Element::f32, shape,
              concat("dimension_numbers = #tpu.dot_dimension_numbers<[", a_inner, "], [", b_inner, "], [", 1 - a_inner,
                     "], [", 1 - b_inner, "], [0, ", 1 - a_inner, ", 1, ", 1 - b_inner, "], [], []>", precision,
                     ", transpose_lhs = false, transpose_rhs = false"));
}

void Kernel::align(Value& a, Value& b, const char* operation) {
  if (a.element != b.element)
    refuse(concat(operation, ": expected one element type, got ", type_text(a), " and ", type_text(b)));
  if (a.shape == b.shape) return;
  if (!a.shape || !b.shape) {
    Value& scalar = a.shape ? b : a;
    scalar = broadcast(scalar, a.shape ? *a.shape : *b.shape);
    return;
  }
  Shape joint = *a.shape;
  for (std::size_t i = 0; i < joint.size() && i < b.shape->size(); ++i) joint[i] = std::max(joint[i], (*b.shape)[i]);
  a = broadcast(a, joint);
  b = broadcast(b, joint);
}

Value Kernel::binary(const char* of_floats, const char* of_integers, Value a, Value b) {
  const std::string operation = concat("arith.", is_float(a.element) ? of_floats : of_integers);
  if (operation == "arith.") refuse(concat("bitwise operation: expected integers, got ", type_text(a)));
  align(a, b, operation.c_str());
  return emit(operation, {a, b}, a.element, a.shape);
}

Value Kernel::unary(const char* operation, const Value& value) {
  if (value.element != Element::f32) refuse(concat(operation, ": expected f32, got ", type_text(value)));
  return emit(operation, {value}, value.element, value.shape);
}

Value Kernel::compare(int float_predicate, int integer_predicate, Value a, Value b) {
  const bool floats = is_float(a.element);
  align(a, b, floats ? "arith.cmpf" : "arith.cmpi");
  return emit(floats ? "arith.cmpf" : "arith.cmpi", {a, b}, Element::i1, a.shape,
              concat("predicate = ", floats ? float_predicate : integer_predicate, " : i64"));
}

Value Kernel::select(const Value& condition, const Value& yes, const Value& no) {
  Value a = yes, b = no, chosen = condition;
  align(a, b, "arith.select");
  if (chosen.element != Element::i1) refuse(concat("select: expected a condition of i1, got ", type_text(chosen)));
  if (chosen.shape && a.shape != chosen.shape) {
    if (!a.shape) {
      a = broadcast(a, *chosen.shape);
      b = broadcast(b, *chosen.shape);
    } else {
      chosen = broadcast(chosen, *a.shape);
    }
  }
  return emit("arith.select", {chosen, a, b}, a.element, a.shape);
}

void Kernel::when(const Value& condition, const std::function<void()>& then) {
  line(concat("\"scf.if\"(", condition.name, ") ({"));
  ++indent_;
  then();
  line("\"scf.yield\"() : () -> ()");
  --indent_;
  line("}, {");
  ++indent_;
  line("\"scf.yield\"() : () -> ()");
  --indent_;
  line("}) : (i1) -> ()");
}

std::vector<Value> Kernel::loop(int64_t count, const std::vector<Value>& start, const Body& body) {
  const Value first = constant(0), last = integer(count, Element::i32), step = constant(1);
  const Value index{this, fresh(), Element::i32, std::nullopt};
  std::vector<Value> carry, results;
  std::string names, types;
  for (const Value& value : start) {
    carry.push_back({this, fresh(), value.element, value.shape});
    names += concat(", ", carry.back().name, ": ", type_text(value));
    types += ", " + type_text(value);
    results.push_back({this, fresh(), value.element, value.shape});
  }
  const std::string inputs = start.empty() ? "" : ", " + list_of(start, false);
  line(concat(list_of(results, false), results.empty() ? "" : " = ", "\"scf.for\"(", first.name, ", ", last.name, ", ",
              step.name, inputs, ") ({"));
  line(concat("^bb0(", index.name, ": i32", names, "):"));
  ++indent_;
  const std::vector<Value> next = body(index, carry);
  if (list_of(next, true) != list_of(carry, true))
    refuse(concat("loop: expected values of types (", list_of(carry, true), "), got (", list_of(next, true), ")"));
  line(concat("\"scf.yield\"(", list_of(next, false), ") : (", list_of(next, true), ") -> ()"));
  --indent_;
  line(concat("}) : (i32, i32, i32", types, ") -> (", list_of(results, true), ")"));
  return results;
}

// ---- the finished kernel --------------------------------------------------------------------------------------------

// The rules are libtpu's: the last two dimensions of a window are whole, or multiples of a tile.
void Kernel::check() {
  vmem_bytes_ = 0;
  for (const std::vector<Window>* windows : {&inputs_, &outputs_}) {
    for (const Window& window : *windows) {
      const Shape &array = window.type.shape, &block = window.ref.shape;
      for (std::size_t i = 0; i < block.size(); ++i) {
        const std::size_t from_end = block.size() - i;
        const int64_t tile = from_end == 1 ? lanes : from_end == 2 ? sublanes : 1;
        if (block[i] >= 1 && (block[i] == array[i] || (block[i] % tile == 0 && block[i] <= array[i] + tile - 1)))
          continue;
        refuse(concat("operand '", window.ref.name.substr(1), "' of shape ", capibara::to_string(window.type),
                      " has tiling (8, 128), but dimension ", i, " of its window (", window_text(block),
                      ") is neither a multiple of ", tile, " nor the whole ", array[i]));
      }
      vmem_bytes_ += 2 * padded_bytes(window.ref);
    }
  }
  for (const Ref& ref : scratch_) vmem_bytes_ += padded_bytes(ref);
  if (vmem_bytes_ > vmem_limit) {
    const Window* largest = nullptr;
    for (const std::vector<Window>* windows : {&inputs_, &outputs_}) {
      for (const Window& window : *windows) {
        if (!largest || padded_bytes(window.ref) > padded_bytes(largest->ref)) largest = &window;
      }
    }
    refuse(concat("windows, two buffers each, and scratch need ", vmem_bytes_,
                  " bytes of VMEM, more than the limit of ", vmem_limit,
                  largest ? concat("; the largest is the window of operand '", largest->ref.name.substr(1), "', ",
                                   shape_text(largest->ref.shape), name_of(largest->ref.element))
                          : std::string()));
  }
}

std::vector<Ref> Kernel::arguments() const {
  std::vector<Ref> all = prefetched_;
  for (const Window& window : inputs_) all.push_back(window.ref);
  for (const Window& window : outputs_) all.push_back(window.ref);
  all.insert(all.end(), scratch_.begin(), scratch_.end());
  return all;
}

std::string Kernel::transform(const Window& window, std::size_t number) {
  std::string outer = std::exchange(body_, "");
  std::vector<Value> point;
  std::string names, types;
  for (std::size_t i = 0; i < grid_.size(); ++i) {
    point.push_back(this->point(i));
    names += concat(i ? ", " : "", point.back().name, ": i32");
    types += concat(i ? ", " : "", "i32");
  }
  for (const Ref& ref : prefetched_) {
    names += concat(", ", ref.name, ": ", type_text(ref));
    types += ", " + type_text(ref);
  }
  const std::vector<Value> index = window.index({*this, point, prefetched_});
  if (index.size() != window.ref.shape.size())
    refuse(concat("operand '", window.ref.name.substr(1), "': expected a block index of ", window.ref.shape.size(),
                  " numbers, got ", index.size()));
  const std::string body = std::exchange(body_, std::move(outer)), results = list_of(index, true);
  return concat("  \"func.func\"() ({\n  ^bb0(", names, "):\n", body, "    \"func.return\"(", list_of(index, false),
                ") : (", results, ") -> ()\n  }) {function_type = (", types, ") -> (", results,
                "), sym_name = \"transform_", number, "\"} : () -> ()\n");
}

void Kernel::finish() {
  check();
  std::string names, types, semantics, bounds;
  for (std::size_t i = 0; i < grid_.size(); ++i) {
    names += concat(i ? ", " : "", "%at", i, ": i32");
    types += concat(i ? ", " : "", "i32");
    semantics += concat(i ? ", " : "", "#tpu.dimension_semantics<",
                        grid_[i].order == Order::parallel ? "parallel" : "arbitrary", ">");
    bounds += concat(i ? ", " : "", grid_[i].size);
  }
  for (const Ref& ref : arguments()) {
    names += concat(", ", ref.name, ": ", type_text(ref));
    types += ", " + type_text(ref);
  }
  const std::string body = std::exchange(body_, "");
  std::string transforms, windows;
  std::size_t number = 0;
  for (const std::vector<Window>* side : {&inputs_, &outputs_}) {
    for (const Window& window : *side) {
      transforms += transform(window, number);
      std::string block;
      for (const int64_t size : window.ref.shape) block += concat(block.empty() ? "" : ", ", size);
      windows += concat(number ? ", " : "", "{transform_indices = @transform_", number,
                        ", window_bounds = array<i64: ", block, ">}");
      ++number;
    }
  }
  text_ = stable(concat("\"builtin.module\"() ({\n  \"func.func\"() ({\n  ^bb0(", names, "):\n", body,
                        "    \"func.return\"() : () -> ()\n  }) {dimension_semantics = [", semantics,
                        "], function_type = (", types, ") -> (), iteration_bounds = array<i64: ", bounds,
                        ">, scalar_prefetch = ", prefetched_.size(), " : i64, scratch_operands = ", scratch_.size(),
                        " : i64, sym_name = \"", name_, "\", tpu.core_type = #tpu.core_type<tc>, window_params = [",
                        windows, "]} : () -> ()\n", transforms, "}) {stable_mosaic.version = 11 : i64} : () -> ()\n"));
}

std::string Kernel::call_attributes() const {
  // \22 is a quote inside a quoted string of MLIR.
  const std::string q = "\\22";
  return concat("backend_config = \"{", q, "custom_call_config", q, ": {", q, "body", q, ": ", q, base64(text_), q,
                ", ", q, "cost_estimate", q, ": {", q, "flops", q, ": ", cost.flops, ", ", q, "transcendentals", q,
                ": ", cost.transcendentals, ", ", q, "bytes_accessed", q, ": ", cost.bytes, ", ", q,
                "remote_bytes_transferred", q, ": 0}, ", q, "serialization_format", q, ": 1, ", q,
                "needs_layout_passes", q, ": true}}\", kernel_name = \"", name_, "\"");
}

std::vector<ArrayType> Kernel::results() const {
  std::vector<ArrayType> types;
  for (const Window& window : outputs_) types.push_back(window.type);
  return types;
}

}  // namespace capibara::mosaic
