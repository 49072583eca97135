/* A stand-in for libtpu, for tests of the compiling child: FAKE_LIBTPU says how it misbehaves, or where a recorded dump is. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void copy_dump(const char* from) {
  const char* options = getenv("CAPIBARA_XLA_OPTIONS");
  const char* key = options ? strstr(options, "xla_dump_to=") : NULL;
  char folder[512] = "", command[2048];
  if (key) sscanf(key + strlen("xla_dump_to="), "%511s", folder);
  snprintf(command, sizeof command, "cp %s/*.txt %s/", from, folder);
  if (system(command) != 0) exit(4);
}

const void* GetPjrtApi(void) {
  const char* how = getenv("FAKE_LIBTPU");
  if (how == NULL) exit(5);
  if (strcmp(how, "crash") == 0) raise(SIGSEGV);
  if (strcmp(how, "kill") == 0) raise(SIGKILL);
  if (strcmp(how, "silent") == 0) _exit(3);
  if (strcmp(how, "lock") == 0) {
    fprintf(stderr, "ABORTED: Internal error when accessing libtpu multi-process lockfile. Run \"$ sudo rm /tmp/libtpu_lockfile\".\n");
    _exit(1);
  }
  if (strcmp(how, "refuse") == 0) {
    fprintf(stderr, "INVALID_ARGUMENT: No such compile option: 'xla_tpu_wish'\n#0 0x7f stack\n#1 0x7f trace\n");
    _exit(1);
  }
  if (how[0] == '/') copy_dump(how);
  for (;;) pause();
}
