// Reads compile requests: field numbers are those of xla's compile_options.proto and xla_data.proto.
#include "backends/pjrt/server/program.h"

#include <capibara/error.h>
#include <capibara/lax.h>
#include <capibara/partition.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "backends/host_shards.h"
#include "compiler/stablehlo/bytecode/read_bytecode.h"
#include "core/runtime/digest.h"
#include "core/sharding/explicit.h"
#include "io/files/protobuf.h"
#include "program/ir/cost.h"

namespace capibara::pjrt::server {

namespace {

constexpr std::string_view magic = "capibara executable 1\n";

// ---- options -------------------------------------------------------------------------------------------------------

struct Options {
  int64_t replicas = 1, partitions = 1;
  std::vector<int> devices;  // by partition; empty: the first ones
  std::string first_override;
};

[[noreturn]] void refuse_options() {
  throw Failure(Code::invalid_argument, "compile options: the message cannot be read");
}

std::vector<int64_t> packed_integers(std::string_view bytes) {
  // Decodes varints: seven bits per byte, lowest first; the top bit marks that more bytes follow.
  std::vector<int64_t> values;
  uint64_t value = 0;
  int shift = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    shift += 7;
    if (byte < 0x80) {
      values.push_back(static_cast<int64_t>(value));
      value = 0;
      shift = 0;
    }
  }
  if (shift != 0) refuse_options();
  return values;
}

void read_assignment(std::string_view bytes, Options& options) {
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (!fields.is_text(3)) continue;  // the devices of one partition, by replica
    ProtobufReader partition(fields.text());
    while (partition.next()) {
      if (partition.is_integer(1)) options.devices.push_back(static_cast<int>(partition.signed_integer()));
      if (!partition.is_text(1)) continue;
      for (const int64_t id : packed_integers(partition.text())) options.devices.push_back(static_cast<int>(id));
    }
    if (partition.failed()) refuse_options();
  }
  if (fields.failed()) refuse_options();
}

Options read_options(std::string_view bytes) {
  Options options;
  ProtobufReader fields(bytes);
  while (fields.next()) {
    if (fields.is_text(7) && options.first_override.empty()) {  // an override set by the user
      ProtobufReader entry(fields.text());
      while (entry.next()) {
        if (entry.is_text(1)) options.first_override = entry.text();
      }
    }
    if (!fields.is_text(3)) continue;
    ProtobufReader build(fields.text());
    while (build.next()) {
      if (build.is_integer(4)) options.replicas = build.signed_integer();
      if (build.is_integer(5)) options.partitions = build.signed_integer();
      if (build.is_text(9)) read_assignment(build.text(), options);
    }
    if (build.failed()) refuse_options();
  }
  if (fields.failed()) refuse_options();
  return options;
}

Options checked_options(std::string_view bytes, const abi::Client& client) {
  Options options = read_options(bytes);
  if (!options.first_override.empty()) {
    throw Failure(Code::invalid_argument, concat("No such compile option: '", options.first_override,
                                                 "'\nHint: options of XLA's compiler mean nothing to capibara's"));
  }
  if (options.replicas != 1) {
    throw Failure(Code::unimplemented,
                  concat("programs with ", options.replicas, " replicas are not supported",
                         "\nHint: use jit with shardings, or shard_map, instead of pmap's replicas"));
  }
  const auto known = static_cast<int64_t>(client.devices.size());
  if (options.partitions < 1 || options.partitions > known) {
    throw Failure(Code::invalid_argument, concat("the program is for ", options.partitions, " devices, there are ",
                                                 known, "\nHint: set jax_num_cpu_devices"));
  }
  if (options.devices.empty()) {
    options.devices.resize(static_cast<std::size_t>(options.partitions));
    std::iota(options.devices.begin(), options.devices.end(), 0);
  }
  if (static_cast<int64_t>(options.devices.size()) != options.partitions) refuse_options();
  for (const int id : options.devices) {
    if (id < 0 || id >= known)
      throw Failure(Code::invalid_argument, concat("there is no device ", id, ", there are ", known));
  }
  return options;
}

// ---- shardings -----------------------------------------------------------------------------------------------------

const stablehlo::Operation& entry_place() {
  static const stablehlo::Operation place = [] {
    stablehlo::Operation operation;
    operation.name = "func.func @main";
    return operation;
  }();
  return place;
}

// A subset of the axes of a mesh: the number of parts they make, and moves between the devices of one group.
class AxesOf {
 public:
  AxesOf(const Mesh& mesh, const AxisList& axes) : mesh_(mesh), axes_(axes) {
    for (const std::string& axis : axes) count_ *= mesh.axis_size(axis);
  }
  int64_t count() const { return count_; }
  // The index of the device at a position of the mesh, row-major over these axes in the order of the mesh.
  int64_t index(std::size_t position) const { return walk(position, std::nullopt).first; }
  // The position of the device of the same group that has another index.
  std::size_t with_index(std::size_t position, int64_t index) const { return walk(position, index).second; }

 private:
  std::pair<int64_t, std::size_t> walk(std::size_t position, std::optional<int64_t> wanted) const {
    int64_t index = 0, scale = 1, stride = 1;
    std::size_t moved = 0;
    for (std::size_t axis = mesh_.axis_names.size(); axis-- > 0;) {
      const int64_t size = mesh_.axis_sizes[axis];
      int64_t own = static_cast<int64_t>(position) / stride % size;
      if (lists_axis(axes_, mesh_.axis_names[axis])) {
        index += own * scale;
        if (wanted) own = *wanted / scale % size;
        scale *= size;
      }
      moved += static_cast<std::size_t>(own * stride);
      stride *= size;
    }
    return {index, moved};
  }

  const Mesh& mesh_;
  const AxisList& axes_;
  int64_t count_ = 1;
};

// An OpSharding message: 1 kind (0 replicated, 3 tiles), 3 tile counts, 4 their devices, 6 the last count is of
// replicas, 8 the kinds of the counts after those of the dimensions (0 replicas, 6 unreduced sums).
std::string sharding_message(const Border& border) {
  const NamedSharding sharding = border.sharding.value_or(NamedSharding{"cpu", {}, {}, {}, {}});
  ProtobufWriter message;
  const AxesOf summed(sharding.mesh, border.unreduced);
  if (sharding.replicated() && summed.count() == 1) {
    message.integer(1, 0);
    return message.take();
  }
  std::vector<uint64_t> tiles;
  int64_t count = 1;
  for (std::size_t dim = 0; dim < border.whole.shape.size(); ++dim) {
    tiles.push_back(static_cast<uint64_t>(sharding.parts(dim)));
    count *= sharding.parts(dim);
  }
  // Sharding an array with one element per part tells which part each device holds.
  const Shape parts(tiles.begin(), tiles.end());
  std::vector<std::vector<uint64_t>> holders(static_cast<std::size_t>(count * summed.count()));
  for (std::size_t position = 0; position < sharding.devices.size(); ++position) {
    const Shape offset = sharding.shard_offset(parts, position);
    int64_t part = 0;
    for (std::size_t dim = 0; dim < parts.size(); ++dim) part = part * parts[dim] + offset[dim];
    holders[static_cast<std::size_t>(part * summed.count() + summed.index(position))].push_back(
        static_cast<uint64_t>(sharding.devices[position]));
  }
  std::vector<uint64_t> order;
  for (const auto& held : holders) order.insert(order.end(), held.begin(), held.end());
  const bool copies = holders[0].size() > 1;
  if (summed.count() > 1) tiles.push_back(static_cast<uint64_t>(summed.count()));
  if (copies) tiles.push_back(holders[0].size());
  message.integer(1, 3);
  message.packed(3, tiles);
  message.packed(4, order);
  if (summed.count() > 1)
    message.packed(8, copies ? std::vector<uint64_t>{6, 0} : std::vector<uint64_t>{6});
  else if (copies)
    message.integer(6, 1);
  return message.take();
}

// Joins an argument from the parts that the devices hold.
Array joined(const Border& border, const std::vector<Arrays>& operands, std::size_t argument) {
  const NamedSharding& sharding = *border.sharding;
  const AxesOf summed(sharding.mesh, border.unreduced);
  Array total;
  for (int64_t term = 0; term < summed.count(); ++term) {
    Arrays parts;
    for (std::size_t position = 0; position < sharding.devices.size(); ++position) {
      const int device = sharding.devices[summed.with_index(position, term)];
      parts.push_back(operands[static_cast<std::size_t>(device)][argument]);
    }
    const Array whole = joined_host_shards(border.whole.shape, sharding, parts);
    total = term == 0 ? whole : jax::lax::add(total, whole);
  }
  return total;
}

// Distributes a result over the devices: of unreduced values, the first device of each group gets the whole sum.
void hand_out(const Border& border, const Array& whole, std::vector<Arrays>& by_device) {
  const NamedSharding& sharding = *border.sharding;
  const AxesOf summed(sharding.mesh, border.unreduced);
  const std::vector<Array> parts = host_shards(whole, sharding);
  Array zeros;
  if (summed.count() > 1) {
    capibara::Buffer memory = capibara::Buffer::allocate(parts[0].buffer().size());
    std::memset(memory.mutable_data(), 0, memory.size());
    zeros = Array::from_buffer(parts[0].type(), std::move(memory));
  }
  for (std::size_t position = 0; position < parts.size(); ++position) {
    by_device[static_cast<std::size_t>(sharding.devices[position])].push_back(
        summed.index(position) == 0 ? parts[position] : zeros);
  }
}

// The first mesh that a module declares over all devices of its program.
std::optional<Mesh> mesh_of_all(const stablehlo::Module& module, int64_t devices) {
  for (const stablehlo::Operation& operation : module.operations) {
    if (operation.name != "sdy.mesh") continue;
    const std::string name = stablehlo::string_attribute(operation, "sym_name");
    const Mesh mesh = stablehlo::find_mesh(module, operation, name).mesh;
    if (!mesh.axis_names.empty() && mesh.size() == devices) return mesh;
  }
  return std::nullopt;
}

// The array that represents a token.
Array token_array() { return Array::from_buffer({{0}, DType::bool_}, capibara::Buffer::allocate(0)); }

}  // namespace

// ---- compiling -----------------------------------------------------------------------------------------------------

Compiled::Compiled(std::string module, std::string options, abi::Client& client)
    : module_(std::move(module)),
      options_(std::move(options)),
      calls_(std::make_shared<CallTable>(client.python_call)) {
  const Options request = checked_options(options_, client);
  devices_ = request.devices;
  const stablehlo::Module read = stablehlo::read_file(module_);
  const stablehlo::Entry entry = stablehlo::read_entry(read);
  stablehlo::ReadOptions reading = reading_calls(calls_);
  reading.placements = devices_.size() > 1;
  program_ = stablehlo::read_module(read, reading);
  name_ = entry.name.empty() ? "main" : entry.name;
  program_ = program_.renamed(name_.starts_with("jit_") ? name_.substr(4) : name_);
  place(read, entry);
  for (const Border& argument : arguments_) {
    if (!argument.is_token) donated_.push_back(argument.donated);
  }
  executable_ = capibara::backend("cpu").compile_donating(program_, donated_);
  fingerprint_ = digest(concat(module_, options_, client.version)).hex();
  const ProgramCost cost = count_cost(program_);
  costs_.real("flops", static_cast<float>(cost.flops));
  costs_.real("transcendentals", static_cast<float>(cost.transcendentals));
  costs_.real("bytes accessed", static_cast<float>(cost.bytes_accessed));
  fill_lists();
}

void Compiled::place(const stablehlo::Module& module, const stablehlo::Entry& entry) {
  std::optional<Mesh> mesh;
  const auto sharding_of = [&](const stablehlo::EntryValue& value) -> std::optional<NamedSharding> {
    if (devices_.size() == 1) return std::nullopt;
    if (!value.sharding && !value.gspmd_sharding.empty() && value.gspmd_sharding != "{replicated}") {
      throw Failure(Code::unimplemented, concat("GSPMD's shardings, such as ", value.gspmd_sharding,
                                                ", are not supported\nHint: leave jax_use_shardy_partitioner on"));
    }
    if (!value.sharding) return std::nullopt;
    const auto [own, devices] = stablehlo::find_mesh(module, entry_place(), value.sharding->mesh);
    NamedSharding sharding;
    sharding.platform = "cpu";
    sharding.devices = devices;
    if (own.axis_names.empty()) return std::nullopt;  // replicated, or only for one device
    if (own.size() != static_cast<int64_t>(devices_.size())) {
      throw Failure(Code::invalid_argument, concat("mesh @", value.sharding->mesh, " has ", own.size(),
                                                   " devices, the program is for ", devices_.size()));
    }
    sharding.mesh = own;
    sharding.spec.dims.assign(value.sharding->dims.begin(), value.sharding->dims.end());
    if (!mesh) mesh = own;
    return sharding;
  };
  const auto border_of = [&](const stablehlo::EntryValue& value) {
    Border border;
    border.is_token = value.type.is_token();
    if (!border.is_token && !value.type.is_tensor())
      throw Failure(Code::unimplemented,
                    concat("arguments and results of type ", value.type.text(), " are not supported"));
    border.whole = border.is_token ? ArrayType{{0}, DType::bool_} : stablehlo::array_type(entry_place(), value.type);
    border.memory_kind = value.memory_kind.empty() ? "device" : value.memory_kind;
    border.donated = value.donated;
    if (!border.is_token) border.sharding = sharding_of(value);
    if (border.sharding && value.sharding) border.unreduced = value.sharding->unreduced;
    return border;
  };
  for (const stablehlo::EntryValue& value : entry.arguments) arguments_.push_back(border_of(value));
  for (const stablehlo::EntryValue& value : entry.results) results_.push_back(border_of(value));

  // Unannotated arguments are replicated; unannotated results are placed by
  // propagation.
  if (devices_.size() > 1) {
    if (!mesh) mesh = mesh_of_all(module, static_cast<int64_t>(devices_.size()));
    NamedSharding whole;
    whole.platform = "cpu";
    whole.devices.resize(devices_.size());
    std::iota(whole.devices.begin(), whole.devices.end(), 0);
    whole.mesh = mesh ? *mesh : Mesh{{"devices"}, {static_cast<int64_t>(devices_.size())}, {}};
    sharding::MaybeShardings given, wanted;
    for (Border& argument : arguments_) {
      if (argument.is_token) continue;
      if (!argument.sharding) argument.sharding = whole;
      given.push_back(argument.sharding);
    }
    for (const Border& result : results_) {
      if (!result.is_token) wanted.push_back(result.sharding);
    }
    for (sharding::MaybeShardings* list : {&given, &wanted}) {
      for (std::optional<NamedSharding>& one : *list) {
        if (one) one->devices = whole.devices;  // their order does not affect the splits
      }
    }
    std::optional<std::vector<NamedSharding>> found;
    if (mesh && std::count(wanted.begin(), wanted.end(), std::nullopt) > 0)
      found = sharding::output_shardings(program_, given, wanted);
    std::size_t next = 0;
    for (Border& result : results_) {
      if (result.is_token) continue;
      if (!result.sharding) result.sharding = found ? (*found)[next] : whole;
      ++next;
    }
  }
  for (std::vector<Border>* list : {&arguments_, &results_}) {
    for (Border& border : *list) {
      border.part = border.whole;
      if (border.sharding) border.part.shape = border.sharding->shard_shape(border.whole.shape);
    }
  }
  // An argument whose memory no result can reuse stays with its owner, as in XLA.
  std::multiset<int64_t> places;
  const auto bytes_of = [](const Border& border) { return border.part.size() * storage_size(border.part.dtype); };
  for (const Border& result : results_) places.insert(bytes_of(result));
  for (Border& argument : arguments_) {
    if (!argument.donated) continue;
    const auto place = places.find(bytes_of(argument));
    argument.donated = place != places.end();
    if (argument.donated) places.erase(place);
  }
}

void Compiled::fill_lists() {
  for (const Border& result : results_) {
    lists_.types.push_back(type_of(result.part.dtype));
    lists_.dims.insert(lists_.dims.end(), result.part.shape.begin(), result.part.shape.end());
    lists_.ranks.push_back(result.part.shape.size());
    lists_.kinds.push_back(result.memory_kind.data());
    lists_.kind_sizes.push_back(result.memory_kind.size());
  }
  if (devices_.size() == 1) return;
  const auto describe = [&](const std::vector<Border>& borders, std::vector<std::string>& messages,
                            std::vector<const char*>& data, std::vector<std::size_t>& sizes) {
    for (const Border& border : borders) messages.push_back(sharding_message(border));
    for (const std::string& message : messages) {
      data.push_back(message.data());
      sizes.push_back(message.size());
    }
  };
  describe(arguments_, lists_.argument_shardings, lists_.argument_sharding_data, lists_.argument_sharding_sizes);
  describe(results_, lists_.result_shardings, lists_.result_sharding_data, lists_.result_sharding_sizes);
}

// ---- running -------------------------------------------------------------------------------------------------------

std::vector<Arrays> Compiled::run(const std::vector<Arrays>& operands, const std::vector<bool>& donated,
                                  const std::vector<void*>& functions) {
  calls_->set(functions);
  const bool one = devices_.size() == 1;
  Arrays inputs;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].is_token) continue;
    if (one) {
      inputs.push_back(operands[0][i]);
      continue;
    }
    inputs.push_back(joined(arguments_[i], operands, i));
  }
  std::vector<bool> taken;
  if (one) {
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (!arguments_[i].is_token) taken.push_back(donated_[taken.size()] && donated[i]);
    }
  }
  Arrays outputs = executable_->execute(inputs, taken);
  // Every buffer owns its value: an input returned unchanged, or a result returned twice, becomes a separate view.
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const capibara::Buffer& buffer = outputs[i].buffer();
    const auto shares = [&](const Array& other) { return !other.is_deleted() && other.buffer().same_as(buffer); };
    const bool shared = std::any_of(inputs.begin(), inputs.end(), shares) ||
                        std::any_of(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(i), shares);
    if (!shared || buffer.size() == 0) continue;
    auto* data = const_cast<std::byte*>(outputs[i].raw_data());
    outputs[i] =
        Array::from_buffer(outputs[i].type(), capibara::Buffer::borrow(data, buffer.size(), [held = buffer] {}));
  }
  std::vector<Arrays> by_device(devices_.size());
  std::size_t next = 0;
  for (const Border& result : results_) {
    if (result.is_token) {
      for (Arrays& own : by_device) own.push_back(token_array());
    } else if (one) {
      by_device[0].push_back(std::move(outputs[next++]));
    } else {
      hand_out(result, outputs[next++], by_device);
    }
  }
  return by_device;
}

// ---- serialization -------------------------------------------------------------------------------------------------

std::string Compiled::serialized() const {
  return concat(magic, module_.size(), " ", options_.size(), "\n", module_, options_);
}

std::pair<std::string, std::string> Compiled::deserialized(std::string_view bytes) {
  const auto refuse = []() -> std::pair<std::string, std::string> {
    throw Failure(Code::invalid_argument, "the bytes are not an executable of capibara, or of another version");
  };
  if (!bytes.starts_with(magic)) return refuse();
  bytes.remove_prefix(magic.size());
  std::size_t sizes[2] = {0, 0};
  for (const char end : {' ', '\n'}) {
    std::size_t& size = sizes[end == '\n'];
    std::size_t digits = 0;
    for (; digits < bytes.size() && bytes[digits] >= '0' && bytes[digits] <= '9' && digits < 18; ++digits)
      size = size * 10 + static_cast<std::size_t>(bytes[digits] - '0');
    if (digits == 0 || digits == bytes.size() || bytes[digits] != end) return refuse();
    bytes.remove_prefix(digits + 1);
  }
  if (sizes[0] > bytes.size() || sizes[1] != bytes.size() - sizes[0]) return refuse();
  return {std::string(bytes.substr(0, sizes[0])), std::string(bytes.substr(sizes[0]))};
}

std::string Compiled::assignment() const {
  ProtobufWriter message;
  message.integer(1, 1);
  message.integer(2, devices_.size());
  for (const int id : devices_) {
    ProtobufWriter partition;
    partition.packed(1, {static_cast<uint64_t>(id)});
    message.message(3, partition);
  }
  return message.take();
}

MemoryUse Compiled::memory() const { return executable_->details({}).memory.value_or(MemoryUse{}); }

}  // namespace capibara::pjrt::server
