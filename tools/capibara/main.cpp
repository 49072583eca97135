// The main of the program `capibara`.
#include "command.h"

int main(int count, char** values) { return capibara::command::run_program(count, values); }
