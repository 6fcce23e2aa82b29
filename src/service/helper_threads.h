// HelperThreads: a few threads of this process that help ranks to move bytes, shared by all communicators.
//
// Helper i carries out the jobs of all who asked for helper i. It exists while there is such a job, spins while bytes
// move, then lets others have the core, and sleeps while no job works. Thread-safe. A forked child has no helpers: its
// copies of jobs do nothing, also when they go.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"

namespace talaria {

class HelperThreads {
 public:
  // True if anything moved. Must not block.
  using Body = std::function<bool()>;

  // Once this has gone its body does not run, and will not.
  class Job {
   public:
    Job(Job&&) noexcept;
    Job& operator=(Job&&) = delete;
    ~Job();
    // Is there work? Calls come in pairs: true, false.
    void work(bool busy);

   private:
    friend class HelperThreads;
    struct Entry;
    class Helper;
    Job(std::shared_ptr<Helper> helper, std::shared_ptr<Entry> entry);
    std::shared_ptr<Helper> helper_;
    std::shared_ptr<Entry> entry_;
  };

  static Result<Job> add(uint32_t thread, Body body);
};

}  // namespace talaria
