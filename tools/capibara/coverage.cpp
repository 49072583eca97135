// capibara coverage: which rules each primitive has, and which backends run it.
#include <cstdio>

#include <capibara/factors.h>

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
    {"factors", has_factors},
    {"samples", [](const PrimitiveRecord& r) { return static_cast<bool>(r.samples); }},
};

// One cell per rule and per backend, empty if there is none.
std::vector<std::string> cells(const Primitive& primitive, const char* has_rule) {
  std::vector<std::string> row;
  for (const Column& column : columns) row.push_back(column.has(primitive.record()) ? has_rule : "");
  for (const std::string& name : backend_names()) {
    std::string ways;
    for (const std::string& way : backend(name).ways(primitive)) ways += (ways.empty() ? "" : ", ") + way;
    row.push_back(std::move(ways));
  }
  return row;
}

// A cell of a table in Markdown.
std::string cell_text(const std::string& text) {
  std::string escaped;
  for (char c : text) escaped += c == '|' ? "\\|" : std::string(1, c);
  return escaped;
}

// The page docs/primitives.md.
void print_markdown() {
  std::printf(
      "# Primitives\n\nMade by `capibara coverage --markdown` from the catalog. A dot is a rule that does not "
      "exist.\n\n"
      "How a backend runs the samples of a primitive: on cpu as generated code alone (compiled), by a C++ kernel of "
      "that backend\n"
      "(kernel), by LAPACK, by a host function, or by a kernel of the reference backend (reference); on pjrt inside "
      "the program or by a\n"
      "host function.\n\n| primitive |");
  for (const Column& column : columns) std::printf(" %s |", column.name);
  for (const std::string& name : backend_names()) std::printf(" %s |", name.c_str());
  std::printf(" StableHLO | what it does |\n|---|");
  for (std::size_t i = 0; i < std::size(columns) + backend_names().size(); ++i) std::printf(":-:|");
  std::printf("---|---|\n");
  for (const Primitive& primitive : catalog()) {
    std::printf("| `%s` |", primitive.name().c_str());
    for (const std::string& cell : cells(primitive, "x")) std::printf(" %s |", cell.empty() ? "·" : cell.c_str());
    std::printf(" %s | %s |\n", primitive->stablehlo.c_str(), cell_text(primitive->doc).c_str());
  }
}

void print_table() {
  std::printf("%-28s", "primitive");
  for (const Column& column : columns) std::printf(" %-9s", column.name);
  for (const std::string& name : backend_names()) std::printf(" %-26s", name.c_str());
  std::printf(" stablehlo\n");
  std::vector<int> totals(std::size(columns) + backend_names().size(), 0);
  for (const Primitive& primitive : catalog()) {
    std::printf("%-28s", primitive.name().c_str());
    const std::vector<std::string> row = cells(primitive, "yes");
    for (std::size_t i = 0; i < row.size(); ++i) {
      totals[i] += row[i].empty() ? 0 : 1;
      std::printf(i < std::size(columns) ? " %-9s" : " %-26s", row[i].empty() ? "-" : row[i].c_str());
    }
    std::printf(" %s\n", primitive->stablehlo.c_str());
  }
  std::printf("%-28s", (std::to_string(catalog().size()) + " primitives").c_str());
  for (std::size_t i = 0; i < totals.size(); ++i) std::printf(i < std::size(columns) ? " %-9d" : " %-26d", totals[i]);
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
