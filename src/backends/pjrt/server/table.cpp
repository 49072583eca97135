// GetPjrtApi, the plugin's only symbol: the table of its functions, of PJRT 0.91.
#include <cstring>

#include "backends/pjrt/server/objects.h"

namespace capibara::pjrt::server {

void Table::set(abi::Function where, void* function) {
  std::memcpy(bytes_ + static_cast<std::size_t>(where), &function, sizeof function);
}

void Table::extend(abi::Extension& extension) {
  extension.next = head().extension_start;
  head().extension_start = &extension;
}

namespace {

// Refuses unsupported functions: fits every slot of the table.
abi::Error* refuse(void*) {
  return make_error(std::make_exception_ptr(
      Failure(Code::unimplemented, "this function of PJRT's interface is not supported by capibara's plugin")));
}

const abi::Api* make_table() {
  static Table table;
  abi::Api& head = table.head();
  head.struct_size = Table::size;
  head.version_struct_size = 24;
  head.major_version = 0;
  head.minor_version = 91;
  for (std::size_t at = sizeof head; at < Table::size; at += sizeof(void*))
    table.set(static_cast<abi::Function>(at), reinterpret_cast<void*>(&refuse));
  add_event_functions(table);
  add_client_functions(table);
  add_buffer_functions(table);
  add_executable_functions(table);
  return table.api();
}

}  // namespace

}  // namespace capibara::pjrt::server

extern "C" __attribute__((visibility("default"))) const capibara::pjrt::abi::Api* GetPjrtApi() {
  static const capibara::pjrt::abi::Api* api = capibara::pjrt::server::make_table();
  return api;
}
