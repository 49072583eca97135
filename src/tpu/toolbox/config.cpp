// The fields of TPUConfig: one table of names, kinds and choices, used to set, read and check them.
#include <capibara/tpu/config.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tpu/toolbox/request.h"
#include "tpu/words.h"

namespace capibara::tpu {

namespace {

using S = TPUSettings;
using FieldMember =
    std::variant<std::string S::*, std::optional<std::string> S::*, bool S::*, std::optional<bool> S::*, int64_t S::*,
                 std::optional<int64_t> S::*, std::optional<double> S::*, std::vector<int64_t> S::*>;
struct ConfigField {
  const char* name;
  FieldMember member;
  std::vector<std::string> choices = {};  // for texts; empty: any
};

const std::vector<ConfigField>& config_fields() {
  static const std::vector<ConfigField> table = {
      {"tpu_version", &S::tpu_version},
      {"num_chips", &S::num_chips},
      {"topology", &S::topology},
      {"memory_per_chip", &S::memory_per_chip},
      {"flops_per_chip", &S::flops_per_chip},
      {"precision", &S::precision, {"bfloat16", "float32", "mixed"}},
      {"compute_dtype", &S::compute_dtype, {"bfloat16", "float32", "int8"}},
      {"param_dtype", &S::param_dtype, {"bfloat16", "float32"}},
      {"use_mixed_precision", &S::use_mixed_precision},
      {"fp32_params", &S::fp32_params},
      {"xla_optimization_level", &S::xla_optimization_level},
      {"enable_xla_fusion", &S::enable_xla_fusion},
      {"enable_async_collective", &S::enable_async_collective},
      {"memory_optimization", &S::memory_optimization, {"none", "normal", "aggressive"}},
      {"enable_rematerialization", &S::enable_rematerialization},
      {"gradient_checkpointing", &S::gradient_checkpointing},
      {"communication_optimization", &S::communication_optimization},
      {"use_collective_matmul", &S::use_collective_matmul},
      {"enable_profiling", &S::enable_profiling},
      {"log_device_placement", &S::log_device_placement},
      {"batch_size_per_chip", &S::batch_size_per_chip},
      {"mesh_shape", &S::mesh_shape},
  };
  return table;
}

// The order in which they take effect if several are given.
constexpr const char* type_fields[] = {"precision", "compute_dtype", "param_dtype", "fp32_params",
                                       "use_mixed_precision"};

bool is_type_field(const std::string& name) {
  return std::find(std::begin(type_fields), std::end(type_fields), name) != std::end(type_fields);
}

const ConfigField& field_of(const std::string& name) {
  for (const ConfigField& field : config_fields()) {
    if (name == field.name) return field;
  }
  throw TPUError(concat("TPUConfig has no field '", name, "'", hint_of(name, TPUConfig::fields())));
}

std::string value_text(const FieldValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return concat("'", *text, "'");
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  if (const auto* integer = std::get_if<int64_t>(&value)) return concat(*integer);
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  const auto* sizes = std::get_if<std::vector<int64_t>>(&value);
  if (!sizes) return "None";
  std::string text = "(";
  for (std::size_t i = 0; i < sizes->size(); ++i) text += concat(i ? ", " : "", (*sizes)[i]);
  return text + (sizes->size() == 1 ? ",)" : ")");
}

[[noreturn]] void refuse_value(const ConfigField& field, const std::string& expected, const FieldValue& value) {
  throw TPUError(concat("TPUConfig: ", field.name, " is ", expected, ", got ", value_text(value)));
}

std::string read_text(const ConfigField& field, const FieldValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  const std::vector<std::string>& choices = field.choices;
  const std::string expected = choices.empty() ? "a text" : concat("one of ", joined(choices, ", "));
  if (!text) refuse_value(field, expected, value);
  if (!choices.empty() && std::find(choices.begin(), choices.end(), *text) == choices.end())
    refuse_value(field, expected, value);
  if (std::strcmp(field.name, "tpu_version") == 0) {
    try {
      return find_chip(*text).name;
    } catch (const ValueError& error) {
      throw TPUError(error.what());
    }
  }
  if (std::strcmp(field.name, "topology") == 0 && read_shape(*text).empty())
    refuse_value(field, "written 8x8 or 2x2x4", value);
  return *text;
}

int64_t read_integer(const ConfigField& field, const FieldValue& value) {
  if (std::strcmp(field.name, "memory_per_chip") == 0) {
    if (const auto* text = std::get_if<std::string>(&value)) return bytes_from_text(*text);
    const auto* number = std::get_if<double>(&value);
    const auto* integer = std::get_if<int64_t>(&value);
    const double bytes = number ? *number : integer ? static_cast<double>(*integer) : 0;
    if (!number && !integer) refuse_value(field, "a number of bytes or a text such as '32GB'", value);
    if (!(bytes >= 1 && bytes < 0x1p62)) refuse_value(field, "positive", value);
    return integer ? *integer : static_cast<int64_t>(bytes);
  }
  const bool is_level = std::strcmp(field.name, "xla_optimization_level") == 0;
  const auto* integer = std::get_if<int64_t>(&value);
  const auto* large = std::get_if<double>(&value);
  if (large && *large >= 0x1p31) refuse_value(field, "below 2^31", value);
  if (is_level && !(integer && *integer >= 0 && *integer <= 3)) refuse_value(field, "from 0 to 3", value);
  if (!is_level && !(integer && *integer >= 1)) refuse_value(field, "a positive integer", value);
  if (*integer >= int64_t{1} << 31) refuse_value(field, "below 2^31", value);
  return *integer;
}

double read_number(const ConfigField& field, const FieldValue& value) {
  const auto* number = std::get_if<double>(&value);
  const auto* integer = std::get_if<int64_t>(&value);
  const double given = number ? *number : integer ? static_cast<double>(*integer) : 0;
  if (!(given > 0)) refuse_value(field, "a positive number", value);
  return given;
}

bool read_flag(const ConfigField& field, const FieldValue& value) {
  const auto* flag = std::get_if<bool>(&value);
  if (!flag) refuse_value(field, "True or False", value);
  return *flag;
}

std::vector<int64_t> read_sizes(const ConfigField& field, const FieldValue& value) {
  const auto* sizes = std::get_if<std::vector<int64_t>>(&value);
  const bool fits = sizes && std::all_of(sizes->begin(), sizes->end(),
                                         [](int64_t size) { return size > 0 && size < int64_t{1} << 31; });
  if (!fits) refuse_value(field, "positive sizes such as (8, 8)", value);
  return *sizes;
}

// Checks a value on its own and stores it.
void assign(TPUSettings& settings, const ConfigField& field, const FieldValue& value) {
  const bool absent = std::holds_alternative<std::monostate>(value);
  auto store = [&](auto member) {
    auto& target = settings.*member;
    using T = std::decay_t<decltype(target)>;
    if constexpr (std::is_same_v<T, std::optional<std::string>> || std::is_same_v<T, std::optional<bool>> ||
                  std::is_same_v<T, std::optional<int64_t>> || std::is_same_v<T, std::optional<double>>) {
      if (absent) {
        target.reset();
        return;
      }
    }
    if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::optional<std::string>>) {
      target = read_text(field, value);
    } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::optional<bool>>) {
      target = read_flag(field, value);
    } else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, std::optional<int64_t>>) {
      target = read_integer(field, value);
    } else if constexpr (std::is_same_v<T, std::optional<double>>) {
      target = read_number(field, value);
    } else {
      target = absent ? T() : read_sizes(field, value);
    }
  };
  std::visit(store, field.member);
}

FieldValue value_of(const TPUSettings& settings, const ConfigField& field) {
  return std::visit(
      [&](auto member) -> FieldValue {
        const auto& held = settings.*member;
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          return held.empty() ? FieldValue() : FieldValue(held);
        } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, bool> || std::is_same_v<T, int64_t>) {
          return held;
        } else {
          return held ? FieldValue(*held) : FieldValue();
        }
      },
      field.member);
}

// True if all fields about types are given and consistent.
bool types_agree(const TPUSettings& s) {
  return s.compute_dtype && s.param_dtype && s.use_mixed_precision && s.fp32_params &&
         *s.use_mixed_precision == (*s.compute_dtype != *s.param_dtype) &&
         *s.fp32_params == (*s.param_dtype == "float32");
}

int64_t product_of(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, [](int64_t a, int64_t b) {
    return a > (int64_t{1} << 31) ? a : a * b;  // far beyond any possible number of chips
  });
}

}  // namespace

int64_t bytes_from_text(const std::string& text) {
  std::string upper;
  for (const char c : text) upper += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  const std::size_t digits = upper.find_first_not_of("0123456789.");
  const std::size_t unit = digits == std::string::npos ? digits : upper.find_first_not_of(' ', digits);
  struct Unit {
    const char* name;
    double bytes;
  };
  static constexpr Unit units[] = {{"TB", 1e12},    {"GB", 1e9},     {"MB", 1e6},
                                   {"TIB", 0x1p40}, {"GIB", 0x1p30}, {"MIB", 0x1p20}};
  for (const Unit& one : units) {
    if (digits == 0 || unit == std::string::npos || upper.substr(unit) != one.name) continue;
    char* end = nullptr;
    const std::string number = upper.substr(0, digits);
    const double value = std::strtod(number.c_str(), &end) * one.bytes;
    if (*end != 0) break;
    if (!(value >= 1 && value < 0x1p62)) {
      throw TPUError(concat("TPUConfig: memory_per_chip is positive, got '", text, "'"));
    }
    return static_cast<int64_t>(value);
  }
  throw TPUError(concat("TPUConfig: memory_per_chip is a number of bytes or a text such as '32GB', got '", text, "'"));
}

const std::vector<std::string>& TPUConfig::fields() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const ConfigField& field : config_fields()) all.emplace_back(field.name);
    return all;
  }();
  return names;
}

void set_field(TPUSettings& settings, const std::string& field, const FieldValue& value) {
  assign(settings, field_of(field), value);
}

TPUConfig::TPUConfig(TPUSettings settings) : settings_(std::move(settings)) {
  for (const ConfigField& field : config_fields()) assign(settings_, field, value_of(settings_, field));
  if (!types_agree(settings_)) {
    const TPUSettings given = settings_;
    for (const char* name : type_fields) {
      const FieldValue value = value_of(given, field_of(name));
      if (std::holds_alternative<std::monostate>(value)) continue;
      assign(settings_, field_of(name), value);
      settle(name);
    }
  }
  check_together();
}

void TPUConfig::set(const std::string& name, const FieldValue& value) {
  const ConfigField& field = field_of(name);
  const TPUSettings before = settings_;
  try {
    if (std::holds_alternative<std::monostate>(value) && is_type_field(name)) {
      refuse_value(field, field.choices.empty() ? "True or False" : concat("one of ", joined(field.choices, ", ")),
                   value);
    }
    assign(settings_, field, value);
    if (is_type_field(name)) settle(name);
    check_together();
  } catch (...) {
    settings_ = before;  // a rejected value changes nothing
    throw;
  }
}

FieldValue TPUConfig::get(const std::string& field) const { return value_of(settings_, field_of(field)); }

// Derives the other type fields from one of them.
void TPUConfig::settle(const std::string& field) {
  std::string compute = settings_.compute_dtype.value_or(""), parameters = settings_.param_dtype.value_or("");
  if (field == "precision") {
    compute = settings_.precision == "float32" ? "float32" : "bfloat16";
    parameters = settings_.precision == "bfloat16" ? "bfloat16" : "float32";
  } else if (field == "fp32_params") {
    parameters = *settings_.fp32_params ? "float32" : "bfloat16";
  } else if (field == "use_mixed_precision") {
    if (*settings_.use_mixed_precision && (compute == "float32" || parameters != "float32")) {
      throw TPUError(
          concat("TPUConfig: use_mixed_precision=True computes in bfloat16 on parameters in float32, but "
                 "compute_dtype='",
                 compute, "' and param_dtype='", parameters, "'; assign those first"));
    }
    if (!*settings_.use_mixed_precision) compute = parameters;
  }
  settings_.compute_dtype = compute;
  settings_.param_dtype = parameters;
  settings_.fp32_params = parameters == "float32";
  settings_.use_mixed_precision = compute != parameters;
}

void TPUConfig::check_together() const {
  slice();
  if (*settings_.compute_dtype == "int8" && find_chip(settings_.tpu_version).int8_tops == 0) {
    throw TPUError(concat("TPUConfig: compute_dtype='int8': ", settings_.tpu_version, " has no units for int8"));
  }
  const std::vector<int64_t>& mesh = settings_.mesh_shape;
  if (!mesh.empty() && product_of(mesh) != settings_.num_chips) {
    throw TPUError(concat("TPUConfig: mesh_shape=", value_text(mesh), " is for ", product_of(mesh),
                          " chips, but num_chips=", settings_.num_chips));
  }
  if (!settings_.topology) return;
  int64_t chips = 1;
  for (const int size : read_shape(*settings_.topology)) chips *= size;
  if (chips != settings_.num_chips) {
    throw TPUError(concat("TPUConfig: topology='", *settings_.topology, "' has ", chips,
                          " chips, but num_chips=", settings_.num_chips));
  }
}

std::pair<Slice, bool> TPUConfig::slice_and_shape() const {
  const Chip& chip = find_chip(settings_.tpu_version);
  const int count = static_cast<int>(settings_.num_chips);
  if (settings_.topology) {
    try {
      return {slice_of(chip, count, *settings_.topology), true};
    } catch (const ValueError&) {  // it may be a logical mesh
    }
  }
  try {
    return {slice_of(chip, count), !settings_.topology};
  } catch (const ValueError& error) {
    throw TPUError(error.what());
  }
}

Slice TPUConfig::slice() const { return slice_and_shape().first; }

std::vector<std::string> TPUConfig::validate() const {
  check_together();
  const auto [found, is_shape] = slice_and_shape();
  const Chip& chip = *found.chip;
  const TPUSettings& s = settings_;
  std::vector<std::string> notes;
  if (!is_shape) {
    notes.push_back(concat(s.num_chips, " ", chip.name, " chips are ", found.name(), " = ", shape_text(found.shape),
                           "; the topology ", *s.topology, " is taken as the logical mesh"));
  }
  if (s.memory_per_chip && std::abs(memory_bytes() / (chip.hbm_gb * 1e9) - 1) > 0.1) {
    notes.push_back(concat("memory_per_chip is ", number_text("%.1f", memory_bytes() / 1e9), " GB; a ", chip.name,
                           " chip has ", number_text("%g", chip.hbm_gb), " GB"));
  }
  if (s.flops_per_chip && std::abs(*s.flops_per_chip / (chip.bf16_tflops * 1e12) - 1) > 0.1) {
    notes.push_back(concat("flops_per_chip is ", number_text("%.4g", *s.flops_per_chip), "; the vendor prints ",
                           number_text("%g", chip.bf16_tflops), "e12 in bf16 for ", chip.name));
  }
  if (s.gradient_checkpointing && !s.enable_rematerialization)
    notes.push_back("gradient_checkpointing=True recomputes although enable_rematerialization=False");
  const auto [fsdp, tensor] = plan_axes(find_model("1b"));
  if (s.mesh_shape.size() == 2 && tensor != s.mesh_shape[1]) {
    notes.push_back(concat("mesh_shape=", value_text(s.mesh_shape), ": ", s.mesh_shape[1],
                           " does not divide the heads of the preset 1b, which is planned with fsdp=", fsdp,
                           ",tensor=", tensor));
  }
  return notes;
}

}  // namespace capibara::tpu
