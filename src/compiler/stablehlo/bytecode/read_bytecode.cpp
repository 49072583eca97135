// Reads the operations of a bytecode file.
#include "compiler/stablehlo/bytecode/read_bytecode.h"

#include <algorithm>
#include <array>

#include "compiler/stablehlo/bytecode/entries.h"
#include "compiler/stablehlo/bytecode/shardy_operations.h"
#include "compiler/stablehlo/bytecode/vhlo_attributes.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/syntax/parser.h"
#include "compiler/stablehlo/syntax/parser_rules.h"

namespace capibara::stablehlo {

namespace {

// The parts of an operation, one bit each.
enum Part : std::uint8_t {
  part_attributes = 1,
  part_results = 2,
  part_operands = 4,
  part_successors = 8,
  part_regions = 16,
  part_use_orders = 32,
  part_properties = 64,
};

// Values by number; an id below zero is a value not yet defined. A region reserves numbers for all values that its
// blocks define; the numbers of nested regions follow them.
using NumberedValues = std::vector<Value>;

// The value numbers of one region.
struct RegionNumbers {
  NumberedValues& values;
  std::size_t next;

  void define(const ByteCursor& cursor, Value value) {
    if (next == values.size()) cursor.fail("defines more values in a region than it claims");
    values[next++] = std::move(value);
  }
};

class BytecodeReader {
 public:
  explicit BytecodeReader(const BytecodeContainer& container)
      : container_(container), entries_(container), rows_(container.operation_names.size()) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      names_.push_back(container.operation_name(i));
      rows_[i] = find_vhlo(names_[i]);
    }
  }

  Module read() {
    ByteCursor cursor(container_.operations, "the section of operations", container_.operations_offset);
    const auto [count, has_arguments] = cursor.flagged();
    if (count != 1 || has_arguments) cursor.fail("expected one module");
    const Head head = read_head(cursor);
    if (names_[head.name] != "builtin.module") cursor.fail(concat("expected a module, got ", names_[head.name]));
    Module module;
    module.attributes = Dictionary(head.attributes);
    module.location = head.location;
    if (head.properties) {
      ByteCursor own(*head.properties, "the properties of a module");
      module.name = optional_text(own);
      optional_text(own);  // its visibility
      own.expect_end();
    }
    NumberedValues none;
    read_regions(cursor, head, none, [&](ByteCursor& body, std::size_t regions, NumberedValues&) {
      if (regions != 1) body.fail("expected one region of a module");
      read_module_body(body, module);
    });
    cursor.expect_end();
    return module;
  }

 private:
  struct Head {
    std::size_t name = 0;
    Attribute location;
    std::vector<Dictionary::Entry> attributes;
    const Bytes* properties = nullptr;
    std::vector<Type> results;
    std::vector<std::uint64_t> operands;
    bool has_regions = false;
  };

  std::string optional_text(ByteCursor& cursor) {
    const auto [index, present] = cursor.flagged();
    return present ? entries_.text_of(cursor, entries_.attribute(cursor, index)) : std::string();
  }

  void skip_use_orders(ByteCursor& cursor, std::size_t values) {
    const std::size_t orders = values == 1 ? 1 : cursor.count();
    for (std::size_t i = 0; i < orders; ++i) {
      if (values != 1) cursor.number();
      const std::size_t count = cursor.checked_count(cursor.flagged().first);
      for (std::size_t k = 0; k < count; ++k) cursor.number();
    }
  }

  Head read_head(ByteCursor& cursor) {
    Head head;
    head.name = cursor.index(names_.size(), "names of operations");
    const std::uint8_t parts = cursor.byte();
    head.location = entries_.attribute(cursor);
    if (!head.location.as<Location>()) cursor.fail("expected a location of an operation");
    if (head.location.as<Location>()->kind == Location::Kind::unknown) head.location = {};
    if (parts & part_attributes) {
      const Attribute attributes = entries_.attribute(cursor);
      const auto* own = attributes.as<Dictionary>();
      if (!own) cursor.fail("expected a dictionary as the attributes of an operation");
      head.attributes.assign(own->begin(), own->end());
    }
    if (parts & part_properties)
      head.properties = &container_.properties[cursor.index(container_.properties.size(), "properties")];
    if (parts & part_results) head.results = entries_.types(cursor);
    if (parts & part_operands) {
      head.operands.resize(cursor.count());
      for (std::uint64_t& operand : head.operands) operand = cursor.number();
    }
    if (parts & part_successors) cursor.fail(concat("has successors of ", names_[head.name], ", which has none"));
    if (parts & part_use_orders) skip_use_orders(cursor, head.results.size());
    if (parts & 128) cursor.fail("has an operation with an unknown part");
    head.has_regions = (parts & part_regions) != 0;
    return head;
  }

  // Calls `read` with the cursor after the number of regions: in a section of the operation's own if its regions use no
  // outer value; values are then numbered from 0.
  template <class Read>
  void read_regions(ByteCursor& cursor, const Head& head, NumberedValues& values, Read&& read) {
    if (!head.has_regions) return;
    const auto [count, isolated] = cursor.flagged();
    const std::size_t regions = cursor.checked_count(count);
    if (++nesting_ > nesting_limit) cursor.fail(concat("expected at most ", nesting_limit, " levels of nesting"));
    if (isolated) {
      if (cursor.byte() != static_cast<std::uint8_t>(SectionId::operations))
        cursor.fail("expected a section of regions");
      const std::uint64_t size = cursor.number();
      const std::size_t offset = cursor.offset();
      ByteCursor section(cursor.take(size), "a section of regions", offset);
      NumberedValues own;
      read(section, regions, own);
      section.expect_end();
    } else {
      read(cursor, regions, values);
    }
    --nesting_;
  }

  void read_module_body(ByteCursor& cursor, Module& module) {
    const std::size_t blocks = cursor.count();
    if (blocks != 1) cursor.fail("expected one block of a module");
    cursor.number();  // of values: none
    const auto [count, has_arguments] = cursor.flagged();
    if (has_arguments) cursor.fail("expected a module without arguments");
    for (std::size_t i = cursor.checked_count(count); i > 0; --i) {
      const Head head = read_head(cursor);
      if (names_[head.name] == "vhlo.func_v1") {
        module.functions.push_back(read_function(cursor, head));
        continue;
      }
      // Only a declaration may be among functions: it has no operands, results or regions.
      if (!head.results.empty() || !head.operands.empty() || head.has_regions)
        cursor.fail(concat("expected a function, got ", names_[head.name]));
      Operation operation;
      operation.name = stablehlo_name(cursor, head);
      fill_attributes(cursor, head, operation);
      module.operations.push_back(std::move(operation));
    }
  }

  // ---- functions -------------------------------------------------------------------------------------------------

  Function read_function(ByteCursor& cursor, const Head& head) {
    if (!head.properties) cursor.fail("expected properties of a function");
    ByteCursor own(*head.properties, "the properties of a function");
    const Attribute arguments = entries_.attribute(own), type = entries_.attribute(own),
                    results = entries_.attribute(own);
    Function function;
    function.name = entries_.text_of(own, entries_.attribute(own));
    function.visibility = entries_.text_of(own, entries_.attribute(own));
    own.expect_end();
    function.attributes = Dictionary(head.attributes);
    function.location = head.location;
    const auto* signature = type.as<Type>();
    if (!signature || !signature->is_function()) own.fail("expected the type of a function");
    const auto dictionary_of = [&](const Attribute& list, std::size_t index, std::size_t count) {
      const auto* array = list.as<Array>();
      if (array && array->elements.empty()) return Dictionary();
      const Attribute one = array && array->elements.size() == count ? array->elements[index] : Attribute();
      const auto* dictionary = one.as<Dictionary>();
      if (!dictionary) own.fail("expected attributes of each argument and result");
      return *dictionary;
    };
    const std::vector<Type>& inputs = signature->inputs();
    const std::vector<Type>& outputs = signature->results();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      function.arguments.push_back({-1, inputs[i], dictionary_of(arguments, i, inputs.size()), {}});
    for (std::size_t i = 0; i < outputs.size(); ++i)
      function.results.push_back({outputs[i], dictionary_of(results, i, outputs.size())});
    next_value_ = 0;
    function.is_declaration = true;
    NumberedValues outer;
    read_regions(cursor, head, outer, [&](ByteCursor& body, std::size_t regions, NumberedValues& values) {
      if (regions != 1) body.fail("expected one region of a function");
      Region region = read_region(body, values, true);
      function.is_declaration = region.blocks.empty();
      if (region.blocks.empty()) return;
      if (region.blocks.size() != 1) body.fail("expected one block of a function");
      Block& block = region.blocks[0];
      bool fits = block.arguments.size() == function.arguments.size();
      for (std::size_t i = 0; fits && i < block.arguments.size(); ++i) {
        fits = block.arguments[i].type == function.arguments[i].type;
        function.arguments[i].id = block.arguments[i].id;
        function.arguments[i].location = block.arguments[i].location;
      }
      if (!fits) body.fail(concat("expected the arguments of @", function.name, " to be those of its type"));
      block.arguments.clear();
      function.body = std::move(block);
    });
    if (function.is_declaration) {
      for (FunctionArgument& argument : function.arguments) argument.id = next_value_++;
    }
    function.value_count = next_value_;
    return function;
  }

  Region read_region(ByteCursor& cursor, NumberedValues& values, bool of_function = false) {
    Region region;
    const std::size_t blocks = cursor.count();
    if (blocks == 0) return region;
    const std::size_t before = values.size(), declared = cursor.count();
    values.resize(before + declared);
    RegionNumbers numbers{values, before};
    for (std::size_t b = 0; b < blocks; ++b) {
      Block block;
      const auto [count, has_arguments] = cursor.flagged();
      if (has_arguments) {
        const std::size_t arguments = cursor.count();
        for (std::size_t i = 0; i < arguments; ++i) {
          const auto [type, has_location] = cursor.flagged();
          BlockArgument argument;
          argument.type = entries_.type(cursor.checked_index(type, container_.types.size(), "types"));
          if (has_location) argument.location = entries_.attribute(cursor);
          argument.id = next_value_++;
          numbers.define(cursor, {argument.id, argument.type});
          block.arguments.push_back(std::move(argument));
        }
        if (cursor.byte() & part_use_orders) skip_use_orders(cursor, arguments);
      }
      const std::size_t operations = cursor.checked_count(count);
      for (std::size_t i = 0; i < operations; ++i) read_operation(cursor, numbers, block.operations, of_function);
      region.blocks.push_back(std::move(block));
    }
    if (numbers.next != values.size())
      cursor.fail(concat("claims ", declared, " values of a region and has ", numbers.next - before));
    values.resize(before);
    return region;
  }

  // ---- operations ------------------------------------------------------------------------------------------------

  void read_operation(ByteCursor& cursor, RegionNumbers& numbers, std::vector<Operation>& into, bool of_function) {
    const Head head = read_head(cursor);
    NumberedValues& values = numbers.values;
    Operation operation;
    operation.name = stablehlo_name(cursor, head);
    operation.location = head.location;
    for (const std::uint64_t number : head.operands) {
      if (number >= values.size() || values[static_cast<std::size_t>(number)].id < 0)
        cursor.fail(concat("names value ", number, ", which is not defined before ", operation.name));
      operation.operands.push_back(values[static_cast<std::size_t>(number)]);
    }
    if (operation.name == conversion_cast) {
      // A cast between VHLO's types and those of Shardy operations, which are the same in our tree.
      if (operation.operands.size() != 1 || head.results.size() != 1 || head.has_regions ||
          !(operation.operands[0].type == head.results[0]))
        cursor.fail("expected a cast between two names of one type");
      numbers.define(cursor, operation.operands[0]);
      return;
    }
    fill_attributes(cursor, head, operation);
    if (operation.name == "stablehlo.return" && of_function) operation.name = "func.return";
    read_regions(cursor, head, values, [&](ByteCursor& body, std::size_t regions, NumberedValues& scope) {
      for (std::size_t i = 0; i < regions; ++i) operation.regions.push_back(read_region(body, scope));
    });
    for (const Type& type : head.results) {
      operation.results.push_back({next_value_++, type});
      numbers.define(cursor, operation.results.back());
    }
    into.push_back(std::move(operation));
  }

  std::string stablehlo_name(ByteCursor& cursor, const Head& head) const {
    const std::string& name = names_[head.name];
    if (const VhloOperation* row = rows_[head.name]) return std::string(row->stablehlo);
    if (name == conversion_cast || find_shardy(name)) return name;
    throw UnsupportedError(concat("bytecode: byte ", cursor.offset(), ": the operation ", name,
                                  " is unknown; the file says ", quoted_text(container_.producer),
                                  ", StableHLO 0.15 to ", vhlo_newest.major, ".", vhlo_newest.minor, " is read"));
  }

  void fill_attributes(ByteCursor& cursor, const Head& head, Operation& operation) {
    std::vector<Dictionary::Entry> entries = head.attributes;
    const VhloOperation* row = rows_[head.name];
    const ShardyOperation* shardy = row ? nullptr : find_shardy(names_[head.name]);
    const Bytes none;
    ByteCursor own(head.properties ? *head.properties : none, "the properties of an operation");
    if (row) {
      std::vector<Attribute> values(row->attributes.size());
      for (Attribute& value : values) value = entries_.attribute(own);
      add_stablehlo_attributes(*row, values, operation, entries);
    } else if (shardy) {
      for (const ShardyAttribute& attribute : shardy->attributes) {
        if (attribute.optional) {
          const auto [index, present] = own.flagged();
          if (present) entries.emplace_back(attribute.name, entries_.attribute(own, index));
        } else {
          entries.emplace_back(attribute.name, entries_.attribute(own));
        }
      }
    }
    own.expect_end();
    if (const auto name = Dictionary::repeated_name(entries))
      cursor.fail(concat("has attribute '", *name, "' of ", operation.name, " twice"));
    operation.attributes = Dictionary(std::move(entries));
  }

  const BytecodeContainer& container_;
  EntryReader entries_;
  std::vector<std::string> names_;
  std::vector<const VhloOperation*> rows_;
  ValueId next_value_ = 0;  // of the function being read
  int nesting_ = 0;
};

}  // namespace

Module read_bytecode(std::string_view file) {
  const BytecodeContainer container =
      read_container(Bytes(reinterpret_cast<const std::uint8_t*>(file.data()), file.size()));
  return BytecodeReader(container).read();
}

std::vector<Module> read_modules(std::string_view file) {
  if (!is_bytecode(file)) return parse_modules(file);
  std::vector<Module> modules;
  modules.push_back(read_bytecode(file));
  return modules;
}

Module read_file(std::string_view file) { return is_bytecode(file) ? read_bytecode(file) : parse_module(file); }

}  // namespace capibara::stablehlo
