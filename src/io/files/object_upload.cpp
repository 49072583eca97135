// Uploads: small objects in one request, large ones in parts that resume where they were cut off.
#include <algorithm>
#include <charconv>

#include "io/files/crc32c.h"
#include "io/files/object_operation.h"

namespace capibara {

namespace {

constexpr uint64_t part_bytes = uint64_t{8} << 20;   // of a large upload; a multiple of 256 KiB
constexpr uint64_t small_bytes = uint64_t{1} << 20;  // what is sent in one request
constexpr int max_uploads = 3;                       // from the beginning, where checksums differ or sessions end

class Upload {
 public:
  Upload(const std::string& path, const std::vector<iovec>& pieces, bool only_new)
      : path_(path),
        pieces_(pieces),
        only_new_(only_new),
        target_(split_object_path(path)),
        operation_("writing", path) {
    for (const iovec& piece : pieces) {
      size_ += piece.iov_len;
      checksum_ = crc32c({static_cast<const std::byte*>(piece.iov_base), piece.iov_len}, checksum_);
    }
  }

  ObjectInfo run() {
    for (int tries = 1;; ++tries) {
      const std::optional<HttpReply> reply = size_ <= small_bytes ? at_once() : in_parts();
      if (!reply) {  // the store has forgotten the upload
        if (tries == max_uploads) operation_.fail("the store forgot the upload again and again");
        continue;
      }
      if (reply->status == 412) return earlier(*reply);
      const ObjectInfo info = operation_.described(operation_.parsed(*reply));
      if (info.size == size_ && (!info.checksum || *info.checksum == checksum_)) return info;
      if (tries == max_uploads) {
        remove_object(path_);
        operation_.fail(concat("the store has ", info.size, " bytes with another checksum than the ", size_,
                               " bytes sent, after ", tries, " attempts"));
      }
      if (only_new_) remove_object(path_);  // the existing object is ours, and wrong
    }
  }

 private:
  // If an attempt whose answer was lost succeeded, the object exists already.
  ObjectInfo earlier(const HttpReply& reply) {
    const std::optional<ObjectInfo> info = stat_object(path_);
    if (info && info->size == size_ && info->checksum == checksum_) return *info;
    operation_.fail(reply);
  }

  std::string address(const char* type) const {
    return concat(store_endpoint(), "/upload/storage/v1/b/", url_quoted(target_.bucket), "/o?uploadType=", type,
                  "&name=", url_quoted(target_.name), only_new_ ? "&ifGenerationMatch=0" : "");
  }

  std::optional<HttpReply> at_once() {
    HttpRequest request;
    request.method = "POST";
    request.url = address("media");
    request.headers = {"Content-Type: application/octet-stream"};
    request.body = pieces_;
    return operation_.send(request, {200, 201, 412});
  }

  // The bytes from `from` on, at most `bytes` of them.
  std::vector<iovec> part(uint64_t from, uint64_t bytes) const {
    std::vector<iovec> result;
    for (const iovec& piece : pieces_) {
      if (from >= piece.iov_len) {
        from -= piece.iov_len;
        continue;
      }
      const uint64_t size = std::min<uint64_t>(bytes, piece.iov_len - from);
      if (size == 0) break;
      result.push_back({static_cast<char*>(piece.iov_base) + from, size});
      bytes -= size;
      from = 0;
    }
    return result;
  }

  // The address to which the parts are sent.
  std::optional<std::string> session() {
    HttpRequest request;
    request.method = "POST";
    request.url = address("resumable");
    const std::string body = Json(Json::Object{{"name", target_.name}}).dump();
    request.headers = {"Content-Type: application/json; charset=UTF-8", concat("X-Upload-Content-Length: ", size_)};
    request.body = {iovec{const_cast<char*>(body.data()), body.size()}};
    const HttpReply reply = operation_.send(request, {200, 201, 412});
    if (reply.status == 412) return std::nullopt;
    const std::string* location = header_of(reply, "location");
    if (!location) operation_.fail("the store named no place for an upload in parts");
    if (!location->starts_with("https://") && !location->starts_with(store_endpoint() + "/"))
      operation_.fail("the store named a place for the upload that is neither its own nor encrypted");
    return *location;
  }

  // The number of bytes that the store has, from an answer 308.
  static uint64_t bytes_held(const HttpReply& reply) {
    const std::string* range = header_of(reply, "range");
    const std::size_t dash = range ? range->find('-') : std::string::npos;
    uint64_t last = 0;
    if (dash == std::string::npos) return 0;
    const auto read = std::from_chars(range->data() + dash + 1, range->data() + range->size(), last);
    return read.ec == std::errc() ? last + 1 : 0;
  }

  // Empty if the upload must start over.
  std::optional<HttpReply> in_parts() {
    const std::optional<std::string> where = session();
    if (!where) {
      HttpReply refused;
      refused.status = 412;
      return refused;
    }
    const bool own = where->starts_with(store_endpoint() + "/");
    uint64_t at = 0;
    bool asks = false;  // after an unanswered part: queries how much has arrived
    while (true) {
      const uint64_t bytes = asks ? 0 : std::min(part_bytes, size_ - at);
      HttpRequest request;
      request.method = "PUT";
      request.url = *where;
      if (asks)
        request.headers = {concat("Content-Range: bytes */", size_)};
      else
        request.headers = {concat("Content-Range: bytes ", at, "-", at + bytes - 1, "/", size_)};
      if (!asks) request.body = part(at, bytes);
      HttpReply reply = operation_.send(request, {200, 201, 308, 404, 410, 412}, false, own);
      if (reply.status == 200 || reply.status == 201 || reply.status == 412) return reply;
      if (reply.status == 404 || reply.status == 410) return std::nullopt;
      if (reply.status != 308) {
        asks = true;
        continue;
      }
      const uint64_t held = bytes_held(reply);
      if (held > size_ || held < at) return std::nullopt;  // the store has lost bytes that it had
      if (held == size_ && !asks) {
        asks = true;  // all is there, and no description came
        operation_.wait(reply);
        continue;
      }
      if (held > at) operation_.progress();
      if (held == at && !asks) operation_.wait(reply);  // nothing of the part was stored
      if (held == size_) operation_.wait(reply);
      asks = held == size_;
      at = held;
    }
  }

  const std::string& path_;
  const std::vector<iovec>& pieces_;
  const bool only_new_;
  const ObjectPath target_;
  ObjectOperation operation_;
  uint64_t size_ = 0;
  uint32_t checksum_ = 0;
};

}  // namespace

ObjectInfo write_object(const std::string& path, const std::vector<iovec>& pieces, bool only_new) {
  return Upload(path, pieces, only_new).run();
}

}  // namespace capibara
