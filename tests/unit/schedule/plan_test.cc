#include "schedule/plan.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "schedule/algorithm.h"
#include "schedule/algorithms/refs.h"

namespace talaria {
namespace {

const Shape kShape{Operation::kAllReduce, 0, 0, 2, Form::kStaged};

TEST(Plan, RefusesTwoStreamsThatFeedOneFifo) {
  Plan plan(kShape, 1);
  for (int stream = 0; stream < 2; ++stream) {
    plan.begin_stream();
    plan.add(0, {own_input()}, {inbox(1, 0)});
  }
  EXPECT_EQ(plan.seal().code(), Code::kInternal);
}

TEST(Plan, RefusesTwoStreamsThatDrainOneFifo) {
  Plan plan(kShape, 1);
  for (int stream = 0; stream < 2; ++stream) {
    plan.begin_stream();
    plan.add(0, {inbox(1, 1)}, {own_output()});
  }
  EXPECT_EQ(plan.seal().code(), Code::kInternal);
}

TEST(Plan, RefusesMessagesOutsideTheBody) {
  Plan plan(kShape, 1);
  plan.begin_stream();
  plan.add(0, {own_input()}, {inbox(1, 0)}, 0, Plan::Phase::kPrologue);
  EXPECT_EQ(plan.seal().code(), Code::kInternal);
}

TEST(Plan, RefusesMoreStreamsThanExecutorsHave) {
  Plan plan(kShape, 1);
  for (uint32_t stream = 0; stream <= kMaxStreams; ++stream) {
    plan.begin_stream();
    plan.add(0, {own_input()}, {own_output()});
  }
  EXPECT_EQ(plan.seal().code(), Code::kInternal);
}

TEST(Plan, SymmetricTrafficImpliesAcknowledgementsAndNeedsNoCredit) {
  Plan plan(kShape, 1);
  plan.begin_stream();
  plan.add(0, {own_input()}, {inbox(1, 0)});
  plan.add(0, {inbox(1, 0)}, {own_output()});
  ASSERT_TRUE(plan.seal().ok());
  ASSERT_EQ(plan.peers().size(), 1u);
  EXPECT_EQ(plan.peers()[0].implied_ack, 1);
  EXPECT_EQ(plan.peers()[0].credit_at_start, 0);
  EXPECT_EQ(plan.peers()[0].sends[0], 1);
  EXPECT_EQ(plan.peers()[0].receives[0], 1);
}

TEST(Plan, OneWayTrafficIsCreditedAtTheStart) {
  Plan plan(Shape{Operation::kBroadcast, 1, 0, 2, Form::kStaged}, 1);
  plan.begin_stream();
  plan.add(0, {inbox(1, 1)}, {own_output()});
  ASSERT_TRUE(plan.seal().ok());
  EXPECT_EQ(plan.peers()[0].credit_at_start, 2);
}

TEST(Plan, PointToPointNeverImpliesAcknowledgements) {
  Plan plan(Shape{Operation::kRecv, 1, 0, 2, Form::kStaged}, 1);
  plan.begin_stream();
  plan.add(0, {inbox(1, 0)}, {own_output()});
  ASSERT_TRUE(plan.seal().ok());
  EXPECT_EQ(plan.peers()[0].implied_ack, 0);
  EXPECT_EQ(plan.peers()[0].credit_at_start, 1);
}

TEST(Plan, EqualNeighboursShareTheirRefs) {
  Plan plan(kShape, 1);
  plan.begin_stream();
  for (uint32_t block = 0; block < 100; ++block) plan.add(block, {inbox(1, 0)}, {own_output(), inbox(1, 0)});
  EXPECT_EQ(plan.refs().size(), 3u);
  EXPECT_EQ(plan.steps().size(), 100u);
}

// What a rank sends to a peer per round, the peer's plan receives from it, for every row of the catalog.
TEST(Catalog, BothSidesOfEveryFifoCountTheSameMessages) {
  int checked = 0;
  for (const Algorithm& algorithm : algorithm_catalog()) {
    for (int o = 0; o < kOperations; ++o) {
      const auto operation = static_cast<Operation>(o);
      if (is_point_to_point(operation)) continue;
      for (uint32_t n : {2u, 3u, 5u, 8u, 17u}) {
        for (Form form : {Form::kStaged, Form::kDirect}) {
          if (!algorithm.serves(operation, n, form)) continue;
          std::vector<Plan> plans;
          for (uint32_t r = 0; r < n; ++r) {
            plans.push_back(algorithm.build(Shape{operation, static_cast<int32_t>(n - 1), r, n, form}));
            ASSERT_TRUE(plans.back().seal().ok());
          }
          const auto use = [&](uint32_t rank, uint32_t peer) {
            for (const PeerUse& u : plans[rank].peers()) {
              if (u.peer == peer) return u;
            }
            return PeerUse{};
          };
          for (uint32_t a = 0; a < n; ++a) {
            for (uint32_t b = 0; b < n; ++b) {
              for (uint32_t f = 0; f < kFifosPerPair && a != b; ++f) {
                EXPECT_EQ(use(a, b).sends[f], use(b, a).receives[f]) << algorithm.name << " " << name_of(operation);
                ++checked;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 1000);
}

TEST(Catalog, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const Algorithm& algorithm : algorithm_catalog()) {
    EXPECT_TRUE(names.insert(algorithm.name).second) << algorithm.name;
    EXPECT_EQ(find_algorithm(algorithm.name), &algorithm);
  }
  EXPECT_EQ(find_algorithm("no such algorithm"), nullptr);
}

}  // namespace
}  // namespace talaria
