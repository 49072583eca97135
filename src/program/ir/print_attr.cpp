// Attributes as Python prints them.
#include "program/ir/print_attr.h"

#include <capibara/program.h>

#include "core/array/format.h"

namespace capibara {

namespace {

std::string tuple_text(const Ints& ints) {
  std::string text = "(";
  for (std::size_t i = 0; i < ints.size(); ++i) text += concat(i ? ", " : "", ints[i]);
  return text + (ints.size() == 1 ? ",)" : ")");
}

std::string list_text(const Ints& ints) {
  std::string text = "[";
  for (std::size_t i = 0; i < ints.size(); ++i) text += concat(i ? ", " : "", ints[i]);
  return text + "]";
}

struct Text {
  bool nested;  // inside a tuple strings are quoted

  std::string operator()(Attr::None) const { return "None"; }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return python_float(value); }
  std::string operator()(const std::string& text) const { return nested ? "'" + text + "'" : text; }
  std::string operator()(DType dtype) const { return std::string(dtype_name(dtype)); }
  std::string operator()(const Ints& ints) const { return tuple_text(ints); }
  std::string operator()(const DotDimensionNumbers& d) const {
    return concat("((", list_text(d.lhs_contracting), ", ", list_text(d.rhs_contracting), "), (",
                  list_text(d.lhs_batch), ", ", list_text(d.rhs_batch), "))");
  }
  std::string operator()(const ConvDimensionNumbers& d) const {
    return concat("ConvDimensionNumbers(lhs_spec=", tuple_text(d.lhs_spec), ", rhs_spec=", tuple_text(d.rhs_spec),
                  ", out_spec=", tuple_text(d.out_spec), ")");
  }
  std::string operator()(const GatherDimensionNumbers& d) const {
    return concat("GatherDimensionNumbers(offset_dims=", tuple_text(d.offset_dims),
                  ", collapsed_slice_dims=", tuple_text(d.collapsed_slice_dims),
                  ", start_index_map=", tuple_text(d.start_index_map),
                  ", operand_batching_dims=", tuple_text(d.operand_batching_dims),
                  ", start_indices_batching_dims=", tuple_text(d.start_indices_batching_dims), ")");
  }
  std::string operator()(const ScatterDimensionNumbers& d) const {
    return concat("ScatterDimensionNumbers(update_window_dims=", tuple_text(d.update_window_dims),
                  ", inserted_window_dims=", tuple_text(d.inserted_window_dims),
                  ", scatter_dims_to_operand_dims=", tuple_text(d.scatter_dims_to_operand_dims),
                  ", operand_batching_dims=", tuple_text(d.operand_batching_dims),
                  ", scatter_indices_batching_dims=", tuple_text(d.scatter_indices_batching_dims), ")");
  }
  std::string operator()(const ArrayType& type) const { return concat("ShapedArray(", to_string(type), ")"); }
  std::string operator()(const Array& array) const { return array.to_string(); }
  std::string operator()(const std::shared_ptr<const Program>& program) const { return program->to_string(); }
  std::string operator()(const std::shared_ptr<const Opaque>& opaque) const {
    return opaque ? opaque->print() : "None";
  }
  std::string operator()(const std::shared_ptr<const Attr::List>& list) const {
    std::string text = "(";
    for (std::size_t i = 0; i < list->size(); ++i) {
      text += concat(i ? ", " : "", std::visit(Text{true}, (*list)[i].value()));
    }
    return text + (list->size() == 1 ? ",)" : ")");
  }
};

}  // namespace

std::string attr_text(const Attr& attr) { return std::visit(Text{false}, attr.value()); }

}  // namespace capibara
