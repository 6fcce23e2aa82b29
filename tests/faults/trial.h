// A trial: ranks as processes make a communicator and call operations, until one of them is killed or aborts. Everybody
// else must be told who it was.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "nccl.h"

namespace talaria::test {

inline constexpr int kMostRanks = 8;
inline constexpr double kPromptUsec = 2e6;  // within which every survivor must have its error

enum class Kind : uint8_t { kKill, kAbort };
// What a rank is doing. A trial's aim is one of the first three.
enum class Phase : uint8_t { kInit, kOperation, kSplit, kBefore, kOver };
const char* name_of(Kind kind);
const char* name_of(Phase phase);

// What this library can do so far; trials include it when it can.
struct Abilities {
  bool shrink, nonblocking;
};
Abilities find_abilities();
// In a process of its own: made, and destroyed.
void make_communicator();
// Does /dev/shm hold anything of that process?
bool has_shared_memory(pid_t process);

struct TrialPlan {
  uint32_t seed;
  Kind kind;
  Phase aim;
  int nranks;
  int victim;
  bool tcp;
  bool rank0_makes_id;
  int after_calls;      // of the victim, which then has this long:
  double after_usec;
  Abilities abilities;
};
TrialPlan make_plan(uint32_t seed, Kind kind, const Abilities& abilities);
std::string describe(const TrialPlan& plan);

// What a rank tells of itself.
struct Member {
  std::atomic<Phase> phase{Phase::kBefore};
  std::atomic<int> calls{0};
  std::atomic<double> returned_usec{0};  // with its error; written after code and text
  ncclResult_t code = ncclSuccess;
  char text[1024] = {};                  // of the error
  char complaint[1024] = {};             // what was wrong afterwards
};

// What the processes of a trial share.
struct Board {
  std::atomic<int> present{0};
  std::atomic<bool> have_id{false}, start{false}, abort{false};
  std::atomic<double> fault_usec{0};
  std::atomic<double> abort_returned_usec{0};
  ncclUniqueId id;
  Member members[kMostRanks];
};

// The life of a rank; its exit value. Runs in a process of its own.
int live(const TrialPlan& plan, Board& board, int rank);

struct Outcome {
  Phase phase;                   // of the victim when it happened
  double slowest_usec = 0;       // from the fault to the return of a survivor
  bool named = true;             // by every survivor
  bool with_step = false;        // a survivor named the operation in flight and its step
  bool shrunk = false;
  pid_t victim = 0;
  std::vector<std::string> complaints;
};
Outcome run_trial(const TrialPlan& plan);

}  // namespace talaria::test
