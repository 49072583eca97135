// The environment set for libtpu: full names of accelerators, and permission for several processes.
#include "backends/pjrt/tpu_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace capibara::pjrt {
namespace {

TEST(TpuEnvironment, NamesWhatATopologyIsRentedAs) {
  EXPECT_EQ(accelerator_type("v5e:2x2"), "v5litepod-4");
  EXPECT_EQ(accelerator_type("v4:2x2x4"), "v4-32");
  EXPECT_EQ(accelerator_type("v5p:4x4x4"), "v5p-128");
  EXPECT_EQ(accelerator_type("v5:2x2x1"), "v5p-8");
  EXPECT_EQ(accelerator_type("v6e:16x16"), "v6e-256");
  EXPECT_EQ(accelerator_type("tpu7x:2x2x1"), "tpu7x-8");
  for (const char* name : {"v5e", "v5e:", "v5e:2xx2", "v9:2x2", "1x1x4", "v5e:2x2_twisted"})
    EXPECT_EQ(accelerator_type(name), "") << name;
}

TEST(TpuEnvironment, LetsSeveralProcessesCompileAndKeepsWhatIsSet) {
  const char* names[] = {"TPU_SKIP_MDS_QUERY", "TPU_WORKER_HOSTNAMES", "ALLOW_MULTIPLE_LIBTPU_LOAD",
                         "TPU_ACCELERATOR_TYPE"};
  for (const char* name : names) unsetenv(name);
  setenv("TPU_WORKER_HOSTNAMES", "other", 1);
  set_tpu_environment("v5e:4x4");
  EXPECT_STREQ(getenv("ALLOW_MULTIPLE_LIBTPU_LOAD"), "true");
  EXPECT_STREQ(getenv("TPU_ACCELERATOR_TYPE"), "v5litepod-16");
  EXPECT_STREQ(getenv("TPU_SKIP_MDS_QUERY"), "1");
  EXPECT_STREQ(getenv("TPU_WORKER_HOSTNAMES"), "other");
  for (const char* name : names) unsetenv(name);
}

}  // namespace
}  // namespace capibara::pjrt
