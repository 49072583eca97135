// Writes the operations of a bytecode file.
#include "compiler/stablehlo/bytecode/write_bytecode.h"

#include <algorithm>

#include <capibara/error.h>

#include "compiler/stablehlo/bytecode/container.h"
#include "compiler/stablehlo/bytecode/entry_writer.h"
#include "compiler/stablehlo/bytecode/shardy_operations.h"
#include "compiler/stablehlo/bytecode/vhlo_attributes.h"
#include "compiler/stablehlo/operations.h"

namespace capibara::stablehlo {

namespace {

constexpr std::uint8_t with_attributes = 1, with_results = 2, with_operands = 4, with_regions = 16,
                       with_properties = 64;

// The operations of a block, and how many operations and values it defines.
struct BlockBytes {
  ByteWriter bytes;
  std::uint64_t operations = 0;
  std::uint64_t values = 0;
};

// All of an operation except its regions.
struct OperationBytes {
  std::size_t name = 0;
  std::vector<Dictionary::Entry> attributes;
  EntryKind kind = EntryKind::vhlo;  // of the values of those attributes, and of the types
  std::string properties;
  std::vector<Type> results;
  std::vector<std::size_t> operands;
  bool has_regions = false;
};

class BytecodeWriter {
 public:
  std::string write(const Module& module) {
    Operation place;
    place.name = "module";
    BlockBytes block;
    for (const Operation& operation : module.operations) write_operation(block, operation);
    for (const Function& function : module.functions) write_function(block, function);
    ByteWriter region;
    region.number(1);
    region.number(0);
    region.flagged(block.operations, false);
    region.append(block.bytes.bytes());
    OperationBytes own;
    own.name = entries_.operation_name("builtin", "module");
    own.attributes.assign(module.attributes.begin(), module.attributes.end());
    own.kind = EntryKind::builtin;
    own.has_regions = true;
    ByteWriter properties;
    if (module.name.empty())
      properties.flagged(0, false);
    else
      properties.flagged(entries_.attribute(Attribute::of(String{module.name}), EntryKind::builtin, place), true);
    properties.flagged(0, false);
    own.properties = properties.bytes();
    BlockBytes top;
    write_head(top, own, place);
    write_isolated(top, region.bytes());
    ByteWriter section;
    section.flagged(1, false);
    section.append(top.bytes.bytes());
    return entries_.finish(section.bytes());
  }

 private:
  void write_head(BlockBytes& block, const OperationBytes& own, const Operation& place) {
    std::uint8_t parts = 0;
    if (!own.attributes.empty()) parts |= with_attributes;
    if (!own.properties.empty()) parts |= with_properties;
    if (!own.results.empty()) parts |= with_results;
    if (!own.operands.empty()) parts |= with_operands;
    if (own.has_regions) parts |= with_regions;
    ByteWriter& out = block.bytes;
    out.number(own.name);
    out.byte(parts);
    out.number(entries_.unknown_location());
    if (parts & with_attributes) out.number(entries_.dictionary(own.attributes, own.kind, place));
    if (parts & with_properties) out.number(entries_.properties(own.properties));
    if (parts & with_results) {
      out.number(own.results.size());
      for (const Type& type : own.results) out.number(entries_.type(type, own.kind, place));
    }
    if (parts & with_operands) {
      out.number(own.operands.size());
      for (const std::size_t operand : own.operands) out.number(operand);
    }
    ++block.operations;
    block.values += own.results.size();
  }

  // A region in its own section, with values numbered from 0.
  static void write_isolated(BlockBytes& block, const std::string& region) {
    block.bytes.flagged(1, true);
    block.bytes.section(static_cast<std::uint8_t>(SectionId::operations), region);
  }

  void write_function(BlockBytes& block, const Function& function) {
    Operation place;
    place.name = "func.func @" + function.name;
    place.position = function.position;
    std::vector<Type> inputs, results;
    Array argument_attributes, result_attributes;
    for (const FunctionArgument& argument : function.arguments) {
      inputs.push_back(argument.type);
      argument_attributes.elements.push_back(Attribute::of(argument.attributes));
    }
    for (const FunctionResult& result : function.results) {
      results.push_back(result.type);
      result_attributes.elements.push_back(Attribute::of(result.attributes));
    }
    const Attribute values[] = {Attribute::of(std::move(argument_attributes)),
                                Attribute::of(Type::function(inputs, results)),
                                Attribute::of(std::move(result_attributes)), Attribute::of(String{function.name}),
                                Attribute::of(String{function.visibility})};
    ByteWriter properties;
    for (const Attribute& value : values) properties.number(entries_.attribute(value, EntryKind::vhlo, place));
    OperationBytes own;
    own.name = entries_.operation_name("vhlo", "func_v1");
    own.attributes.assign(function.attributes.begin(), function.attributes.end());
    own.properties = properties.bytes();
    own.has_regions = true;
    write_head(block, own, place);
    numbers_.assign(static_cast<std::size_t>(function.value_count), 0);
    next_ = end_ = 0;
    ByteWriter region;
    if (function.is_declaration) {
      region.number(0);
    } else {
      Block body;
      for (const FunctionArgument& argument : function.arguments)
        body.arguments.push_back({argument.id, argument.type, {}});
      write_blocks(region, body.arguments, function.body.operations, EntryKind::vhlo, place);
    }
    write_isolated(block, region.bytes());
  }

  // One block: its arguments, then its operations. If these are Shardy values, VHLO operations need casts.
  void write_blocks(ByteWriter& out, const std::vector<BlockArgument>& arguments,
                    const std::vector<Operation>& operations, EntryKind kind, const Operation& place) {
    const std::size_t outer_next = next_, outer_end = end_;
    next_ = end_;
    end_ += count_values(arguments, operations, kind);
    for (const BlockArgument& argument : arguments) number(argument.id) = next_++;
    BlockBytes block;
    block.values = arguments.size();
    if (kind == EntryKind::builtin) {
      for (const BlockArgument& argument : arguments) {
        number(argument.id) = write_cast(block, number(argument.id), argument.type, EntryKind::vhlo, place);
      }
    }
    for (const Operation& operation : operations) write_operation(block, operation);
    out.number(1);
    out.number(block.values);
    out.flagged(block.operations, !arguments.empty());
    if (!arguments.empty()) {
      out.number(arguments.size());
      for (const BlockArgument& argument : arguments) out.flagged(entries_.type(argument.type, kind, place), false);
      out.byte(0);
    }
    out.append(block.bytes.bytes());
    next_ = outer_next;
    end_ = outer_end;
  }

  // Counts a region's own values; those of nested regions get the numbers after them.
  static std::size_t count_values(const std::vector<BlockArgument>& arguments, const std::vector<Operation>& operations,
                                  EntryKind kind) {
    std::size_t count = arguments.size() * (kind == EntryKind::builtin ? 2 : 1);
    for (const Operation& operation : operations) {
      const bool casts = find_shardy(operation.name) != nullptr;
      count += operation.results.size() * (casts ? 2 : 1) + (casts ? operation.operands.size() : 0);
    }
    return count;
  }

  std::size_t& number(ValueId id) { return numbers_[static_cast<std::size_t>(id)]; }

  std::size_t write_cast(BlockBytes& block, std::size_t operand, const Type& type, EntryKind to,
                         const Operation& place) {
    OperationBytes own;
    own.name = entries_.operation_name("builtin", conversion_cast.substr(conversion_cast.find('.') + 1));
    own.kind = to;
    own.results = {type};
    own.operands = {operand};
    write_head(block, own, place);
    return next_++;
  }

  void write_operation(BlockBytes& block, const Operation& operation) {
    if (const ShardyOperation* shardy = find_shardy(operation.name)) return write_shardy(block, operation, *shardy);
    const VhloOperation* row = find_vhlo_of(operation.name);
    if (!row) {
      throw UnsupportedError(concat(place_of(operation), ": this operation has no place in an artifact of StableHLO ",
                                    vhlo_written.major, ".", vhlo_written.minor));
    }
    VhloValues values = vhlo_values(*row, operation);
    ByteWriter properties;
    for (const Attribute& value : values.values)
      properties.number(entries_.attribute(value, EntryKind::vhlo, operation));
    OperationBytes own;
    own.name = entries_.operation_name("vhlo", row->name.substr(row->name.find('.') + 1));
    own.attributes = std::move(values.others);
    own.properties = properties.bytes();
    for (const Value& operand : operation.operands) own.operands.push_back(number(operand.id));
    write_results(block, operation, own, EntryKind::vhlo);
  }

  // Numbers the results, then writes the regions.
  void write_results(BlockBytes& block, const Operation& operation, OperationBytes& own, EntryKind kind) {
    for (const Value& result : operation.results) {
      own.results.push_back(result.type);
      number(result.id) = next_++;
    }
    own.has_regions = !operation.regions.empty();
    own.kind = kind;
    write_head(block, own, operation);
    if (operation.regions.empty()) return;
    block.bytes.flagged(operation.regions.size(), false);
    for (const Region& region : operation.regions) {
      if (region.blocks.empty()) {
        block.bytes.number(0);
        continue;
      }
      if (region.blocks.size() != 1) fail(operation, concat("expected one block, got ", region.blocks.size()));
      write_blocks(block.bytes, region.blocks[0].arguments, region.blocks[0].operations, kind, operation);
    }
  }

  void write_shardy(BlockBytes& block, const Operation& operation, const ShardyOperation& shardy) {
    OperationBytes own;
    for (const Value& operand : operation.operands)
      own.operands.push_back(write_cast(block, number(operand.id), operand.type, EntryKind::builtin, operation));
    own.name = entries_.operation_name("sdy", shardy.name.substr(shardy.name.find('.') + 1));
    ByteWriter properties;
    for (const ShardyAttribute& attribute : shardy.attributes) {
      const Attribute& value = operation.attributes.find(attribute.name);
      if (!value) fail(operation, concat("expected an attribute '", attribute.name, "'"));
      properties.number(entries_.attribute(value, EntryKind::builtin, operation));
    }
    own.properties = properties.bytes();
    for (const Dictionary::Entry& entry : operation.attributes) {
      const auto is_own = [&](const ShardyAttribute& attribute) { return attribute.name == entry.first; };
      if (std::none_of(shardy.attributes.begin(), shardy.attributes.end(), is_own)) own.attributes.push_back(entry);
    }
    write_results(block, operation, own, EntryKind::builtin);
    for (const Value& result : operation.results)
      number(result.id) = write_cast(block, number(result.id), result.type, EntryKind::vhlo, operation);
  }

  EntryWriter entries_;
  std::vector<std::size_t> numbers_;  // of the values of the current function, by id
  std::size_t next_ = 0;              // the next number in the current region
  std::size_t end_ = 0;               // after the numbers that it reserves
};

}  // namespace

std::string write_bytecode(const Module& module) { return BytecodeWriter().write(module); }

}  // namespace capibara::stablehlo
