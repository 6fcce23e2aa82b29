#include "faults/trial.h"

#include <dirent.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string_view>
#include <thread>

#include "faults/clock.h"
#include "support/ids.h"
#include "support/processes.h"
#include "support/shared.h"

namespace talaria::test {
namespace {

constexpr double kGiveUpUsec = 12e6;  // for a trial to come as far as its fault, and then for all to return

// One process makes ids; or rank 0 does. The other processes hold nothing of this one's.
class Trial {
 public:
  explicit Trial(const TrialPlan& plan) : plan_(plan) {}

  Outcome run() {
    if (!plan_.rank0_makes_id) ids_ = std::make_unique<ForkedIds<ncclUniqueId>>(1, make_id);
    if (ids_ != nullptr) board_->id = ids_->one();
    for (int rank = 0; rank < plan_.nranks; ++rank) {
      ranks_.push_back(fork_rank([&] { return live(plan_, *board_, rank); }));
    }
    await([&] { return board_->present == plan_.nranks && (ids_ != nullptr || board_->have_id); }, "start");
    board_->start = true;
    await([&] { return is_due(); }, "come to the fault");
    for (const double until = now_usec() + plan_.after_usec; now_usec() < until;) std::this_thread::yield();
    outcome_.phase = victim().phase;
    strike();
    await([&] { return all_returned(); }, "return");
    judge();
    finish();
    return std::move(outcome_);
  }

 private:
  Member& victim() { return board_->members[plan_.victim]; }

  bool is_due() {
    if (plan_.aim == Phase::kInit) return victim().phase != Phase::kBefore;
    return (victim().phase == plan_.aim && victim().calls >= plan_.after_calls) || victim().phase == Phase::kOver;
  }

  void strike() {
    if (plan_.kind == Kind::kAbort) {
      board_->abort = true;
      return;
    }
    board_->fault_usec = now_usec();
    kill(ranks_[static_cast<size_t>(plan_.victim)], SIGKILL);
  }

  bool all_returned() {
    for (int rank = 0; rank < plan_.nranks; ++rank) {
      const bool killed = rank == plan_.victim && plan_.kind == Kind::kKill;
      if (!killed && board_->members[rank].returned_usec == 0) return false;
    }
    return plan_.kind == Kind::kKill || board_->abort_returned_usec != 0;
  }

  template <typename Condition>
  void await(Condition condition, const char* what) {
    const double until = now_usec() + kGiveUpUsec;
    while (!condition() && now_usec() < until) std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (!condition()) {
      outcome_.complaints.push_back(std::string("not all ranks ") + what);
      if (getenv("TALARIA_TEST_STACKS") != nullptr) show_stacks();
    }
  }

  void show_stacks() {
    for (int rank = 0; rank < plan_.nranks; ++rank) {
      const std::string pid = std::to_string(ranks_[static_cast<size_t>(rank)]);
      fprintf(stderr, "--- rank %d, process %s\n", rank, pid.c_str());
      (void)!system(("timeout 60 gdb -q -batch -p " + pid + " -ex 'thread apply all bt 14' 2>/dev/null >&2").c_str());
    }
  }

  void judge() {
    for (int rank = 0; rank < plan_.nranks; ++rank) {
      const Member& member = board_->members[rank];
      if (member.returned_usec == 0) continue;
      const double took = member.returned_usec - board_->fault_usec;
      const std::string said = "rank " + std::to_string(rank) + " after " + std::to_string(took / 1e6) + " s: " +
                               std::to_string(member.code) + " " + member.text;
      outcome_.slowest_usec = std::max(outcome_.slowest_usec, took);
      if (took > kPromptUsec) outcome_.complaints.push_back("late: " + said);
      if (took < -1000) outcome_.complaints.push_back("early: " + said);
      if (rank == plan_.victim) continue;
      if (!names_victim(member.text)) {
        outcome_.named = false;
        outcome_.complaints.push_back("not named: " + said);
      }
      if (strstr(member.text, "in operation ") != nullptr && strstr(member.text, " at step ") != nullptr) {
        outcome_.with_step = true;
      }
    }
  }

  // A child that could not be made is told in its own numbers, with those of the parent.
  bool names_victim(const std::string& text) {
    if (const size_t at = text.find("(the new communicator was left"); at != std::string::npos) {
      return names(text.substr(0, at), plan_.victim);
    }
    constexpr char kList[] = "(these are ranks of the new communicator, in the parent ranks ";
    const size_t at = text.find(kList);
    if (at == std::string::npos) return names(text, plan_.victim);
    const char* here = text.c_str() + at + sizeof(kList) - 1;
    for (int rank = 0;; ++rank) {
      char* end;
      if (strtol(here, &end, 10) == plan_.victim && end != here) return names(text.substr(0, at), rank);
      if (end == here || *end != ',') return false;
      here = end + 2;
    }
  }

  bool names(const std::string& text, int gone) {
    const std::string who = "rank " + std::to_string(gone);
    const char* endings[] = {" died", " aborted", " has not come in time", " (host", " at "};
    for (const char* ending : endings) {
      if (text.find(who + ending) != std::string::npos) return true;
    }
    if (text.find("in the process of " + who + ":") != std::string::npos ||
        text.find("in the process of " + who + " after") != std::string::npos) {
      return true;
    }
    // It had not come yet.
    if (text.find("have not come within") != std::string::npos && lists_victim(text)) return true;
    return plan_.rank0_makes_id && plan_.victim == 0 &&
           text.find("made the unique id (" + std::to_string(ranks_[0]) + ")") != std::string::npos;
  }

  // "...: rank 2, 5-7"
  bool lists_victim(const std::string& text) {
    const size_t at = text.rfind(": rank ");
    if (at == std::string::npos) return false;
    int first = -1;
    for (const char* here = text.c_str() + at + 7; *here != '\0';) {
      char* end;
      const int rank = static_cast<int>(strtol(here, &end, 10));
      if (end == here) return false;
      if (rank == plan_.victim || (first >= 0 && first < plan_.victim && plan_.victim < rank)) return true;
      first = *end == '-' ? rank : -1;
      here = *end == '-' ? end + 1 : *end == ',' ? end + 2 : end;
    }
    return false;
  }

  void finish() {
    for (int rank = 0; rank < plan_.nranks; ++rank) {
      const pid_t process = ranks_[static_cast<size_t>(rank)];
      const Member& member = board_->members[rank];
      const bool killed = rank == plan_.victim && plan_.kind == Kind::kKill;
      if (member.returned_usec == 0) kill(process, SIGKILL);
      const int exit = wait_for_exit(process);
      if (exit != (killed ? 128 + SIGKILL : 0)) {
        outcome_.complaints.push_back("rank " + std::to_string(rank) + " ends with " + std::to_string(exit) + ": " +
                                      member.complaint);
      }
      if (!killed && has_shared_memory(process)) {
        outcome_.complaints.push_back("rank " + std::to_string(rank) + " leaves shared memory");
      }
    }
    outcome_.victim = ranks_[static_cast<size_t>(plan_.victim)];
    outcome_.shrunk = plan_.abilities.shrink && plan_.aim != Phase::kInit && outcome_.complaints.empty();
  }

  const TrialPlan& plan_;
  Shared<Board> board_;
  static ncclUniqueId make_id() {
    ncclUniqueId id{};
    (void)ncclGetUniqueId(&id);
    return id;
  }

  std::unique_ptr<ForkedIds<ncclUniqueId>> ids_;
  std::vector<pid_t> ranks_;
  Outcome outcome_{};
};

}  // namespace

const char* name_of(Kind kind) { return kind == Kind::kKill ? "kill" : "abort"; }

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::kInit: return "init";
    case Phase::kOperation: return "operation";
    case Phase::kSplit: return "split";
    case Phase::kBefore: return "before";
    case Phase::kOver: return "over";
  }
  return "?";
}

Abilities find_abilities() {
  const Shared<Abilities> found;
  wait_for_exit(fork_rank([&] {
    setenv("TALARIA_DEVICE", "host", 1);
    ncclComm_t comms[1] = {}, child = nullptr;
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclGetUniqueId(&id);
    const ncclResult_t begun = ncclCommInitRankConfig(comms, 1, id, 0, &config);
    found->nonblocking = begun == ncclSuccess || begun == ncclInProgress;
    if (ncclCommInitAll(comms, 1, nullptr) != ncclSuccess) return 1;
    (void)ncclCommShrink(comms[0], nullptr, 0, &child, nullptr, NCCL_SHRINK_ABORT);
    found->shrink = strstr(ncclGetLastError(nullptr), "not supported") == nullptr;
    return 0;
  }));
  return *found;
}

void make_communicator() {
  wait_for_exit(fork_rank([] {
    setenv("TALARIA_DEVICE", "host", 1);
    ncclComm_t comms[2] = {};
    if (ncclCommInitAll(comms, 2, nullptr) != ncclSuccess) return 1;
    for (ncclComm_t comm : comms) ncclCommDestroy(comm);
    return 0;
  }));
}

bool has_shared_memory(pid_t process) {
  const std::string prefix = "talaria." + std::to_string(process) + "-";
  bool found = false;
  DIR* folder = opendir("/dev/shm");
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
    found |= std::string_view(entry->d_name).starts_with(prefix);
  }
  if (folder != nullptr) closedir(folder);
  return found;
}

TrialPlan make_plan(uint32_t seed, Kind kind, const Abilities& abilities) {
  std::mt19937 random(seed);
  const auto uniform = [&](double most) { return std::uniform_real_distribution<double>(0, most)(random); };
  TrialPlan plan{};
  plan.seed = seed;
  plan.kind = kind;
  plan.abilities = abilities;
  const uint32_t aim = random() % 10;
  plan.aim = aim < 2 ? Phase::kInit : aim < 4 ? Phase::kSplit : Phase::kOperation;
  if (plan.aim == Phase::kInit && kind == Kind::kAbort && !abilities.nonblocking) plan.aim = Phase::kOperation;
  plan.nranks = 2 + static_cast<int>(random() % (kMostRanks - 1));
  plan.victim = static_cast<int>(random() % static_cast<uint32_t>(plan.nranks));
  plan.tcp = random() % 2 == 0;
  plan.rank0_makes_id = random() % 2 == 0;
  plan.after_calls = static_cast<int>(random() % (plan.aim == Phase::kSplit ? 5 : 40));
  // Init takes longer the more ranks there are.
  const double init_usec = 1500.0 * plan.nranks;
  plan.after_usec = plan.aim == Phase::kInit ? uniform(init_usec)
                    : plan.aim == Phase::kSplit ? uniform(init_usec * 1.5)
                                                : std::exp2(uniform(13));
  return plan;
}

std::string describe(const TrialPlan& plan) {
  char text[256];
  snprintf(text, sizeof(text), "seed %u: %s of rank %d of %d, in %s, over %s, %d calls and %.0f us, id of %s",
           plan.seed, name_of(plan.kind), plan.victim, plan.nranks, name_of(plan.aim),
           plan.tcp ? "TCP" : "shared memory", plan.after_calls, plan.after_usec,
           plan.rank0_makes_id ? "rank 0" : "another process");
  return text;
}

Outcome run_trial(const TrialPlan& plan) { return Trial(plan).run(); }

}  // namespace talaria::test
