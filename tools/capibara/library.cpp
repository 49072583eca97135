// capibara library: the functions of the library by module, with their signatures.
#include <cstdio>
#include <string>

#include "command.h"
#include "library/table/function.h"

namespace capibara::command {

namespace {

std::size_t count_functions(const library::Module& module) {
  std::size_t count = 0;
  for (library::Family family : module.families) count += family.size();
  return count;
}

// Escapes bars, which would end a table cell.
std::string cell(std::string_view text) {
  std::string escaped(text);
  for (std::size_t at = 0; (at = escaped.find('|', at)) != std::string::npos; at += 2) escaped.replace(at, 1, "\\|");
  return escaped;
}

// The page docs/library.md.
void print_functions_page() {
  std::printf(
      "# The library\n\nMade by `capibara library --markdown` from the table of functions. In Python each is "
      "`capibara.jax.MODULE.NAME`; in C++ the function of that name in `capibara::jax::MODULE`, with the options "
      "as fields of one struct. Types are Python's, and shown where the name of a parameter does not imply them, and "
      "where the result is not one `Array`. `capibara.kernels` goes with `capibara.jax`, and `capibara::kernels` "
      "with `capibara::jax`.\n");
  for (const library::Module& module : library::modules()) {
    std::string name(module.name);
    std::printf("\n## %s\n\n| function | |\n|---|---|\n", name.c_str());
    for (library::Family family : module.families) {
      for (const library::Function& function : family) {
        std::printf("| `%s` | %s |\n", cell(library::text_of(function)).c_str(), cell(function.doc).c_str());
      }
    }
  }
}

void print_functions(const std::string& chosen) {
  std::size_t total = 0;
  for (const library::Module& module : library::modules()) {
    std::string name(module.name);
    total += count_functions(module);
    if (chosen.empty()) {
      std::printf("%-34s %4zu functions\n", name.c_str(), count_functions(module));
    } else if (chosen == name) {
      for (library::Family family : module.families) {
        for (const library::Function& function : family) {
          std::printf("%s\n    %.*s\n", library::text_of(function).c_str(), static_cast<int>(function.doc.size()),
                      function.doc.data());
        }
      }
      return;
    }
  }
  if (!chosen.empty()) throw UsageError{"no module '" + chosen + "'; capibara library lists them"};
  std::printf("%-34s %4zu functions\n", "all", total);
}

}  // namespace

int list_library(const Arguments& arguments) {
  if (arguments.words.size() > 1) throw UsageError{"one module at most is needed"};
  if (arguments.has("markdown"))
    print_functions_page();
  else
    print_functions(arguments.words.empty() ? std::string() : arguments.words[0]);
  return 0;
}

}  // namespace capibara::command
