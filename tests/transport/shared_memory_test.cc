// What is left of shared memory when its creator is killed.
#include "transport/shared_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "support/processes.h"

namespace talaria {
namespace {

constexpr size_t kBytes = 8192;

// A process that has made a block, and waits to be killed before it unlinks it.
class Creator {
 public:
  Creator() {
    int names[2];
    EXPECT_EQ(pipe(names), 0);
    process_ = test::fork_rank([&] {
      SharedMemory memory;
      if (SharedMemory::create(kBytes, memory) != 0) return 1;
      const ssize_t told = write(names[1], memory.name().c_str(), memory.name().size() + 1);
      return told > 0 ? pause() : 1;
    });
    char name[64] = {};
    close(names[1]);
    EXPECT_GT(read(names[0], name, sizeof(name) - 1), 0);
    close(names[0]);
    name_ = name;
  }
  Creator(const Creator&) = delete;
  Creator& operator=(const Creator&) = delete;
  ~Creator() { end(); }

  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    test::wait_for_exit(process_);
    process_ = 0;
  }
  bool left() const { return access(("/dev/shm" + name_).c_str(), F_OK) == 0; }

 private:
  pid_t process_;
  std::string name_;
};

TEST(SharedMemory, TheNextBlockRemovesThoseOfTheDead) {
  Creator living, dead;
  SharedMemory memory;
  dead.end();
  EXPECT_TRUE(dead.left());
  ASSERT_EQ(SharedMemory::create(kBytes, memory), 0);
  EXPECT_FALSE(dead.left());
  EXPECT_TRUE(living.left());
  EXPECT_EQ(access(("/dev/shm" + memory.name()).c_str(), F_OK), 0) << "its own";
}

}  // namespace
}  // namespace talaria
