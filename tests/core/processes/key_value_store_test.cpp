// The key-value store: values, waiting, deadlines, barriers, secrets, and peers that behave badly.
#include "core/processes/key_value_store.h"

#include <capibara/error.h>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

#include "core/processes/job_secret.h"
#include "core/processes/key_value_wire.h"

namespace capibara {
namespace {

std::string address_of(const KeyValueServer& server) { return concat("127.0.0.1:", server.port()); }

constexpr const char* secret = "the secret of this test";

std::shared_ptr<KeyValueStore> join(const KeyValueServer& server, int process = 0) {
  return KeyValueStore::connect(address_of(server), 5, {secret, process});
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "";
}

// A raw connection, to send what our client never would.
class Peer {
 public:
  explicit Peer(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void say(const std::string& text) const { socket_.write(text); }
  bool greet(const JobMember& member) const { return key_value::greet_as_client(socket_, member); }

 private:
  key_value::Socket socket_;
};

TEST(KeyValueStore, ReturnsWhatWasPut) {
  const KeyValueServer server("127.0.0.1:0", secret);
  const auto store = join(server), other = join(server);
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
  const KeyValueServer server("127.0.0.1:0", secret);
  const auto store = join(server);
  store->put("key", "one");
  EXPECT_TRUE(error_of([&] { store->put("key", "two"); }).starts_with("ALREADY_EXISTS"));
  EXPECT_EQ(store->get("key", 100), "one");
  store->put("key", "two", true);
  EXPECT_EQ(store->get("key", 100), "two");
}

TEST(KeyValueStore, WaitsForAKeyWithoutHoldingUpOthers) {
  const KeyValueServer server("127.0.0.1:0", secret);
  const auto store = join(server);
  std::string got;
  std::thread reader([&] { got = store->get("late", 20000); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  store->put("late", "here");
  reader.join();
  EXPECT_EQ(got, "here");
}

TEST(KeyValueStore, GivesUpAtTheDeadline) {
  const KeyValueServer server("127.0.0.1:0", secret);
  const auto store = join(server);
  EXPECT_TRUE(error_of([&] { store->get("never", 30); }).starts_with("DEADLINE_EXCEEDED"));
  EXPECT_NE(error_of([&] { store->barrier("alone", 2, 30); }).find("1 of 2"), std::string::npos);
  EXPECT_TRUE(error_of([&] {
                KeyValueStore::connect("127.0.0.1:1", 0, {secret, 0});
              }).starts_with("DEADLINE_EXCEEDED"));
  EXPECT_THROW(KeyValueServer("nowhere", secret), ValueError);
}

TEST(KeyValueStore, LetsEverybodyThroughABarrierTogetherAndAgain) {
  const KeyValueServer server("127.0.0.1:0", secret);
  const auto zero = join(server, 0), one = join(server, 1), two = join(server, 2);
  std::atomic<int> through{0};
  for (int round = 1; round <= 3; ++round) {
    std::thread first([&] { zero->barrier("b", 3, 20000), ++through; }),
        second([&] { one->barrier("b", 3, 20000), ++through; });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(through, (round - 1) * 3);
    two->barrier("b", 3, 20000);
    ++through;
    first.join();
    second.join();
    EXPECT_EQ(through, round * 3);
  }
}

TEST(KeyValueStore, CountsProcessesNotCallersAtABarrier) {
  const KeyValueServer server("127.0.0.1:0", secret);
  const auto zero = join(server, 0), again = join(server, 0), one = join(server, 1);
  std::thread waiting([&] {  // either call may come first
    while (!error_of([&] { zero->barrier("b", 2, 20000); }).empty()) continue;
  });
  std::string error = "DEADLINE";
  while (error.starts_with("DEADLINE")) error = error_of([&] { again->barrier("b", 2, 1); });
  EXPECT_NE(error.find("process 0 waits at barrier 'b' already"), std::string::npos) << error;
  EXPECT_NE(error_of([&] { one->barrier("b", 3, 1); }).find("is for 2 processes"), std::string::npos);
  one->barrier("b", 2, 20000);
  waiting.join();
  EXPECT_TRUE(error_of([&] { one->barrier("b", 0, 1); }).starts_with("INVALID_ARGUMENT"));
}

TEST(KeyValueStore, LetsNobodyInWithoutTheSecret) {
  const KeyValueServer server("127.0.0.1:0", secret);
  EXPECT_NE(error_of([&] {
              KeyValueStore::connect(address_of(server), 0, {"another secret", 0});
            }).find("with this secret"),
            std::string::npos);
  EXPECT_THROW(KeyValueServer("127.0.0.1:0", ""), ValueError);
  // A server without the secret learns nothing from a client that has it.
  const KeyValueServer impostor("127.0.0.1:0", "a guess of the secret");
  EXPECT_NE(error_of([&] { KeyValueStore::connect(address_of(impostor), 0, {secret, 0}); }), "");
}

TEST(KeyValueStore, ListensOnThisMachineAloneWithoutAHost) {
  const KeyValueServer server(":0", secret);
  KeyValueStore::connect(concat(":", server.port()), 5, {secret, 0})->put("key", "value");
  int listening = 0;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    char port[8];
    std::snprintf(port, sizeof port, ":%04X", static_cast<unsigned>(server.port()));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string number, own, other, state;
      fields >> number >> own >> other >> state;
      if (state != "0A" || !own.ends_with(port)) continue;
      ++listening;
      EXPECT_TRUE(own.starts_with("0100007F") || own.starts_with("00000000000000000000000001000000")) << own;
    }
  }
  EXPECT_EQ(listening, 1);
}

TEST(KeyValueStore, WaitsAsLongAsAnyNumberOfMilliseconds) {
  const KeyValueServer server("127.0.0.1:0", secret);
  const auto store = join(server), other = join(server);
  EXPECT_TRUE(error_of([&] { store->get("never", -1); }).starts_with("DEADLINE_EXCEEDED"));
  std::string got;
  std::thread reader([&] { got = store->get("late", std::numeric_limits<int64_t>::max()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  other->put("late", "here");
  reader.join();
  EXPECT_EQ(got, "here");
}

TEST(KeyValueStore, HoldsNoMoreThanItsLimits) {
  const KeyValueServer server("127.0.0.1:0", secret, {.max_bytes = 1 << 20, .max_value = 1 << 19});
  const auto store = join(server);
  const std::string large(400000, 'x');
  store->put("a", large);
  EXPECT_TRUE(error_of([&] { store->put("b", large); }).starts_with("RESOURCE_EXHAUSTED"));
  EXPECT_EQ(store->try_get("b"), std::nullopt);
  store->put("a", "small", true);
  store->put("b", large);
  EXPECT_EQ(store->get("b", 100), large);
  EXPECT_TRUE(error_of([&] { store->put("c", std::string(600000, 'x')); }).starts_with("UNAVAILABLE"));
  EXPECT_THROW(store->put(std::string(70000, 'k'), "value"), ValueError);
  EXPECT_EQ(store->get("b", 100), large);
}

TEST(KeyValueStore, ClosesFinishedConnectionsAndServesOnAfterBadPeers) {
  const KeyValueServer server("127.0.0.1:0", secret,
                              {.max_connections = 40, .max_strangers = 8, .stranger_seconds = 1});
  for (int round = 0; round < 200; ++round) {  // far more than it serves at once
    const Peer peer(server.port());
    peer.say(std::string(static_cast<std::size_t>(round), static_cast<char>(round)));
  }
  {
    std::vector<std::unique_ptr<Peer>> silent;  // more than are admitted
    for (int i = 0; i < 60; ++i) silent.push_back(std::make_unique<Peer>(server.port()));
    const auto store = join(server);
    store->put("key", "value");
    EXPECT_EQ(store->get("key", 1000), "value");
  }
  {
    const auto patient = join(server);
    std::vector<std::thread> gone;  // waits end when their client has disconnected
    for (int i = 0; i < 8; ++i) {
      gone.emplace_back([&] {
        const Peer peer(server.port());
        peer.greet({secret, 1});
        peer.say(std::string(1, 'g') + std::string(7, '\x7f') + std::string(1, '\0') +
                 std::string("\1\0\0\0\0\0\0\0", 8) + "k" + std::string(8, '\0'));
      });
    }
    for (std::thread& thread : gone) thread.join();
    EXPECT_EQ(patient->get("key", 1000), "value");
  }
  while (server.connections() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST(KeyValueStore, SaysWhenTheServerIsGone) {
  auto server = std::make_unique<KeyValueServer>("127.0.0.1:0", secret);
  const auto store = join(*server);
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

class JobSecretTest : public testing::Test {
 protected:
  JobSecretTest() : folder_(std::filesystem::temp_directory_path() / ("capibara_secret_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~JobSecretTest() override {
    for (const char* name : {"XDG_CACHE_HOME", "CAPIBARA_JOB_SECRET", "CAPIBARA_JOB_SECRET_FILE"}) unsetenv(name);
    std::filesystem::remove_all(folder_);
  }
  std::filesystem::path folder_;
};

TEST_F(JobSecretTest, ComesFromTheEnvironmentOrAPrivateFile) {
  EXPECT_EQ(given_job_secret(), std::nullopt);
  const std::filesystem::path file = folder_ / "secret";
  std::ofstream(file) << "0123456789abcdef\n";
  setenv("CAPIBARA_JOB_SECRET_FILE", file.c_str(), 1);
  chmod(file.c_str(), 0644);
  EXPECT_THROW(given_job_secret(), ValueError);
  chmod(file.c_str(), 0600);
  EXPECT_EQ(given_job_secret(), "0123456789abcdef");
  setenv("CAPIBARA_JOB_SECRET", "short", 1);
  EXPECT_THROW(given_job_secret(), ValueError);
  setenv("CAPIBARA_JOB_SECRET", "a secret of the environment", 1);
  EXPECT_EQ(given_job_secret(), "a secret of the environment");
}

TEST_F(JobSecretTest, IsLeftForProcessesOfThisUserWhileTheJobRuns) {
  EXPECT_EQ(LeftJobSecret::find("host:1"), std::nullopt);
  {
    const LeftJobSecret left("host:1");
    EXPECT_EQ(LeftJobSecret::find("host:1"), left.secret());
    EXPECT_EQ(LeftJobSecret::find("host:2"), std::nullopt);
    EXPECT_EQ(left.secret().size(), 64u);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      EXPECT_EQ(static_cast<int>(entry.status().permissions()) & 077, 0) << entry.path();
    }
    const LeftJobSecret later("host:1");
    EXPECT_NE(later.secret(), left.secret());
    EXPECT_EQ(LeftJobSecret::find("host:1"), later.secret());
  }
  EXPECT_EQ(LeftJobSecret::find("host:1"), std::nullopt);
}

}  // namespace
}  // namespace capibara
