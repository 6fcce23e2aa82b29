#include "runtime/group.h"

#include <algorithm>

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
  const bool blocking = std::exchange(blocking_, std::nullopt).value_or(true);
  TRY(error);
  const Status made = blocking ? run_inits(std::move(inits)) : start_inits(std::move(inits));
  if (!made.ok() && made.code() != Code::kInProgress) return made;
  const bool compared = std::ranges::any_of(calls, [](const auto& entry) { return entry.first->compares_calls(); });
  TRY(compared ? run_compared(calls, run_calls) : run_calls(calls));
  return made;
}

Status Group::admit(bool blocking) {
  if (blocking_.value_or(blocking) != blocking) {
    return fail(Code::kInvalidArgument, "Blocking and nonblocking communicators are not allowed in the same group.");
  }
  blocking_ = blocking;
  return Status();
}

Status Group::add(InitJob job) {
  TRY(admit(job.blocking()));
  inits_.push_back(std::move(job));
  return Status();
}

Status Group::add(Communicator& comm, const Call& call) {
  TRY(admit(comm.blocking()));
  calls_.emplace_back(&comm, call);
  return Status();
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
