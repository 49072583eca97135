// Requests to the object store, repeated until they are answered or their deadline has passed.
#pragma once

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>

#include "io/files/http_client.h"
#include "io/files/json.h"
#include "io/files/object_store.h"

namespace capibara {

struct ObjectPath {
  std::string bucket, name;
};
ObjectPath split_object_path(const std::string& path);  // raises ValueError
std::string url_quoted(std::string_view text);
std::string store_endpoint();  // https://storage.googleapis.com, or the emulator
std::string object_url(const ObjectPath& path);
const std::string* header_of(const HttpReply& reply, const char* name);  // null if it has none

// One operation of the store.
class ObjectOperation {
 public:
  // "writing", the path.
  ObjectOperation(const char* what, const std::string& path);

  // Restarts the deadline after progress.
  void progress();
  // Sends until it gets one of the statuses. `repeats`: retries temporary failures here; otherwise they are
  // returned, as is a missing answer.
  HttpReply send(HttpRequest request, std::initializer_list<int> expected, bool repeats = true, bool with_token = true);
  // Waits before the next attempt; raises if it would come after the deadline.
  void wait(const HttpReply& reply);
  [[noreturn]] void fail(const HttpReply& reply) const;
  [[noreturn]] void fail(const std::string& message) const;

  Json parsed(const HttpReply& reply) const;
  ObjectInfo described(const Json& json) const;

 private:
  using Clock = std::chrono::steady_clock;
  double remaining() const { return std::chrono::duration<double>(deadline_ - Clock::now()).count(); }

  const char* const what_;
  const std::string& path_;
  const double seconds_, silence_;
  Clock::time_point deadline_;
  int attempts_ = 0;
  double pause_ = 0;
};

}  // namespace capibara
