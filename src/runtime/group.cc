#include "runtime/group.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

#include "base/os.h"

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
  const Calls calls = std::exchange(calls_, {});
  const Status error = std::exchange(error_, Status());
  TRY(error);
  TRY(run_inits(std::move(inits)));
  const bool compared = std::ranges::any_of(calls, [](const auto& entry) { return entry.first->compares_calls(); });
  return compared ? run_compared(calls, run_calls) : run_calls(calls);
}

// Ranks wait for each other inside init, so each line needs a thread. One that fails ends the others.
Status Group::run_inits(std::vector<InitJob> jobs) {
  const std::vector<Line> lines = in_lines(jobs);
  std::vector<Status> results(lines.size());
  std::atomic<const Status*> failed{nullptr};  // the first in time: the others may only have been ended by it
  const auto run = [&](size_t i) {
    for (InitJob* job : lines[i]) {
      results[i] = job->make(*job->comm);
      if (!results[i].ok()) break;
    }
    if (results[i].ok()) return;
    const Status* none = nullptr;
    failed.compare_exchange_strong(none, &results[i]);
    for (const InitJob& job : jobs) job.comm->abort();
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < lines.size(); ++i) {
    try {
      threads.emplace_back([&run, i] {
        set_thread_name("talaria-init");
        run(i);
      });
    } catch (const std::system_error& error) {
      results[i] = fail(Code::kSystem, "no thread for init {} of {}: {}", i + 1, lines.size(), error.what());
      failed = &results[i];
      for (const InitJob& job : jobs) job.comm->abort();
      break;
    }
  }
  if (!jobs.empty()) run(0);
  for (std::thread& thread : threads) thread.join();

  for (InitJob& job : jobs) *job.out = failed == nullptr && job.comm->ready() ? job.comm.release() : nullptr;
  return failed == nullptr ? Status() : *failed.load();
}

Status Group::run_calls(const Calls& calls) {
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
