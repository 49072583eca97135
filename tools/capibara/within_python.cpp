// The entry of the program `capibara` inside of the Python extension: a package needs no second copy of the library.
#include "command.h"

// Called by capibara._command through ctypes: the arguments of main, and the folder of the package's data.
extern "C" __attribute__((visibility("default"))) int capibara_run_command(int count, char** values, const char* data) {
  capibara::command::set_installation({count > 0 ? values[0] : "", data});
  return capibara::command::run_program(count, values);
}
