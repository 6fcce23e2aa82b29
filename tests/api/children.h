// Communicators made of others: calling on all ranks at once, and what to ask of a child.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "api/host_ranks.h"

namespace talaria::test {

inline ncclComm_t not_null() { return reinterpret_cast<ncclComm_t>(0x10); }

inline std::string last_error() { return ncclGetLastError(nullptr); }

// Runs `body` for each of `ranks`, each on a thread of its own.
inline void on_ranks(const Clique& clique, const std::vector<int>& ranks,
                     const std::function<void(int rank, ncclComm_t comm)>& body) {
  std::vector<std::thread> threads;
  for (int r : ranks) threads.emplace_back([&, r] { body(r, clique[r]); });
  for (std::thread& thread : threads) thread.join();
}

inline void on_every_rank(const Clique& clique, const std::function<void(int rank, ncclComm_t comm)>& body) {
  std::vector<int> ranks;
  for (int r = 0; r < clique.size(); ++r) ranks.push_back(r);
  on_ranks(clique, ranks, body);
}

struct Place {
  int rank = -1, count = -1;
  bool operator==(const Place&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << place.rank << " of " << place.count;
}

inline Place place_in(ncclComm_t comm) {
  Place place;
  EXPECT_EQ(ncclCommUserRank(comm, &place.rank), ncclSuccess);
  EXPECT_EQ(ncclCommCount(comm, &place.count), ncclSuccess);
  return place;
}

// The sum of what the ranks give.
inline int sum_over(ncclComm_t comm, int mine) {
  int sum = -1;
  EXPECT_EQ(ncclAllReduce(&mine, &sum, 1, ncclInt32, ncclSum, comm, nullptr), ncclSuccess) << last_error();
  return sum;
}

}  // namespace talaria::test
