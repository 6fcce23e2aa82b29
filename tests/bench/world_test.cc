// Threads and processes of a run agree on sums and times, and a failing process ends the run.
#include "world.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace talaria::bench {
namespace {

TEST(BenchWorld, ThreadsOfAllProcessesAgree) {
  constexpr int kProcesses = 3;
  constexpr int kThreads = 2;
  World world(kProcesses, kThreads, 1);
  const auto run_thread = [&](int thread) {
    for (int round = 0; round < 200; ++round) {
      const double mine = thread + round;
      const bool agreed = world.combine(mine, Average::kRank0, thread) == round &&
                          world.combine(mine, Average::kMean, thread) == round + 2.5 &&
                          world.combine(mine, Average::kMin, thread) == round &&
                          world.combine(mine, Average::kMax, thread) == round + 5 &&
                          world.sum(thread + round, thread) == 15u + 6u * round;
      if (!agreed) _exit(9);
    }
  };
  const int code = run_processes(kProcesses, [&](int process) {
    std::thread second(run_thread, process * kThreads + 1);
    run_thread(process * kThreads);
    second.join();
    return 0;
  });
  EXPECT_EQ(code, 0);
}

TEST(BenchWorld, FailingProcessEndsThoseThatWaitForIt) {
  World world(3, 1, 1);
  const int code = run_processes(3, [&](int process) {
    if (process == 1) return 7;
    world.barrier();  // never complete
    return 0;
  });
  EXPECT_EQ(code, 7);
}

TEST(BenchWorld, KilledProcessIsAFailure) {
  World world(2, 1, 1);
  const int code = run_processes(2, [&](int process) {
    if (process == 1) raise(SIGKILL);
    world.barrier();
    return 0;
  });
  EXPECT_EQ(code, 1);
}

TEST(BenchWorld, LongLabelsAreCut) {
  World world(1, 1, 2);
  world.set_label(0, std::string(1000, 'x'));
  world.set_label(1, "short");
  EXPECT_EQ(world.label(0), std::string(127, 'x'));
  EXPECT_EQ(world.label(1), "short");
}

}  // namespace
}  // namespace talaria::bench
