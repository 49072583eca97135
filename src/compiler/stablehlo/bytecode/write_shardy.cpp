// Writes Shardy's attributes from their text in our syntax tree.
#include <capibara/error.h>

#include "compiler/stablehlo/bytecode/entry_writer.h"
#include "compiler/stablehlo/sharding_text.h"

namespace capibara::stablehlo {

namespace {

void write_indices(ByteWriter& out, const std::vector<std::size_t>& indices) {
  out.number(indices.size());
  for (const std::size_t index : indices) out.number(index);
}

void write_numbers(ByteWriter& out, const std::vector<std::int64_t>& numbers) {
  out.number(numbers.size());
  for (const std::int64_t number : numbers) out.signed_number(number);
}

// ([i, j])->([k, l], []) {i=4, j=4, k=4, l=4} reduction={j}, custom
class RuleText {
 public:
  using Dims = std::vector<std::vector<std::int64_t>>;  // the factors of each dimension

  RuleText(const Operation& place, std::string_view text) : place_(place), text_(text) {
    read_values(operands);
    expect("->");
    read_values(results);
    if (take("{")) {
      do {
        factor();
        expect("=");
        sizes.push_back(number());
      } while (take(","));
      expect("}");
    }
    for (std::size_t i = 0; i < std::size(names); ++i) {
      if (!take(names[i])) continue;
      expect("={");
      do lists[i].push_back(factor());
      while (take(","));
      expect("}");
    }
    if (take(",")) {
      expect("custom");
      custom = true;
    }
    if (!text_.empty()) refuse();
  }

  std::vector<Dims> operands, results;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> lists[4];
  bool custom = false;

 private:
  static constexpr std::string_view names[] = {"reduction", "need_replication", "permutation", "blocked_propagation"};

  [[noreturn]] void refuse() const {
    fail(place_, concat("expected another text at '", text_, "' of a sharding rule"));
  }
  bool take(std::string_view word) {
    while (text_.starts_with(' ')) text_.remove_prefix(1);
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) refuse();
  }
  bool at_digit() const { return !text_.empty() && text_[0] >= '0' && text_[0] <= '9'; }
  std::int64_t number() {
    if (!at_digit()) refuse();
    std::int64_t value = 0;
    for (; at_digit() && value < (std::int64_t{1} << 56); text_.remove_prefix(1)) value = value * 10 + (text_[0] - '0');
    return value;
  }
  bool at_factor() {
    while (text_.starts_with(' ')) text_.remove_prefix(1);
    return !text_.empty() && text_[0] >= 'i' && text_[0] <= 'z';
  }
  // i, j, .. z, z_1, z_2 ..
  std::int64_t factor() {
    if (!at_factor()) refuse();
    const std::int64_t letter = text_[0] - 'i';
    text_.remove_prefix(1);
    return text_.starts_with('_') && take("_") ? letter + number() : letter;
  }
  void read_values(std::vector<Dims>& values) {
    expect("(");
    if (take(")")) return;
    do {
      Dims& dims = values.emplace_back();
      expect("[");
      if (take("]")) continue;
      do {
        std::vector<std::int64_t>& factors = dims.emplace_back();
        while (at_factor()) factors.push_back(factor());
      } while (take(","));
      expect("]");
    } while (take(","));
    expect(")");
  }

  const Operation& place_;
  std::string_view text_;
};

}  // namespace

std::size_t EntryWriter::shardy_rule(const DialectAttribute& own, const Operation& place) {
  const RuleText rule(place, own.text);
  const auto mappings = [&](const std::vector<RuleText::Dims>& values) {
    std::vector<std::size_t> tensors;
    for (const RuleText::Dims& dims : values) {
      std::vector<std::size_t> indices;
      for (const std::vector<std::int64_t>& factors : dims) {
        ByteWriter dim;
        dim.number(8);
        write_numbers(dim, factors);
        indices.push_back(add(attributes_, "sdy", dim.bytes()));
      }
      ByteWriter tensor;
      tensor.number(9);
      write_indices(tensor, indices);
      tensors.push_back(add(attributes_, "sdy", tensor.bytes()));
    }
    return tensors;
  };
  const std::vector<std::size_t> operands = mappings(rule.operands), results = mappings(rule.results);
  ByteWriter out;
  out.number(10);
  write_numbers(out, rule.sizes);
  write_indices(out, operands);
  write_indices(out, results);
  for (const std::vector<std::int64_t>& list : rule.lists) write_numbers(out, list);
  out.byte(rule.custom ? 1 : 0);
  return add(attributes_, "sdy", out.bytes());
}

std::size_t EntryWriter::shardy_mesh(const Mesh& mesh, std::string_view text) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < mesh.axis_names.size(); ++i) {
    ByteWriter axis;
    axis.number(1);
    axis.number(string(mesh.axis_names[i]));
    axis.signed_number(mesh.axis_sizes[i]);
    axes.push_back(add(attributes_, "sdy", axis.bytes()));
  }
  ByteWriter out;
  out.number(2);
  write_indices(out, axes);
  // The device numbers, if the text has them, are the only numbers after this word.
  std::vector<std::int64_t> devices;
  const std::size_t listed = text.find("device_ids");
  for (std::size_t at = listed; at < text.size(); ++at) {
    if (text[at] < '0' || text[at] > '9') continue;
    std::int64_t& device = devices.emplace_back(0);
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) device = device * 10 + (text[at] - '0');
  }
  write_numbers(out, devices);
  return add(attributes_, "sdy", out.bytes());
}

std::size_t EntryWriter::shardy_sharding(const ShardingText& text) {
  const auto references = [&](const AxisList& names) {
    std::vector<std::size_t> axes;
    for (const std::string& name : names) {
      ByteWriter axis;
      axis.number(4);
      axis.number(string(name));
      axis.flagged(0, false);
      axes.push_back(add(attributes_, "sdy", axis.bytes()));
    }
    return axes;
  };
  std::vector<std::size_t> dims;
  for (std::size_t i = 0; i < text.dims.size(); ++i) {
    const std::vector<std::size_t> axes = references(text.dims[i]);
    ByteWriter dim;
    dim.number(5);
    write_indices(dim, axes);
    dim.byte(text.open[i] ? 0 : 1);
    const std::optional<int64_t>& priority = text.priorities[i];
    dim.flagged(priority ? static_cast<std::uint64_t>(*priority) : 0, priority.has_value());
    dims.push_back(add(attributes_, "sdy", dim.bytes()));
  }
  const std::vector<std::size_t> replicated = references(text.replicated), unreduced = references(text.unreduced);
  const std::size_t mesh = symbol(text.mesh);
  ByteWriter out;
  out.number(unreduced.empty() ? 6 : 15);
  out.number(mesh);
  write_indices(out, dims);
  write_indices(out, replicated);
  if (!unreduced.empty()) write_indices(out, unreduced);
  return add(attributes_, "sdy", out.bytes());
}

std::size_t EntryWriter::shardy_attribute(const DialectAttribute& own, const Operation& place) {
  if (own.kind == "mesh") return shardy_mesh(read_mesh_text(place, own.text).mesh, own.text);
  if (own.kind == "sharding") return shardy_sharding(read_sharding_text(place, own.text));
  if (own.kind == "op_sharding_rule") return shardy_rule(own, place);
  ByteWriter out;
  std::vector<std::size_t> parts;
  if (own.kind == "sharding_per_value") {
    for (const ShardingText& one : read_shardings_text(place, own.text)) parts.push_back(shardy_sharding(one));
    out.number(7);
  } else if (own.kind == "manual_axes") {
    for (const std::string& axis : read_axes_text(place, own.text)) parts.push_back(builtin_string(axis));
    out.number(0);
  } else {
    throw UnsupportedError(concat(place_of(place), ": #sdy.", own.kind, " is not written into artifacts"));
  }
  write_indices(out, parts);
  return add(attributes_, "sdy", out.bytes());
}

}  // namespace capibara::stablehlo
