// Executables: compilation, execution, and clients' queries.
#include <capibara/error.h>

#include "backends/pjrt/server/program.h"

namespace capibara::pjrt::server {

namespace {

// ---- compiling -----------------------------------------------------------------------------------------------------

abi::LoadedExecutable* load(abi::Client& client, std::string module, std::string options) {
  auto loaded = std::make_unique<abi::LoadedExecutable>();
  loaded->compiled = std::make_shared<Compiled>(std::move(module), std::move(options), client);
  for (const int id : loaded->compiled->devices())
    loaded->devices.push_back(client.devices[static_cast<std::size_t>(id)]);
  return loaded.release();
}

void compile(abi::ClientCompile& args) {
  const abi::ProgramText& program = *args.program;
  const std::string_view format(program.format, program.format_size);
  if (format != "mlir") {
    throw Failure(Code::unimplemented,
                  concat("programs in the format '", format, "' are not supported, expected 'mlir'"));
  }
  args.executable =
      load(*args.client, std::string(program.code, program.code_size), std::string(args.options, args.options_size));
}

void deserialize(abi::DeserializeAndLoad& args) {
  auto [module, options] = Compiled::deserialized({args.bytes, args.size});
  if (args.options && args.options_size > 0) options.assign(args.options, args.options_size);
  args.executable = load(*args.client, std::move(module), std::move(options));
}

// ---- running -------------------------------------------------------------------------------------------------------

// The operands that results may reuse: donated by the module and allowed by the client.
std::vector<bool> donated_operands(const Compiled& compiled, const abi::ExecuteOptions* options) {
  std::vector<bool> donated;
  for (const Border& argument : compiled.arguments()) donated.push_back(argument.donated);
  for (std::size_t i = 0; options && i < options->non_donatable_count; ++i) {
    const int64_t kept = options->non_donatable[i];
    if (kept >= 0 && kept < static_cast<int64_t>(donated.size())) donated[static_cast<std::size_t>(kept)] = false;
  }
  return donated;
}

void check_operand(const Compiled& compiled, std::size_t index, const Array& operand) {
  const ArrayType& part = compiled.arguments()[index].part;
  if (operand.shape() == part.shape && operand.dtype() == part.dtype) return;
  throw Failure(Code::invalid_argument, concat(compiled.name(), ": argument ", index, " must be ", to_string(part),
                                               ", got ", to_string(operand.type())));
}

void execute(abi::LoadedExecute& args) {
  abi::LoadedExecutable& loaded = *args.executable;
  Compiled& compiled = *loaded.compiled;
  if (loaded.deleted) throw Failure(Code::failed_precondition, concat(compiled.name(), ": the executable was deleted"));
  const std::size_t expected = compiled.arguments().size();
  if (args.argument_count != expected || args.device_count != loaded.devices.size()) {
    throw Failure(Code::invalid_argument,
                  concat(compiled.name(), ": expected ", expected, " arguments on each of ", loaded.devices.size(),
                         " devices, got ", args.argument_count, " on ", args.device_count));
  }
  const abi::ExecuteOptions* options = args.options;
  if (options && (options->send_count || options->recv_count))
    throw Failure(Code::unimplemented, "transfers by send and receive callbacks are not supported");
  std::vector<bool> donated = donated_operands(compiled, options);
  // All buffers are checked before any is donated: a refused execution leaves them unchanged.
  std::vector<Arrays> operands(args.device_count);
  for (std::size_t device = 0; device < args.device_count; ++device) {
    for (std::size_t i = 0; i < expected; ++i) {
      operands[device].push_back(live_array(*args.arguments[device][i], "Execute()"));
      check_operand(compiled, i, operands[device].back());
    }
  }
  for (std::size_t i = 0; i < expected; ++i) {
    if (!donated[i]) continue;
    for (std::size_t device = 0; device < args.device_count; ++device) {
      bool alone = true;
      donated_array(*args.arguments[device][i], alone);
      donated[i] = donated[i] && alone;
    }
  }
  static const std::vector<void*> none;
  const auto* context = options ? static_cast<const abi::ExecuteContext*>(options->context) : nullptr;
  std::vector<Arrays> results = compiled.run(operands, donated, context ? context->functions : none);
  for (std::size_t device = 0; device < results.size(); ++device) {
    if (args.events) args.events[device] = new abi::Event{results[device], nullptr};
    for (std::size_t i = 0; i < results[device].size(); ++i) {
      abi::Device& owner = *loaded.devices[device];
      abi::Memory* memory = owner.memories[0];
      for (abi::Memory* known : owner.memories) {
        if (known->kind == compiled.results()[i].memory_kind) memory = known;
      }
      args.outputs[device][i] = make_buffer(owner, *memory, std::move(results[device][i]));
    }
  }
}

void context_create(abi::ContextOnly& args) { args.context = new abi::ExecuteContext; }

void context_destroy(abi::ContextOnly& args) { delete args.context; }

// Bytes that the client owns until it calls the deleter.
template <class Args>
void hand_out(Args& args, std::string bytes) {
  auto* holder = new abi::Serialized{std::move(bytes)};
  args.bytes = holder->bytes.data();
  args.size = holder->bytes.size();
  args.holder = holder;
  args.deleter = [](abi::Serialized* held) { delete held; };
}

// ---- properties of an executable -----------------------------------------------------------------------------------

void executable_destroy(abi::ExecutableDestroy& args) { delete args.executable; }

void executable_name(abi::ExecutableText& args) {
  args.text = args.executable->compiled->name().data();
  args.size = args.executable->compiled->name().size();
}

void executable_fingerprint(abi::ExecutableText& args) {
  args.text = args.executable->compiled->fingerprint().data();
  args.size = args.executable->compiled->fingerprint().size();
}

void executable_replicas(abi::ExecutableCount& args) { args.count = 1; }

void executable_partitions(abi::ExecutableCount& args) { args.count = args.executable->compiled->devices().size(); }

void executable_output_count(abi::ExecutableCount& args) { args.count = args.executable->compiled->results().size(); }

void executable_output_types(abi::ExecutableOutputTypes& args) {
  args.types = args.executable->compiled->lists().types.data();
  args.count = args.executable->compiled->lists().types.size();
}

void executable_output_dims(abi::ExecutableOutputDims& args) {
  const Compiled::Lists& lists = args.executable->compiled->lists();
  args.count = lists.ranks.size();
  args.dims = lists.dims.data();
  args.ranks = lists.ranks.data();
}

void executable_output_kinds(abi::ExecutableMemoryKinds& args) {
  const Compiled::Lists& lists = args.executable->compiled->lists();
  args.count = lists.kinds.size();
  args.kinds = lists.kinds.data();
  args.sizes = lists.kind_sizes.data();
}

void executable_costs(abi::ExecutableCosts& args) {
  args.properties = args.executable->compiled->costs().data();
  args.count = args.executable->compiled->costs().size();
}

void executable_memory(abi::ExecutableMemory& args) {
  const MemoryUse use = args.executable->compiled->memory();
  args.generated_code = use.generated_code;
  args.argument = use.argument;
  args.output = use.output;
  args.alias = use.alias;
  args.temp = use.temp;
  args.host_generated_code = args.host_argument = args.host_output = args.host_alias = args.host_temp = 0;
  args.peak = use.peak;
}

void executable_serialize(abi::ExecutableSerialize& args) { hand_out(args, args.executable->compiled->serialized()); }

void executable_options(abi::ExecutableSerialize& args) { hand_out(args, args.executable->compiled->options()); }

void parameter_shardings(abi::ExecutableShardings& args) {
  const Compiled::Lists& lists = args.executable->compiled->lists();
  const bool known = !lists.argument_shardings.empty();
  args.count = lists.argument_shardings.size();
  args.shardings = known ? lists.argument_sharding_data.data() : nullptr;
  args.sizes = known ? lists.argument_sharding_sizes.data() : nullptr;
}

void output_shardings(abi::ExecutableShardings& args) {
  const Compiled::Lists& lists = args.executable->compiled->lists();
  const bool known = !lists.result_shardings.empty();
  args.count = lists.result_shardings.size();
  args.shardings = known ? lists.result_sharding_data.data() : nullptr;
  args.sizes = known ? lists.result_sharding_sizes.data() : nullptr;
}

// ---- loaded programs -----------------------------------------------------------------------------------------------

void loaded_destroy(abi::LoadedDestroy& args) { delete args.executable; }

void loaded_executable(abi::LoadedExecutableOf& args) { args.executable = new abi::Executable{args.loaded->compiled}; }

void loaded_devices(abi::LoadedDevices& args) {
  args.devices = args.loaded->devices.data();
  args.count = args.loaded->devices.size();
}

void loaded_delete(abi::LoadedDestroy& args) { args.executable->deleted = true; }

void loaded_is_deleted(abi::LoadedIsDeleted& args) { args.is_deleted = args.loaded->deleted; }

void loaded_fingerprint(abi::LoadedText& args) {
  args.text = args.loaded->compiled->fingerprint().data();
  args.size = args.loaded->compiled->fingerprint().size();
}

void loaded_assignment(abi::LoadedAssignment& args) { hand_out(args, args.loaded->compiled->assignment()); }

// ---- extensions ----------------------------------------------------------------------------------------------------

// jaxlib's id for the functions that an execution's callbacks call: a list of Python objects.
constexpr int64_t callbacks_type = 7357244197867843242;

void user_data_add(abi::FfiUserDataAdd& args) {
  if (args.data.type_id != callbacks_type || !args.data.data) return;
  struct Functions {
    void** list;
    std::size_t count;
  };
  const auto& given = *static_cast<const Functions*>(args.data.data);
  args.context->functions.assign(given.list, given.list + given.count);
}

void register_handler(abi::FfiRegister& args) {
  ffi::register_target(std::string(args.name, args.name_size), {.execute = args.handler});
}

}  // namespace

void add_executable_functions(Table& table) {
  using F = abi::Function;
  table.add<compile>(F::client_compile);
  table.add<deserialize>(F::deserialize_and_load);
  table.add<execute>(F::loaded_execute);
  table.add<context_create>(F::context_create);
  table.add<context_destroy>(F::context_destroy);
  table.add<executable_destroy>(F::executable_destroy);
  table.add<executable_name>(F::executable_name);
  table.add<executable_fingerprint>(F::executable_fingerprint);
  table.add<executable_replicas>(F::executable_replicas);
  table.add<executable_partitions>(F::executable_partitions);
  table.add<executable_output_count>(F::executable_output_count);
  table.add<executable_output_types>(F::executable_output_types);
  table.add<executable_output_dims>(F::executable_output_dims);
  table.add<executable_output_kinds>(F::executable_output_memory_kinds);
  table.add<executable_costs>(F::executable_cost_analysis);
  table.add<executable_memory>(F::executable_memory_stats);
  table.add<executable_serialize>(F::executable_serialize);
  table.add<executable_options>(F::executable_compile_options);
  table.add<loaded_destroy>(F::loaded_destroy);
  table.add<loaded_executable>(F::loaded_executable);
  table.add<loaded_devices>(F::loaded_devices);
  table.add<loaded_delete>(F::loaded_delete);
  table.add<loaded_is_deleted>(F::loaded_is_deleted);
  table.add<loaded_fingerprint>(F::loaded_fingerprint);
  table.add<loaded_assignment>(F::loaded_device_assignment);

  static abi::ShardingsExtension shardings{};
  shardings.struct_size = sizeof shardings;
  shardings.type = abi::shardings_extension;
  shardings.parameters = &Table::call<parameter_shardings>;
  shardings.outputs = &Table::call<output_shardings>;
  table.extend(shardings);
  static abi::FfiExtension ffi{};
  ffi.struct_size = sizeof ffi;
  ffi.type = abi::ffi_extension;
  ffi.user_data_add = &Table::call<user_data_add>;
  ffi.register_handler = &Table::call<register_handler>;
  table.extend(ffi);
}

}  // namespace capibara::pjrt::server
