// Progress: what a non-blocking communicator has under way in the background while its caller polls.
//
// That is on a thread of this object (run), or on another communicator's, between begin() and end(), as a child is made
// on a thread of its parent. One thing at a time; any thread may ask.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "base/status.h"

namespace talaria {

class Progress {
 public:
  bool running() const { return running_.load(std::memory_order_acquire); }
  void wait() const { running_.wait(true, std::memory_order_acquire); }

  void begin();
  // Of either kind. True if the object was abandoned meanwhile: what is left to do falls to the caller.
  bool end();
  // True if something is under way on another's thread: whoever ends it does the rest.
  bool abandon();

  // `body`, which calls end(), on a thread. kSystem if there is none; nothing is under way then.
  Status run(const char* thread_name, std::function<void()> body);
  // Waits for the thread; none starts from now on.
  void close();

 private:
  std::atomic<bool> running_{false};
  std::mutex mutex_;  // guards what follows
  bool elsewhere_ = false, abandoned_ = false;
  std::mutex thread_mutex_;  // guards what follows
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace talaria
