// What a client's terminal and log file show, and what ncclGetLastError says.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "api/host_ranks.h"
#include "api/variable.h"
#include "support/processes.h"

namespace talaria::test {
namespace {

class Logging : public HostRanks {};

// Everything that a process writes to its standard output and error while it runs `function`.
template <typename Function>
std::string output_of(Function function) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork_rank([&] {
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    close(ends[0]);
    function();
    fflush(nullptr);
    return 0;
  });
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  EXPECT_EQ(wait_for_exit(child), 0);
  return text;
}

void all_reduce(const Clique& clique) {
  float in[2] = {1, 2}, out[2] = {0, 0};
  ncclGroupStart();
  for (int r = 0; r < clique.size(); ++r) ncclAllReduce(&in[r], &out[r], 1, ncclFloat, ncclSum, clique[r], nullptr);
  ncclGroupEnd();
}

// Set-up, an operation, several kinds of failure, tear-down.
void whole_run() {
  {
    const Clique clique(2);
    all_reduce(clique);
    float value = 0;
    ncclAllReduce(nullptr, nullptr, 1, ncclFloat, ncclSum, clique[0], nullptr);
    ncclAllReduce(&value, &value, 1, static_cast<ncclDataType_t>(99), ncclSum, clique[0], nullptr);
    ncclGroupEnd();
  }
  const Variable garbage("NCCL_ALGO", "nonsense"), odd("NCCL_DEBUGG", "x"), number("NCCL_SOCKET_RETRY_CNT", "x");
  ncclComm_t comm;
  ncclCommInitAll(&comm, 1, nullptr);
  ncclCommDestroy(nullptr);
  ncclCommInitRank(nullptr, 1, ncclUniqueId{}, 0);
}

class NoLogVariables {
  Variable debug_{"NCCL_DEBUG", nullptr}, subsystems_{"NCCL_DEBUG_SUBSYS", nullptr}, file_{"NCCL_DEBUG_FILE", nullptr};
};

// B-51
TEST_F(Logging, NothingIsPrintedWithoutNcclDebugEvenOnErrors) {
  const NoLogVariables none;
  EXPECT_EQ(output_of(whole_run), "");
}

std::string version_line() {
  int version = 0;
  ncclGetVersion(&version);
  return "NCCL version " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100) + "+cuda13.0\n";
}

// B-51
TEST_F(Logging, VersionIsOneLineFromRankZero) {
  const NoLogVariables none;
  const Variable debug("NCCL_DEBUG", "VERSION");
  EXPECT_EQ(output_of([] {
              whole_run();
              whole_run();
            }), version_line());
}

TEST_F(Logging, WithAFileTheTerminalStaysEmpty) {
  const NoLogVariables none;
  std::string pattern = testing::TempDir() + "talaria_log_XXXXXX";
  const std::string folder = mkdtemp(pattern.data());
  const std::string name = folder + "/%h.%p";
  const Variable debug("NCCL_DEBUG", "VERSION"), file("NCCL_DEBUG_FILE", name.c_str());
  EXPECT_EQ(output_of(whole_run), "");
  std::ostringstream text;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    text << std::ifstream(entry.path()).rdbuf();
    ++files;
  }
  EXPECT_EQ(files, 1);
  EXPECT_EQ(text.str(), version_line());
  std::filesystem::remove_all(folder);
}

TEST_F(Logging, InfoShowsVariablesCallsAndChoices) {
  const NoLogVariables none;
  const Variable debug("NCCL_DEBUG", "INFO"), subsystems("NCCL_DEBUG_SUBSYS", "INIT,ENV,COLL,TUNING");
  const std::string text = output_of([] { all_reduce(Clique(2)); });
  for (const char* part :
       {"NCCL INFO NCCL_DEBUG set by environment to INFO\n", "NCCL INFO AllReduce: sendbuff 0x", " count 1 datatype 7",
        "NCCL INFO AllReduce: 4 bytes -> ", "Init COMPLETE"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  EXPECT_EQ(text.find("WARN"), std::string::npos) << text;
}

TEST_F(Logging, WarningsNameMisspeltVariablesOncePerProcess) {
  const NoLogVariables none;
  const Variable debug("NCCL_DEBUG", "WARN"), odd("NCCL_SOCKET_IFNAM", "lo");
  const std::string text = output_of([] {
    for (int i = 0; i < 3; ++i) all_reduce(Clique(2));
  });
  const size_t first = text.find("NCCL_SOCKET_IFNAM (set by environment)");
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("NCCL_SOCKET_IFNAM (set by", first + 1), std::string::npos) << text;
}

TEST_F(Logging, ResettingReadsTheLevelAnew) {
  const NoLogVariables none;
  const std::string text = output_of([] {
    ncclGetVersion(nullptr);
    const Variable debug("NCCL_DEBUG", "WARN");
    ncclResetDebugInitInternal();
    ncclGetVersion(nullptr);
  });
  const size_t first = text.find("version argument is NULL");
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("version argument is NULL", first + 1), std::string::npos) << text;
}

// B-58
TEST_F(Logging, LastErrorIsThatOfAnyThreadAndNeverNull) {
  ASSERT_NE(ncclGetLastError(nullptr), nullptr);
  std::thread([] { ncclGetVersion(nullptr); }).join();
  EXPECT_STREQ(ncclGetLastError(nullptr), "GetVersion : version argument is NULL");
  const Variable garbage("NCCL_ALGO", std::string(5000, 'x').c_str());
  ncclComm_t comm;
  EXPECT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclInvalidUsage);
  EXPECT_LE(strlen(ncclGetLastError(nullptr)), 1023u);
}

// B-01
TEST_F(Logging, AnInterfaceThatDoesNotExistIsNamedWithThoseThatDo) {
  const Variable interfaces("NCCL_SOCKET_IFNAME", "nosuch0"), id("NCCL_COMM_ID", nullptr);
  ncclUniqueId unused;
  EXPECT_NE(ncclGetUniqueId(&unused), ncclSuccess);
  const std::string text = ncclGetLastError(nullptr);
  EXPECT_NE(text.find("Bootstrap : no socket interface found"), std::string::npos) << text;
  EXPECT_NE(text.find("nosuch0"), std::string::npos) << text;
  EXPECT_NE(text.find("lo"), std::string::npos) << text;
}

TEST_F(Logging, AHandleUsedAfterDestroyIsNamedWithItsRank) {
  ncclComm_t comms[2];
  ASSERT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess);
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comms[1]), ncclInvalidArgument);
  const std::string text = ncclGetLastError(nullptr);
  EXPECT_NE(text.find("has already been destroyed (rank 1 of 2)"), std::string::npos) << text;
}

}  // namespace
}  // namespace talaria::test
