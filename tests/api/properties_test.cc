// What ncclCommQueryProperties and ncclCommMemStats say of CPU ranks.
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "api/host_ranks.h"

namespace talaria::test {
namespace {

using PropertiesApi = HostRanks;

// As headers of NCCL 2.29.7 lay it out; 2.29.2 ends after the type of GIN.
struct Properties {
  size_t size = sizeof(Properties);
  unsigned magic = 0xcafebeef, version = 22907;
  int rank = -7, nranks = -7, cuda_device = -7, nvml_device = -7;
  bool device_api = true, multimem = true;
  int gin_type = -7;
  int lsa_teams = -7;
  bool host_rma = true;
  int railed_gin_type = -7;
};
static_assert(sizeof(Properties) == 56 && offsetof(Properties, lsa_teams) == 40);

ncclResult_t query(ncclComm_t comm, void* properties) {
  return ncclCommQueryProperties(comm, static_cast<struct ncclCommProperties*>(properties));
}

TEST_F(PropertiesApi, EveryFieldIsFilledIn) {
  Clique clique(3);
  for (int rank = 0; rank < 3; ++rank) {
    Properties properties;
    ASSERT_EQ(query(clique[rank], &properties), ncclSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(properties.rank, rank);
    EXPECT_EQ(properties.nranks, 3);
    EXPECT_EQ(properties.cuda_device, -1);
    EXPECT_EQ(properties.nvml_device, -1);
    EXPECT_FALSE(properties.device_api);
    EXPECT_FALSE(properties.multimem);
    EXPECT_EQ(properties.gin_type, 0);
    EXPECT_EQ(properties.lsa_teams, 3) << "each rank is a team of its own";
    EXPECT_FALSE(properties.host_rma);
    EXPECT_EQ(properties.railed_gin_type, 0);
    EXPECT_EQ(properties.size, sizeof(Properties));
    EXPECT_EQ(properties.magic, 0xcafebeefu);
    EXPECT_EQ(properties.version, 22907u);
  }
}

TEST_F(PropertiesApi, NothingIsWrittenBeyondTheCallersStruct) {
  Clique clique(1);
  struct {
    Properties properties;
    int behind = 77;
  } small, large;
  small.properties.size = offsetof(Properties, lsa_teams);
  small.properties.version = 22902;
  ASSERT_EQ(query(clique[0], &small), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(small.properties.nranks, 1);
  EXPECT_EQ(small.properties.gin_type, 0);
  EXPECT_EQ(small.properties.lsa_teams, -7);
  large.properties.size = sizeof(large) + 1000;
  ASSERT_EQ(query(clique[0], &large), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(large.properties.lsa_teams, 1);
  EXPECT_EQ(large.behind, 77);
}

TEST_F(PropertiesApi, UninitialisedStructsAreRefused) {
  Clique clique(1);
  Properties zero, tiny;
  memset(static_cast<void*>(&zero), 0, sizeof(zero));
  tiny.size = 32;
  for (Properties* properties : {&zero, &tiny}) {
    EXPECT_EQ(query(clique[0], properties), ncclInvalidUsage);
    EXPECT_NE(strstr(ncclGetLastError(nullptr), "NCCL_COMM_PROPERTIES_INITIALIZER"), nullptr);
  }
  EXPECT_EQ(tiny.rank, -7);
  EXPECT_EQ(query(clique[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(query(nullptr, &tiny), ncclInvalidArgument);
}

TEST_F(PropertiesApi, CpuRanksHoldNoGpuMemory) {
  Clique clique(2);
  for (auto statistic : {ncclStatGpuMemSuspend, ncclStatGpuMemSuspended, ncclStatGpuMemPersist, ncclStatGpuMemTotal}) {
    uint64_t value = 77;
    EXPECT_EQ(ncclCommMemStats(clique[0], statistic, &value), ncclSuccess);
    EXPECT_EQ(value, 0u) << statistic;
  }
}

TEST_F(PropertiesApi, WrongStatisticsAreNamed) {
  Clique clique(1);
  uint64_t value = 77;
  int wrong = 4;
  ncclCommMemStat_t statistic;
  memcpy(&statistic, &wrong, sizeof(statistic));
  EXPECT_EQ(ncclCommMemStats(clique[0], statistic, &value), ncclInvalidArgument);
  EXPECT_STREQ(ncclGetLastError(nullptr), "CommMemStats : statistic 4; expected 0 to 3");
  EXPECT_EQ(value, 77u);
  EXPECT_EQ(ncclCommMemStats(clique[0], ncclStatGpuMemTotal, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommMemStats(nullptr, ncclStatGpuMemTotal, &value), ncclInvalidArgument);
}

}  // namespace
}  // namespace talaria::test
