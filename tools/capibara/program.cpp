// The main of a program with commands: parses its arguments, finds the command by name and runs it.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include <capibara/error.h>
#include <capibara/version.h>

#include "command.h"

namespace capibara::command {

const Option& Arguments::option(const std::string& name) const {
  const auto it = std::find_if(table.begin(), table.end(), [&](const Option& row) { return row.name == name; });
  if (it == table.end()) throw RuntimeError(concat("this command has no option --", name));
  return *it;
}

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

int Arguments::integer(const std::string& name) const { return integer(name, std::stoi(option(name).standard)); }

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

double Arguments::number(const std::string& name) const { return number(name, std::stod(option(name).standard)); }

void Arguments::refuse(const std::string& name) const {
  throw UsageError{concat("--", name, " is written as ", option(name).value, ", got '", text(name, ""), "'")};
}

std::vector<std::pair<std::string, std::string>> Arguments::named_values(const std::string& name) const {
  std::vector<std::pair<std::string, std::string>> values;
  if (!has(name)) return values;
  for (const std::string& part : split(text(name, ""), ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) refuse(name);
    const std::string own = part.substr(0, equals);
    if (std::any_of(values.begin(), values.end(), [&](const auto& value) { return value.first == own; }))
      throw UsageError{concat("--", name, " gives '", own, "' twice, got '", text(name, ""), "'")};
    values.emplace_back(own, part.substr(equals + 1));
  }
  return values;
}

std::vector<std::pair<std::string, int64_t>> Arguments::named_numbers(const std::string& name, int64_t least) const {
  std::vector<std::pair<std::string, int64_t>> numbers;
  for (const auto& [own, value] : named_values(name)) {
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (value.empty() || stop != value.data() + value.size() || error != std::errc{} || number < least) refuse(name);
    numbers.emplace_back(own, number);
  }
  return numbers;
}

Arguments parse_arguments(const Command& command, const std::vector<std::string>& words) {
  Arguments arguments;
  arguments.table = command.options;
  const auto listed = [&](const std::string& name) {
    return std::find_if(command.options.begin(), command.options.end(),
                        [&](const Option& row) { return row.name == name; });
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      arguments.words.insert(arguments.words.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    const bool is_long = words[i].starts_with("--");
    const bool is_short =
        words[i].size() == 2 && words[i][0] == '-' && listed(words[i].substr(1)) != command.options.end();
    if (!is_long && !is_short) {
      arguments.words.push_back(words[i]);
      continue;
    }
    const std::size_t equals = is_long ? words[i].find('=') : std::string::npos;
    const std::string written = words[i].substr(0, equals), name = written.substr(is_long ? 2 : 1);
    const auto row = listed(name);
    if (row == command.options.end()) throw UsageError{concat("unknown option ", written)};
    if (row->value.empty()) {
      if (equals != std::string::npos) throw UsageError{concat(written, " takes no value, got '", words[i], "'")};
      arguments.options[name] = "";
    } else if (equals != std::string::npos) {
      arguments.options[name] = words[i].substr(equals + 1);
    } else if (i + 1 < words.size()) {
      arguments.options[name] = words[++i];
    } else {
      throw UsageError{concat(written, " needs a value")};
    }
  }
  return arguments;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
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

namespace {

std::string resolved(const std::string& path) {
  char* found = realpath(path.c_str(), nullptr);
  std::string result = found ? found : "";
  std::free(found);
  return result;
}

Installation installation;

}  // namespace

void set_installation(const Installation& place) { installation = place; }

std::string own_path() { return resolved(installation.program.empty() ? "/proc/self/exe" : installation.program); }

std::string data_file(const std::string& name) {
  const std::string program = own_path();
  const std::string beside = program.substr(0, program.find_last_of('/') + 1);
  std::string first;
  for (const std::string& folder :
       {installation.data, beside + "../share/capibara", std::string(CAPIBARA_EXAMPLES_FOLDER)}) {
    if (folder.empty()) continue;
    const std::string path = concat(folder, folder == CAPIBARA_EXAMPLES_FOLDER ? "/data/" : "/", name);
    if (access(path.c_str(), R_OK) == 0) return path;
    if (first.empty()) first = path;
  }
  return first;  // whoever opens it says that it is missing
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
        std::printf("%s", help_text(command).c_str());
        return 0;
      }
      const int code = command.run(parse_arguments(command, words));
      if (words.empty() && count == 1) return 2;  // no command at all: the list is the answer, but not success
      return code;
    } catch (const UsageError& error) {
      std::fprintf(stderr, "capibara %s: %s\n%s'capibara help %s' explains the options\n", command.name.c_str(),
                   error.message.c_str(), usage_text(command).c_str(), command.name.c_str());
      return 2;
    } catch (const std::exception& error) {
      std::string_view message = error.what();  // often begins with the function's name, perhaps the command's
      const std::string beginning = command.name + ": ";
      if (message.starts_with(beginning)) message.remove_prefix(beginning.size());
      std::fprintf(stderr, "capibara %s: %.*s\n", command.name.c_str(), static_cast<int>(message.size()),
                   message.data());
      return 1;
    }
  }
  std::fprintf(stderr, "capibara: unknown command '%s'; try 'capibara help'\n", name.c_str());
  return 2;
}

}  // namespace capibara::command
