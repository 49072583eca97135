// The main of a program with commands: parses its arguments, finds the command by name and runs it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>

#include <capibara/error.h>
#include <capibara/version.h>

#include "command.h"

namespace capibara::command {

std::string Arguments::text(const std::string& name, const std::string& otherwise) const {
  const auto it = options.find(name);
  return it == options.end() ? otherwise : it->second;
}

int Arguments::integer(const std::string& name, int otherwise) const {
  const auto it = options.find(name);
  if (it == options.end()) return otherwise;
  const std::string& text = it->second;
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) {
    throw UsageError{concat("--", name, " needs a number from 0 to 999999999, got '", text, "'")};
  }
  return std::stoi(text);
}

double Arguments::number(const std::string& name, double otherwise) const {
  const auto it = options.find(name);
  if (it == options.end()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(it->second.c_str(), &end);
  if (it->second.empty() || *end != '\0' || !std::isfinite(value)) {
    throw UsageError{concat("--", name, " needs a number, got '", it->second, "'")};
  }
  return value;
}

Arguments parse_arguments(const Command& command, const std::vector<std::string>& words) {
  Arguments arguments;
  auto listed = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      arguments.words.insert(arguments.words.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (words[i].size() == 2 && words[i][0] == '-' && listed(command.valued, words[i].substr(1))) {
      if (i + 1 == words.size()) throw UsageError{concat(words[i], " needs a value")};
      const std::string short_name = words[i].substr(1);
      arguments.options[short_name] = words[++i];
      continue;
    }
    if (words[i].rfind("--", 0) != 0) {
      arguments.words.push_back(words[i]);
      continue;
    }
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(2, equals == std::string::npos ? equals : equals - 2);
    if (listed(command.switches, name)) {
      arguments.options[name] = "";
    } else if (listed(command.valued, name)) {
      if (equals != std::string::npos)
        arguments.options[name] = words[i].substr(equals + 1);
      else if (i + 1 < words.size())
        arguments.options[name] = words[++i];
      else
        throw UsageError{concat("--", name, " needs a value")};
    } else {
      throw UsageError{concat("unknown option --", name)};
    }
  }
  return arguments;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ValueError(concat(path, " cannot be opened"));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

const char* python_name() {
  const char* named = std::getenv("CAPIBARA_PYTHON");
  return named && *named ? named : "python3";
}

std::string own_path() {
  char* resolved = realpath("/proc/self/exe", nullptr);
  const std::string path = resolved ? resolved : "";
  std::free(resolved);
  return path;
}

namespace {

void print_help(const Command& command) {
  std::printf("capibara %s %s\n%s\n", command.name, command.usage, command.doc);
  for (const OptionRow& row : command.rows) {
    const std::string option = concat("--", row.name, row.value.empty() ? "" : " ", row.value);
    std::printf("  %-24s %s%s\n", option.c_str(), row.meaning.c_str(),
                row.standard.empty() ? "" : concat(" (", row.standard, ")").c_str());
  }
}

}  // namespace

int help(const Arguments& arguments) {
  if (arguments.words.size() > 1) throw UsageError{"expected at most one command"};
  if (!arguments.words.empty()) {
    const auto named = [&](const Command& command) { return arguments.words[0] == command.name; };
    const auto it = std::find_if(commands().begin(), commands().end(), named);
    if (it == commands().end()) throw UsageError{concat("unknown command '", arguments.words[0], "'")};
    print_help(*it);
    return 0;
  }
  std::printf("capibara COMMAND ...\n\n");
  for (const Command& command : commands()) {
    std::printf("  %s %s\n      %s\n", command.name, command.usage, command.doc);
  }
  std::printf("\nExit code: 0 success, 1 failures, 2 wrong command line.\n");
  return 0;
}

namespace {

std::string called_as = "capibara";

}  // namespace

const std::string& program_name() { return called_as; }

int run_program(int count, char** values) {
  if (count > 0) called_as = values[0];
  std::vector<std::string> words(values + std::min(count, 1), values + count);
  std::string name = words.empty() ? "help" : words[0];
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version") {
    std::printf("capibara %s\n", version());
    return 0;
  }
  for (const Command& command : commands()) {
    if (name != command.name) continue;
    try {
      if (!words.empty()) words.erase(words.begin());
      const auto own = std::find(words.begin(), words.end(), "--");  // arguments after it belong to another program
      if (std::find(words.begin(), own, "--help") != own) {
        print_help(command);
        return 0;
      }
      const int code = command.run(parse_arguments(command, words));
      if (words.empty() && count == 1) return 2;  // no command at all: the list is the answer, but not success
      return code;
    } catch (const UsageError& error) {
      std::fprintf(stderr, "capibara %s: %s\nusage: capibara %s %s\n", command.name, error.message.c_str(),
                   command.name, command.usage);
      return 2;
    } catch (const std::exception& error) {
      std::string_view message = error.what();  // often begins with the function's name, perhaps the command's
      const std::string beginning = concat(command.name, ": ");
      if (message.starts_with(beginning)) message.remove_prefix(beginning.size());
      std::fprintf(stderr, "capibara %s: %.*s\n", command.name, static_cast<int>(message.size()), message.data());
      return 1;
    }
  }
  std::fprintf(stderr, "capibara: unknown command '%s'; try 'capibara help'\n", name.c_str());
  return 2;
}

}  // namespace capibara::command
