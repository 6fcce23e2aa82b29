// Ranks that were told different things about the choice of algorithms: every rank refuses, and says who differs.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "unit/runtime/host_ranks.h"

namespace talaria {
namespace {

// The init of as many processes, each with its own NCCL_ALGO. The judge says whether it ended right.
using Judge = bool (*)(int rank, Code code, const std::string& text);
void run_inits(const std::vector<const char*>& algorithms, Judge judge) {
  const int nranks = static_cast<int>(algorithms.size());
  test::run_process_inits(nranks, [&](int rank, const UniqueId& id) {
    setenv("NCCL_ALGO", algorithms[static_cast<size_t>(rank)], 1);
    Communicator* comm = nullptr;
    const Status status = init_rank(&comm, nranks, {id}, rank, InitOptions{});
    const std::string text = last_error_text();
    if (comm == nullptr && judge(rank, status.code(), text)) return true;
    fprintf(stderr, "rank %d: code %d, %s\n", rank, static_cast<int>(status.code()), text.c_str());
    return false;
  });
}

TEST(Choice, DifferentAlgorithmsAreRefusedByAllRanksNamingVariableRanksAndValues) {
  run_inits({"Tree,Ring", "tree,ring", "^NVLS"}, [](int, Code code, const std::string& text) {
    return code == Code::kInvalidUsage &&
           text == "NCCL_ALGO differs: \"Tree,Ring\" on rank 0, \"^NVLS\" on rank 2; set it alike on all ranks";
  });
}

TEST(Choice, GarbageOnOneRankEndsTheInitOfAll) {
  run_inits({"ring", "butterfly", "ring"}, [](int rank, Code code, const std::string& text) {
    if (rank == 1) return code == Code::kInvalidUsage && text.find("\"butterfly\"") != std::string::npos;
    return code == Code::kRemote && text.find("rank 1 ") != std::string::npos;
  });
}

}  // namespace
}  // namespace talaria
