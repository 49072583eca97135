// Detection of launched processes, and the heartbeat registry, in one process.
#include <chrono>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include <capibara/distributed.h>

#include "core/processes/launch_environment.h"
#include "core/processes/members.h"
#include "core/processes/watch.h"

using namespace capibara;
using namespace capibara::processes;

namespace {

std::optional<Launched> found(const std::map<std::string, std::string>& variables) {
  return find_launch([&](const std::string& name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  });
}

const JobMember member(int id) { return {"a secret of the tests", id}; }

// The state of a process in the registry, once it is `expected` or half a minute has passed.
MemberState::State state_of(Heartbeat& reader, int process, MemberState::State expected) {
  MemberState::State seen = MemberState::alive;
  for (int i = 0; i < 600; ++i) {
    const auto roll = reader.beat("");
    if (roll) {
      for (const MemberState& one : *roll) {
        if (one.process == process) seen = one.state;
      }
    }
    if (seen == expected) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return seen;
}

}  // namespace

TEST(Launch, IsFoundByTheVariablesOfEachLauncher) {
  EXPECT_FALSE(found({}));
  const auto ompi = found({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "2"}});
  ASSERT_TRUE(ompi);
  EXPECT_EQ(ompi->process_id, 2);
  EXPECT_EQ(ompi->process_count, 4);
  EXPECT_EQ(found({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}})->process_count, 3);
  EXPECT_EQ(found({{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}})->process_id, 5);
  EXPECT_FALSE(found({{"PMIX_RANK", "0"}})->process_count);
  EXPECT_FALSE(found({{"SLURM_PROCID", "0"}}));  // a batch script that srun has not started
  EXPECT_FALSE(found({{"OMPI_COMM_WORLD_RANK", "two"}, {"OMPI_COMM_WORLD_SIZE", "4"}}));
}

TEST(Roll, TellsWhoLeftAndWhoDied) {
  KeyValueServer server("127.0.0.1:0", member(0).secret);
  const std::string address = concat("127.0.0.1:", server.port());
  auto reader = Heartbeat::connect(address, member(0), 10);
  auto leaves = Heartbeat::connect(address, member(1), 10), dies = Heartbeat::connect(address, member(2), 10);
  ASSERT_TRUE(leaves->beat("one"));
  ASSERT_TRUE(dies->beat("two"));
  const auto roll = reader->beat("zero");
  ASSERT_TRUE(roll);
  ASSERT_EQ(roll->size(), 3u);
  EXPECT_EQ(roll->at(1).status, "one");
  EXPECT_EQ(roll->at(2).state, MemberState::alive);
  leaves->leave("bye");
  leaves.reset();
  dies.reset();
  EXPECT_EQ(state_of(*reader, 2, MemberState::dead), MemberState::dead);
  EXPECT_EQ(state_of(*reader, 1, MemberState::left), MemberState::left);
}

TEST(Roll, IsTheSameAfterTheWire) {
  const std::vector<MemberState> states = {{0, MemberState::alive, 12, "a"},
                                           {7, MemberState::dead, 0, std::string("b\0c", 3)}};
  const std::vector<MemberState> back = decode_members(encode_members(states));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].silent_ms, 12);
  EXPECT_EQ(back[1].process, 7);
  EXPECT_EQ(back[1].state, MemberState::dead);
  EXPECT_EQ(back[1].status, states[1].status);
  EXPECT_NO_THROW(decode_members("broken"));
}

TEST(Watch, NamesWhoDiedAndWhatTheOthersWaitFor) {
  KeyValueServer server("127.0.0.1:0", member(0).secret);
  const std::string address = concat("127.0.0.1:", server.port());
  Watch watch(Heartbeat::connect(address, member(0), 10), 0, 2, {});
  auto other = Heartbeat::connect(address, member(1), 10);
  other->beat(encode_report({"far", "77", 0, "", "", "", "b.py:3", "", ""}));
  watch.begin({"psum over 'x'", "a.py:5"});
  other.reset();
  for (int i = 0; i < 600 && !watch.failure(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(watch.failure().value_or(""), "process 1 (far, pid 77) died while 1 other waits in psum over 'x' (a.py:5)");
}

TEST(Watch, NamesWhoDoesNotComeAndWhereHeIs) {
  KeyValueServer server("127.0.0.1:0", member(0).secret);
  const std::string address = concat("127.0.0.1:", server.port());
  Watch watch(Heartbeat::connect(address, member(0), 10), 0, 2, {60, 0.01, 30});
  auto other = Heartbeat::connect(address, member(1), 10);
  const Call call{"psum over 'x'", "a.py:5"};
  const uint64_t number = watch.begin(call);
  for (int i = 0; i < 600 && !watch.failure(); ++i) {
    other->beat(encode_report({"far", "77", 0, "", "", "", "b.py:3", "", ""}));
    watch.examine(number, call);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_NE(watch.failure().value_or("").find(
                "process 1 (far, pid 77) has not come, it is at b.py:3 while 1 other waits in psum over 'x' (a.py:5)"),
            std::string::npos)
      << watch.failure().value_or("");
}

TEST(Initialize, SaysWhatIsMissing) {
  EXPECT_THROW(jax::distributed::initialize(), ValueError);
  jax::distributed::InitializeOptions options;
  options.coordinator_address = "127.0.0.1:0";
  EXPECT_THROW(jax::distributed::initialize(options), ValueError);
  EXPECT_EQ(jax::process_count(), 1);
  EXPECT_EQ(jax::multihost_utils::process_allgather(array<float>({1, 2})).shape(), (Shape{1, 2}));
}
