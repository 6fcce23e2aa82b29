#include "runtime/group.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <thread>

#include "base/quiet_thread.h"

namespace talaria {
namespace {

// The submissions of one kind of engine run together.
Status run_kind(std::vector<Submission>& submissions, EngineKind kind) {
  std::vector<Submission*> mine;
  for (Submission& submission : submissions) {
    if (submission.engine->kind() == kind) mine.push_back(&submission);
  }
  return mine.empty() ? Status() : mine.front()->engine->run(mine);
}

// Jobs that take turns.
using Line = std::vector<InitJob*>;

std::vector<Line> in_lines(std::vector<InitJob>& jobs) {
  std::vector<Line> lines;
  for (InitJob& job : jobs) {
    auto line = std::ranges::find_if(lines, [&](const Line& other) {
      return job.parent != nullptr && other.front()->parent == job.parent;
    });
    if (line == lines.end()) line = lines.insert(lines.end(), Line());
    line->push_back(&job);
  }
  return lines;
}

// The first failure in time, with its text: the others may only have been ended by it.
class FirstFailure {
 public:
  // Is this the first?
  bool note(Status status) {
    const std::lock_guard lock(mutex_);
    if (!status_.ok()) return false;
    status_ = status;
    text_ = last_error_text();
    return true;
  }
  // Once nothing fails any more.
  Status status() {
    if (!status_.ok()) restore_error_text(std::move(text_));
    return status_;
  }

 private:
  std::mutex mutex_;
  Status status_;
  std::string text_;
};

}  // namespace

Group& Group::current() {
  thread_local Group group;
  return group;
}

Status Group::end() {
  if (depth_ == 0) return fail(Code::kInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (--depth_ > 0) return Status();
  // Taken out first: the group is empty again whatever happens below.
  std::vector<InitJob> inits = std::exchange(inits_, {});
  const CallList calls = std::exchange(calls_, {});
  const Status error = std::exchange(error_, Status());
  TRY(error);
  TRY(run_inits(std::move(inits)));
  const bool compared = std::ranges::any_of(calls, [](const auto& entry) { return entry.first->compares_calls(); });
  return compared ? run_compared(calls, run_calls) : run_calls(calls);
}

// Ranks wait for each other inside init, so each line needs a thread. One that fails ends the others.
Status Group::run_inits(std::vector<InitJob> jobs) {
  const std::vector<Line> lines = in_lines(jobs);
  FirstFailure failure;
  const auto note = [&](Status status) {
    if (failure.note(status)) {
      for (const InitJob& job : jobs) job.comm->abort();
    }
  };
  const auto run = [&](const Line& line) {
    for (InitJob* job : line) {
      const Status status = job->make(*job->comm);
      if (!status.ok()) return note(status);
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < lines.size(); ++i) {
    Result<std::thread> thread = start_quiet_thread("talaria-init", [&, i] { run(lines[i]); });
    if (!thread.ok()) {
      note(thread.status());
      break;
    }
    threads.push_back(thread.value());
  }
  if (!lines.empty()) run(lines.front());
  for (std::thread& thread : threads) thread.join();
  const Status status = failure.status();
  for (InitJob& job : jobs) *job.out = status.ok() && job.comm->ready() ? job.comm.release() : nullptr;
  return status;
}

Status Group::run_calls(const CallList& calls) {
  // Per communicator, in order of first use.
  std::vector<std::pair<Communicator*, std::vector<Call>>> lists;
  for (const auto& [comm, call] : calls) {
    const Communicator* wanted = comm;
    auto found = std::find_if(lists.begin(), lists.end(), [&](const auto& list) { return list.first == wanted; });
    if (found == lists.end()) found = lists.insert(lists.end(), {comm, {}});
    found->second.push_back(call);
  }
  std::vector<Communicator::Use> uses;
  std::vector<Submission> submissions;
  for (auto& [comm, list] : lists) {
    uses.emplace_back(*comm);
    if (comm->released())
      return fail(Code::kInvalidArgument, "comm {} has already been destroyed", static_cast<const void*>(comm));
    for (Submission& submission : TRY(comm->bind(list))) submissions.push_back(std::move(submission));
  }
  // GPU ranks only enqueue; CPU ranks block until done.
  Status status = run_kind(submissions, EngineKind::kDevice);
  if (status.ok()) status = run_kind(submissions, EngineKind::kHost);
  for (auto& [comm, list] : lists) comm->fault_unless_refused(status);
  return status;
}

}  // namespace talaria
