// Parses the bodies of Shardy's attributes, which the parser keeps as text.
#include "compiler/stablehlo/sharding_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>

#include <capibara/error.h>

namespace capibara::stablehlo {

namespace {

constexpr int64_t max_devices = 1 << 20;

class Cursor {
 public:
  Cursor(const Operation& operation, std::string_view text) : operation_(operation), text_(text) {}

  bool take(std::string_view word) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) refuse(concat("'", word, "'"));
  }
  bool at(char c) {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == c;
  }
  void expect_end() {
    skip_spaces();
    if (at_ != text_.size()) refuse("its end");
  }
  std::string quoted() {
    expect("\"");
    const std::size_t end = text_.find('"', at_);
    if (end == text_.npos) refuse("'\"'");
    std::string name(text_.substr(at_, end - at_));
    at_ = end + 1;
    return name;
  }
  std::string symbol() {
    expect("@");
    if (at('"')) return quoted();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' ||
                                  text_[at_] == '$' || text_[at_] == '.'))
      ++at_;
    if (at_ == begin) refuse("a mesh's name");
    return std::string(text_.substr(begin, at_ - begin));
  }
  int64_t integer() {
    skip_spaces();
    int64_t value = 0;
    const auto result = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (result.ec != std::errc()) refuse("a number");
    at_ = static_cast<std::size_t>(result.ptr - text_.data());
    return value;
  }
  // Until the list ends: item, item, ..
  template <class Item>
  void list(std::string_view open, std::string_view close, Item&& item) {
    expect(open);
    if (take(close)) return;
    do item();
    while (take(","));
    expect(close);
  }
  std::string axis() {
    std::string name = quoted();
    if (at(':')) {
      throw UnsupportedError(concat(place_of(operation_), ": parts of an axis are not supported, got a part of \"",
                                    name, "\" in ", text_, "\nHint: name the parts as axes of the mesh"));
    }
    return name;
  }
  AxisList axes() {
    AxisList names;
    list("{", "}", [&] { names.push_back(axis()); });
    return names;
  }
  [[noreturn]] void refuse(std::string_view expected) {
    fail(operation_, concat("expected ", expected, " at character ", at_ + 1, " of ", text_));
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  const Operation& operation_;
  std::string_view text_;
  std::size_t at_ = 0;
};

ShardingText read_sharding(Cursor& cursor) {
  ShardingText sharding;
  sharding.mesh = cursor.symbol();
  cursor.expect(",");
  cursor.list("[", "]", [&] {
    AxisList& axes = sharding.dims.emplace_back();
    sharding.open.push_back(false);
    cursor.list("{", "}", [&] {
      if (cursor.take("?"))
        sharding.open.back() = true;
      else
        axes.push_back(cursor.axis());
    });
    sharding.priorities.push_back(cursor.take("p") ? std::optional(cursor.integer()) : std::nullopt);
  });
  while (cursor.take(",")) {
    if (cursor.take("replicated")) {
      cursor.expect("=");
      sharding.replicated = cursor.axes();
    } else {
      cursor.expect("unreduced");
      cursor.expect("=");
      sharding.unreduced = cursor.axes();
    }
  }
  return sharding;
}

}  // namespace

bool DeviceMesh::in_order() const {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] != static_cast<int>(i)) return false;
  }
  return true;
}

DeviceMesh read_mesh_text(const Operation& operation, std::string_view text) {
  Cursor cursor(operation, text);
  DeviceMesh own;
  Mesh& mesh = own.mesh;
  int64_t devices = 1;
  cursor.list("[", "]", [&] {
    mesh.axis_names.push_back(cursor.quoted());
    cursor.expect("=");
    mesh.axis_sizes.push_back(cursor.integer());
    if (mesh.axis_sizes.back() < 1) cursor.refuse("a size of at least 1");
    devices *= std::min(mesh.axis_sizes.back(), max_devices + 1);
    if (devices > max_devices) cursor.refuse(concat("at most ", max_devices, " devices"));
    for (std::size_t i = 0; i + 1 < mesh.axis_names.size(); ++i) {
      if (mesh.axis_names[i] == mesh.axis_names.back()) cursor.refuse(concat("axis \"", mesh.axis_names[i], "\" once"));
    }
  });
  if (!mesh.axis_names.empty()) {
    own.devices.resize(static_cast<std::size_t>(devices));
    std::iota(own.devices.begin(), own.devices.end(), 0);
  }
  if (cursor.take(",")) {
    cursor.expect("device_ids");
    cursor.expect("=");
    std::vector<int> listed;
    cursor.list("[", "]", [&] {
      const int64_t id = cursor.integer();
      if (id < 0 || id > max_devices) cursor.refuse("the number of a device");
      listed.push_back(static_cast<int>(id));
    });
    std::vector<int> sorted = listed;
    std::sort(sorted.begin(), sorted.end());
    if (!mesh.axis_names.empty()) {
      if (sorted != own.devices) cursor.refuse(concat("each of ", devices, " devices once"));
      own.devices = std::move(listed);
    }
  }
  cursor.expect_end();
  return own;
}

ShardingText read_sharding_text(const Operation& operation, std::string_view text) {
  Cursor cursor(operation, text);
  ShardingText sharding = read_sharding(cursor);
  cursor.expect_end();
  return sharding;
}

std::vector<ShardingText> read_shardings_text(const Operation& operation, std::string_view text) {
  Cursor cursor(operation, text);
  std::vector<ShardingText> shardings;
  cursor.list("[", "]", [&] {
    cursor.expect("<");
    shardings.push_back(read_sharding(cursor));
    cursor.expect(">");
  });
  cursor.expect_end();
  return shardings;
}

AxisList read_axes_text(const Operation& operation, std::string_view text) {
  Cursor cursor(operation, text);
  AxisList axes = cursor.axes();
  cursor.expect_end();
  return axes;
}

std::string axes_text(const AxisList& axes) {
  std::string text;
  for (const std::string& axis : axes) text += concat(text.empty() ? "\"" : ", \"", axis, "\"");
  return concat("{", text, "}");
}

}  // namespace capibara::stablehlo
