// Each verdict, from a plan or an executor broken by hand: the simulator must be able to see every kind of fault.
#include <gtest/gtest.h>

#include "schedule/algorithms/refs.h"
#include "sim/arith.h"
#include "sim/cases.h"

namespace talaria::sim {
namespace {

constexpr int kSeeds = 64;

// Two all-reduces of two ranks, `count` elements in pieces of 32 bytes; `plans` replaces the catalogue's.
Scenario two_ranks(const Call& call, uint32_t depth, const std::vector<std::shared_ptr<const Plan>>& plans) {
  Random random(1);
  ScenarioBuilder builder(Room{2, 1, depth, 32}, random);
  builder.add(call);
  builder.add(call);
  if (!plans.empty()) {
    for (Op& op : builder.scenario().ops) op.plans = plans;
  }
  return builder.finish();
}

Call all_reduce(const char* algorithm, uint64_t count, Form form = Form::kStaged) {
  return {find_algorithm(algorithm), {Operation::kAllReduce, DataType::kInt32, ReduceOp::kSum, 0, count}, form};
}

// The one-shot plan with one reference changed by `change(rank, step, ref)`.
template <typename ChangeRef>
std::vector<std::shared_ptr<const Plan>> one_shot(ChangeRef change) {
  std::vector<std::shared_ptr<const Plan>> plans;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Plan plan(Shape{Operation::kAllReduce, 0, rank, 2, Form::kStaged}, 1);
    Ref push = inbox(1 - rank, 0), take = inbox(1 - rank, 0, kRaw), own = own_input(kRaw), out = own_output();
    change(push, take, own, out);
    plan.begin_stream();
    plan.add(0, {own_input()}, {push});
    if (rank == 0) plan.add(0, {own, take}, {out}, kFinal);
    else plan.add(0, {take, own}, {out}, kFinal);
    EXPECT_TRUE(plan.seal().ok());
    plans.push_back(std::make_shared<Plan>(plan));
  }
  return plans;
}

// The verdicts over many interleavings; kOk only if all were.
Verdict worst(const Scenario& scenario) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const Report report = run_checked(scenario, static_cast<uint64_t>(seed));
    if (report.verdict != Verdict::kOk) return report.verdict;
  }
  return Verdict::kOk;
}

TEST(Verdict, OkWithoutAChange) {
  const auto plans = one_shot([](Ref&, Ref&, Ref&, Ref&) {});
  EXPECT_EQ(worst(two_ranks(all_reduce("one_shot", 100), 2, plans)), Verdict::kOk);
}

TEST(Verdict, WrongAnswerWhenTheOwnInputIsForgotten) {
  auto call = all_reduce("one_shot", 100);
  call.collective.reduce = ReduceOp::kAvg;
  call.collective.type = DataType::kFloat32;
  const auto plans = one_shot([](Ref&, Ref&, Ref& own, Ref&) { own.flags = 0; });
  EXPECT_EQ(worst(two_ranks(call, 2, plans)), Verdict::kWrongAnswer);
}

TEST(Verdict, DeadlockWhenASignalIsMissing) {
  const auto plans = one_shot([](Ref& push, Ref&, Ref&, Ref&) { push.flags = kWait; });
  EXPECT_EQ(worst(two_ranks(all_reduce("one_shot", 100), 2, plans)), Verdict::kDeadlock);
}

TEST(Verdict, LeftOverMessageWhenNobodyTakesIt) {
  const auto plans = one_shot([](Ref&, Ref& take, Ref&, Ref&) { take = own_input(); });
  auto call = all_reduce("one_shot", 4);
  Scenario scenario = two_ranks(call, 4, plans);
  for (Op& op : scenario.ops) {  // the answer such a plan gives, so that only the message is wrong
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const Operand twice[] = {{op.inputs[rank].data(), false}, {op.inputs[rank].data(), false}};
      reduce_piece({op.type, op.reduce, 2}, twice, true, 4, op.expected[rank].data());
    }
  }
  EXPECT_EQ(worst(scenario), Verdict::kLeftOver);
}

TEST(Verdict, OutOfBoundsForARankThatDoesNotExist) {
  const auto plans = one_shot([](Ref& push, Ref&, Ref&, Ref&) { push.peer = 2; });
  EXPECT_EQ(worst(two_ranks(all_reduce("one_shot", 100), 2, plans)), Verdict::kOutOfBounds);
}

TEST(Verdict, OutOfBoundsForAPieceLargerThanASlotOrABuffer) {
  const auto plans = one_shot([](Ref&, Ref&, Ref&, Ref&) {});
  Scenario slot = two_ranks(all_reduce("one_shot", 100), 4, plans);
  slot.slot_bytes = 16;
  EXPECT_EQ(worst(slot), Verdict::kOutOfBounds);
  Scenario buffer = two_ranks(all_reduce("one_shot", 100), 4, plans);
  for (Op& op : buffer.ops) op.chunking.block_elements = op.chunking.total_elements = 104;
  EXPECT_EQ(worst(buffer), Verdict::kOutOfBounds);
}

TEST(Verdict, RaceWhenAMessageIsNotWaitedFor) {
  const auto plans = one_shot([](Ref&, Ref& take, Ref&, Ref&) { take.flags = kSignal | kRaw; });
  for (Channel channel : {Channel::kCollectiveBulk, Channel::kCollectivePacket}) {
    Call call = all_reduce("one_shot", 100);
    call.channel = channel;
    EXPECT_EQ(worst(two_ranks(call, 2, plans)), Verdict::kRace);
  }
}

TEST(Verdict, RaceWhenATailOvertakesItsData) {
  const auto plans = one_shot([](Ref& push, Ref&, Ref&, Ref&) { push.reserved = kWeakSignal; });
  EXPECT_EQ(worst(two_ranks(all_reduce("one_shot", 100), 2, plans)), Verdict::kRace);
}

TEST(Verdict, RaceWhenTwoStreamsTouchTheSameBytes) {
  Random random(1);
  ScenarioBuilder builder(Room{1, 1, 2, 32}, random);
  const uint32_t op = builder.add(all_reduce("one_shot", 8));
  Plan plan(Shape{Operation::kAllReduce, 0, 0, 1, Form::kStaged}, 1);
  for (int stream = 0; stream < 2; ++stream) {
    plan.begin_stream();
    plan.add(0, {own_input()}, {own_output()});
  }
  ASSERT_TRUE(plan.seal().ok());
  builder.scenario().ops[op].plans[0] = std::make_shared<Plan>(plan);
  EXPECT_EQ(worst(builder.finish()), Verdict::kRace);
}

// A rank that does not wait for done leaves while others still touch its buffers.
TEST(Verdict, RaceWhenARankLeavesBeforeItsPeersAreDone) {
  Call call = all_reduce("two_shot", 40, Form::kDirect);
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const auto& original : plans_for(call, 2)) {
    auto plan = std::make_shared<Plan>(*original);
    std::vector<Ref> refs = plan->refs();
    for (Ref& ref : refs) {
      if (ref.place == Place::kDone) ref.flags &= static_cast<uint8_t>(~kWait);
    }
    plan->replace_refs(refs, plan->steps());
    plans.push_back(plan);
  }
  EXPECT_EQ(worst(two_ranks(call, 4, plans)), Verdict::kRace);
}

TEST(Verdict, SlotOverwrittenWhenCreditIsNotWaitedFor) {
  Random random(1);
  ScenarioBuilder builder(Room{2, 1, 2, 32}, random);
  const uint32_t op = builder.add({find_algorithm("two_shot"), {Operation::kBroadcast, DataType::kInt32,
                                                               ReduceOp::kNone, 0, 100}});
  auto& plan = builder.scenario().ops[op].plans[0];
  auto changed = std::make_shared<Plan>(*plan);
  std::vector<Ref> refs = changed->refs();
  for (Ref& ref : refs) {
    if (ref.place == Place::kInbox) ref.flags = kSignal;
  }
  changed->replace_refs(refs, changed->steps());
  plan = changed;
  EXPECT_EQ(worst(builder.finish()), Verdict::kSlotOverwritten);
}

TEST(Verdict, BlockedOnADeadRank) {
  Scenario scenario = two_ranks(all_reduce("ring", 400), 4, {});
  scenario.killed = 1;
  int blocked = 0;
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    const Verdict verdict = run_checked(scenario, seed).verdict;
    ASSERT_TRUE(verdict == Verdict::kBlockedOnDead || verdict == Verdict::kOk) << "seed " << seed;
    blocked += verdict == Verdict::kBlockedOnDead;
  }
  EXPECT_GT(blocked, 10);
}

// --- rules of the executor, broken

// Long packet messages and short ones in turn: the short ones leave old tags behind in the rest of their slots.
TEST(Verdict, StaleTagsAreTakenForNewOnesUnlessTheWrapZeroesThem) {
  Random random(1);
  ScenarioBuilder builder(Room{2, 1, 4, 64}, random);
  for (int i = 0; i < 90; ++i) {
    Call call = all_reduce("one_shot", i % kTagModulus == 0 ? 16 : 1);
    call.channel = Channel::kCollectivePacket;
    builder.add(call);
  }
  Scenario scenario = builder.finish();
  EXPECT_EQ(worst(scenario), Verdict::kOk);
  scenario.sabotage.keep_old_tags = true;
  EXPECT_EQ(worst(scenario), Verdict::kRace);
}

TEST(Verdict, LongOperationsDeadlockWithoutACreditPerSlot) {
  Scenario scenario = two_ranks(all_reduce("one_shot", 100), 4, {});
  scenario.sabotage.ignore_credit_rule = true;
  EXPECT_EQ(worst(scenario), Verdict::kDeadlock);
}

TEST(Verdict, ATornReadyWordIsNotBelieved) {
  Random random(1);
  ScenarioBuilder builder(Room{3, 1, 4, 32}, random);
  for (int i = 0; i < 12; ++i) builder.add(all_reduce("two_shot", 40, Form::kDirect));
  Scenario scenario = builder.finish();
  EXPECT_EQ(worst(scenario), Verdict::kOk);
  scenario.sabotage.tear_ready = true;
  EXPECT_NE(worst(scenario), Verdict::kOk);
}

}  // namespace
}  // namespace talaria::sim
