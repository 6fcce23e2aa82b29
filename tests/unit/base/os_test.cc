#include "base/os.h"
#include "base/text.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "base/unique.h"
#include "support/processes.h"

namespace talaria {
namespace {

TEST(Os, SplitLeavesEmptyWordsOut) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(split("", ','), Words{});
  EXPECT_EQ(split(",,", ','), Words{});
  EXPECT_EQ(split("a", ','), Words{"a"});
  EXPECT_EQ(split(",a,,bc,", ','), (Words{"a", "bc"}));
}

TEST(Os, TextHashIsFnv1a) {
  EXPECT_EQ(text_hash(""), 0xcbf29ce484222325ull);
  EXPECT_EQ(text_hash("a"), 0xaf63dc4c8601ec8cull);       // vectors of draft-eastlake-fnv
  EXPECT_EQ(text_hash("foobar"), 0x85944171f73967e8ull);
}

TEST(Os, HostHashFollowsTheOverride) {
  EXPECT_EQ(host_hash(""), host_hash(""));
  EXPECT_EQ(host_hash("node7"), host_hash("node7"));
  EXPECT_NE(host_hash("node7"), host_hash("node8"));
  EXPECT_NE(host_hash("node7"), host_hash(""));
}

TEST(Os, IdentitiesOfAForkedProcessAreItsOwn) {
  const uint64_t process = process_hash(), host = host_hash("");
  const int thread = thread_id();
  EXPECT_EQ(thread, getpid());  // the first thread of a process has its id
  EXPECT_EQ(test::wait_for_exit(test::fork_rank([&] {
    return process_hash() != process && host_hash("") == host && thread_id() != thread ? 0 : 1;
  })), 0);
}

TEST(Os, RandomNumbersDoNotRepeat) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_u64());
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Os, TimeDoesNotRunBackwards) {
  double last = now_usec();
  for (int i = 0; i < 1000; ++i) {
    const double now = now_usec();
    EXPECT_GE(now, last);
    last = now;
  }
}

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFd, ClosesOnceAndMoves) {
  int fd = -1;
  {
    UniqueFd first(dup(0));
    fd = first.get();
    ASSERT_TRUE(is_open(fd));
    UniqueFd second(std::move(first));
    EXPECT_FALSE(first.valid());
    EXPECT_EQ(second.get(), fd);
    UniqueFd third(dup(0));
    const int replaced = third.get();
    third = std::move(second);
    EXPECT_FALSE(is_open(replaced));
    EXPECT_TRUE(is_open(fd));
  }
  EXPECT_FALSE(is_open(fd));
}

}  // namespace
}  // namespace talaria
