// The text of a TPU kernel as a tree: a reader of MLIR's generic form, for tests.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace capibara::mosaic {

// The text is not a kernel, or does what a kernel must not do.
struct KernelError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] inline void fail(const std::string& what) { throw KernelError(what); }

struct Operation;
struct Block {
  std::vector<std::pair<std::string, std::string>> arguments;  // name, type
  std::vector<Operation> operations;
};
struct Operation {
  std::string name;  // without "stable_mosaic."
  std::vector<std::string> results, operands, operand_types, result_types;
  std::map<std::string, std::string> attributes;
  std::vector<Block> regions;
};
Operation read_kernel(const std::string& text);  // a builtin.module

// vector<2x3xf32>, memref<4xi32, ...>, or a scalar.
struct Type {
  std::string kind, element;
  std::vector<int64_t> shape;
};
Type type_of(const std::string& text);

// All integers of a text, in order.
std::vector<int64_t> numbers_in(const std::string& text);

int64_t count_of(const std::vector<int64_t>& shape);  // refuses what is too large for a test

}  // namespace capibara::mosaic
