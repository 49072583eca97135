// The reader: stages each function by reading its operations in order.
#include "compiler/stablehlo/read.h"

#include <algorithm>
#include <utility>

#include <capibara/config.h>
#include <capibara/error.h>

#include "compiler/stablehlo/bytecode/read_bytecode.h"
#include "compiler/stablehlo/read_body.h"
#include "program/ir/source.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"

namespace capibara::stablehlo {

namespace {

constexpr std::size_t call_depth_limit = 500;  // of nested functions, so that no text exhausts the stack
constexpr std::size_t sizes_limit = 10000;     // of functions, each read for the sizes of its calls
constexpr int64_t splat_limit = 1 << 20;       // above this, a constant of equal elements stays a broadcast

const Operation& function_place(const Function& function) {
  thread_local Operation place;
  place.name = "func.func @" + function.name;
  place.position = function.position;
  return place;
}

bool is_terminator(const Operation& operation) { return operation.name.ends_with(".return"); }

// True if a value's type matches the type declared in the text, which may leave sizes open.
bool may_be(const ArrayType& declared, const ArrayType& type) {
  return declared.dtype == type.dtype && std::ranges::equal(declared.shape, type.shape, [](int64_t size, int64_t own) {
           return size == own || size == dynamic_size;
         });
}

bool fit(const Types& declared, const Arrays& arrays) {
  return std::ranges::equal(declared, arrays,
                            [](const ArrayType& type, const NdArray& array) { return may_be(type, array.type()); });
}

ArrayType plain_type(const NdArray& array) {
  ArrayType type;
  type.shape = array.shape();
  type.dtype = array.dtype();
  return type;
}

Types argument_types(const Function& function) {
  Types types;
  for (const FunctionArgument& argument : function.arguments) {
    for (const ArrayType& type : flat_types(function_place(function), argument.type)) types.push_back(type);
  }
  return types;
}

std::string manual_key(const ManualScope* scope) {
  if (!scope) return "";
  std::string key;
  for (std::size_t i = 0; i < scope->mesh.axis_names.size(); ++i)
    key += concat(scope->mesh.axis_names[i], ":", scope->mesh.axis_sizes[i], " ");
  for (const std::string& axis : scope->bound) key += concat(axis, " ");
  return key;
}

}  // namespace

NdArray read_constant(const Operation& operation) {
  const Attribute value = operation.attributes.find("value");
  const auto* dense = value.as<DenseElements>();
  if (!dense) fail(operation, "expected dense elements as attribute 'value'");
  const ArrayType type = array_type(operation, dense->type);
  if (!dense->splat || type.size() <= splat_limit) return dense_array(operation, *dense);
  DenseElements scalar = *dense;
  scalar.type = Type::tensor({}, dense->type.element());
  return bind_named("broadcast_in_dim", {dense_array(operation, scalar)},
                    {{"shape", type.shape}, {"broadcast_dimensions", Ints{}}, {"sharding", Attr()}})[0];
}

// ---- modules -----------------------------------------------------------------------------------------------------

namespace {

const Function& entry_of(const Module& module) {
  if (const Function* entry = module.find_function("main")) return *entry;
  for (const Function& function : module.functions) {
    if (function.visibility != "private") return function;
  }
  throw ParseError("from_stablehlo: expected a function @main, got a module without public functions");
}

EntryValue entry_value(const Function& function, const Type& type, const Dictionary& attributes) {
  EntryValue value;
  value.type = type;
  if (const auto* own = attributes.find("sdy.sharding").as<DialectAttribute>())
    value.sharding = read_sharding_text(function_place(function), own->text);
  if (const auto* other = attributes.find("mhlo.sharding").as<String>()) value.gspmd_sharding = other->value;
  if (const auto* kind = attributes.find("mhlo.memory_kind").as<String>()) value.memory_kind = kind->value;
  const auto* donor = attributes.find("jax.buffer_donor").as<bool>();
  value.donated = attributes.contains("tf.aliasing_output") || (donor && *donor);
  return value;
}

}  // namespace

Entry read_entry(const Module& module) {
  const Function& function = entry_of(module);
  Entry entry;
  entry.name = module.name;
  for (const FunctionArgument& argument : function.arguments)
    entry.arguments.push_back(entry_value(function, argument.type, argument.attributes));
  for (const FunctionResult& result : function.results)
    entry.results.push_back(entry_value(function, result.type, result.attributes));
  return entry;
}

Program ModuleReader::read_entry() {
  const Function& function = entry_of(module_);
  if (function.is_declaration) fail(function_place(function), "expected a body");
  const Types declared = argument_types(function);
  Types types = options_.arguments.empty() ? declared : options_.arguments;
  bool fits = types.size() == declared.size();
  for (std::size_t i = 0; fits && i < types.size(); ++i) fits = may_be(declared[i], types[i]);
  if (!fits) {
    fail(function_place(function),
         concat("expected arguments (", types_text(declared), "), got (", types_text(types), ")"));
  }
  for (const ArrayType& type : types) {
    if (std::ranges::count(type.shape, dynamic_size) > 0) {
      throw UnsupportedError(concat(place_of(function_place(function)), ": sizes of the arguments are open: (",
                                    types_text(declared), ")\nHint: read it for the types of the arguments of a call"));
    }
  }
  return read_function(function, types, {}).program;
}

const Function& ModuleReader::function_of(const Operation& operation, const Attribute& symbol) const {
  const auto* reference = symbol.as<SymbolReference>();
  if (!reference) fail(operation, "expected the name of a function");
  const Function* function = module_.find_function(reference->name);
  if (!function) fail(operation, concat("there is no function @", reference->name));
  if (function->is_declaration) fail(operation, concat("function @", reference->name, " has no body"));
  return *function;
}

const ModuleReader::Read& ModuleReader::read_function(const Function& function, const Types& types,
                                                      const Arrays& operands) {
  const std::string called_for = open_sizes_ ? call_key(operands) : "";
  const auto [it, added] = functions_.try_emplace({&function, concat(manual_key(manual()), called_for)});
  Read& read = it->second;
  if (!added) {
    if (read.program.defined()) return read;
    fail(function_place(function), "functions that call themselves are not supported");
  }
  if (functions_.size() > call_depth_limit) {
    std::size_t open = 0;
    for (const auto& [key, other] : functions_) open += other.program.defined() ? 0 : 1;
    if (open > call_depth_limit) fail(function_place(function), "functions are nested too deeply");
    if (open_sizes_ && functions_.size() > sizes_limit) fail(function_place(function), "called for too many sizes");
  }
  if (function.is_declaration) fail(function_place(function), "expected a body");
  for (const FunctionArgument& argument : function.arguments) {
    if (const Attribute sharding = argument.attributes.find("sdy.sharding"))
      check_sharding(*this, function_place(function), sharding, argument.type.dims().size());
  }
  for (const FunctionResult& result : function.results) {
    if (const Attribute sharding = result.attributes.find("sdy.sharding"))
      check_sharding(*this, function_place(function), sharding, result.type.dims().size());
  }
  Arrays known;
  // A function is self-contained: it is staged outside the function that calls it.
  Program program = stage(
                        [&](std::span<const NdArray> inputs) {
                          BodyReader body(*this, function);
                          Arrays arguments;
                          for (std::size_t i = 0, next = 0; i < std::max(operands.size(), inputs.size()); ++i) {
                            const bool is_input = operands.empty() || !is_known(operands[i]);
                            arguments.push_back(is_input ? inputs[next++] : operands[i]);
                          }
                          body.define_arguments(function, arguments);
                          Arrays results = body.run(function.body);
                          Types declared;
                          for (const FunctionResult& result : function.results) {
                            for (const ArrayType& type : flat_types(function_place(function), result.type))
                              declared.push_back(type);
                          }
                          if (!fit(declared, results))
                            fail(function_place(function), "the returned values do not have the declared types");
                          for (const NdArray& result : results)
                            known.push_back(open_sizes_ && is_known(result) ? result : NdArray());
                          return results;
                        },
                        types, function.name)
                        .program;
  read.known = std::move(known);
  read.program = std::move(program);
  return read;
}

Program ModuleReader::program_of(const Function& function) {
  return read_function(function, argument_types(function), {}).program;
}

Arrays ModuleReader::call(const Function& function, const Arrays& operands) {
  Types types = argument_types(function);
  Arrays inputs = operands;
  if (open_sizes_) {
    if (!fit(types, operands)) {
      Types given;
      for (const NdArray& operand : operands) given.push_back(operand.type());
      fail(function_place(function),
           concat("expected arguments (", types_text(types), "), got (", types_text(given), ")"));
    }
    std::erase_if(inputs, is_known);
    types.clear();
    for (const NdArray& input : inputs) types.push_back(plain_type(input));
  }
  const Read& read = read_function(function, types, open_sizes_ ? operands : Arrays{});
  // A writer numbers functions with the same name: @f, @f_0, @f_1.
  std::string name = function.name;
  const std::size_t digits = name.find_last_not_of("0123456789");
  if (digits != std::string::npos && digits + 1 < name.size() && name[digits] == '_' &&
      module_.find_function(name.substr(0, digits))) {
    name.resize(digits);
  }
  Arrays results = bind_named("jit", inputs, {{"jaxpr", read.program}, {"name", name}});
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (read.known[i].defined()) results[i] = read.known[i];
  }
  return results;
}

// ---- values ------------------------------------------------------------------------------------------------------

Types flat_types(const Operation& operation, const Type& type) {
  if (type.is_token()) return {};
  if (has_open_sizes(type) && !type.is_tuple()) {
    ArrayType open = array_type(operation, Type::tensor({}, type.element()));
    open.shape = type.dims();
    return {std::move(open)};
  }
  if (!type.is_tuple()) return {array_type(operation, type)};
  Types types;
  for (const Type& element : type.elements()) {
    for (const ArrayType& part : flat_types(operation, element)) types.push_back(part);
  }
  return types;
}

Types result_types(const Operation& operation) {
  Types types;
  for (const Value& result : operation.results) {
    for (const ArrayType& type : flat_types(operation, result.type)) types.push_back(type);
  }
  return types;
}

BodyReader::BodyReader(ModuleReader& module, const Function& function)
    : module_(module), values_(static_cast<std::size_t>(function.value_count)), block_(&function.body) {}

void BodyReader::define_arguments(const Function& function, std::span<const NdArray> arrays) {
  std::size_t next = 0;
  for (const FunctionArgument& argument : function.arguments) {
    const std::size_t count = flat_types(function_place(function), argument.type).size();
    define(argument.id, Arrays(arrays.begin() + static_cast<std::ptrdiff_t>(next),
                               arrays.begin() + static_cast<std::ptrdiff_t>(next + count)));
    next += count;
  }
}

Arrays BodyReader::operands_of(const Operation& operation) const {
  Arrays operands;
  for (const Value& operand : operation.operands) {
    for (const NdArray& array : values_[static_cast<std::size_t>(operand.id)]) operands.push_back(array);
  }
  return operands;
}

void BodyReader::set_results(const Operation& operation, const Arrays& results) {
  const Types declared = result_types(operation);
  if (!fit(declared, results)) {
    std::string got;
    for (const NdArray& result : results) got += (got.empty() ? "" : ", ") + type_text(result.type());
    fail(operation, concat("the operands give results (", got, "), the text declares (", types_text(declared), ")"));
  }
  std::size_t next = 0;
  for (const Value& result : operation.results) {
    const std::size_t count = flat_types(operation, result.type).size();
    define(result.id, Arrays(results.begin() + static_cast<std::ptrdiff_t>(next),
                             results.begin() + static_cast<std::ptrdiff_t>(next + count)));
    next += count;
  }
}

// ---- operations --------------------------------------------------------------------------------------------------

Arrays BodyReader::run(const Block& block) {
  struct Restore {
    const Block*& place;
    const Block* previous;
    ~Restore() { place = previous; }
  } restore{block_, std::exchange(block_, &block)};
  for (const Operation& operation : block.operations) {
    if (is_terminator(operation)) return operands_of(operation);
    read(operation);
  }
  return {};
}

namespace {

// The file of a location, however it is wrapped; null if it names none.
const Location* file_of_location(const Attribute& attribute) {
  const Location* location = attribute.as<Location>();
  while (location && location->kind != Location::Kind::file) {
    location = location->children.empty() ? nullptr : location->children.front().as<Location>();
  }
  return location;
}

// The origin of an operation according to the text; if the text has none and its own file is known (an outer source
// that ends with .mlir), the line in that file.
Source source_of(const Operation& operation) {
  SourceInfo info;
  info.name_scope = name_of_location(operation.location);
  if (const Location* file = file_of_location(operation.location)) {
    info.file = file->name;
    info.line = static_cast<int>(file->line);
  } else if (const Source outer = current_scope(); outer.id != 0) {
    const std::string own = source_info(outer).file;
    if (own.ends_with(".mlir")) {
      info.file = own;
      info.line = operation.position.line;
    }
  }
  return info.name_scope.empty() && info.file.empty() ? Source{} : intern(info);
}

}  // namespace

void BodyReader::read(const Operation& operation) {
  Arrays operands = operands_of(operation);
  if (!module_.has_open_sizes()) return read_closed(operation, operands);
  std::optional<TraceScope> at_once;
  if (gives_sizes(operation, operands)) at_once.emplace(evaluation_trace());
  if (!needs_sizes(operation)) return read_closed(operation, operands);
  Operation closed = operation;
  close_sizes(closed, operands);
  read_closed(closed, operands);
}

void BodyReader::read_closed(const Operation& operation, const Arrays& operands) {
  if (read_axis_index(*this, operation)) return;
  SourceScope source(source_of(operation));
  Arrays results;
  try {
    if (operation.name == "stablehlo.constant" || operation.name == "chlo.constant") {
      results = {read_constant(operation)};
    } else if (OperationRule rule = find_structure_rule(operation.name)) {
      results = rule(*this, operation, operands);
    } else if (OperationRule composed = find_composed_rule(operation.name)) {
      results = composed(*this, operation, operands);
    } else if (OperationRule sharding = find_sharding_rule(operation.name)) {
      results = sharding(*this, operation, operands);
    } else if (OperationRule exchange = find_exchange_rule(operation.name)) {
      results = exchange(*this, operation, operands);
    } else if (operation.name == "stablehlo.custom_call") {
      results = read_custom_call(*this, operation, operands);
    } else if (operation.name.starts_with("check.") || operation.name == "interpreter.probe") {
      results = read_expectation(*this, operation, operands);
    } else if (const OperationRow* row = find_row(operation)) {
      results = read_row(operation, *row, operands);
    } else {
      throw UnsupportedError(concat(place_of(operation), ": this operation is not supported"));
    }
  } catch (const ParseError&) {
    throw;
  } catch (const NotImplementedError&) {
    throw;
  } catch (const ShapeError&) {
    throw;
  } catch (const Error& error) {  // rejected by a type rule: add the position
    fail(operation, error.what());
  }
  set_results(operation, results);
}

Arrays BodyReader::read_row(const Operation& operation, const OperationRow& row, Arrays operands) {
  Types inputs;
  for (const NdArray& operand : operands) inputs.push_back(operand.type());
  const Types outputs = result_types(operation);
  if ((row.read || row.write) && outputs.empty()) fail(operation, "expected a result");
  Attrs attrs;
  if (row.read) attrs = row.read({operation, inputs, outputs});
  if (operation.regions.size() != row.regions.size()) {
    fail(operation, concat("expected ", row.regions.size(), " regions, got ", operation.regions.size()));
  }
  for (std::size_t i = 0; i < row.regions.size(); ++i) {
    attrs = attrs.with(std::string(row.regions[i]), closed_region(operation, operation.regions[i]));
  }
  if (!row.order.empty()) {
    require_operands(operation, operands, row.order.size());
    Arrays ordered(operands.size());
    for (std::size_t i = 0; i < row.order.size(); ++i) ordered[row.order[i]] = operands[i];
    operands = std::move(ordered);
  }
  return bind_named(row.primitive, operands, attrs);
}

// ---- regions -----------------------------------------------------------------------------------------------------

Staged BodyReader::stage_region(const Operation& operation, const Region& region, const Arrays& operands,
                                const std::vector<bool>& fixed) {
  if (region.blocks.size() != 1) fail(operation, concat("expected a region of one block, got ", region.blocks.size()));
  const Block& block = region.blocks[0];
  Types types;
  for (const BlockArgument& argument : block.arguments) {
    for (const ArrayType& type : flat_types(operation, argument.type)) types.push_back(type);
  }
  if (fit(types, operands)) std::ranges::transform(operands, types.begin(), plain_type);
  return stage(
      [&](std::span<const NdArray> given) {
        std::size_t next = 0;
        Arrays inputs(given.begin(), given.end());
        for (std::size_t i = 0; i < fixed.size(); ++i) {
          if (fixed[i]) inputs[i] = operands[i];
        }
        for (const BlockArgument& argument : block.arguments) {
          const std::size_t count = flat_types(operation, argument.type).size();
          define(argument.id, Arrays(inputs.begin() + static_cast<std::ptrdiff_t>(next),
                                     inputs.begin() + static_cast<std::ptrdiff_t>(next + count)));
          next += count;
        }
        return run(block);
      },
      types, operation.name.substr(operation.name.find('.') + 1));
}

Program BodyReader::closed_region(const Operation& operation, const Region& region) {
  Staged staged = stage_region(operation, region);
  if (!staged.captured.empty()) {
    throw UnsupportedError(
        concat(place_of(operation), ": a region that reads values from outside is not supported here"));
  }
  return staged.program;
}

Ints constant_integers(const Operation& operation, const Arrays& operands, std::size_t index) {
  if (index >= operands.size()) fail(operation, concat("expected an operand at position ", index));
  if (operands[index].is_tracer()) {
    throw UnsupportedError(
        concat(place_of(operation), ": dynamic shapes are not supported: operand ", index, " must be a constant"));
  }
  return operands[index].to_vector<int64_t>();
}

void require_operands(const Operation& operation, const Arrays& operands, std::size_t count) {
  if (operands.size() != count) fail(operation, concat("expected ", count, " operands, got ", operands.size()));
}

Program read_module(const Module& module, const ReadOptions& options) {
  // 64-bit types of a text are kept, whatever the configuration is for host values.
  Config settings = config();
  settings.enable_x64 = true;
  ConfigScope scope(settings);
  return ModuleReader(module, options).read_entry();
}

}  // namespace capibara::stablehlo

namespace capibara {

Program from_stablehlo(std::string_view module, const std::vector<ArrayType>& arguments) {
  return stablehlo::read_module(stablehlo::read_file(module), {.arguments = arguments});
}

}  // namespace capibara
