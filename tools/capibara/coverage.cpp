// capibara coverage: which rules each primitive has, and which backends run it.
#include <cstdio>

#include <capibara/primitive.h>

#include "backends/backend.h"
#include "command.h"

namespace capibara::command {

int coverage(const Arguments& arguments) {
  if (!arguments.words.empty()) throw UsageError{"no arguments are needed"};
  struct Column {
    const char* name;
    bool (*has)(const PrimitiveRecord&);
  };
  static constexpr Column columns[] = {
      {"type", [](const PrimitiveRecord& r) { return static_cast<bool>(r.type); }},
      {"jvp", [](const PrimitiveRecord& r) { return static_cast<bool>(r.jvp); }},
      {"transpose", [](const PrimitiveRecord& r) { return static_cast<bool>(r.transpose); }},
      {"batch", [](const PrimitiveRecord& r) { return static_cast<bool>(r.batch); }},
      {"lower", [](const PrimitiveRecord& r) { return r.lower || !r.stablehlo.empty(); }},
      {"samples", [](const PrimitiveRecord& r) { return static_cast<bool>(r.samples); }},
  };
  std::printf("%-28s", "primitive");
  for (const Column& column : columns) std::printf(" %-9s", column.name);
  for (const std::string& name : backend_names()) std::printf(" %-10s", name.c_str());
  std::printf(" stablehlo\n");
  std::vector<int> totals(std::size(columns), 0);
  std::vector<int> run(backend_names().size(), 0);
  for (const Primitive& primitive : catalog()) {
    std::printf("%-28s", primitive.name().c_str());
    for (std::size_t i = 0; i < std::size(columns); ++i) {
      const bool has = columns[i].has(primitive.record());
      totals[i] += has ? 1 : 0;
      std::printf(" %-9s", has ? "yes" : "-");
    }
    for (std::size_t i = 0; i < run.size(); ++i) {
      const bool runs = backend(backend_names()[i]).supports(primitive);
      run[i] += runs ? 1 : 0;
      std::printf(" %-10s", runs ? "yes" : "-");
    }
    std::printf(" %s\n", primitive->stablehlo.c_str());
  }
  std::printf("%-28s", (std::to_string(catalog().size()) + " primitives").c_str());
  for (int total : totals) std::printf(" %-9d", total);
  for (int total : run) std::printf(" %-10d", total);
  std::printf("\n");
  return 0;
}

}  // namespace capibara::command
