// Communicators of CPU ranks for tests of the runtime: one per thread of this process, or one per child process.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "base/config.h"
#include "bootstrap/unique_id.h"
#include "runtime/runtime.h"
#include "support/ids.h"
#include "support/processes.h"
#include "support/threads.h"

namespace talaria::test {

// Sets a variable for the life of the object.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~ScopedVariable() { unsetenv(name_); }

 private:
  const char* name_;
};

inline UniqueId make_id() {
  setenv("TALARIA_DEVICE", "host", 1);
  return create_unique_id(read_config()).value();
}

// Runs body(comm, rank) on every rank; true when everything succeeded.
using Body = std::function<bool(Communicator&, int rank)>;

inline bool run_member(const UniqueId& id, int nranks, int rank, const Body& body) {
  Communicator* comm = nullptr;
  if (!init_rank(&comm, nranks, {id}, rank, InitOptions{}).ok()) return false;
  const bool good = body(*comm, rank);
  return destroy(comm).ok() && good;
}

inline void run_thread_ranks(int nranks, const Body& body) {
  const UniqueId id = make_id();
  std::vector<int> good(static_cast<size_t>(nranks), 0);
  run_ranks(nranks, [&](int rank) { good[static_cast<size_t>(rank)] = run_member(id, nranks, rank, body); });
  for (int rank = 0; rank < nranks; ++rank)
    EXPECT_TRUE(good[static_cast<size_t>(rank)]) << "rank " << rank << ": " << last_error_text();
}

// Runs member(rank, id) in n processes, which all must return true. The id is made by rank 0's process: nothing is
// forked while a thread of the library runs, which the sanitizers' allocators do not survive.
template <typename Member>
void run_process_inits(int nranks, Member member) {
  Handover<UniqueId> id;
  const std::vector<int> exits = run_processes(nranks, [&](int rank) {
    if (rank == 0) id.give(make_id());
    setenv("TALARIA_DEVICE", "host", 1);
    return member(rank, id.take()) ? 0 : 1;
  });
  for (int rank = 0; rank < nranks; ++rank) EXPECT_EQ(exits[static_cast<size_t>(rank)], 0) << "rank " << rank;
}

inline void run_process_ranks(int nranks, const Body& body) {
  run_process_inits(nranks, [&](int rank, const UniqueId& id) { return run_member(id, nranks, rank, body); });
}

}  // namespace talaria::test
