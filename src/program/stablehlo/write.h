// Writes a program as the text of a StableHLO module.
#pragma once

#include <string>
#include <vector>

#include <capibara/program.h>

namespace capibara::stablehlo {

struct WriteOptions {
  std::string module_name = "main";
  bool locations = false;  // where an equation's source is known
  std::vector<std::string> argument_attributes = {};  // of main, one text for each argument; empty: none
};

// The program must consist of primitives that StableHLO names, as `lower` leaves it.
std::string write_module(const Program& program, const WriteOptions& options = {});

}  // namespace capibara::stablehlo
