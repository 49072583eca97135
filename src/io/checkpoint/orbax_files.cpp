// The JSON files of Orbax's layout, so that its readers accept a step as one of their own.
#include "io/checkpoint/step.h"
#include "io/files/base64.h"

namespace capibara {

namespace {

// Formats a text as Python's repr does.
std::string python_text(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + quote;
}

const char* value_type(TreeDef::Kind kind) {
  switch (kind) {
    case TreeDef::Kind::leaf:
      return "jax.Array";
    case TreeDef::Kind::tuple:
      return "Tuple";
    case TreeDef::Kind::list:
      return "List";
    case TreeDef::Kind::none:
      return "None";
    default:
      return "Dict";
  }
}

}  // namespace

std::string orbax_tree_metadata(const TreeDef& structure) {
  Json::Object tree;
  for (TreeEntry& entry : tree_entries(structure)) {
    if (entry.path.empty()) entry.path.push_back({TreeKey::text, 0, array_name({})});
    std::string name = "(";
    Json::List keys;
    for (const TreeKey& key : entry.path) {
      name += (keys.empty() ? "" : ", ") + python_text(key_text(key));
      keys.emplace_back(Json::Object{{"key", key_text(key)}, {"key_type", key.kind == TreeKey::index ? 1 : 2}});
    }
    name += keys.size() == 1 ? ",)" : ")";
    tree[name] =
        Json::Object{{"key_metadata", std::move(keys)},
                     {"value_metadata", Json::Object{{"value_type", value_type(entry.kind)},
                                                     {"skip_deserialize", entry.kind != TreeDef::Kind::leaf}}}};
  }
  return Json(Json::Object{{"tree_metadata", std::move(tree)},
                           {"use_ocdbt", false},
                           {"use_zarr3", true},
                           {"store_array_data_equal_to_fill_value", true},
                           {"custom_metadata", Json()}})
      .dump();
}

std::string orbax_shardings(const std::vector<std::string>& names) {
  Json::Object shardings;
  for (const std::string& name : names) {
    shardings[base64(name)] =
        Json(Json::Object{{"sharding_type", "SingleDeviceSharding"}, {"device_str", "cpu:0"}}).dump();
  }
  return Json(std::move(shardings)).dump();
}

std::string orbax_step_metadata(const SaveJob& job, int64_t committed_ns) {
  Json::Object handlers;
  for (const auto& [name, item] : job.items) {
    handlers[name] = "orbax.checkpoint._src.handlers.standard_checkpoint_handler.StandardCheckpointHandler";
  }
  return Json(Json::Object{{"item_handlers", std::move(handlers)},
                           {"metrics", Json::Object{}},
                           {"performance_metrics", Json::Object{}},
                           {"init_timestamp_nsecs", job.begun_ns},
                           {"commit_timestamp_nsecs", committed_ns},
                           {"custom_metadata", job.metadata}})
      .dump();
}

}  // namespace capibara
