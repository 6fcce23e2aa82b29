#include "service/helper_threads.h"

#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/os.h"
#include "base/quiet_thread.h"

namespace talaria {

struct HelperThreads::Job::Entry {
  Body body;
  bool busy = false;
};

// One thread. Its mutex is held while a round of bodies runs; so who removes a job waits for the round.
class HelperThreads::Job::Helper {
 public:
  ~Helper() {
    if (!thread_.joinable()) return;
    if (!own_process()) {
      thread_.detach();  // it is the parent's
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  Status start() {
    thread_ = TRY(start_quiet_thread("talaria-net", [this] { run(); }));
    return Status();
  }
  bool own_process() const { return getpid() == owner_; }
  void add(std::shared_ptr<Entry> entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  void remove(const std::shared_ptr<Entry>& entry) {
    const std::lock_guard lock(mutex_);
    if (entry->busy) --busy_;
    std::erase(entries_, entry);
  }
  void work(Entry& entry, bool busy) {
    {
      const std::lock_guard lock(mutex_);
      if (entry.busy == busy) return;
      entry.busy = busy;
      busy_ += busy ? 1 : -1;
    }
    if (busy) wake_.notify_one();
  }

 private:
  void run() {
    constexpr int kSpins = 200, kYields = 2000;
    int idle = 0;
    for (;;) {
      if (!round(idle)) return;
      if (idle < kSpins) cpu_pause();
      else if (idle < kSpins + kYields) sched_yield();
      else std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  // False when the thread is to end.
  bool round(int& idle) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return ended_ || busy_ > 0; });
    if (ended_) return false;
    bool moved = false;
    for (const auto& entry : entries_) moved |= entry->busy && entry->body();
    idle = moved ? 0 : idle + 1;
    return true;
  }

  const int owner_ = getpid();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Entry>> entries_;
  int busy_ = 0;  // entries with work
  bool ended_ = false;
  std::thread thread_;
};

HelperThreads::Job::Job(std::shared_ptr<Helper> helper, std::shared_ptr<Entry> entry)
    : helper_(std::move(helper)), entry_(std::move(entry)) {}
HelperThreads::Job::Job(Job&&) noexcept = default;

HelperThreads::Job::~Job() {
  if (helper_ != nullptr && helper_->own_process()) helper_->remove(entry_);
}

void HelperThreads::Job::work(bool busy) {
  if (helper_->own_process()) helper_->work(*entry_, busy);
}

Result<HelperThreads::Job> HelperThreads::add(uint32_t thread, Body body) {
  static std::mutex mutex;
  static auto* helpers = new std::map<std::pair<int, uint32_t>, std::weak_ptr<Job::Helper>>;  // by process and number
  const std::lock_guard lock(mutex);
  std::erase_if(*helpers, [](const auto& known) { return known.second.expired(); });
  std::weak_ptr<Job::Helper>& known = (*helpers)[{getpid(), thread}];
  std::shared_ptr<Job::Helper> helper = known.lock();
  if (helper == nullptr) {
    helper = std::make_shared<Job::Helper>();
    TRY(helper->start());
    known = helper;
  }
  auto entry = std::make_shared<Job::Entry>();
  entry->body = std::move(body);
  helper->add(entry);
  return Job(std::move(helper), std::move(entry));
}

}  // namespace talaria
