// A plugin that computes nothing: it describes GPUs, of several processes via their key-value store, and records compilations.
//
// Written only against the offsets of PJRT's C interface, so that it checks the library's own header.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(type, args, offset) (*(type*)((char*)(args) + (offset)))
typedef void* (*Function)(void*);
typedef void (*Deleter)(char*);
enum { gpus_of_a_process = 2, max_devices = 64 };

typedef struct { int code; char text[256]; } Error;
typedef struct { int id, process; } Description;
typedef struct { Description* descriptions[max_devices]; size_t count; } Topology;
typedef struct { int process; void* devices[max_devices]; size_t count; void* own[gpus_of_a_process]; } Client;
typedef struct { char* bytes; size_t size; long long partitions; } Executable;

static Error* fail(int code, const char* text) {
  Error* error = calloc(1, sizeof(Error));
  error->code = code;
  snprintf(error->text, sizeof error->text, "%s", text);
  return error;
}
static Error* fail_for_store(int code, const char* message, size_t size) {
  char text[256];
  snprintf(text, sizeof text, "%.*s", (int)size, message);
  return fail(code, text);
}

static void* error_destroy(void* args) { free(AT(void*, args, 16)); return NULL; }
static void* error_message(void* args) {
  const Error* error = AT(const Error*, args, 16);
  AT(const char*, args, 24) = error->text;
  AT(size_t, args, 32) = strlen(error->text);
  return NULL;
}
static void* error_code(void* args) { AT(int, args, 24) = AT(const Error*, args, 16)->code; return NULL; }
static void* well(void* args) { (void)args; return NULL; }

// Named values have 56 bytes: name at +16, its size +24, type +32, value +40, its size +48.
static const char* option(void* options, size_t count, const char* name) {
  for (size_t i = 0; i < count; ++i) {
    const char* one = (const char*)options + 56 * i;
    if (AT(size_t, one, 24) == strlen(name) && memcmp(AT(const char*, one, 16), name, strlen(name)) == 0) return one;
  }
  return NULL;
}

static Description* describe(int id, int process) {
  Description* made = calloc(1, sizeof(Description));
  made->id = id;
  made->process = process;
  return made;
}

static void* client_create(void* args) {
  void* options = AT(void*, args, 16);
  const size_t count = AT(size_t, args, 24);
  const char* node = option(options, count, "node_id");
  const char* nodes = option(options, count, "num_nodes");
  const int own = node ? (int)AT(long long, node, 40) : 0, all = nodes ? (int)AT(long long, nodes, 40) : 1;
  Client* client = calloc(1, sizeof(Client));
  client->process = own;
  const Function get = AT(Function, args, 32);
  const Function put = AT(Function, args, 48);
  Error* (*callback)(int, const char*, size_t) = fail_for_store;
  if (all > 1) {
    if (!get || !put) return fail(9, "num_nodes needs a key-value store");
    char key[64], value[16];
    snprintf(key, sizeof key, "local_topology/cuda/%d", own);
    snprintf(value, sizeof value, "%d", gpus_of_a_process);
    char asked[256] = {0};
    AT(size_t, asked, 0) = 64;
    AT(const char*, asked, 16) = key;
    AT(size_t, asked, 24) = strlen(key);
    AT(const char*, asked, 32) = value;
    AT(size_t, asked, 40) = strlen(value);
    AT(void*, asked, 48) = &callback;
    AT(void*, asked, 56) = AT(void*, args, 56);
    void* error = put(asked);
    if (error) return error;
  }
  for (int process = 0; process < all; ++process) {
    int gpus = gpus_of_a_process;
    if (all > 1) {
      char key[64];
      snprintf(key, sizeof key, "local_topology/cuda/%d", process);
      char asked[256] = {0};
      AT(size_t, asked, 0) = 80;
      AT(const char*, asked, 16) = key;
      AT(size_t, asked, 24) = strlen(key);
      AT(int, asked, 32) = 60000;
      AT(void*, asked, 40) = &callback;
      AT(void*, asked, 48) = AT(void*, args, 40);
      void* error = get(asked);
      if (error) return error;
      char* value = AT(char*, asked, 56);
      gpus = value[0] - '0';
      AT(Deleter, asked, 72)(value);
    }
    for (int i = 0; i < gpus; ++i) {
      Description* device = describe((int)client->count, process);
      if (process == own) client->own[i] = device;
      client->devices[client->count++] = device;
    }
  }
  AT(Client*, args, 64) = client;
  return NULL;
}

static void* client_text(void* args) { AT(const char*, args, 24) = "described 1"; AT(size_t, args, 32) = 11; return NULL; }
static void* client_process(void* args) { AT(int, args, 24) = AT(Client*, args, 16)->process; return NULL; }
static void* client_devices(void* args) {
  AT(void*, args, 24) = AT(Client*, args, 16)->devices;
  AT(size_t, args, 32) = AT(Client*, args, 16)->count;
  return NULL;
}
static void* client_own_devices(void* args) {
  AT(void*, args, 24) = AT(Client*, args, 16)->own;
  AT(size_t, args, 32) = gpus_of_a_process;
  return NULL;
}
static void* description_of(void* args) { AT(void*, args, 24) = AT(void*, args, 16); return NULL; }
static void* description_id(void* args) { AT(int, args, 24) = AT(Description*, args, 16)->id; return NULL; }
static void* description_process(void* args) { AT(int, args, 24) = AT(Description*, args, 16)->process; return NULL; }
static void* description_text(void* args) { AT(const char*, args, 24) = "Described GPU"; AT(size_t, args, 32) = 13; return NULL; }
static void* no_memories(void* args) { AT(void*, args, 24) = NULL; AT(size_t, args, 32) = 0; return NULL; }
static void* unimplemented(void* args) { (void)args; return fail(12, "not described"); }

static void* topology_create(void* args) {
  const char* shape = option(AT(void*, args, 32), AT(size_t, args, 40), "topology");
  if (!shape) return fail(3, "the option topology is needed");
  int slices = 0, hosts = 0, gpus = 0;
  char text[32] = {0};
  memcpy(text, AT(const char*, shape, 40), AT(size_t, shape, 48) < 31 ? AT(size_t, shape, 48) : 31);
  if (sscanf(text, "%dx%dx%d", &slices, &hosts, &gpus) != 3) return fail(3, "topology must be three numbers");
  Topology* made = calloc(1, sizeof(Topology));
  for (int i = 0; i < slices * hosts * gpus && i < max_devices; ++i) made->descriptions[made->count++] = describe(i, i / gpus);
  AT(Topology*, args, 48) = made;
  return NULL;
}
static void* topology_devices(void* args) {
  AT(void*, args, 24) = AT(Topology*, args, 16)->descriptions;
  AT(size_t, args, 32) = AT(Topology*, args, 16)->count;
  return NULL;
}

// The program text is at +24 (code +16, its size +24), the options at +32 and +40; the executable keeps both.
static void* compile(void* args) {
  void* program = AT(void*, args, 24);
  if (memmem(AT(char*, program, 16), AT(size_t, program, 24), "refuse", 6)) return fail(3, "told to refuse");
  Executable* made = calloc(1, sizeof(Executable));
  made->size = AT(size_t, program, 24) + AT(size_t, args, 40);
  made->bytes = malloc(made->size);
  memcpy(made->bytes, AT(char*, program, 16), AT(size_t, program, 24));
  memcpy(made->bytes + AT(size_t, program, 24), AT(char*, args, 32), AT(size_t, args, 40));
  AT(Executable*, args, 56) = made;
  return NULL;
}
static void* executable_destroy(void* args) {
  free(AT(Executable*, args, 16)->bytes);
  free(AT(Executable*, args, 16));
  return NULL;
}
static void* executable_memory(void* args) {
  for (int i = 0; i < 5; ++i) AT(long long, args, 24 + 8 * i) = 100 + i;  // code, argument, output, alias, temp
  AT(long long, args, 104) = 999;                                        // peak
  return NULL;
}
static void no_deleter(char* holder) { (void)holder; }
static void* executable_serialize(void* args) {
  const Executable* executable = AT(const Executable*, args, 16);
  AT(const char*, args, 24) = executable->bytes;
  AT(size_t, args, 32) = executable->size;
  AT(Deleter, args, 48) = no_deleter;
  return NULL;
}

// ---- the profiler: arguments begin with only their size; it returns the bytes of one plane ------------------------

static const char space[] = "\x0a\x0f\x12\x0d/device:GPU:0";
static void* profiler_create(void* args) {
  static int profiler;
  if (AT(size_t, args, 16) == 0) return fail(3, "options are needed");
  AT(void*, args, 24) = &profiler;
  return NULL;
}
static void* profiler_start(void* args) { (void)args; return getenv("DESCRIBED_PROFILER_REFUSES") ? fail(7, "told not to trace") : NULL; }
static void* profiler_collect(void* args) {
  static char lent[] = "\x0a\x0f\x12\x0d/device:GPU:0\x12\x0dno privileges";  // as XLA lends it: with a terminating zero
  if (getenv("DESCRIBED_PROFILER_LENDS") && !AT(void*, args, 16)) {
    AT(void*, args, 16) = lent;
    AT(size_t, args, 24) = sizeof lent;
    return NULL;
  }
  if (AT(void*, args, 16)) memcpy(AT(void*, args, 16), space, sizeof space - 1);
  AT(size_t, args, 24) = sizeof space - 1;
  return NULL;
}
static void* profiler_extension(void) {
  static char api[80], extension[32];
  const Function functions[] = {error_destroy, error_message, error_code, profiler_create, well, profiler_start, well, profiler_collect};
  AT(size_t, api, 0) = sizeof api;
  memcpy(api + 16, functions, sizeof functions);
  AT(size_t, extension, 0) = sizeof extension;
  AT(int, extension, 8) = 1;
  AT(void*, extension, 24) = api;
  return extension;
}

const void* GetPjrtApi(void) {
  static char api[1144];
  AT(size_t, api, 0) = sizeof api;
  AT(void*, api, 8) = profiler_extension();
  AT(int, api, 36) = 90;  // version 0.90
  for (size_t offset = 40; offset < sizeof api; offset += 8) AT(Function, api, offset) = unimplemented;
  const struct { size_t offset; Function function; } table[] = {
      {40, error_destroy}, {48, error_message}, {56, error_code}, {64, well}, {120, client_create}, {144, client_process}, {152, client_text},
      {160, client_devices}, {168, client_own_devices}, {224, description_id}, {232, description_process}, {248, description_text},
      {256, description_text}, {272, description_of}, {296, no_memories}, {360, executable_destroy}, {432, executable_serialize},
      {696, topology_create}, {704, well}, {720, client_text}, {728, topology_devices}, {752, compile}, {808, executable_memory}, {920, well}, {928, well}};
  for (size_t i = 0; i < sizeof table / sizeof table[0]; ++i) AT(Function, api, table[i].offset) = table[i].function;
  return api;
}
