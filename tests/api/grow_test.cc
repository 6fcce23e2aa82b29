// ncclCommGrow and ncclCommGetUniqueId on CPU ranks that are threads of this process.
#include <chrono>
#include <cstring>
#include <filesystem>
#include <future>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "api/children.h"
#include "api/variable.h"

namespace talaria::test {
namespace {

using GrowApi = HostRanks;

// Rank `rank` of `nranks` in the grown communicator is a newcomer.
ncclResult_t join(const ncclUniqueId& id, int nranks, int rank, ncclComm_t* child) {
  return ncclCommGrow(nullptr, nranks, &id, rank, child, nullptr);
}

ncclUniqueId id_from(ncclComm_t comm) {
  ncclUniqueId id;
  EXPECT_EQ(ncclCommGetUniqueId(comm, &id), ncclSuccess) << last_error();
  return id;
}

// Grows `clique` to `nranks` and checks the outcome on all; `coordinator` made the id, and gives it if `given`.
void grow_and_check(const Clique& clique, int nranks, int coordinator, bool given) {
  const ncclUniqueId id = id_from(clique[coordinator]);
  const auto check = [&](int rank, ncclResult_t result, ncclComm_t child) {
    ASSERT_EQ(result, ncclSuccess) << last_error();
    EXPECT_EQ(place_in(child), (Place{rank, nranks}));
    EXPECT_EQ(sum_over(child, 1 << rank), (1 << nranks) - 1);
    EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
  };
  std::vector<std::thread> newcomers;
  for (int rank = clique.size(); rank < nranks; ++rank) {
    newcomers.emplace_back([&, rank] {
      ncclComm_t child = nullptr;
      const ncclResult_t result = join(id, nranks, rank, &child);
      check(rank, result, child);
    });
  }
  on_every_rank(clique, [&](int rank, ncclComm_t comm) {
    ncclComm_t child = nullptr;
    const ncclUniqueId* mine = given && rank == coordinator ? &id : nullptr;
    const ncclResult_t result = ncclCommGrow(comm, nranks, mine, -1, &child, nullptr);
    check(rank, result, child);
  });
  for (std::thread& newcomer : newcomers) newcomer.join();
}

TEST_F(GrowApi, RanksKeepTheirPlacesAndNewcomersTakeTheirs) {
  Clique two(2);
  grow_and_check(two, 4, 0, true);
  grow_and_check(two, 3, 1, true);
  on_every_rank(two, [](int rank, ncclComm_t comm) { EXPECT_EQ(sum_over(comm, 1 << rank), 0b11) << "it goes on"; });
}

TEST_F(GrowApi, TheCoordinatorNeedNotGiveItsId) {
  Clique two(2);
  grow_and_check(two, 5, 1, false);
}

TEST_F(GrowApi, OneRankGrowsToEight) {
  Clique one(1);
  grow_and_check(one, 8, 0, false);
}

TEST_F(GrowApi, AfterRevoke) {
  Clique two(2);
  for (int r : {0, 1}) EXPECT_EQ(ncclCommRevoke(two[r], NCCL_REVOKE_DEFAULT), ncclSuccess);
  grow_and_check(two, 3, 0, false);
}

// Members and newcomers in one group of one thread.
TEST_F(GrowApi, InAGroup) {
  Clique two(2);
  const ncclUniqueId id = id_from(two[0]);
  ncclComm_t children[4] = {};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int r = 0; r < 2; ++r) EXPECT_EQ(ncclCommGrow(two[r], 4, nullptr, -1, &children[r], nullptr), ncclSuccess);
  for (int r = 2; r < 4; ++r) EXPECT_EQ(join(id, 4, r, &children[r]), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << last_error();
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(place_in(children[r]), (Place{r, 4}));
    EXPECT_EQ(ncclCommDestroy(children[r]), ncclSuccess);
  }
}

// 3 ranks, then 2, then 3 with another one, then 2 again, all by their last communicator.
TEST_F(GrowApi, GrowAfterShrinkAndShrinkAfterGrow) {
  Clique three(3);
  std::promise<ncclUniqueId> made;
  std::shared_future<ncclUniqueId> id = made.get_future().share();
  int excluded[] = {0};
  const auto end = [&](int rank, ncclComm_t grown) {
    EXPECT_EQ(place_in(grown), (Place{rank, 3}));
    EXPECT_EQ(sum_over(grown, 1 << rank), 0b111);
    if (rank > 0) {
      ncclComm_t last = nullptr;
      ASSERT_EQ(ncclCommShrink(grown, excluded, 1, &last, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess) << last_error();
      EXPECT_EQ(sum_over(last, rank), 3);
      EXPECT_EQ(ncclCommDestroy(last), ncclSuccess);
    }
    EXPECT_EQ(ncclCommDestroy(grown), ncclSuccess);
  };
  std::thread newcomer([&] {
    ncclComm_t grown = nullptr;
    ASSERT_EQ(join(id.get(), 3, 2, &grown), ncclSuccess) << last_error();
    end(2, grown);
  });
  on_ranks(three, {1, 2}, [&](int rank, ncclComm_t comm) {
    ncclComm_t small = nullptr, grown = nullptr;
    ASSERT_EQ(ncclCommShrink(comm, excluded, 1, &small, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess) << last_error();
    if (rank == 1) made.set_value(id_from(small));
    ASSERT_EQ(ncclCommGrow(small, 3, nullptr, -1, &grown, nullptr), ncclSuccess) << last_error();
    EXPECT_EQ(ncclCommDestroy(small), ncclSuccess);
    end(rank - 1, grown);
  });
  newcomer.join();
}

size_t entries_of(const char* folder) {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

// Threads that have served a meeting need a moment to end.
bool settles_at(size_t descriptors, size_t threads) {
  for (int i = 0; i < 2000; ++i) {
    if (entries_of("/proc/self/fd") <= descriptors && entries_of("/proc/self/task") <= threads) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// 3 ranks to 2 and to 3 again.
void shrink_and_grow() {
  Clique three(3);
  std::promise<ncclUniqueId> made;
  std::shared_future<ncclUniqueId> id = made.get_future().share();
  int excluded[] = {0};
  std::thread newcomer([&] {
    ncclComm_t grown = nullptr;
    EXPECT_EQ(join(id.get(), 3, 2, &grown), ncclSuccess) << last_error();
    EXPECT_EQ(ncclCommDestroy(grown), ncclSuccess);
  });
  on_ranks(three, {1, 2}, [&](int rank, ncclComm_t comm) {
    ncclComm_t small = nullptr, grown = nullptr;
    EXPECT_EQ(ncclCommShrink(comm, excluded, 1, &small, nullptr, NCCL_SHRINK_ABORT), ncclSuccess) << last_error();
    if (rank == 2) made.set_value(id_from(small));
    EXPECT_EQ(ncclCommGrow(small, 3, nullptr, -1, &grown, nullptr), ncclSuccess) << last_error();
    EXPECT_EQ(ncclCommDestroy(small), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(grown), ncclSuccess);
  });
  newcomer.join();
}

TEST_F(GrowApi, FiftyCyclesLeaveNothingBehind) {
  for (int i = 0; i < 3; ++i) shrink_and_grow();  // what the process keeps for good is there then
  const size_t descriptors = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
  for (int i = 0; i < 50; ++i) shrink_and_grow();
  EXPECT_TRUE(settles_at(descriptors, threads))
      << entries_of("/proc/self/fd") << " descriptors instead of " << descriptors << ", "
      << entries_of("/proc/self/task") << " threads instead of " << threads;
}

TEST_F(GrowApi, WhatTheRanksDisagreeOnIsAnErrorOnAll) {
  Clique two(2);
  struct Row {
    int nranks[2];
    int ids;  // how many ranks make one
    ncclResult_t result;
    const char* text;
  };
  constexpr Row kRows[] = {
      {{3, 4}, 1, ncclInvalidArgument, "rank 0 gives nRanks 3, rank 1 gives 4"},
      {{3, 2}, 1, ncclInvalidArgument, "rank 1 gives nRanks 2; expected more than the 2 ranks"},
      {{3, 3}, 0, ncclInvalidUsage, "no rank of the communicator has called ncclCommGetUniqueId"},
      {{3, 3}, 2, ncclInvalidUsage, "ranks 0 and 1 have different unique ids"},
  };
  for (const Row& row : kRows) {
    for (int r = 0; r < row.ids; ++r) id_from(two[r]);
    on_every_rank(two, [&](int rank, ncclComm_t comm) {
      ncclComm_t child = not_null();
      EXPECT_EQ(ncclCommGrow(comm, row.nranks[rank], nullptr, -1, &child, nullptr), row.result);
      EXPECT_EQ(child, nullptr);
      EXPECT_NE(last_error().find(row.text), std::string::npos) << last_error();
    });
  }
}

TEST_F(GrowApi, ANewcomerThatDoesNotComeIsNamed) {
  const Variable bound("TALARIA_INIT_TIMEOUT", "1");
  Clique two(2);
  id_from(two[0]);
  on_every_rank(two, [&](int, ncclComm_t comm) {
    ncclComm_t child = not_null();
    EXPECT_EQ(ncclCommGrow(comm, 4, nullptr, -1, &child, nullptr), ncclRemoteError);
    EXPECT_EQ(child, nullptr);
    EXPECT_NE(last_error().find("rank 2-3"), std::string::npos) << last_error();
  });
}

TEST_F(GrowApi, WrongArguments) {
  Clique one(1);
  const auto expect = [](ncclResult_t got, const std::string& text) {
    EXPECT_EQ(got, ncclInvalidArgument) << text;
    EXPECT_EQ(last_error(), text);
  };
  ncclUniqueId id = id_from(one[0]), foreign;
  memset(&foreign, 0, sizeof(foreign));
  ncclComm_t child = not_null();
  expect(ncclCommGetUniqueId(nullptr, &id), "CommGetUniqueId : comm argument is NULL");
  expect(ncclCommGetUniqueId(one[0], nullptr), "CommGetUniqueId : uniqueId argument is NULL");
  expect(ncclCommGrow(one[0], 2, &id, -1, nullptr, nullptr), "CommGrow : newcomm argument is NULL");
  expect(ncclCommGrow(nullptr, 2, nullptr, 1, &child, nullptr), "CommGrow : uniqueId argument is NULL");
  EXPECT_EQ(child, nullptr);
  expect(join(foreign, 2, 1, &child), "CommGrow : commId was not made by this library's ncclGetUniqueId");
  expect(join(id, 2, 2, &child), "Invalid rank requested : 2/2");
  expect(join(id, 2, -1, &child), "Invalid rank requested : -1/2");
  expect(ncclCommGrow(one[0], 2, &id, 0, &child, nullptr),
         "CommGrow : rank is 0; ranks of the communicator that grows keep their place and give -1");
  expect(ncclCommGrow(one[0], 2, &foreign, -1, &child, nullptr),
         "CommGrow : commId was not made by this library's ncclGetUniqueId");
  for (int nranks : {-1, 0, 1}) EXPECT_EQ(ncclCommGrow(one[0], nranks, &id, -1, &child, nullptr), ncclInvalidArgument);
  ncclConfig_t config = {};
  EXPECT_EQ(ncclCommGrow(one[0], 2, &id, -1, &child, &config), ncclInvalidArgument);
  ncclComm_t gone = nullptr;
  ASSERT_EQ(ncclCommInitAll(&gone, 1, nullptr), ncclSuccess);
  ASSERT_EQ(ncclCommDestroy(gone), ncclSuccess);
  EXPECT_EQ(ncclCommGrow(gone, 2, &id, -1, &child, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommGetUniqueId(gone, &id), ncclInvalidArgument);
}

}  // namespace
}  // namespace talaria::test
