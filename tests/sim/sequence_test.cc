// Random sequences of operations in check mode.
#include <gtest/gtest.h>

#include "sim/cases.h"

namespace talaria::sim {
namespace {

Room random_room(Random& random) {
  const uint32_t nranks = below(random, 8) == 0 ? 2 + static_cast<uint32_t>(below(random, 16))
                                                : 2 + static_cast<uint32_t>(below(random, 4));
  return Room{nranks, 1 + static_cast<uint32_t>(below(random, 2)), 1u << below(random, 3), 16 * (1 + below(random, 4))};
}

Scenario random_scenario(const Room& room, uint64_t operations, Random& random) {
  ScenarioBuilder builder(room, random);
  for (uint64_t i = 0; i < operations; ++i) {
    if (below(random, 5) == 0) builder.add_group(random_transfers(room, random));
    else builder.add(random_call(room, random));
  }
  return builder.finish();
}

TEST(Sequence, ThousandRandomSequencesGiveTheOraclesResults) {
  uint64_t actions = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    const Room room = random_room(random);
    const Scenario scenario = random_scenario(room, 2 + below(random, 8), random);
    const Report report = run_checked(scenario, random());
    ASSERT_EQ(report.verdict, Verdict::kOk) << "seed " << seed << ": " << name_of(report.verdict) << " " << report.text
                                            << " (" << room.nranks << " ranks, depth " << room.depth << ")";
    actions += report.actions;
  }
  EXPECT_GT(actions, 1'000'000u);
}

TEST(Sequence, TagsWrapManyTimesInLongSequences) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const Room room{2 + static_cast<uint32_t>(below(random, 2)), 1, 1u << below(random, 3), 32};
    const Scenario scenario = random_scenario(room, 120, random);
    const Report report = run_checked(scenario, random());
    ASSERT_EQ(report.verdict, Verdict::kOk) << "seed " << seed << ": " << name_of(report.verdict) << " " << report.text;
  }
}

TEST(Sequence, EveryoneWaitsForAKilledRank) {
  int blocked = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const Room room = random_room(random);
    Scenario scenario = random_scenario(room, 3 + below(random, 4), random);
    scenario.killed = static_cast<uint32_t>(below(random, room.nranks));
    const Report report = run_checked(scenario, random());
    ASSERT_TRUE(report.verdict == Verdict::kOk || report.verdict == Verdict::kBlockedOnDead)
        << "seed " << seed << ": " << name_of(report.verdict) << " " << report.text;
    blocked += report.verdict == Verdict::kBlockedOnDead;
  }
  EXPECT_GT(blocked, 60);
}

}  // namespace
}  // namespace talaria::sim
