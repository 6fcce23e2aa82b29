// Ranks in processes of their own: mailboxes reached by CUDA IPC.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/os.h"
#include "gpu/elements.h"
#include "gpu/process.h"
#include "gpu/world.h"

extern char** environ;

namespace talaria::gpu_test {
namespace {

constexpr const char* kRankVariable = "TALARIA_TEST_CHILD_RANK";
constexpr const char* kSizeVariable = "TALARIA_TEST_CHILD_RANKS";
constexpr const char* kIdVariable = "TALARIA_TEST_CHILD_ID";
constexpr const char* kSeedVariable = "TALARIA_TEST_SEED";

std::string to_hex(const ncclUniqueId& id) {
  std::string text;
  for (const char byte : id.internal) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

ncclUniqueId from_hex(const std::string& text) {
  ncclUniqueId id;
  for (size_t i = 0; i < sizeof id.internal; ++i) {
    id.internal[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return id;
}

// The all-reduces and exchanges of one child; "" or what went wrong.
std::string run_operations(Rank& rank) {
  for (const size_t count : {size_t{1}, size_t{1000}, size_t{262145}, size_t{4000003}}) {
    const uint64_t seed = run_seed() + count;
    const auto data = input_block(seed, rank.rank, 0, count, DataType::kFloat32);
    Buffer in(data.size());
    Buffer out(data.size());
    in.write(0, data, rank.stream->get());
    out.fill(data.size(), 0xcd, rank.stream->get());
    const Graph graph = Graph::capture(rank.stream->get(), [&] {
      ncclAllReduce(in.data(), out.data(), count, ncclFloat32, ncclSum, rank.comm, rank.stream->get());
    });
    for (int round = 0; round < 4; ++round) {
      if (round % 2 == 1) graph.launch(rank.stream->get());
      else ncclAllReduce(in.data(), out.data(), count, ncclFloat32, ncclSum, rank.comm, rank.stream->get());
      std::vector<std::byte> got(data.size());
      out.read(0, got, rank.stream->get());
      if (!wait_for(rank.stream->get(), kPatienceSeconds)) return "hangs: " + std::string(ncclGetLastError(nullptr));
      const auto wanted = reduced_block({seed, rank.nranks, DataType::kFloat32, ReduceOp::kSum}, 0, count);
      const std::string difference = first_difference(got.data(), wanted.data(), wanted.size());
      if (!difference.empty()) return fmt::format("count {}: {}", count, difference);
    }
  }
  return "";
}

std::string run_child() {
  const auto rank = static_cast<uint32_t>(std::stoul(*environment(kRankVariable)));
  const auto nranks = static_cast<uint32_t>(std::stoul(*environment(kSizeVariable)));
  Device device(static_cast<int>(rank) % gpu_count());
  Rank self{rank, nranks, nullptr, device.ordinal(), std::make_unique<Stream>()};
  const ncclUniqueId id = from_hex(*environment(kIdVariable));
  if (ncclCommInitRank(&self.comm, static_cast<int>(nranks), id, static_cast<int>(rank)) != ncclSuccess) {
    return std::string("ncclCommInitRank: ") + ncclGetLastError(nullptr);
  }
  std::string problem = run_operations(self);
  if (problem.empty() && ncclCommDestroy(self.comm) != ncclSuccess) problem = ncclGetLastError(nullptr);
  return problem;
}

pid_t spawn_child(uint32_t rank, uint32_t nranks, const std::string& id) {
  std::vector<std::string> variables = {fmt::format("{}={}", kRankVariable, rank),
                                        fmt::format("{}={}", kSizeVariable, nranks),
                                        fmt::format("{}={}", kIdVariable, id),
                                        fmt::format("{}={}", kSeedVariable, run_seed())};
  std::vector<char*> pointers;
  for (std::string& variable : variables) pointers.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "TALARIA_TEST_", 13) != 0) pointers.push_back(*variable);
  }
  pointers.push_back(nullptr);
  char program[] = "/proc/self/exe";
  char* arguments[] = {program, nullptr};
  pid_t pid = -1;
  return posix_spawn(&pid, program, nullptr, nullptr, arguments, pointers.data()) == 0 ? pid : -1;
}

// Waits for a child until `deadline`; kills it then.
void expect_success(pid_t pid, double deadline) {
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (now_usec() > deadline) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      FAIL() << "a child process hangs";
    }
    usleep(2000);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "a child failed with wait status " << status;
}

class Processes : public NeedsGpu<testing::TestWithParam<uint32_t>> {};

TEST_P(Processes, AllReduceAcrossProcesses) {
  const uint32_t nranks = GetParam();
  if (static_cast<int>(nranks) > gpu_count()) GTEST_SKIP() << "needs " << nranks << " GPUs";
  ncclUniqueId id;
  ASSERT_TRUE(succeeded(ncclGetUniqueId(&id), "ncclGetUniqueId"));
  const double deadline = now_usec() + 90e6;
  std::vector<pid_t> children;
  for (uint32_t rank = 0; rank < nranks; ++rank) children.push_back(spawn_child(rank, nranks, to_hex(id)));
  for (const pid_t child : children) {
    ASSERT_GT(child, 0);
    expect_success(child, deadline);
  }
}
INSTANTIATE_TEST_SUITE_P(Gpu, Processes, testing::Values(2u, 4u), testing::PrintToStringParamName());

}  // namespace

bool is_child_process() { return environment(kRankVariable).has_value(); }

int child_main() {
  try {
    const std::string problem = run_child();
    if (problem.empty()) return 0;
    std::fprintf(stderr, "rank %s: %s\n", environment(kRankVariable)->c_str(), problem.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %s: %s\n", environment(kRankVariable)->c_str(), error.what());
  }
  return 1;
}

}  // namespace talaria::gpu_test
