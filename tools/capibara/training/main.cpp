// The demo program: the commands that train and sample, without the rest of the library, so that it builds
// quickly.
#include "command.h"

namespace capibara::command {

const std::vector<Command>& commands() {
  static const std::vector<Command> table = [] {
    std::vector<Command> all = training_commands();
    all.push_back(help_command());
    return all;
  }();
  return table;
}

}  // namespace capibara::command

int main(int count, char** values) { return capibara::command::run_program(count, values); }
