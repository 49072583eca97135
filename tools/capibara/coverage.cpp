// capibara coverage: which rules each primitive has, and which backends run it.
#include <cstdio>

#include <capibara/primitive.h>

#include "backends/backend.h"
#include "command.h"

namespace capibara::command {

namespace {

struct Column {
  const char* name;
  bool (*has)(const PrimitiveRecord&);
};
constexpr Column columns[] = {
    {"type", [](const PrimitiveRecord& r) { return static_cast<bool>(r.type); }},
    {"jvp", [](const PrimitiveRecord& r) { return static_cast<bool>(r.jvp); }},
    {"transpose", [](const PrimitiveRecord& r) { return static_cast<bool>(r.transpose); }},
    {"batch", [](const PrimitiveRecord& r) { return static_cast<bool>(r.batch); }},
    {"lower", [](const PrimitiveRecord& r) { return r.lower || !r.stablehlo.empty(); }},
    {"samples", [](const PrimitiveRecord& r) { return static_cast<bool>(r.samples); }},
};

// One cell per rule and per backend.
std::vector<bool> cells(const Primitive& primitive) {
  std::vector<bool> row;
  for (const Column& column : columns) row.push_back(column.has(primitive.record()));
  for (const std::string& name : backend_names()) row.push_back(backend(name).supports(primitive));
  return row;
}

// The page docs/primitives.md.
void print_markdown() {
  std::printf("# Primitives\n\nMade by `capibara coverage --markdown` from the catalog. A dot is a rule that does not exist.\n\n| primitive |");
  for (const Column& column : columns) std::printf(" %s |", column.name);
  for (const std::string& name : backend_names()) std::printf(" %s |", name.c_str());
  std::printf(" StableHLO | what it does |\n|---|");
  for (std::size_t i = 0; i < std::size(columns) + backend_names().size(); ++i) std::printf(":-:|");
  std::printf("---|---|\n");
  for (const Primitive& primitive : catalog()) {
    std::printf("| `%s` |", primitive.name().c_str());
    for (bool has : cells(primitive)) std::printf(" %s |", has ? "x" : "·");
    std::printf(" %s | %s |\n", primitive->stablehlo.c_str(), primitive->doc.c_str());
  }
}

void print_table() {
  std::printf("%-28s", "primitive");
  for (const Column& column : columns) std::printf(" %-9s", column.name);
  for (const std::string& name : backend_names()) std::printf(" %-10s", name.c_str());
  std::printf(" stablehlo\n");
  std::vector<int> totals(std::size(columns) + backend_names().size(), 0);
  for (const Primitive& primitive : catalog()) {
    std::printf("%-28s", primitive.name().c_str());
    const std::vector<bool> row = cells(primitive);
    for (std::size_t i = 0; i < row.size(); ++i) {
      totals[i] += row[i] ? 1 : 0;
      std::printf(i < std::size(columns) ? " %-9s" : " %-10s", row[i] ? "yes" : "-");
    }
    std::printf(" %s\n", primitive->stablehlo.c_str());
  }
  std::printf("%-28s", (std::to_string(catalog().size()) + " primitives").c_str());
  for (std::size_t i = 0; i < totals.size(); ++i) std::printf(i < std::size(columns) ? " %-9d" : " %-10d", totals[i]);
  std::printf("\n");
}

}  // namespace

int coverage(const Arguments& arguments) {
  if (!arguments.words.empty()) throw UsageError{"no arguments are needed"};
  if (arguments.has("python")) return coverage_python(arguments);
  if (arguments.has("markdown")) {
    print_markdown();
  } else {
    print_table();
  }
  return 0;
}

}  // namespace capibara::command
