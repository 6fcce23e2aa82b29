// Unique ids for ranks that are forked. They are made in a process of their own: an id has a thread, and a fork of a
// process with threads may copy locks that nobody will open.
#pragma once

#include <signal.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/processes.h"
#include "support/shared.h"

namespace talaria::test {

// A value that one process gives to those that it forks, or they to it.
template <typename T>
class Handover {
 public:
  void give(const T& value) {
    shared_->value = value;
    shared_->given.store(true, std::memory_order_release);
  }
  // Waits for it.
  const T& take() const {
    while (!shared_->given.load(std::memory_order_acquire)) std::this_thread::yield();
    return shared_->value;
  }

 private:
  struct Slot {
    std::atomic<bool> given{false};
    T value{};
  };
  Shared<Slot> shared_;
};

// `make()` gives one; the process that made them lives as long as this object.
template <typename Id>
class ForkedIds {
 public:
  template <typename Make>
  ForkedIds(size_t count, Make&& make) : handed_(count) {
    maker_ = fork_rank([&] {
      for (Handover<Id>& one : handed_) one.give(make());
      for (;;) pause();
      return 0;
    });
    for (const Handover<Id>& one : handed_) ids_.push_back(one.take());
  }
  ForkedIds(const ForkedIds&) = delete;
  ForkedIds& operator=(const ForkedIds&) = delete;
  ~ForkedIds() {
    kill(maker_, SIGKILL);
    wait_for_exit(maker_);
  }
  const std::vector<Id>& all() const { return ids_; }
  const Id& one() const { return ids_.front(); }

 private:
  std::vector<Handover<Id>> handed_;
  std::vector<Id> ids_;
  pid_t maker_;
};

}  // namespace talaria::test
