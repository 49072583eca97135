// Malicious files: valid checksums around wrong content.
#include <gtest/gtest.h>

#include <capibara/checkpoint.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/zarr.h"
#include "io/files/crc32c.h"
#include "io/files/json.h"

namespace capibara {
namespace {

std::string signed_manifest(const std::string& text) {
  return text + ", \"checksum\": \"" + checksum_text(crc32c(std::as_bytes(std::span(text)))) + "\"}\n";
}

std::string manifest_error(const std::string& items, const std::string& files = "{}") {
  try {
    Manifest::parse(
        signed_manifest(R"({"capibara_checkpoint": 1, "step": 1, "files": )" + files + R"(, "items": )" + items), "m");
  } catch (const CorruptCheckpointError& error) {
    return error.what();
  }
  return "no error";
}

std::string one_array(const std::string& structure, const std::string& shape, const std::string& dtype = "float32") {
  return R"({"p": {"structure": )" + structure + R"(, "arrays": [{"dtype": ")" + dtype + R"(", "shape": )" + shape +
         R"(, "weak_type": false, "chunks": ""}]}})";
}

TEST(HostileManifests, AreRefused) {
  const std::string leaf = "\"leaf\"";
  EXPECT_EQ(manifest_error(one_array(leaf, "[2]")), "no error");
  EXPECT_NE(manifest_error(one_array(leaf, "[4611686018427387904, 4611686018427387904]")).find("too large"),
            std::string::npos);
  EXPECT_NE(manifest_error(one_array(leaf, "[-1]")).find("shape of sizes"), std::string::npos);
  EXPECT_NE(manifest_error(one_array(leaf, "[2]", "float33")).find("unknown dtype 'float33'"), std::string::npos);
  EXPECT_NE(
      manifest_error(one_array(R"({"dict": [["../../etc", "leaf"]]})", "[2]")).find("no name that a folder may have"),
      std::string::npos);
  EXPECT_NE(manifest_error(one_array(R"({"dict": [["/etc", "leaf"]]})", "[2]")).find("no name that a folder may have"),
            std::string::npos);
  EXPECT_NE(manifest_error(one_array(R"({"dict": [["a", "leaf"], ["a", "leaf"]]})", "[2]")), "no error");
  EXPECT_NE(manifest_error(one_array(R"({"tuple": ["leaf", "leaf"]})", "[2]")).find("another number of arrays"),
            std::string::npos);
  EXPECT_NE(manifest_error(R"({"p": {}, "p": {}})").find("occurs twice"), std::string::npos);
  EXPECT_NE(manifest_error(R"({"../p": {"structure": "none", "arrays": []}})").find("cannot be the name of an item"),
            std::string::npos);
  EXPECT_NE(manifest_error("{}", R"({"../x": {"bytes": 1, "crc32c": "00000000"}})").find("not a path inside"),
            std::string::npos);
  EXPECT_NE(manifest_error("{}", R"({"x": {"bytes": -1, "crc32c": "00000000"}})").find("not negative"),
            std::string::npos);
  std::string deep, end;
  for (int i = 0; i < 5000; ++i) deep += R"({"list": [)", end += "]}";
  EXPECT_NE(manifest_error(one_array(deep + leaf + end, "[2]")).find("nested deeper than 100"), std::string::npos);
}

std::string array_error(const std::string& shape, const std::string& chunk, const std::string& rest = "",
                        std::size_t data_bytes = 64) {
  const ZarrStore store = [&](const std::string& key) -> std::optional<Blob> {
    if (key != "zarr.json") return Blob::of_bytes(std::string(data_bytes, 'x'), key);
    return Blob::of_bytes(
        R"({"node_type": "array", "shape": )" + shape +
            R"(, "data_type": "float32", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": )" + chunk +
            R"(}}, "chunk_key_encoding": {"name": "default"}, "codecs": [)" +
            (rest.empty() ? R"({"name": "bytes"})" : rest) + "]}",
        key);
  };
  try {
    const ZarrArray array = read_zarr_description(store, "a");
    read_zarr(store, array, "a");
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "no error";
}

TEST(HostileArrays, AreRefused) {
  EXPECT_EQ(array_error("[16]", "[16]"), "no error");
  EXPECT_NE(array_error("[4611686018427387904, 8]", "[1, 1]").find("too large"), std::string::npos);
  EXPECT_NE(array_error("[1099511627776]", "[1099511627776]").find("too few"), std::string::npos);
  EXPECT_NE(array_error("[16]", "[0]").find("sizes of at least 1"), std::string::npos);
  EXPECT_NE(array_error("[16]", "[4, 4]").find("number of axes"), std::string::npos);
  EXPECT_NE(
      array_error("[16]", "[16]", R"({"name": "bytes"}, {"name": "blosc"})").find("codec 'blosc' is not supported"),
      std::string::npos);
  EXPECT_NE(array_error("[16]", "[16]", "", 63).find("chunk 0 of 1: it has 63 bytes, expected 64"), std::string::npos);
  // A shard whose index has wrong positions of its chunks.
  const std::string shard =
      R"({"name": "sharding_indexed", "configuration": {"chunk_shape": [8], "codecs": [{"name": "bytes"}], )"
      R"("index_codecs": [{"name": "bytes"}]}})";
  EXPECT_NE(array_error("[16]", "[16]", shard).find("its place is not inside of the file"), std::string::npos);
  EXPECT_NE(array_error("[16]", "[16]", shard, 8).find("too few for the index"), std::string::npos);
}

std::string orbax_error(const std::string& tree) {
  std::string folder = testing::TempDir() + "capibara_hostile_XXXXXX";
  if (!::mkdtemp(folder.data())) return "no folder";
  std::ofstream(folder + "/_METADATA") << R"({"tree_metadata": )" << tree << R"(, "use_ocdbt": false})";
  std::string message = "no error";
  try {
    read_checkpoint(folder);
  } catch (const CheckpointError& error) {
    message = error.what();
  }
  std::filesystem::remove_all(folder);
  return message;
}

std::string orbax_leaf(const std::string& keys) {
  return R"({"x": {"key_metadata": [)" + keys + R"(], "value_metadata": {"value_type": "jax.Array"}}})";
}

TEST(HostileTrees, OfOrbaxAreRefused) {
  EXPECT_EQ(orbax_error("{}"), "no error");
  EXPECT_NE(orbax_error(orbax_leaf(R"({"key": "../../etc", "key_type": 2})")).find("not a path inside"),
            std::string::npos);
  EXPECT_NE(orbax_error(orbax_leaf(R"({"key": "w", "key_type": 2})")).find("neither zarr.json nor .zarray"),
            std::string::npos);
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"key": "a", "key_type": 2}, )";
  EXPECT_NE(orbax_error(orbax_leaf(deep + R"({"key": "a", "key_type": 2})")).find("more than 200 keys"),
            std::string::npos);
}

TEST(Checksums, AreThoseOfTheStandard) {
  const std::string_view digits = "123456789";  // the standard check input for CRC-32C, see RFC 3720
  EXPECT_EQ(crc32c(std::as_bytes(std::span(digits))), 0xE3069283U);
  const std::vector<std::byte> zeros(32);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(zeros), 0x8A9136AAU);
  std::vector<std::byte> many(100'000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::byte>(i * 31 + i / 255);
  uint32_t pieces = 0;
  for (std::size_t i = 0; i < many.size(); i += 13)
    pieces = crc32c(std::span(many).subspan(i, std::min<std::size_t>(13, many.size() - i)), pieces);
  EXPECT_EQ(crc32c(many), pieces);
}

TEST(JsonText, ComesBackAsItWas) {
  const std::string text = R"({"a": [1, -2.5, 1e+300, true, null, NaN, -Infinity], "b": {"é\"\\\u0001": "x"}})";
  EXPECT_EQ(Json::parse(text, "t").dump(), text);
  EXPECT_EQ(*Json::parse(R"("\ud83d\ude00\n")", "t").text(), "\xF0\x9F\x98\x80\n");
  for (const char* wrong :
       {"", "{", "[1,]", "{\"a\" 1}", "\"\\ud83d\"", "01x", "tru", "[1] 2", "\"\n\"", "--1", "1e999"})
    EXPECT_THROW(Json::parse(wrong, "t"), ValueError) << wrong;
}

}  // namespace
}  // namespace capibara
