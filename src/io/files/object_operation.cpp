// Object-store URLs, retry policy and error messages.
#include "io/files/object_operation.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "io/files/base64.h"
#include "io/files/google_credentials.h"

namespace capibara {

namespace {

constexpr std::string_view object_scheme = "gs://";
constexpr double first_pause = 0.1, max_pause = 8;  // seconds

// Why the store refused, in its own words.
std::string refusal(const HttpReply& reply) {
  if (reply.status == 0) return reply.problem;
  std::string text = concat("status ", reply.status);
  try {
    const Json answer = Json::parse(reply.body, "answer");
    const Json* error = answer.find("error");
    const Json* message = error ? error->find("message") : nullptr;
    if (message && message->text()) text += ", " + message->text()->substr(0, 300);
  } catch (const ValueError&) {  // not JSON: the status is reported
  }
  return text;
}

const char* status_hint(int status) {
  switch (status) {
    case 401:
      return "; the token was refused twice: make new credentials";
    case 403:
      return "; give the account the role roles/storage.objectAdmin on the bucket";
    case 404:
      return "; is the name of the bucket right?";
    case 412:
      return "; another process has written the object in the meantime";
    default:
      return "";
  }
}

bool may_pass(int status) { return status == 0 || status == 408 || status == 429 || status >= 500; }

}  // namespace

bool is_object_path(std::string_view path) { return path.starts_with(object_scheme); }

ObjectPath split_object_path(const std::string& path) {
  const std::string_view rest = std::string_view(path).substr(object_scheme.size());
  const std::size_t slash = rest.find('/');
  const std::string_view bucket = rest.substr(0, slash);
  const bool plain = std::all_of(bucket.begin(), bucket.end(), [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '-' || c == '_' || c == '.';
  });
  if (bucket.empty() || bucket.size() > 222 || !plain)
    throw ValueError(concat("object store: '", path,
                            "': expected gs://BUCKET/NAME with a bucket of lower-case letters, "
                            "digits, '-', '_' and '.'"));
  return {std::string(bucket), slash == std::string_view::npos ? "" : std::string(rest.substr(slash + 1))};
}

std::string url_quoted(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~')
      out += c;
    else
      out += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return out;
}

std::string store_endpoint() {
  const char* given = secure_getenv("STORAGE_EMULATOR_HOST");
  if (!given || !*given) return "https://storage.googleapis.com";
  std::string address = given;
  if (!address.starts_with("http://") && !address.starts_with("https://")) address = "http://" + address;
  while (address.ends_with('/')) address.pop_back();
  return address;
}

std::string object_url(const ObjectPath& path) {
  return concat(store_endpoint(), "/storage/v1/b/", url_quoted(path.bucket), "/o/", url_quoted(path.name));
}

const std::string* header_of(const HttpReply& reply, const char* name) {
  const auto it = reply.headers.find(name);
  return it == reply.headers.end() ? nullptr : &it->second;
}

ObjectOperation::ObjectOperation(const char* what, const std::string& path)
    : what_(what), path_(path), seconds_(store_deadline_seconds()), silence_(std::clamp(seconds_ / 4, 1.0, 20.0)) {
  progress();
}

void ObjectOperation::progress() {
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds_));
  attempts_ = 0;
  pause_ = first_pause;
}

HttpReply ObjectOperation::send(HttpRequest request, std::initializer_list<int> expected, bool repeats,
                                bool with_token) {
  const std::vector<std::string> headers = request.headers;
  std::string refused;
  while (true) {
    std::string token;
    if (with_token) token = google_token(refused);
    request.headers = headers;
    if (!token.empty()) request.headers.push_back("Authorization: Bearer " + token);
    request.timeout_seconds = std::max(remaining(), 0.01);
    request.silence_seconds = silence_;
    HttpReply reply = send_request(request);
    ++attempts_;
    if (std::find(expected.begin(), expected.end(), reply.status) != expected.end()) return reply;
    if (reply.status == 401 && !token.empty() && refused.empty()) {
      refused = token;
      continue;
    }
    if (!may_pass(reply.status)) fail(reply);
    wait(reply);
    if (!repeats) return reply;
  }
}

void ObjectOperation::wait(const HttpReply& reply) {
  static thread_local std::minstd_rand draw(static_cast<uint32_t>(::getpid()) ^
                                            static_cast<uint32_t>(Clock::now().time_since_epoch().count()));
  double pause = pause_ * std::uniform_real_distribution<double>(0.5, 1)(draw);
  if (const std::string* after = header_of(reply, "retry-after")) {
    double requested = 0;
    const auto read = std::from_chars(after->data(), after->data() + after->size(), requested);
    if (read.ec == std::errc() && requested > 0) pause = std::max(pause, requested);
  }
  pause_ = std::min(2 * pause_, max_pause);
  if (pause >= remaining()) {
    throw ObjectStoreError(concat(what_, " ", path_, " failed: no success within ", seconds_, " s and ", attempts_,
                                  attempts_ == 1 ? " attempt" : " attempts", ", the last: ", refusal(reply),
                                  "; CAPIBARA_STORE_DEADLINE allows more"),
                           reply.status);
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(pause));
}

void ObjectOperation::fail(const HttpReply& reply) const {
  throw ObjectStoreError(concat(what_, " ", path_, " failed: ", refusal(reply), status_hint(reply.status)),
                         reply.status);
}

void ObjectOperation::fail(const std::string& message) const {
  throw ObjectStoreError(concat(what_, " ", path_, " failed: ", message), 0);
}

Json ObjectOperation::parsed(const HttpReply& reply) const {
  try {
    return Json::parse(reply.body, "answer");
  } catch (const ValueError&) {
    fail("the answer is not JSON");
  }
}

ObjectInfo ObjectOperation::described(const Json& json) const {
  ObjectInfo info;
  const Json *name = json.find("name"), *size = json.find("size"), *checksum = json.find("crc32c"),
             *generation = json.find("generation");
  if (!name || !name->text() || !size) fail("the answer describes no object");
  info.name = *name->text();
  if (const int64_t* number = size->integer()) {
    info.size = static_cast<uint64_t>(std::max<int64_t>(*number, 0));
  } else if (const std::string* text = size->text()) {
    const auto read = std::from_chars(text->data(), text->data() + text->size(), info.size);
    if (read.ec != std::errc() || read.ptr != text->data() + text->size())
      fail("the size of an object is not a number");
  }
  if (generation && generation->text()) info.generation = *generation->text();
  if (generation && generation->integer()) info.generation = std::to_string(*generation->integer());
  if (info.generation.find_first_not_of("0123456789") != std::string::npos) info.generation.clear();
  if (checksum && checksum->text()) {
    const std::optional<std::string> bytes = from_base64(*checksum->text());
    if (bytes && bytes->size() == 4) {
      uint32_t value = 0;  // the first byte is the highest
      for (const char byte : *bytes) value = value << 8 | static_cast<unsigned char>(byte);
      info.checksum = value;
    }
  }
  return info;
}

}  // namespace capibara
