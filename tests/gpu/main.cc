// Runs the tests, or one rank of a test with processes. A test that takes too long ends the program with its name.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "gpu/elements.h"
#include "gpu/process.h"
#include "gpu/world.h"

namespace talaria::gpu_test {
namespace {

constexpr auto kLongestTest = std::chrono::seconds(200);

// Ends the program when a test hangs outside the bounded waits, for example inside ncclCommInitRank.
class Watchdog : public testing::EmptyTestEventListener {
 public:
  Watchdog() : thread_([this] { watch(); }) {}
  ~Watchdog() override {
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void OnTestStart(const testing::TestInfo& test) override {
    std::lock_guard lock(mutex_);
    name_ = std::string(test.test_suite_name()) + "." + test.name();
    deadline_ = std::chrono::steady_clock::now() + kLongestTest;
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    std::lock_guard lock(mutex_);
    name_.clear();
    if (test.result()->Failed()) std::printf("repeat with TALARIA_TEST_SEED=%lu\n", run_seed());
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(500), [this] { return done_; })) {
      if (name_.empty() || std::chrono::steady_clock::now() < deadline_) continue;
      std::fprintf(stderr, "[ HANGS    ] %s (seed %lu)\n", name_.c_str(), run_seed());
      std::_Exit(1);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string name_;
  std::chrono::steady_clock::time_point deadline_;
  bool done_ = false;
  std::thread thread_;
};

class Worlds : public testing::Environment {
  void TearDown() override { World::drop_shared(); }
};

}  // namespace
}  // namespace talaria::gpu_test

int main(int argc, char** argv) {
  using namespace talaria::gpu_test;
  if (is_child_process()) return child_main();
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new Watchdog);
  if (gpu_count() > 0) testing::AddGlobalTestEnvironment(new Worlds);
  return RUN_ALL_TESTS();
}
