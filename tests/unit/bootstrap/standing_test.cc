// Roots at a listener that outlives them, where ranks come that know each other from an earlier communicator.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/root_thread.h"
#include "meeting.h"

namespace talaria {
namespace {

using test::mentions;

// A rank's listener of an earlier communicator. Its ranks 3, 5 and 8 are to meet as 0, 1 and 2.
class Standing : public ::testing::Test {
 protected:
  Standing() { EXPECT_EQ(listen_at(test::loopback(), listener_), 0); }

  UniqueId id_for(uint8_t purpose) const {
    UniqueId id{};
    id.magic = UniqueId::kMagic;
    id.version = UniqueId::kVersion;
    id.flags = UniqueId::kStanding;
    id.keeper = 3;
    id.secret[0] = purpose;
    id.address = local_address(listener_.get());
    return id;
  }
  std::unique_ptr<OwnedRoot> start(const UniqueId& id, std::function<bool(uint32_t)> gone = {}) const {
    RootLimits limits;
    limits.lobby.lent = true;
    limits.linger_usec = 0;
    limits.expected = {{3, 5, 8}, std::move(gone)};
    auto root = OwnedRoot::start(UniqueFd(dup(listener_.get())), Secret(id), limits);
    EXPECT_TRUE(root.ok());
    return std::move(*root);
  }
  static std::future<Code> come(const UniqueId& id, int rank, int nranks, std::string* text = nullptr) {
    return std::async(std::launch::async, [=] {
      Config config = test::quiet_config();
      config.init_timeout_sec = 20;
      const auto made = rendezvous(id, static_cast<uint32_t>(rank), static_cast<uint32_t>(nranks), config,
                                   test::kNever);
      if (text != nullptr) *text = last_error_text();
      return made.status().code();
    });
  }

  UniqueFd listener_;
};

TEST_F(Standing, WhoComesForALaterMeetingWaitsOutside) {
  const UniqueId first = id_for(1), second = id_for(2);
  auto early = come(second, 1, 2);
  {
    const auto root = start(first);
    auto one = come(first, 0, 2), other = come(first, 1, 2);
    EXPECT_EQ(one.get(), Code::kSuccess);
    EXPECT_EQ(other.get(), Code::kSuccess);
  }
  const auto root = start(second);
  EXPECT_EQ(come(second, 0, 2).get(), Code::kSuccess);
  EXPECT_EQ(early.get(), Code::kSuccess);
}

TEST_F(Standing, WhoCameBeforeAndLeftIsNoConflict) {
  const UniqueId id = id_for(1);
  const Greeting greeting = make_greeting(Secret(id), 1, 2);
  test::Stranger gave_up(id);
  gave_up.say(&greeting, sizeof(greeting));
  gave_up.leave();
  const auto root = start(id);
  auto leader = come(id, 0, 2);
  EXPECT_EQ(come(id, 1, 2).get(), Code::kSuccess);
  EXPECT_EQ(leader.get(), Code::kSuccess);
}

TEST_F(Standing, WhoCanComeNoMoreIsNamedAsInTheParent) {
  const UniqueId id = id_for(1);
  const auto root = start(id, [](uint32_t rank) { return rank == 2; });
  std::string text;
  EXPECT_EQ(come(id, 0, 3, &text).get(), Code::kRemote);
  EXPECT_TRUE(mentions(text, "rank 8 of the parent communicator")) << text;
}

TEST_F(Standing, AListenerThatIsGoneIsNotTriedAgain) {
  const UniqueId id = id_for(1);
  listener_.reset();
  std::string text;
  const double begin = now_usec();
  EXPECT_EQ(come(id, 1, 2, &text).get(), Code::kRemote);
  EXPECT_LT(now_usec() - begin, 5e6);
  EXPECT_TRUE(mentions(text, "rank 3 of the parent communicator")) << text;
}

TEST_F(Standing, ARankKeepsItsListener) {
  const UniqueId id = test::fresh_id();
  std::unique_ptr<OutOfBand> ranks[2];
  auto other = std::async(std::launch::async, [&] { ranks[1] = std::move(*test::join(id, 1, 2)); });
  ranks[0] = std::move(*test::join(id, 0, 2));
  other.get();
  for (const auto& rank : ranks) {
    const UniqueFd door = rank->door();
    EXPECT_EQ(to_text(local_address(door.get())), to_text(rank->address()));
    UniqueFd guest;
    EXPECT_EQ(connect_to(rank->address(), Patience{test::kNever}, guest), 0);
  }
  const SocketAddress closed = ranks[0]->address();
  ranks[0].reset();
  UniqueFd guest;
  EXPECT_EQ(connect_to(closed, Patience{test::kNever}, guest), ECONNREFUSED);
}

}  // namespace
}  // namespace talaria
