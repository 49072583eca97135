// Writes the header of an object.
#include "backends/cpu/object/header.h"

#include <cctype>
#include <map>

#include "core/array/byte_count.h"

namespace capibara::cpu {

namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// ARGS_0_W of args[0]['w'].
std::string macro_part(const std::string& path) {
  std::string result;
  for (char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      result += c;
    else if (!result.empty() && result.back() != '_')
      result += '_';
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  return upper(result.empty() ? "value" : result);
}

std::string in_comment(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '/' && !result.empty() && result.back() == '*') result += ' ';
    result += std::isprint(static_cast<unsigned char>(c)) ? c : '?';
  }
  return result;
}

// The C type of an element.
std::string c_element(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "float";
    case DType::float64:
      return "double";
    case DType::complex64:
      return "float, real and imaginary in pairs";
    case DType::complex128:
      return "double, real and imaginary in pairs";
    case DType::bool_:
      return "one byte each, 0 or 1";
    default:
      break;
  }
  if (is_key(dtype)) return "the uint32_t words of a key";
  const auto bytes = storage_size(dtype);
  if (is_integer(dtype)) return concat(is_unsigned(dtype) ? "u" : "", "int", 8 * bytes, "_t");
  return concat("the bits as uint", 8 * bytes, "_t");
}

void write_list(std::string& out, const std::string& prefix, const char* array, const char* end,
                const std::vector<std::pair<std::string, ArrayType>>& list) {
  std::map<std::string, int> seen;
  out += "enum {\n";
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto& [path, type] = list[i];
    std::string name = macro_part(path);
    if (const int count = seen[name]++; count > 0) name += concat("_", count);
    out += concat("  ", prefix, name, " = ", i, ", /* ", array, "[", i, "]: ", in_comment(path), ", ",
                  short_string(type.strong()), ", ", byte_count(type), " bytes (", c_element(type.dtype), ") */\n");
  }
  out += concat("  ", end, " = ", list.size(), "\n};\n\n");
}

}  // namespace

std::string c_identifier(const std::string& name) {
  std::string result;
  for (char c : name) result += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0]))) result = "f" + result;
  return result;
}

std::string to_string(const ObjectHeader& header) {
  const std::string macro = upper(header.name);
  std::string targets;
  for (const std::string& target : header.targets) targets += concat(targets.empty() ? "" : ", ", target);
  std::string out =
      concat("/* ", header.name, ": a program compiled by capibara for ", targets,
             header.targets.size() > 1 ? ", by what the processor has" : "", ". Link its object file with -lm.\n   ",
             header.constant_bytes, " bytes of constants are inside of the object. */\n");
  out += concat("#ifndef ", macro, "_H\n#define ", macro, "_H\n\n");
  out +=
      concat("/* Scratch memory of one call, aligned to this many bytes. Calls at the same time need one each. */\n");
  out += concat("#define ", macro, "_ARENA_BYTES ", header.arena_bytes, "\n");
  out += concat("#define ", macro, "_ARENA_ALIGNMENT 64\n\n");
  if (header.takes_weights) {
    out += "/* The file of weights, which is read or mapped; its memory is aligned to 16 bytes at least. */\n";
    out += concat("#define ", macro, "_WEIGHTS_BYTES ", header.weights_bytes, "\n\n");
  }
  write_list(out, macro + "_IN_", "inputs", (macro + "_INPUTS").c_str(), header.inputs);
  write_list(out, macro + "_OUT_", "outputs", (macro + "_OUTPUTS").c_str(), header.outputs);
  out += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  out +=
      "/* Arrays are row-major and aligned to their elements; no output overlaps an input, another output or the "
      "arena.\n"
      "   Allocates nothing, keeps nothing, and may run on several threads at once. */\n";
  out += concat("void ", header.name, "(const void *const *inputs, void *const *outputs, void *arena",
                header.takes_weights ? ", const void *weights" : "", ");\n\n");
  out += concat("#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
  return out;
}

}  // namespace capibara::cpu
