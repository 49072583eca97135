// Table rows for jax.numpy: products and contractions.
#include <capibara/numpy/contraction.h>

#include <algorithm>

#include "library/table/einsum_order.h"
#include "library/table/families.h"
#include "library/table/lax/arguments.h"

namespace capibara::library {

namespace {

namespace numpy = jax::numpy;

numpy::ProductOptions product_options(const Arguments& a) {
  return {.precision = precision_text(a, "precision"),
          .preferred_element_type = a.optional_dtype("preferred_element_type")};
}

// A number of axes, a pair of axes, or a pair of lists of axes.
Value tensordot(const Arguments& a) {
  const Array x = a.array("a"), y = a.array("b");
  a.require_absent("out_sharding");
  const numpy::ProductOptions product = product_options(a);
  numpy::TensordotOptions options{.precision = product.precision,
                                  .preferred_element_type = product.preferred_element_type};
  const Value& axes = a["axes"];
  const Sequence* pair = axes.sequence();
  if (const int64_t* count = axes.get_if<int64_t>()) {
    options.count = *count;
  } else if (pair && pair->items.size() == 2) {
    auto list = [&](const Value& value) -> std::optional<Ints> {
      if (const int64_t* one = value.get_if<int64_t>()) return Ints{*one};
      if (!value.sequence()) return std::nullopt;
      const Values holder{value};
      static const Signature signature("axes");
      return Arguments(a.function(), signature, holder).ints("axes");
    };
    std::optional<Ints> first = list(pair->items[0]), second = list(pair->items[1]);
    if (!first || !second || !pair->items[0].sequence() != !pair->items[1].sequence()) {
      throw TypeError("tensordot: argument 'axes' must be two integers or two lists of them");
    }
    options.axes = std::pair(*first, *second);
  } else {
    throw TypeError(concat("tensordot: argument 'axes' must be an integer, a pair of integers or a pair of lists, got ",
                           axes.type_name()));
  }
  return numpy::tensordot(x, y, options);
}

// ---- einsum ------------------------------------------------------------------------------------------------------

std::string symbol(std::size_t index) {
  if (index < 26) return std::string(1, static_cast<char>('a' + index));
  if (index < 52) return std::string(1, static_cast<char>('A' + index - 26));
  const std::size_t code = index + 140;  // two bytes of UTF-8
  return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
}

bool is_ellipsis(const Value& value) {
  const auto* object = value.get_if<std::shared_ptr<const Foreign>>();
  return object && (*object)->type_name() == "ellipsis";
}

struct EinsumCall {
  std::string subscripts;
  Values operands;
};

// einsum("ij,jk", x, y), or einsum(x, [0, 1], y, [1, 2], [0, 2]).
EinsumCall einsum_call(const Arguments& a) {
  const Values& rest = a.variadic("operands");
  if (const std::string* text = a["subscripts"].get_if<std::string>()) return {*text, rest};
  Values all{a["subscripts"]};
  all.insert(all.end(), rest.begin(), rest.end());
  EinsumCall call;
  std::vector<const Sequence*> lists;
  auto list_of = [&](const Value& value) {
    if (!value.sequence())
      throw TypeError(concat(a.function(), ": the labels of an operand must be a list, got ", value.type_name()));
    return value.sequence();
  };
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    call.operands.push_back(all[i]);
    lists.push_back(list_of(all[i + 1]));
  }
  const bool has_output = all.size() % 2 == 1;
  if (has_output) lists.push_back(list_of(all.back()));
  // Labels keep their order as letters.
  std::vector<std::variant<int64_t, std::string>> labels;
  auto label_of = [&](const Value& value) -> std::variant<int64_t, std::string> {
    if (const int64_t* number = value.get_if<int64_t>()) return *number;
    if (const std::string* text = value.get_if<std::string>()) return *text;
    throw TypeError(concat(a.function(), ": labels must be integers, strings or Ellipsis, got ", value.type_name()));
  };
  for (const Sequence* list : lists) {
    for (const Value& item : list->items) {
      if (!is_ellipsis(item)) labels.push_back(label_of(item));
    }
  }
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (i > 0) call.subscripts += has_output && i + 1 == lists.size() ? "->" : ",";
    for (const Value& item : lists[i]->items) {
      if (is_ellipsis(item)) {
        call.subscripts += "...";
        continue;
      }
      auto found = std::lower_bound(labels.begin(), labels.end(), label_of(item));
      call.subscripts += symbol(static_cast<std::size_t>(found - labels.begin()));
    }
  }
  return call;
}

Value dimension_numbers(const DotDimensionNumbers& numbers) {
  return Value::tuple_of(Values{
      Value::tuple_of(Values{Value::tuple_of(numbers.lhs_contracting), Value::tuple_of(numbers.rhs_contracting)}),
      Value::tuple_of(Values{Value::tuple_of(numbers.lhs_batch), Value::tuple_of(numbers.rhs_batch)})});
}

Value einsum(const Arguments& a) {
  a.require_absent("out");
  const EinsumCall call = einsum_call(a);
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    if (call.operands[i].is_none())
      throw ValueError(concat("einsum: Cannot determine the shape of None: operand ", i, " must be an array"));
  }
  const Values holder{Value::tuple_of(call.operands)};
  static const Signature signature("*operands");
  a.require_absent("out_sharding");
  numpy::EinsumOptions options{.optimize = einsum_order(a),
                               .precision = precision_text(a, "precision"),
                               .preferred_element_type = a.optional_dtype("preferred_element_type")};
  if (const Callable* function = a["_dot_general"].get_if<Callable>()) {
    options.dot_general = [&a, function](const Array& lhs, const Array& rhs, const DotDimensionNumbers& numbers,
                                         const jax::lax::DotOptions& dot) {
      const Value preferred = dot.preferred_element_type ? Value(*dot.preferred_element_type) : Value();
      const Value keywords = Value::named_tuple("keywords", {"preferred_element_type"}, {preferred});
      return array_of((*function)({lhs, rhs, dimension_numbers(numbers), a["precision"], keywords}), "einsum");
    };
  }
  return numpy::einsum(call.subscripts, Arguments(a.function(), signature, holder).arrays("operands"), options);
}

Value einsum_path(const Arguments& a) {
  const EinsumCall call = einsum_call(a);
  std::vector<Shape> shapes;
  for (const Value& operand : call.operands) shapes.push_back(array_of(operand, "einsum_path").shape());
  const numpy::EinsumPath found = numpy::einsum_path(call.subscripts, shapes, {.optimize = einsum_order(a)});
  Values path;
  for (const Ints& step : found.path) path.push_back(Value::tuple_of(step));
  return Value::tuple_of(
      Values{Value::list_of(path),
             Value::named_tuple("PathInfo", {"eq", "naive_cost", "opt_cost", "speedup", "largest_intermediate", "text"},
                                {found.equation, found.naive_cost, found.optimized_cost,
                                 found.naive_cost / found.optimized_cost, found.largest_intermediate, found.text})});
}

const Function numpy_contraction_functions[] = {
    {"dot", "a, b, *, precision=None, preferred_element_type=None, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return numpy::dot(a.array("a"), a.array("b"), product_options(a));
     },
     "The sum of products over the last axis of a and the second to last of b."},
    {"matmul", "a, b, *, precision=None, preferred_element_type=None, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return numpy::matmul(a.array("a"), a.array("b"), product_options(a));
     },
     "The matrix product; leading axes are batches."},
    {"vdot", "a, b, *, precision=None, preferred_element_type=None",
     [](const Arguments& a) -> Value { return numpy::vdot(a.array("a"), a.array("b"), product_options(a)); },
     "The dot product of the flattened arrays, a conjugated."},
    {"vecdot", "x1, x2, /, *, axis=-1, precision=None, preferred_element_type=None",
     [](const Arguments& a) -> Value {
       const numpy::ProductOptions product = product_options(a);
       return numpy::vecdot(a.array("x1"), a.array("x2"),
                            {.axis = a.integer("axis"),
                             .precision = product.precision,
                             .preferred_element_type = product.preferred_element_type});
     },
     "The dot product of vectors along an axis, x1 conjugated."},
    {"matvec", "x1, x2, /", [](const Arguments& a) -> Value { return numpy::matvec(a.array("x1"), a.array("x2")); },
     "Matrices times vectors; leading axes are batches."},
    {"vecmat", "x1, x2, /", [](const Arguments& a) -> Value { return numpy::vecmat(a.array("x1"), a.array("x2")); },
     "Conjugated vectors times matrices; leading axes are batches."},
    {"inner", "a, b, *, precision=None, preferred_element_type=None",
     [](const Arguments& a) -> Value { return numpy::inner(a.array("a"), a.array("b"), product_options(a)); },
     "The sum of products over the last axes."},
    {"outer", "a, b, out=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out");
       return numpy::outer(a.array("a"), a.array("b"));
     },
     "The product of each element of a with each of b."},
    {"tensordot",
     "a, b, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2, *, precision=None, preferred_element_type=None, "
     "out_sharding=None",
     tensordot, "The sum of products over several axes."},
    {"kron", "a, b", [](const Arguments& a) -> Value { return numpy::kron(a.array("a"), a.array("b")); },
     "The Kronecker product: blocks of b scaled by the elements of a."},
    {"cross", "a, b, axisa=-1, axisb=-1, axisc=-1, axis: int = None",
     [](const Arguments& a) -> Value {
       return numpy::cross(a.array("a"), a.array("b"),
                           {.axisa = a.integer("axisa"),
                            .axisb = a.integer("axisb"),
                            .axisc = a.integer("axisc"),
                            .axis = a.optional_integer("axis")});
     },
     "The cross product of vectors of two or three components."},
    {"einsum",
     "subscripts, /, *operands, out=None, optimize='auto', precision=None, preferred_element_type=None, "
     "_dot_general=None, out_sharding=None",
     einsum, "Sums of products named by the labels of axes: einsum('ij,jk->ik', a, b)."},
    {"einsum_path", "subscripts, /, *operands, optimize='auto' -> tuple[list[tuple[int, ...] | str], str]", einsum_path,
     "The order in which einsum contracts its operands, and what it costs."},
};

}  // namespace

std::variant<std::string, jax::numpy::ContractionPath> einsum_order(const Arguments& a) {
  const Value& value = a["optimize"];
  if (value.is_none()) return "auto";
  if (const bool* on = value.get_if<bool>()) return *on ? "optimal" : "unoptimized";
  if (const std::string* method = value.get_if<std::string>()) return *method;
  const Sequence* steps = value.sequence();
  if (!steps)
    throw TypeError(
        concat(a.function(), ": argument 'optimize' must be True, False, a method or a path, got ", value.type_name()));
  jax::numpy::ContractionPath path;
  for (const Value& step : steps->items) {
    const Values holder{step};
    static const Signature signature("optimize");
    path.push_back(Arguments(a.function(), signature, holder).ints("optimize"));
  }
  return path;
}

Family numpy_contraction() { return numpy_contraction_functions; }

}  // namespace capibara::library
