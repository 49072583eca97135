// The commands of the program `capibara`, and what they share.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace capibara::command {

// One option of a command: how it is parsed, and what help says of it.
struct Option {
  std::string name;
  std::string value;  // placeholder of its value, an example where it has a form of its own; empty for a switch
  std::string meaning;
  std::string standard;  // the default, a value or its description; empty for switches and for what is required
};

// Everything after the command's name: words, and options written --name VALUE or --name=VALUE; after -- everything
// is a word.
struct Arguments {
  std::vector<std::string> words;
  std::map<std::string, std::string> options;  // by name without dashes; empty text for a plain switch
  std::vector<Option> table;                   // those of the command

  bool has(const std::string& name) const { return options.count(name) != 0; }
  const Option& option(const std::string& name) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  int integer(const std::string& name, int otherwise) const;  // raises UsageError
  double number(const std::string& name, double otherwise) const;
  // The same with the default of the table.
  std::string text(const std::string& name) const { return text(name, option(name).standard); }
  int integer(const std::string& name) const;
  double number(const std::string& name) const;
  // NAME=VALUE,...; none without the option. Raises UsageError for other texts and names given twice.
  std::vector<std::pair<std::string, std::string>> named_values(const std::string& name) const;
  // The same for whole numbers from `least` on.
  std::vector<std::pair<std::string, int64_t>> named_numbers(const std::string& name, int64_t least) const;

 private:
  [[noreturn]] void refuse(const std::string& name) const;
};

// A wrong command line: shown with the command's usage, exit code 2.
struct UsageError {
  std::string message;
};

// One form of a command line.
struct Form {
  std::string words;                      // what is required, in order
  std::vector<std::string> options = {};  // names of options; "..." stands for all that are left
  std::string end = {};                   // what follows the options
};

struct Command {
  std::string name;
  std::string doc;  // one sentence
  std::vector<Form> forms;
  std::vector<Option> options;
  int (*run)(const Arguments&);  // exit code: 0 success, 1 failures
  std::string details = {};      // more sentences
};

// The commands of the program being linked.
const std::vector<Command>& commands();
// demo, train, sample and chat, the only commands of the demo program.
std::vector<Command> training_commands();

Command help_command();
std::string usage_text(const Command& command);
std::string help_text(const Command& command);  // usage, sentences, and each option with its meaning and default

// Where the program is when it runs inside of another one, such as Python: the file that starts it, and the folder of
// its data. Both are empty in a program of its own.
struct Installation {
  std::string program, data;
};
void set_installation(const Installation& place);
// The path of a file of the installation, or of the source tree.
std::string data_file(const std::string& name);

// Runs the command named by the arguments of main; returns the exit code.
int run_program(int count, char** values);
// How the user called the program, for hints.
const std::string& program_name();

// Raises UsageError for unknown options.
Arguments parse_arguments(const Command& command, const std::vector<std::string>& words);

// The parts of a text between separators; one empty part for an empty text.
std::vector<std::string> split(const std::string& text, char separator);
std::string read_text(const std::string& path);  // raises ValueError
std::string own_path();                          // path of this program
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

// Writes to stderr, where that is a terminal, what takes longer than a second, and removes the line at its end.
class Waiting {
 public:
  explicit Waiting(std::string what);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace capibara::command
