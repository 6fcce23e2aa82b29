// The memory of another process: read, written, refused. Where the kernel allows none of it, the tests are skipped.
#include "transport/cross_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "support/processes.h"

namespace talaria {
namespace {

constexpr uint64_t kNonce = 0x1234567890abcdefull;
constexpr size_t kPage = 4096;

// A forked child that does nothing: its private memory is a copy of this process's, at the same addresses.
class OtherProcess : public testing::Test {
 protected:
  void SetUp() override {
    pages_ = static_cast<std::byte*>(
        mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages_, MAP_FAILED);
    ASSERT_EQ(mprotect(pages_ + 2 * kPage, kPage, PROT_NONE), 0);
    child_ = test::fork_rank([] {
      for (;;) pause();
      return 0;
    });
    const int error = probe(kNonce);
    if (error != 0) GTEST_SKIP() << "this machine denies cross-memory access: " << strerror(error);
  }
  void TearDown() override {
    end();
    munmap(pages_, 4 * kPage);
  }
  void end() {
    if (child_ <= 0) return;
    EXPECT_EQ(kill(child_, SIGKILL), 0);
    test::wait_for_exit(child_);
    ended_ = std::exchange(child_, 0);
  }
  int probe(uint64_t nonce) const { return cross_memory::probe(child_, reinterpret_cast<uint64_t>(&nonce_), nonce); }

  std::byte* pages_ = nullptr;  // the third of four cannot be touched
  uint64_t nonce_ = kNonce;
  pid_t child_ = 0, ended_ = 0;
};

TEST_F(OtherProcess, IsWrittenAndReadWithoutTouchingThisOne) {
  const std::vector<std::byte> sent(2 * kPage - 3, std::byte{7});
  ASSERT_EQ(cross_memory::write(child_, sent.data(), pages_ + 1, sent.size()), 0);
  EXPECT_EQ(pages_[1], std::byte{0});
  std::vector<std::byte> got(2 * kPage);
  ASSERT_EQ(cross_memory::read(child_, got.data(), pages_, got.size()), 0);
  EXPECT_EQ(got.front(), std::byte{0});
  EXPECT_EQ(got[2 * kPage - 2], std::byte{0});
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), got.begin() + 1));
}

TEST_F(OtherProcess, IsProbedByItsNonce) { EXPECT_EQ(probe(kNonce + 1), ESRCH); }

TEST_F(OtherProcess, AnswersForMissingMemoryWithAnErrorAlsoInTheMiddle) {
  std::vector<std::byte> here(4 * kPage);
  EXPECT_EQ(cross_memory::read(child_, here.data(), pages_, here.size()), EFAULT);
  EXPECT_EQ(cross_memory::write(child_, here.data(), pages_, here.size()), EFAULT);
  EXPECT_EQ(cross_memory::read(child_, here.data(), nullptr, 1), EFAULT);
}

TEST_F(OtherProcess, AnswersNoMoreWhenItHasEnded) {
  end();
  std::byte byte{};
  EXPECT_EQ(cross_memory::read(ended_, &byte, pages_, 1), ESRCH);
  EXPECT_EQ(cross_memory::write(ended_, &byte, pages_, 1), ESRCH);
}

TEST_F(OtherProcess, OwnMemoryIsReachableWhenBothItsEndsAre) {
  EXPECT_TRUE(cross_memory::reachable(pages_, 2 * kPage));
  EXPECT_TRUE(cross_memory::reachable(nullptr, 0));
  EXPECT_FALSE(cross_memory::reachable(pages_, 3 * kPage));
  EXPECT_FALSE(cross_memory::reachable(pages_ + 2 * kPage, kPage));
}

}  // namespace
}  // namespace talaria
