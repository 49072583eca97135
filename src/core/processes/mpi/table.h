// The function table of the MPI module: what the exchange needs from MPI, free of MPI's types.
#pragma once

#include <cstddef>

namespace capibara::mpi {

struct Group;    // a communicator
struct Request;  // an operation in flight

// All are called on one thread. Those that return text return null on success, else what went wrong.
struct Table {
  int version;
  // The version of the library that is loaded, and whether it is the kind that the module was built for.
  const char* (*library)(bool* as_built);
  const char* (*start)(int* process, int* count);
  const char* (*stop)();

  // A communicator of these processes of the job, in this order; all members call it. `on_one_node`: they share
  // memory.
  const char* (*make_group)(const int* members, int count, Group** group, bool* on_one_node);
  // Memory that all members of a group on one node can access: `bytes` of each, at bases[position].
  const char* (*make_window)(Group* group, std::size_t bytes, void** bases);

  // These start an operation; `test` reports whether it is done, and then frees the request. Sizes are of one
  // block.
  const char* (*all_gather)(Group* group, const void* from, void* to, std::size_t bytes, Request** request);
  const char* (*all_to_all)(Group* group, const void* from, void* to, std::size_t bytes, Request** request);
  const char* (*broadcast)(Group* group, void* data, std::size_t bytes, int root, Request** request);
  const char* (*send)(Group* group, const void* from, std::size_t bytes, int to, Request** request);
  const char* (*receive)(Group* group, void* to, std::size_t bytes, int from, Request** request);
  const char* (*barrier)(Group* group, Request** request);
  const char* (*test)(Request** request, bool* done);
};

inline constexpr int table_version = 1;
// The module exports one function of this name and type.
inline constexpr const char* table_symbol = "capibara_mpi_table";
using TableFunction = const Table* (*)();

}  // namespace capibara::mpi
