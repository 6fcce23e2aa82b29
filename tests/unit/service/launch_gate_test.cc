#include "service/launch_gate.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

namespace talaria {
namespace {

// A member whose answers the test sets, and which says when it is destroyed.
struct Member final : GateMember {
  explicit Member(int& destroyed) : destroyed(destroyed) {}
  ~Member() override { ++destroyed; }
  bool idle() const override { return is_idle; }
  bool finished() const override { return is_finished; }
  bool is_idle = true, is_finished = true;
  int& destroyed;
};

TEST(LaunchGate, DestroysTheRetiredOnceNothingIsInFlight) {
  LaunchGate gate;
  int destroyed = 0;
  auto retiring = std::make_shared<Member>(destroyed);
  auto busy = std::make_shared<Member>(destroyed);
  gate.enter(retiring);
  gate.enter(busy);
  busy->is_idle = false;
  gate.retire(std::move(retiring));
  EXPECT_EQ(destroyed, 0) << "another engine has work in flight";
  busy->is_idle = true;
  gate.collect();
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(gate.retired(), 0u);
}

TEST(LaunchGate, KeepsTheRetiredWhileTheirOwnWorkRuns) {
  LaunchGate gate;
  int destroyed = 0;
  auto retiring = std::make_shared<Member>(destroyed);
  Member* member = retiring.get();
  member->is_finished = false;
  gate.enter(retiring);
  gate.retire(std::move(retiring));
  EXPECT_EQ(destroyed, 0);
  member->is_finished = true;
  gate.collect();
  EXPECT_EQ(destroyed, 1);
}

TEST(LaunchGate, NeverWaitsForALaunchInProgress) {
  LaunchGate gate;
  int destroyed = 0;
  auto retiring = std::make_shared<Member>(destroyed);
  gate.enter(retiring);
  {
    const auto launching = gate.launching();
    std::thread([&] { gate.retire(std::move(retiring)); }).join();
    EXPECT_EQ(destroyed, 0);
  }
  gate.collect();
  EXPECT_EQ(destroyed, 1);
}

// Asks, while it is destroyed, whether a launch could begin.
struct Asker final : GateMember {
  Asker(LaunchGate& gate, bool& open) : gate(gate), open(open) {}
  ~Asker() override {
    std::thread([this] { open = gate.try_launching().owns_lock(); }).join();
  }
  bool idle() const override { return true; }
  bool finished() const override { return true; }
  LaunchGate& gate;
  bool& open;
};

TEST(LaunchGate, HoldsLaunchesOffWhileItDestroys) {
  LaunchGate gate;
  bool open = true;
  gate.retire(std::make_shared<Asker>(gate, open));
  EXPECT_FALSE(open);
  EXPECT_TRUE(gate.try_launching().owns_lock());
}

}  // namespace
}  // namespace talaria
