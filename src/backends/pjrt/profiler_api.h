// Layouts of the profiler extension: arguments begin with their size alone, those about errors with a Head.
#pragma once

#include "backends/pjrt/api.h"

namespace capibara::pjrt::abi {

struct Profiler;
struct ProfilerCreate { std::size_t struct_size; const char* options; std::size_t options_size; Profiler* profiler; };
struct ProfilerCall { std::size_t struct_size; Profiler* profiler; };
struct ProfilerCollect { std::size_t struct_size; Profiler* profiler; uint8_t* buffer; std::size_t size; };
struct ProfilerApi {
  std::size_t struct_size;
  void* reserved;
  void (*error_destroy)(ErrorDestroy*);
  void (*error_message)(ErrorMessage*);
  Error* (*error_code)(ErrorCode*);
  Error* (*create)(ProfilerCreate*);
  Error* (*destroy)(ProfilerCall*);
  Error* (*start)(ProfilerCall*);
  Error* (*stop)(ProfilerCall*);
  Error* (*collect)(ProfilerCollect*);
};
static_assert(offsetof(ProfilerApi, create) == 40 && offsetof(ProfilerApi, collect) == 72);
struct ProfilerExtension : Extension {
  const ProfilerApi* api;
};
static_assert(sizeof(ProfilerExtension) == 32);

}  // namespace capibara::pjrt::abi
