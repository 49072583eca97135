// Memory in use as a pprof profile: `pprof -top FILE`, `go tool pprof -web FILE`.
#include <capibara/profile_formats.h>

#include <unordered_map>

#include "io/files/protobuf.h"

namespace capibara::profile {

namespace {

// The string table of a pprof profile, whose messages refer to texts by number; the first is empty.
class TextTable {
 public:
  TextTable() { number(""); }
  uint64_t number(const std::string& text) {
    const auto [it, is_new] = numbers_.emplace(text, numbers_.size());
    if (is_new) texts_.push_back(text);
    return it->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::unordered_map<std::string, uint64_t> numbers_;
  std::vector<std::string> texts_;
};

}  // namespace

std::string to_pprof(const std::vector<LiveMemory>& blocks) {
  ProtobufWriter out;
  TextTable texts;
  auto value_type = [&](const char* type, const char* unit) {
    ProtobufWriter value;
    value.integer(1, texts.number(type));
    value.integer(2, texts.number(unit));
    return value;
  };
  auto label = [&](const char* key, const std::string& value) {
    ProtobufWriter made;
    made.integer(1, texts.number(key));
    made.integer(2, texts.number(value));
    return made;
  };
  out.message(1, value_type("allocations", "count"));
  out.message(1, value_type("space", "bytes"));
  std::unordered_map<std::string, uint64_t> functions;
  for (const LiveMemory& block : blocks) {
    const auto [it, is_new] = functions.emplace(block.name, functions.size() + 1);
    ProtobufWriter sample;
    sample.packed(1, {it->second});
    sample.packed(2, {static_cast<uint64_t>(block.count), static_cast<uint64_t>(block.bytes)});
    sample.message(3, label("kind", block.kind));
    sample.message(3, label("device", block.device));
    out.message(2, sample);
    if (!is_new) continue;
    ProtobufWriter line, location, function;
    line.integer(1, it->second);
    location.integer(1, it->second);
    location.message(4, line);
    out.message(4, location);
    function.integer(1, it->second);
    function.integer(2, texts.number(block.name));
    function.integer(3, texts.number(block.name));
    out.message(5, function);
  }
  const uint64_t shown = texts.number("space");
  for (const std::string& text : texts.texts()) out.text(6, text);
  out.integer(14, shown);
  return out.take();
}

}  // namespace capibara::profile
