// The function table of the MPI module: what the exchange asks of MPI, with no type of MPI's in it.
#pragma once

#include <cstddef>

namespace capibara::mpi {

struct Group;    // a communicator
struct Request;  // an operation under way

// All are called on one thread. Those that return text return null, or what went wrong.
struct Table {
  int version;
  // The version of the library that is loaded, and whether it is the kind that the module was built for.
  const char* (*library)(bool* as_built);
  const char* (*start)(int* process, int* count);
  const char* (*stop)();

  // A communicator of these processes of the job, in this order; its members all ask for it. `on_one_node`: share
  // memory.
  const char* (*make_group)(const int* members, int count, Group** group, bool* on_one_node);
  // Memory that all members of a group on one node see: `bytes` of each, at bases[position].
  const char* (*make_window)(Group* group, std::size_t bytes, void** bases);

  // These start, and `test` says whether what was started is done; a request that is done is gone. Sizes are of one
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
