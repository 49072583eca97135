// capibara help, and the other texts made of the table of commands: usage, completion by bash, the manual page.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <capibara/error.h>
#include <capibara/version.h>

#include "command.h"

namespace capibara::command {

namespace {

constexpr std::size_t text_width = 100;

// Words of a text in lines; those after the first are indented.
std::string folded(const std::vector<std::string>& words, const std::string& first, std::size_t indent) {
  std::string text = first;
  std::size_t column = first.size();
  for (const std::string& word : words) {
    if (column > indent && column + 1 + word.size() > text_width) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > 0 && text.back() != ' ') {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
  }
  return text + "\n";
}

// -n N, --calls N, --json
std::string written(const Option& option) {
  return concat(option.name.size() == 1 ? "-" : "--", option.name, option.value.empty() ? "" : " ", option.value);
}

std::string meaning(const Option& option) {
  return concat(option.meaning, option.standard.empty() ? "" : concat(" (default: ", option.standard, ")"));
}

std::vector<std::string> form_parts(const Command& command, const Form& form) {
  std::vector<std::string> parts;
  if (!form.words.empty()) parts = split(form.words, ' ');
  for (const std::string& name : form.options) {
    if (name == "...") {
      parts.push_back("[options]");
      continue;
    }
    const auto row = std::find_if(command.options.begin(), command.options.end(),
                                  [&](const Option& option) { return option.name == name; });
    if (row == command.options.end()) throw RuntimeError(concat(command.name, " has no option ", name));
    parts.push_back(concat("[", written(*row), "]"));
  }
  if (!form.end.empty()) parts.push_back(form.end);
  return parts;
}

// Completes commands, and options after a command.
void print_completion() {
  std::string names, cases;
  for (const Command& command : commands()) {
    names += (names.empty() ? "" : " ") + command.name;
    std::string options;
    for (const Option& option : command.options)
      options += concat(options.empty() ? "" : " ", option.name.size() == 1 ? "-" : "--", option.name);
    cases += concat("    ", command.name, ") options=\"", options, "\" ;;\n");
  }
  std::printf(
      "# Completion of capibara's command line by bash; made by `capibara help --completion`.\n"
      "_capibara() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} options=\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" = 1 ] || { [ \"$COMP_CWORD\" = 2 ] && [ \"${COMP_WORDS[1]}\" = help ]; }; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"%s\" -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]} in\n%s  esac\n"
      "  case $word in\n"
      "    -*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\") ;;\n"
      "  esac\n"
      "}\n"
      "complete -o default -F _capibara capibara\n",
      names.c_str(), cases.c_str());
}

// Hyphens and backslashes mean something to troff, and so does a dot or a quote that begins a line.
std::string troff(const std::string& text) {
  std::string escaped = !text.empty() && (text[0] == '.' || text[0] == '\'') ? "\\&" : "";
  for (const char c : text) {
    if (c == '-') escaped += '\\';
    escaped += c == '\\' ? std::string("\\e") : std::string(1, c);
  }
  return escaped;
}

void print_manual() {
  std::printf(
      ".TH CAPIBARA 1 \"\" \"capibara %s\"\n.SH NAME\ncapibara \\- arrays, derivatives and compiled programs\n"
      ".SH SYNOPSIS\n.B capibara\n.I COMMAND\n\\&...\n.SH COMMANDS\n",
      version());
  for (const Command& command : commands()) {
    std::printf(".SS %s\n", troff(command.name).c_str());
    for (const Form& form : command.forms) {
      std::string line = "capibara " + command.name;
      for (const std::string& part : form_parts(command, form)) line += " " + part;
      std::printf("%s\n.br\n", troff(line).c_str());
    }
    std::printf("%s\n", troff(command.doc).c_str());
    if (!command.details.empty()) std::printf("%s\n", troff(command.details).c_str());
    for (const Option& option : command.options)
      std::printf(".TP\n.B %s\n%s\n", troff(written(option)).c_str(), troff(meaning(option)).c_str());
  }
  std::printf(".SH EXIT STATUS\n0 success, 1 failures, 2 wrong command line.\n");
}

int help(const Arguments& arguments) {
  if (arguments.words.size() > 1) throw UsageError{"expected at most one command"};
  if (arguments.options.size() + arguments.words.size() > 1)
    throw UsageError{"expected one of COMMAND, --completion and --man"};
  if (arguments.has("completion")) {
    print_completion();
    return 0;
  }
  if (arguments.has("man")) {
    print_manual();
    return 0;
  }
  if (!arguments.words.empty()) {
    const auto named = [&](const Command& command) { return arguments.words[0] == command.name; };
    const auto it = std::find_if(commands().begin(), commands().end(), named);
    if (it == commands().end()) throw UsageError{concat("unknown command '", arguments.words[0], "'")};
    std::printf("%s", help_text(*it).c_str());
    return 0;
  }
  std::printf("usage: capibara COMMAND ...\n\n");
  for (const Command& command : commands()) std::printf("  %-11s %s\n", command.name.c_str(), command.doc.c_str());
  std::printf(
      "\n'capibara help COMMAND' explains its options. Exit code: 0 success, 1 failures, 2 wrong command line.\n");
  return 0;
}

}  // namespace

std::string usage_text(const Command& command) {
  std::string text;
  for (const Form& form : command.forms) {
    const std::string first = concat(text.empty() ? "usage: " : "       ", "capibara ", command.name);
    text += folded(form_parts(command, form), first, std::min<std::size_t>(first.size() + 1, 24));
  }
  return text;
}

std::string help_text(const Command& command) {
  std::string text = folded(split(command.doc, ' '), "", 0);
  if (!command.details.empty()) text += folded(split(command.details, ' '), "", 0);
  text += "\n" + usage_text(command);
  if (!command.options.empty()) text += "\n";
  std::size_t width = 0;
  for (const Option& option : command.options)
    width = std::max(width, std::min<std::size_t>(written(option).size(), 24));
  for (const Option& option : command.options) {
    std::string first = "  " + written(option);
    first.resize(std::max(first.size(), width + 2), ' ');
    text += folded(split(meaning(option), ' '), first + "  ", width + 4);
  }
  return text;
}

Command help_command() {
  return {"help",
          "Prints the commands, or the options of one with their meanings and defaults.",
          {{"[COMMAND]"}, {"--completion"}, {"--man"}},
          {{"completion", "",
            "print a script that completes commands and options in bash: source <(capibara help --completion)", ""},
           {"man", "", "print the manual page: capibara help --man | man -l -", ""}},
          help};
}

Waiting::Waiting(std::string what) {
  if (isatty(STDERR_FILENO) == 0) return;
  thread_ = std::thread([this, what = std::move(what)] {
    std::unique_lock lock(mutex_);
    int seconds = 0;
    while (!over_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) {
      std::fprintf(stderr, "\r\033[K%s: %d s", what.c_str(), ++seconds);
      std::fflush(stderr);
    }
    if (seconds > 0) std::fprintf(stderr, "\r\033[K");
  });
}

Waiting::~Waiting() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  over_.notify_one();
  thread_.join();
}

}  // namespace capibara::command
