// Binding: from the calls of one group on one communicator to works with buffers.
#include <algorithm>
#include <map>
#include <utility>

#include "runtime/communicator.h"

namespace talaria {
namespace {

bool is_self(const Call& call, uint32_t rank) {
  return is_point_to_point(call.collective.operation) && static_cast<uint32_t>(call.collective.root) == rank;
}

size_t call_bytes(const Call& call) { return call.collective.count * bytes_of(call.collective.type); }

// Both sides order their transfers by the same distance, so that no cycle of waits can form.
uint32_t distance(const Call& call, uint32_t rank, uint32_t nranks) {
  const auto peer = static_cast<uint32_t>(call.collective.root);
  return call.collective.operation == Operation::kSend ? (peer + nranks - rank) % nranks
                                                       : (rank + nranks - peer) % nranks;
}

// The rank whose result TALARIA_FAULT=flip spoils: one that has a result.
uint32_t flipping_rank(const Collective& collective) {
  return writes_output(collective.operation, false) ? 0 : static_cast<uint32_t>(collective.root);
}

// Appends to the last submission while the stream stays the same.
void append(std::vector<Submission>& submissions, Engine* engine, void* stream, const Work& work) {
  if (submissions.empty() || submissions.back().stream != stream) submissions.push_back({engine, stream, {}});
  submissions.back().works.push_back(work);
}

}  // namespace

Status Communicator::check(const Collective& collective) const {
  const bool peer = is_point_to_point(collective.operation);
  if (peer || is_rooted(collective.operation)) {
    if (collective.root < 0 || collective.root >= static_cast<int>(nranks_)) {
      return fail(Code::kInvalidArgument, "{} : invalid {} {} (it should be in the 0..{} range)",
                  name_of(collective.operation), peer ? "peer" : "root", collective.root, nranks_ - 1);
    }
  }
  if (!ready()) return fail(Code::kInvalidArgument, "comm {} is not initialized yet", static_cast<const void*>(this));
  if (finalized_) return fail(Code::kInvalidArgument, "comm {} has been finalized", static_cast<const void*>(this));
  if (revoked_) {
    return fail(Code::kInvalidUsage, "comm {} rank {} was revoked: it takes no more operations",
                static_cast<const void*>(this), rank_);
  }
  TRY(refuse_after_fault());
  TRY(refuse_while_suspended());
  if (aborted_.load()) return fail(Code::kInvalidUsage, "comm {} has been aborted", static_cast<const void*>(this));
  if (faulted_.load()) {
    return fail(Code::kInvalidUsage, "comm {} rank {} takes no more operations: one of them ended half done",
                static_cast<const void*>(this), rank_);
  }
  return Status();
}

Result<std::vector<Submission>> Communicator::bind(const std::vector<Call>& calls) {
  std::vector<Submission> submissions;
  std::vector<Call> transfers;
  for (const Call& call : calls) {
    if (is_point_to_point(call.collective.operation)) {
      transfers.push_back(call);
    } else if (call.collective.count > 0) {
      append(submissions, resources_->engine.get(), call.stream, TRY(bind_call(call)));
    }
  }
  transfers = TRY(pair_self_transfers(transfers));
  std::stable_sort(transfers.begin(), transfers.end(), [&](const Call& a, const Call& b) {
    return std::pair(a.collective.operation, distance(a, rank_, nranks_)) <
           std::pair(b.collective.operation, distance(b, rank_, nranks_));
  });
  for (const Call& call : transfers) {
    if (call.stream != transfers.front().stream) {
      return fail(Code::kInvalidUsage, "sends and receives of one group on one communicator must use one stream; "
                  "several streams are not supported yet");
    }
    if (call.collective.count > 0) append(submissions, resources_->engine.get(), call.stream, TRY(bind_call(call)));
  }
  return submissions;
}

Status Communicator::run_alone(const Call& call) {
  const QuickUse use(*this);  // an abort from another thread frees nothing meanwhile
  TRY(check(call.collective));
  if (released()) return fail(Code::kInvalidArgument, "comm {} has been aborted", static_cast<const void*>(this));
  Submission& alone = resources_->alone;
  if (!alone.works.empty() && resources_->alone_call == call.collective) {
    bind_buffers(alone.works[0], call);
  } else {
    alone.engine = resources_->engine.get();
    alone.works.clear();
    alone.works.push_back(TRY(bind_call(call)));
    resources_->alone_call = call.collective;
  }
  Submission* const submissions[] = {&alone};
  const Status status = alone.engine->run(submissions);
  fault_unless_refused(status);
  return status;
}

Result<Work> Communicator::bind_call(const Call& call) {
  const Collective& collective = call.collective;
  const Planned planned = TRY(resources_->planner->plan(collective));
  const bool point_to_point = is_point_to_point(collective.operation);
  Work work{};
  work.plan = planned.plan->view();
  work.chunking = planned.chunking;
  work.type = static_cast<uint8_t>(collective.type);
  work.reduce = static_cast<uint8_t>(reduces(collective.operation) ? collective.reduce : ReduceOp::kNone);
  work.channel = static_cast<uint8_t>(planned.channel);
  work.join = point_to_point ? 0 : 1;
  work.avg_ranks = nranks_;
  work.operation = static_cast<uint8_t>(collective.operation);
  work.direct = planned.plan->shape().form == Form::kDirect ? 1 : 0;
  bind_buffers(work, call);
  return work;
}

void Communicator::bind_buffers(Work& work, const Call& call) {
  work.input = call.input;
  work.output = call.output;
  work.scalar = call.scalar.bits;
  work.scalar_address = call.scalar.address;
  work.staged = 0;
  work.sequence = sequence_++;
  const bool flips = resources_->config.fault == "flip" && rank_ == flipping_rank(call.collective);
  work.flip = flips && call.output != nullptr ? 1 : 0;
}

// A send to oneself and its receive, in order, become one local copy.
Result<std::vector<Call>> Communicator::pair_self_transfers(const std::vector<Call>& calls) {
  std::vector<Call> result, sends, receives;
  for (const Call& call : calls) {
    auto& list = !is_self(call, rank_) ? result : call.collective.operation == Operation::kSend ? sends : receives;
    list.push_back(call);
  }
  if (sends.size() != receives.size()) {
    return fail(Code::kInvalidUsage,
                "Trying to send to self without a matching recv: rank {} has {} sends, {} receives", rank_,
                sends.size(), receives.size());
  }
  for (size_t i = 0; i < sends.size(); ++i) {
    if (call_bytes(sends[i]) != call_bytes(receives[i])) {
      return fail(Code::kInvalidUsage, "rank {} sends {} bytes to itself but receives {}", rank_, call_bytes(sends[i]),
                  call_bytes(receives[i]));
    }
    Call copy = sends[i];
    copy.output = receives[i].output;
    result.push_back(copy);
  }
  return result;
}

}  // namespace talaria
