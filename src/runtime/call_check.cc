#include "runtime/call_check.h"

#include <algorithm>
#include <map>

#include "bootstrap/root.h"

namespace talaria {
namespace {

// What a call says, without its number: calls are told apart by it.
auto words_of(const CallRecord& record) {
  return std::tuple(record.operation, record.type, record.reduce, record.root, record.count);
}

std::string differences(const CallRecord& a, const CallRecord& b) {
  std::string text;
  const auto note = [&](bool differs, const char* what) {
    if (differs) text += (text.empty() ? "" : ", ") + std::string(what);
  };
  note(a.operation != b.operation, "operation");
  note(a.count != b.count, "count");
  note(a.type != b.type, "type");
  if (a.operation == b.operation) note(a.reduce != b.reduce, "reduction");
  if (a.operation == b.operation) note(a.root != b.root, "root");
  return text;
}

// The ranks that exchange records at one time: the next collective of each communicator.
struct Round {
  CallList calls;
  std::vector<CallRecord> mine;                  // by call
  std::vector<std::vector<CallRecord>> everyone;  // by call, then by rank
};

Status exchange(Round& round, RunCalls run) {
  CallList gathers;
  for (const auto& [comm, call] : round.calls) {
    round.mine.push_back(record_of(call.collective, comm->next_compared()));
    round.everyone.emplace_back(comm->nranks());
  }
  constexpr Collective kGather{Operation::kAllGather, DataType::kInt8, ReduceOp::kNone, 0, sizeof(CallRecord)};
  for (size_t i = 0; i < round.calls.size(); ++i) {
    gathers.emplace_back(round.calls[i].first,
                         Call{kGather, &round.mine[i], round.everyone[i].data(), round.calls[i].second.stream});
  }
  return run(gathers);
}

// The collective of each communicator that comes next, taken from `rest`.
Round take_round(CallList& rest) {
  Round round;
  CallList later;
  for (const auto& entry : rest) {
    const auto same = [&](const auto& taken) { return taken.first == entry.first; };
    const bool now = !is_point_to_point(entry.second.collective.operation) && std::ranges::none_of(round.calls, same);
    (now ? round.calls : later).push_back(entry);
  }
  rest = std::move(later);
  return round;
}

}  // namespace

CallRecord record_of(const Collective& collective, uint64_t number) {
  CallRecord record{};
  record.number = number;
  record.count = collective.count;
  record.root = is_rooted(collective.operation) ? collective.root : 0;
  record.operation = static_cast<uint8_t>(collective.operation);
  record.type = static_cast<uint8_t>(collective.type);
  record.reduce = static_cast<uint8_t>(reduces(collective.operation) ? collective.reduce : ReduceOp::kNone);
  return record;
}

std::string describe(const CallRecord& record) {
  if (record.operation >= kOperations || record.type >= kDataTypes) return "something unknown";
  const auto operation = static_cast<Operation>(record.operation);
  std::string text = fmt::format("{} of {} {}", name_of(operation), record.count,
                                 traits_of(static_cast<DataType>(record.type)).name);
  if (record.reduce < kReduceOps) text += fmt::format(", {}", traits_of(static_cast<ReduceOp>(record.reduce)).name);
  else if (reduces(operation)) text += fmt::format(", user's reduction {}", record.reduce);
  if (is_rooted(operation)) text += fmt::format(", root {}", record.root);
  return text;
}

Status compare_calls(std::span<const CallRecord> records) {
  const auto other = std::ranges::find_if(records, [&](const CallRecord& record) {
    return words_of(record) != words_of(records[0]);
  });
  if (other == records.end()) return Status();
  std::vector<std::pair<CallRecord, std::vector<uint32_t>>> kinds;
  for (uint32_t rank = 0; rank < records.size(); ++rank) {
    const auto same = [&](const auto& kind) { return words_of(kind.first) == words_of(records[rank]); };
    auto kind = std::ranges::find_if(kinds, same);
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {records[rank], {}});
    kind->second.push_back(rank);
  }
  std::string text;
  for (const auto& [record, ranks] : kinds) {
    if (text.size() > 700) {
      text += "; ...";
      break;
    }
    text += fmt::format("{}rank {}: {}", text.empty() ? "" : "; ", list_ranks(ranks, 100), describe(record));
  }
  return fail(Code::kInvalidUsage, "Mismatched calls of collective {} (they differ in {}): {}", records[0].number,
              differences(records[0], *other), text);
}

Status run_compared(const CallList& calls, RunCalls run) {
  CallList rest = calls;
  for (;;) {
    Round round = take_round(rest);
    if (round.calls.empty()) return rest.empty() ? Status() : run(rest);
    TRY(exchange(round, run));
    Status verdict;
    std::vector<Communicator*> agreeing;
    for (size_t i = 0; i < round.calls.size(); ++i) {
      const Status status = compare_calls(round.everyone[i]);
      if (verdict.ok()) verdict = status;
      if (status.ok()) agreeing.push_back(round.calls[i].first);
    }
    if (verdict.ok()) verdict = run(round.calls);
    else for (Communicator* comm : agreeing) comm->fault(Code::kRemote);  // its other ranks go on without this one
    TRY(verdict);
  }
}

}  // namespace talaria
