// Whoever is not invited must neither hold up nor break a rendezvous; whoever is, but says something impossible, is
// told.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "bootstrap/lobby.h"
#include "support/threads.h"
#include "unit/bootstrap/meeting.h"

namespace talaria {
namespace {

using namespace test;

void expect_meeting(const UniqueId& id, int nranks) {
  std::atomic<int> met{0};
  run_ranks(nranks, [&](int rank) {
    Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, nranks);
    ASSERT_TRUE(oob.ok()) << last_error_text();
    ASSERT_TRUE((*oob)->barrier().ok()) << last_error_text();
    ++met;
  });
  EXPECT_EQ(met, nranks);
}

TEST(Strangers, SilentOnesDoNotHoldUpTheOthers) {
  const UniqueId id = fresh_id();
  std::vector<Stranger> silent;
  for (int i = 0; i < 50; ++i) silent.emplace_back(id);
  expect_meeting(id, 4);
}

TEST(Strangers, PortScannersDoNot) {
  const UniqueId id = fresh_id();
  for (int i = 0; i < 50; ++i) Stranger(id).leave();
  expect_meeting(id, 4);
}

TEST(Strangers, GarbageIsDropped) {
  const UniqueId id = fresh_id();
  for (const std::string& text : {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string(100000, 'x'),
                                  std::string(16, '\0')}) {
    Stranger stranger(id);
    stranger.say(text.data(), std::min<size_t>(text.size(), 4096));
    EXPECT_TRUE(stranger.is_dropped());
  }
  expect_meeting(id, 4);
}

TEST(Strangers, AWrongSecretIsDroppedBeforeAnythingElseIsRead) {
  const UniqueId id = fresh_id();
  Greeting greeting = make_greeting(Secret(id), 0, 4);
  greeting.proof.back() ^= std::byte{1};
  Stranger whole(id), proof_only(id);
  whole.say(&greeting, sizeof(greeting));
  proof_only.say(&greeting, sizeof(greeting.proof));
  EXPECT_TRUE(whole.is_dropped());
  EXPECT_TRUE(proof_only.is_dropped());
  expect_meeting(id, 4);
}

TEST(Strangers, HalfAGreetingDoesNotHoldUpTheOthers) {
  const UniqueId id = fresh_id();
  const Greeting greeting = make_greeting(Secret(id), 1, 4);
  Stranger half_proof(id), half_greeting(id), leaver(id);
  half_proof.say(&greeting, 7);
  half_greeting.say(&greeting, sizeof(greeting) - 1);
  leaver.say(&greeting, sizeof(greeting) - 1);
  leaver.leave();
  expect_meeting(id, 4);
}

TEST(Strangers, AreDroppedWhenTheirTimeIsOver) {
  RootLimits limits;
  limits.lobby.greeting_usec = 20e3;
  TestRoot root(limits);
  Stranger silent(root.id()), half(root.id());
  half.say(&root.id().secret, 5);
  EXPECT_TRUE(silent.is_dropped());
  EXPECT_TRUE(half.is_dropped());
  expect_meeting(root.id(), 2);
}

TEST(Strangers, TheOldestGoWhenThereAreTooMany) {
  RootLimits limits;
  limits.lobby.strangers = 4;
  TestRoot root(limits);
  std::vector<Stranger> silent;
  for (int i = 0; i < 6; ++i) silent.emplace_back(root.id());
  EXPECT_TRUE(silent[0].is_dropped());
  EXPECT_TRUE(silent[1].is_dropped());
  expect_meeting(root.id(), 3);
}

// A guest that knows the secret; what the root answers it.
Reply reply_to(const UniqueId& id, const Greeting& greeting) {
  Stranger guest(id);
  guest.say(&greeting, sizeof(greeting));
  Proof welcome{};
  EXPECT_TRUE(guest.hear(welcome));
  EXPECT_TRUE(same_proof(welcome, Secret(id).host));
  Reply reply{};
  EXPECT_TRUE(guest.hear(reply));
  EXPECT_TRUE(guest.is_dropped());
  return reply;
}

TEST(Strangers, AWrongVersionIsToldSo) {
  const UniqueId id = fresh_id();
  Greeting greeting = make_greeting(Secret(id), 0, 4);
  greeting.version = 99;
  const Reply reply = reply_to(id, greeting);
  EXPECT_EQ(reply.code, static_cast<int>(Code::kInvalidUsage));
  EXPECT_TRUE(mentions(reply.text, "version 99")) << reply.text;
  expect_meeting(id, 4);
}

TEST(Strangers, ARankOutOfRangeIsToldSo) {
  const UniqueId id = fresh_id();
  for (uint32_t nranks : {0u, 4u}) {
    const Reply reply = reply_to(id, make_greeting(Secret(id), 7, nranks));
    EXPECT_EQ(reply.code, static_cast<int>(Code::kInvalidArgument));
    EXPECT_TRUE(mentions(reply.text, "rank 7")) << reply.text;
  }
  expect_meeting(id, 4);
}

// A guest that holds a rank's seat until it leaves.
Stranger seated_guest(const UniqueId& id, uint32_t rank, uint32_t nranks) {
  const Greeting greeting = make_greeting(Secret(id), rank, nranks);
  Stranger guest(id);
  guest.say(&greeting, sizeof(greeting));
  Proof welcome{};
  EXPECT_TRUE(guest.hear(welcome));
  return guest;
}

TEST(Strangers, TheSameRankTwiceIsToldBothNamesAndTheOthersStillMeet) {
  RootLimits limits;
  limits.grace_usec = 100e6;
  TestRoot root(limits);
  Stranger first = seated_guest(root.id(), 2, 4);
  Greeting second = make_greeting(Secret(root.id()), 2, 4);
  strcpy(second.host, "elsewhere");
  const Reply reply = reply_to(root.id(), second);
  EXPECT_EQ(reply.code, static_cast<int>(Code::kInvalidUsage));
  EXPECT_TRUE(mentions(reply.text, describe(second))) << reply.text;
  EXPECT_TRUE(mentions(reply.text, describe(make_greeting(Secret(root.id()), 2, 4)))) << reply.text;
  first.leave();
  expect_meeting(root.id(), 4);
}

TEST(Strangers, AnotherNumberOfRanksIsToldBothNamesAndTheOthersStillMeet) {
  RootLimits limits;
  limits.grace_usec = 100e6;
  TestRoot root(limits);
  Stranger first = seated_guest(root.id(), 0, 4);
  const Reply reply = reply_to(root.id(), make_greeting(Secret(root.id()), 1, 5));
  EXPECT_EQ(reply.code, static_cast<int>(Code::kInvalidUsage));
  for (const char* part : {"rank 0 (", "4 ranks", "rank 1 (", "5 ranks"}) {
    EXPECT_TRUE(mentions(reply.text, part)) << reply.text;
  }
  first.leave();
  expect_meeting(root.id(), 4);
}

TEST(Strangers, OnesAtTheRingDoNotHoldItUp) {
  // Rank 0 is played by hand: once all are introduced its neighbours wait for it, and strangers come to them instead.
  const UniqueId id = fresh_id();
  UniqueFd listener;
  ASSERT_EQ(listen_at(loopback(), listener), 0);
  Greeting greeting = make_greeting(Secret(id), 0, 2);
  greeting.listener = local_address(listener.get());
  std::atomic<bool> joined{false};
  std::thread rank1([&] {
    Result<std::unique_ptr<OutOfBand>> oob = join(id, 1, 2);
    joined = oob.ok();
    EXPECT_TRUE(oob.ok()) << last_error_text();
  });
  Stranger root(id);
  root.say(&greeting, sizeof(greeting));
  Proof welcome{};
  Reply reply{};
  ASSERT_TRUE(root.hear(welcome) && root.hear(reply));
  ASSERT_EQ(reply.code, 0);
  UniqueId at_rank1 = id;
  at_rank1.address = reply.successor;
  Stranger silent(at_rank1), garbage(at_rank1), wrong_rank(at_rank1);
  garbage.say("0123456789abcdef", 16);
  EXPECT_TRUE(garbage.is_dropped());
  const Greeting wrong = make_greeting(Secret(id), 1, 2);
  wrong_rank.say(&wrong, sizeof(wrong));
  EXPECT_TRUE(wrong_rank.hear(welcome));
  EXPECT_TRUE(wrong_rank.is_dropped());
  Stranger predecessor(at_rank1);
  predecessor.say(&greeting, sizeof(greeting));
  EXPECT_TRUE(predecessor.hear(welcome));
  Lobby lobby(std::move(listener), Secret(id));
  std::vector<Guest> guests;
  while (guests.empty()) guests = lobby.wait(-1, {});
  EXPECT_EQ(guests[0].greeting.rank, 1u);
  rank1.join();
  EXPECT_TRUE(joined);
}

}  // namespace
}  // namespace talaria
