// The JSON interface of Cloud Storage: looks up, reads, removes and lists objects.
#include "io/files/object_store.h"

#include <algorithm>

#include "io/files/crc32c.h"
#include "io/files/object_operation.h"

namespace capibara {

std::optional<ObjectInfo> stat_object(const std::string& path) {
  const ObjectPath object = split_object_path(path);
  if (object.name.empty()) return std::nullopt;
  ObjectOperation operation("looking at", path);
  HttpRequest request;
  request.url = object_url(object);
  const HttpReply reply = operation.send(request, {200, 404});
  if (reply.status == 404) return std::nullopt;
  return operation.described(operation.parsed(reply));
}

void read_object(const std::string& path, const ObjectInfo& info, uint64_t offset, std::span<std::byte> to) {
  ObjectOperation operation("reading", path);
  HttpRequest request;
  request.url = object_url(split_object_path(path)) + "?alt=media";
  if (!info.generation.empty()) request.url += "&generation=" + info.generation;
  while (!to.empty()) {
    request.into = to;
    request.headers = {concat("Range: bytes=", offset, "-", offset + to.size() - 1)};
    const HttpReply reply = operation.send(request, {200, 206, 416});
    if (reply.status == 416) operation.fail(concat("it ends before byte ", offset + to.size()));
    if (reply.status == 200 && (offset != 0 || reply.received != to.size()))
      operation.fail("the server does not support range requests");
    if (reply.received == 0) {
      HttpReply empty;
      empty.problem = "the answer was empty";
      operation.wait(empty);
      continue;
    }
    offset += reply.received;
    to = to.subspan(reply.received);
    operation.progress();
  }
}

std::string read_object(const std::string& path) {
  const std::optional<ObjectInfo> info = stat_object(path);
  if (!info) throw ObjectStoreError(concat("reading ", path, " failed: there is no such object"), 404);
  std::string text;  // grows as data arrives: the store may claim any size
  while (text.size() < info->size) {
    constexpr uint64_t piece = uint64_t{1} << 26;
    const std::size_t before = text.size();
    text.resize(before + std::min(piece, info->size - before));
    read_object(path, *info, before, std::as_writable_bytes(std::span(text)).subspan(before));
  }
  if (info->checksum && crc32c(std::as_bytes(std::span(text))) != *info->checksum)
    throw ObjectStoreError(concat("reading ", path, " failed: the checksum is not the store's"), 0);
  return text;
}

// The store may need several requests for a large object: each continues from the token of the one before.
std::optional<ObjectInfo> copy_object(const std::string& from, const std::string& to, uint64_t size,
                                      uint32_t checksum) {
  const std::optional<ObjectInfo> source = stat_object(from);
  if (!source || source->size != size || source->checksum != checksum) return std::nullopt;
  const ObjectPath target = split_object_path(to);
  ObjectOperation operation("copying to", to);
  const std::string address =
      concat(object_url(split_object_path(from)), "/rewriteTo/b/", url_quoted(target.bucket), "/o/",
             url_quoted(target.name), "?", source->generation.empty() ? "" : "sourceGeneration=", source->generation);
  std::string token;
  while (true) {
    HttpRequest request;
    request.method = "POST";
    request.url = token.empty() ? address : concat(address, "&rewriteToken=", url_quoted(token));
    request.headers = {"Content-Type: application/json; charset=UTF-8"};
    const HttpReply reply = operation.send(request, {200, 404});
    if (reply.status == 404) return std::nullopt;  // it was removed in the meantime
    operation.progress();
    const Json answer = operation.parsed(reply);
    if (const Json* resource = answer.find("resource")) {
      const ObjectInfo info = operation.described(*resource);
      if (info.size != size || (info.checksum && *info.checksum != checksum))
        operation.fail(
            concat("the copy has ", info.size, " bytes with another checksum than the ", size, " of ", from));
      return info;
    }
    const Json* next = answer.find("rewriteToken");
    if (!next || !next->text() || next->text()->empty())
      operation.fail("the store neither finished the copy nor continued it");
    token = *next->text();
  }
}

void remove_object(const std::string& path) {
  ObjectOperation operation("removing", path);
  HttpRequest request;
  request.method = "DELETE";
  request.url = object_url(split_object_path(path));
  operation.send(request, {200, 204, 404});
}

ObjectListing list_objects(const std::string& folder, bool recursive) {
  const ObjectPath path = split_object_path(folder);
  std::string prefix = path.name;
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  ObjectOperation operation("listing", folder);
  ObjectListing listing;
  std::string page;
  do {
    HttpRequest request;
    request.url = concat(store_endpoint(), "/storage/v1/b/", url_quoted(path.bucket), "/o?prefix=", url_quoted(prefix),
                         recursive ? "" : "&delimiter=%2F", page.empty() ? "" : "&pageToken=", url_quoted(page));
    const Json answer = operation.parsed(operation.send(request, {200}));
    operation.progress();
    if (const Json* items = answer.find("items"); items && items->list()) {
      for (const Json& item : *items->list()) listing.objects.push_back(operation.described(item));
    }
    if (const Json* prefixes = answer.find("prefixes"); prefixes && prefixes->list()) {
      for (const Json& one : *prefixes->list()) {
        if (!one.text() || one.text()->size() <= prefix.size() || !one.text()->starts_with(prefix)) continue;
        std::string name = one.text()->substr(prefix.size());
        if (name.ends_with('/')) name.pop_back();
        listing.folders.push_back(std::move(name));
      }
    }
    const Json* next = answer.find("nextPageToken");
    page = next && next->text() ? *next->text() : "";
  } while (!page.empty());
  return listing;
}

}  // namespace capibara
