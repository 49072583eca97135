// The commands of the program `capibara`, and what they share.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace capibara::command {

// Everything after the command's name: words, and options written --name VALUE or --name=VALUE; after -- everything
// is a word.
struct Arguments {
  std::vector<std::string> words;
  std::map<std::string, std::string> options;  // by name without dashes; empty text for a plain switch

  bool has(const std::string& name) const { return options.count(name) != 0; }
  std::string text(const std::string& name, const std::string& otherwise) const;
  int integer(const std::string& name, int otherwise) const;  // raises UsageError
  double number(const std::string& name, double otherwise) const;
};

// A wrong command line: shown with the command's usage, exit code 2.
struct UsageError {
  std::string message;
};

// An option's description, as help prints it.
struct OptionRow {
  std::string name;
  std::string value;  // placeholder of its value; empty for a switch
  std::string meaning;
  std::string standard;  // the default; empty if the meaning states it
};

struct Command {
  const char* name;
  const char* usage;                  // after "capibara NAME "
  const char* doc;                    // one sentence
  std::vector<std::string> valued;    // options that take a value
  std::vector<std::string> switches;  // options that do not
  int (*run)(const Arguments&);       // exit code: 0 success, 1 failures
  std::vector<OptionRow> rows = {};   // options that need more explanation than the usage gives
};

// The commands of the program being linked.
const std::vector<Command>& commands();
// demo, train, sample and chat, the only commands of the demo program.
std::vector<Command> training_commands();

// Runs the command named by the arguments of main; returns the exit code.
int run_program(int count, char** values);
// How the user called the program, for hints.
const std::string& program_name();

// Raises UsageError for unknown options.
Arguments parse_arguments(const Command& command, const std::vector<std::string>& words);

std::string read_text(const std::string& path);  // raises ValueError
std::string own_path();                          // path of this executable
const char* python_name();                       // CAPIBARA_PYTHON, or python3

int show(const Arguments& arguments);
int run(const Arguments& arguments);
int check(const Arguments& arguments);
int compile(const Arguments& arguments);
int plan(const Arguments& arguments);
int doctor(const Arguments& arguments);
int coverage(const Arguments& arguments);
int coverage_python(const Arguments& arguments);
int list_library(const Arguments& arguments);
int bench(const Arguments& arguments);
int launch(const Arguments& arguments);
int checkpoint(const Arguments& arguments);
int top(const Arguments& arguments);
int profile_command(const Arguments& arguments);
int serve(const Arguments& arguments);
int help(const Arguments& arguments);

}  // namespace capibara::command
