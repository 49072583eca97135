// Writing and verifying the files of a training run.
#include "models/training/run_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>

#include <capibara/error.h>
#include <capibara/training/data.h>

#include "core/runtime/private_folder.h"
#include "io/files/crc32c.h"
#include "io/files/json.h"
#include "io/files/mapped_file.h"
#include "io/files/object_store.h"

namespace capibara::training {

namespace fs = std::filesystem;

namespace {

constexpr char format_name[] = "capibara run 1";
constexpr uint64_t max_manifest_bytes = 1 << 20;

uint32_t checksum_of(std::string_view text, uint32_t before = 0) {
  return crc32c(std::as_bytes(std::span(text)), before);
}

std::string hexadecimal(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

[[noreturn]] void throw_write_error(const std::string& path, int reason) {
  const char* hint = "";
  if (reason == ENOSPC || reason == EDQUOT) hint = "; free space, and the same command continues";
  if (reason == EACCES || reason == EROFS || reason == EPERM) hint = "; name a folder that this user may write";
  throw ValueError(concat(path, " cannot be written: ", std::strerror(reason), hint));
}

Json json_of(const ByteRecord& record) {
  return Json::Object{{"bytes", static_cast<int64_t>(record.bytes)}, {"crc32c", hexadecimal(record.checksum)}};
}

std::optional<ByteRecord> record_from(const Json* json) {
  const Json *bytes = json ? json->find("bytes") : nullptr, *checksum = json ? json->find("crc32c") : nullptr;
  if (!bytes || !bytes->integer() || !checksum || !checksum->text()) return std::nullopt;
  return ByteRecord{static_cast<uint64_t>(*bytes->integer()),
                    static_cast<uint32_t>(std::strtoul(checksum->text()->c_str(), nullptr, 16))};
}

// A missing file counts as an empty one.
ByteRecord record_at(const std::string& path) {
  return fs::exists(path) ? record_of(MappedFile(path).text()) : ByteRecord{};
}

// The JSON, followed by its checksum on a separate line.
std::string signed_text(const std::string& json) {
  return concat(json, "\ncrc32c ", hexadecimal(checksum_of(json)), "\n");
}

std::optional<RunManifest> manifest_from(const Json& json) {
  const Json *format = json.find("format"), *made_by = json.find("made_by"), *text = json.find("text"),
             *files = json.find("files");
  if (!format || !format->text() || *format->text() != format_name || !made_by || !made_by->text() || !files ||
      !files->object() || !text)
    return std::nullopt;
  RunManifest manifest;
  manifest.made_by = *made_by->text();
  const Json* count = text->find("files");
  const std::optional<ByteRecord> all = record_from(text);
  if (!count || !count->integer() || !all) return std::nullopt;
  manifest.text = {*count->integer(), *all};
  for (const auto& [name, records] : *files->object()) {
    if (!records.list()) return std::nullopt;
    for (const Json& entry : *records.list()) {
      const std::optional<ByteRecord> record = record_from(&entry);
      if (!record) return std::nullopt;
      manifest.files[name].push_back(*record);
    }
  }
  return manifest;
}

}  // namespace

// ---- records -----------------------------------------------------------------------------------------------------

ByteRecord record_of(std::string_view bytes) { return {bytes.size(), checksum_of(bytes)}; }

void TextRecord::add(const ByteRecord& file) {
  ++files;
  all.bytes += file.bytes;
  all.checksum = checksum_of(concat(file.bytes, " ", hexadecimal(file.checksum), "\n"), all.checksum);
}

TextRecord text_record(const std::string& path) {
  TextRecord record;
  for (const std::string& file : text_files(path)) {
    const std::optional<ObjectInfo> info = is_object_path(file) ? stat_object(file) : std::nullopt;
    record.add(info && info->checksum ? ByteRecord{info->size, *info->checksum} : record_of(read_text(file)));
  }
  return record;
}

bool is_run_file(const std::string& name) {
  for (const std::string known : {run_file::config, run_file::tokenizer, run_file::tokens, run_file::losses,
                                  run_file::curve, run_file::manifest, run_file::lock, run_file::checkpoints}) {
    if (name == known || name == known + ".partial") return true;
  }
  return false;
}

// ---- files -------------------------------------------------------------------------------------------------------

std::string in_folder(const std::string& folder, const std::string& name) { return (fs::path(folder) / name).string(); }

std::string read_whole(const std::string& path) {
  const MappedFile file(path);
  return std::string(file.text());
}

void write_whole(const std::string& path, std::string_view text) {
  const std::string partial = path + ".partial";
  int reason = 0;
  {
    const Descriptor file(::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file) throw_write_error(path, errno);
    while (reason == 0 && !text.empty()) {
      const ssize_t put = ::write(file.number(), text.data(), text.size());
      if (put >= 0)
        text.remove_prefix(static_cast<std::size_t>(put));
      else if (errno != EINTR)
        reason = errno;
    }
    if (reason == 0 && ::fsync(file.number()) != 0) reason = errno;
  }
  if (reason == 0 && ::rename(partial.c_str(), path.c_str()) != 0) reason = errno;
  if (reason != 0) {
    ::unlink(partial.c_str());
    throw_write_error(path, reason);
  }
  const std::string parent = fs::path(path).parent_path().string();
  const Descriptor folder(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) ::fsync(folder.number());
}

void write_run_file(const std::string& folder, const std::string& name, std::string_view text) {
  std::optional<RunManifest> manifest = RunManifest::read(folder);
  if (!manifest) manifest.emplace();
  const std::string path = in_folder(folder, name);
  const ByteRecord next = record_of(text), before = record_at(path);
  if (next == before && fs::exists(path) && manifest->knows(name, next)) return;
  manifest->files[name] = {next, before};
  manifest->write(folder);
  write_whole(path, text);
}

// ---- manifest ----------------------------------------------------------------------------------------------------

std::optional<RunManifest> RunManifest::read(const std::string& folder) {
  const std::string path = in_folder(folder, run_file::manifest);
  if (!fs::exists(path)) return std::nullopt;
  const MappedFile file(path);
  const std::string_view text = file.text();
  const std::size_t end = text.find('\n');
  const bool whole = text.size() <= max_manifest_bytes && end != std::string_view::npos &&
                     signed_text(std::string(text.substr(0, end))) == text;
  const std::optional<RunManifest> manifest =
      whole ? manifest_from(Json::parse(text.substr(0, end), path)) : std::nullopt;
  if (!manifest) {
    throw ValueError(concat(path, " is damaged: it is not a list of a run's files with its own checksum",
                            "; restore it from a copy, or remove it: the run's files are then taken as they are"));
  }
  return manifest;
}

void RunManifest::write(const std::string& folder) const {
  Json::Object listed;
  for (const auto& [name, records] : files) {
    Json::List list;
    for (const ByteRecord& record : records) list.push_back(json_of(record));
    listed[name] = std::move(list);
  }
  Json of_text = json_of(text.all);
  (*of_text.object())["files"] = text.files;
  const Json json(Json::Object{
      {"format", format_name}, {"made_by", made_by}, {"text", std::move(of_text)}, {"files", std::move(listed)}});
  write_whole(in_folder(folder, run_file::manifest), signed_text(json.dump()));
}

bool RunManifest::knows(const std::string& name, const ByteRecord& record) const {
  const auto it = files.find(name);
  if (it == files.end()) return false;
  for (const ByteRecord& one : it->second) {
    if (one == record) return true;
  }
  return false;
}

std::optional<std::string> damage_of(const std::string& folder, const std::string& name) {
  const std::string path = in_folder(folder, name);
  // A concurrent training process may replace the file between the two reads.
  for (int attempt = 0;; ++attempt) {
    const std::optional<RunManifest> manifest = RunManifest::read(folder);
    if (!manifest || manifest->files.count(name) == 0) return std::nullopt;
    const ByteRecord found = record_at(path);
    if (manifest->knows(name, found)) return std::nullopt;
    if (attempt < 4) continue;
    if (!fs::exists(path)) return concat(path, " is missing");
    const ByteRecord& expected = manifest->files.at(name).front();
    return concat(path, " is damaged: expected ", expected.bytes, " bytes with CRC-32C ",
                  hexadecimal(expected.checksum), ", got ", found.bytes, " bytes with ", hexadecimal(found.checksum));
  }
}

void require_undamaged(const std::string& folder, const std::string& name) {
  if (const std::optional<std::string> damage = damage_of(folder, name))
    throw ValueError(concat(*damage, "; restore it from a copy of the folder"));
}

}  // namespace capibara::training
