// The MPI module: the table over whichever MPI it was built with.
#include <mpi.h>

#include <climits>
#include <string>
#include <vector>

#include "core/processes/mpi/table.h"

namespace capibara::mpi {

struct Group {
  MPI_Comm comm;
  MPI_Win window;
};
struct Request {
  MPI_Request request;
};

namespace {

constexpr std::size_t large_block = std::size_t{1} << 20;  // bytes
constexpr int tag = 1;
bool was_running = false;  // before us: whoever started MPI ends it
MPI_Comm world;            // a copy: the user's messages stay apart from ours

const char* say(int status) {
  static char text[MPI_MAX_ERROR_STRING + 1];
  if (status == MPI_SUCCESS) return nullptr;
  int size = 0;
  if (MPI_Error_string(status, text, &size) != MPI_SUCCESS) return "unknown error of MPI";
  return text;
}

// MPI counts are int: larger sizes become blocks and a remainder, in one datatype.
class Bytes {
 public:
  explicit Bytes(std::size_t bytes) {
    if (bytes <= INT_MAX) {
      count_ = static_cast<int>(bytes);
      return;
    }
    MPI_Datatype block;
    MPI_Type_contiguous(static_cast<int>(large_block), MPI_BYTE, &block);
    const int sizes[] = {static_cast<int>(bytes / large_block), static_cast<int>(bytes % large_block)};
    const MPI_Aint places[] = {0, static_cast<MPI_Aint>(bytes / large_block * large_block)};
    const MPI_Datatype types[] = {block, MPI_BYTE};
    MPI_Type_create_struct(2, sizes, places, types, &type_);
    MPI_Type_commit(&type_);
    MPI_Type_free(&block);
    count_ = 1;
  }
  ~Bytes() {
    if (type_ != MPI_BYTE) MPI_Type_free(&type_);
  }
  Bytes(const Bytes&) = delete;
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  int count_ = 0;
  MPI_Datatype type_ = MPI_BYTE;
};

// The start of the library's version string: "Open MPI v4".
std::string kind_of(const std::string& library) {
  const std::size_t comma = library.find_first_of(",\n");
  const std::string head = library.substr(0, comma);
  const std::size_t dot = head.find('.');
  return head.substr(0, dot);
}

const char* library(bool* as_built) {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING + 1];
  int size = 0;
  if (MPI_Get_library_version(text, &size) != MPI_SUCCESS) return "unknown library";
#ifdef OPEN_MPI
  *as_built = kind_of(text) == "Open MPI v" + std::to_string(OMPI_MAJOR_VERSION);
#elif defined(MPICH_VERSION)
  *as_built = std::string(text).find("MPICH Version") != std::string::npos;
#else
  *as_built = true;
#endif
  return text;
}

const char* start(int* process, int* count) {
  int running = 0, level = MPI_THREAD_SINGLE;
  if (const char* wrong = say(MPI_Initialized(&running))) return wrong;
  was_running = running != 0;
  if (was_running) {
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED)
      return "MPI was started by the program with a thread level below MPI_THREAD_SERIALIZED";
  } else if (const char* wrong = say(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level))) {
    return wrong;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (const char* wrong = say(MPI_Comm_dup(MPI_COMM_WORLD, &world))) return wrong;
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Comm_rank(world, process);
  return say(MPI_Comm_size(world, count));
}

const char* stop() { return was_running ? nullptr : say(MPI_Finalize()); }

const char* make_group(const int* members, int count, Group** group, bool* on_one_node) {
  MPI_Group all, some;
  MPI_Comm_group(world, &all);
  MPI_Group_incl(all, count, members, &some);
  auto* made = new Group{MPI_COMM_NULL, MPI_WIN_NULL};
  const char* wrong = say(MPI_Comm_create_group(world, some, tag, &made->comm));
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  if (wrong) return wrong;
  MPI_Comm_set_errhandler(made->comm, MPI_ERRORS_RETURN);
  MPI_Comm node;
  if ((wrong = say(MPI_Comm_split_type(made->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node)))) return wrong;
  int near = 0;
  MPI_Comm_size(node, &near);
  MPI_Comm_free(&node);
  *on_one_node = near == count;
  *group = made;
  return nullptr;
}

const char* make_window(Group* group, std::size_t bytes, void** bases) {
  void* own = nullptr;
  int count = 0;
  MPI_Comm_size(group->comm, &count);
  if (const char* wrong = say(
          MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, group->comm, &own, &group->window)))
    return wrong;
  for (int i = 0; i < count; ++i) {
    MPI_Aint size = 0;
    int unit = 0;
    if (const char* wrong = say(MPI_Win_shared_query(group->window, i, &size, &unit, &bases[i]))) return wrong;
  }
  return say(MPI_Win_lock_all(MPI_MODE_NOCHECK, group->window));
}

const char* all_gather(Group* group, const void* from, void* to, std::size_t bytes, Request** request) {
  const Bytes each(bytes);
  *request = new Request;
  return say(MPI_Iallgather(from, each.count(), each.type(), to, each.count(), each.type(), group->comm,
                            &(*request)->request));
}

const char* all_to_all(Group* group, const void* from, void* to, std::size_t bytes, Request** request) {
  const Bytes each(bytes);
  *request = new Request;
  return say(
      MPI_Ialltoall(from, each.count(), each.type(), to, each.count(), each.type(), group->comm, &(*request)->request));
}

const char* broadcast(Group* group, void* data, std::size_t bytes, int root, Request** request) {
  const Bytes all(bytes);
  *request = new Request;
  return say(MPI_Ibcast(data, all.count(), all.type(), root, group->comm, &(*request)->request));
}

const char* send(Group* group, const void* from, std::size_t bytes, int to, Request** request) {
  const Bytes all(bytes);
  *request = new Request;
  return say(MPI_Isend(from, all.count(), all.type(), to, tag, group->comm, &(*request)->request));
}

const char* receive(Group* group, void* to, std::size_t bytes, int from, Request** request) {
  const Bytes all(bytes);
  *request = new Request;
  return say(MPI_Irecv(to, all.count(), all.type(), from, tag, group->comm, &(*request)->request));
}

const char* barrier(Group* group, Request** request) {
  *request = new Request;
  return say(MPI_Ibarrier(group->comm, &(*request)->request));
}

const char* test(Request** request, bool* done) {
  int flag = 0;
  const char* wrong = say(MPI_Test(&(*request)->request, &flag, MPI_STATUS_IGNORE));
  *done = flag != 0;
  if (*done || wrong) {
    delete *request;
    *request = nullptr;
  }
  return wrong;
}

constexpr Table table{table_version, library,   start, stop,    make_group, make_window, all_gather,
                      all_to_all,    broadcast, send,  receive, barrier,    test};

}  // namespace

extern "C" const Table* capibara_mpi_table() { return &table; }

}  // namespace capibara::mpi
