// Ranks as threads: run_ranks(n, fn) calls fn(rank) in n threads at once and waits for all of them.
#pragma once

#include <thread>
#include <vector>

namespace talaria::test {

template <typename Function>
void run_ranks(int nranks, Function&& function) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(nranks));
  for (int rank = 0; rank < nranks; ++rank) threads.emplace_back([&function, rank] { function(rank); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace talaria::test
