// The key-value store: values, waiting, deadlines, barriers.
#include "runtime/key_value_store.h"

#include <capibara/error.h>

#include <gtest/gtest.h>


#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace capibara {
namespace {

std::string address_of(const KeyValueServer& server) { return concat("127.0.0.1:", server.port()); }

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "";
}

TEST(KeyValueStore, ReturnsWhatWasPut) {
  const KeyValueServer server("127.0.0.1:0");
  const auto store = KeyValueStore::connect(address_of(server), 5), other = KeyValueStore::connect(address_of(server), 5);
  const std::string bytes("a\0b\n\xff", 5), large(300000, 'z');
  store->put("key", bytes);
  store->put("large", large);
  EXPECT_EQ(other->get("key", 1000), bytes);
  EXPECT_EQ(other->try_get("large"), large);
  EXPECT_EQ(other->try_get("none"), std::nullopt);
  EXPECT_EQ(other->get("key", 1000), bytes);
  store->put("empty", "");
  EXPECT_EQ(other->try_get("empty"), "");
}

TEST(KeyValueStore, RefusesASecondValueUnlessItMayBeReplaced) {
  const KeyValueServer server("127.0.0.1:0");
  const auto store = KeyValueStore::connect(address_of(server), 5);
  store->put("key", "one");
  EXPECT_TRUE(error_of([&] { store->put("key", "two"); }).starts_with("ALREADY_EXISTS"));
  EXPECT_EQ(store->get("key", 100), "one");
  store->put("key", "two", true);
  EXPECT_EQ(store->get("key", 100), "two");
}

TEST(KeyValueStore, WaitsForAKeyWithoutHoldingUpOthers) {
  const KeyValueServer server("127.0.0.1:0");
  const auto store = KeyValueStore::connect(address_of(server), 5);
  std::string got;
  std::thread reader([&] { got = store->get("late", 20000); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  store->put("late", "here");
  reader.join();
  EXPECT_EQ(got, "here");
}

TEST(KeyValueStore, GivesUpAtTheDeadline) {
  const KeyValueServer server("127.0.0.1:0");
  const auto store = KeyValueStore::connect(address_of(server), 5);
  EXPECT_TRUE(error_of([&] { store->get("never", 30); }).starts_with("DEADLINE_EXCEEDED"));
  EXPECT_NE(error_of([&] { store->barrier("alone", 2, 30); }).find("1 of 2"), std::string::npos);
  EXPECT_TRUE(error_of([&] { KeyValueStore::connect("127.0.0.1:1", 0); }).starts_with("DEADLINE_EXCEEDED"));
  EXPECT_THROW(KeyValueServer("nowhere"), ValueError);
}

TEST(KeyValueStore, LetsEverybodyThroughABarrierTogetherAndAgain) {
  const KeyValueServer server("127.0.0.1:0");
  const auto store = KeyValueStore::connect(address_of(server), 5);
  std::atomic<int> through{0};
  for (int round = 1; round <= 3; ++round) {
    std::thread first([&] { store->barrier("b", 3, 20000), ++through; }), second([&] { store->barrier("b", 3, 20000), ++through; });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(through, (round - 1) * 3);
    store->barrier("b", 3, 20000);
    ++through;
    first.join();
    second.join();
    EXPECT_EQ(through, round * 3);
  }
}

TEST(KeyValueStore, SaysWhenTheServerIsGone) {
  auto server = std::make_unique<KeyValueServer>("127.0.0.1:0");
  const auto store = KeyValueStore::connect(address_of(*server), 5);
  store->put("a", "1");
  server.reset();
  EXPECT_TRUE(error_of([&] { store->get("a", 100); }).starts_with("UNAVAILABLE"));
}

TEST(Distributed, NeedsSensibleNumbers) {
  EXPECT_THROW(distributed::initialize("127.0.0.1:0", 0, 0), ValueError);
  EXPECT_THROW(distributed::initialize("127.0.0.1:0", 2, 2), ValueError);
  EXPECT_THROW(distributed::initialize("127.0.0.1", 1, 0), ValueError);
  EXPECT_FALSE(distributed::is_initialized());
}

}  // namespace
}  // namespace capibara
