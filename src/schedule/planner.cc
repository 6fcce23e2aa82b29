#include "schedule/planner.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace talaria {

Planner::Planner(uint32_t rank, Selection selection, const ChannelRoom (&rooms)[kChannels])
    : rank_(rank), selection_(std::move(selection)) {
  std::copy(std::begin(rooms), std::end(rooms), rooms_);
}

Result<Planned> Planner::plan(const Collective& collective) {
  Recent& recent = recents_[(static_cast<uint64_t>(collective.operation) * 5 + collective.count) % kRecents];
  if (recent.answer.plan == nullptr || recent.question != collective) {
    recent = Recent{collective, TRY(make(collective))};
  }
  return recent.answer;
}

Result<Planned> Planner::make(const Collective& collective) {
  const Choice choice = TRY(select(collective, selection_));
  const Plan* plan = TRY(cached(choice, collective));
  const ChannelRoom& room = rooms_[static_cast<int>(choice.channel)];
  if (room.depth < plan->min_depth()) {
    return fail(Code::kInternal, "{} by {} needs {} slots per FIFO, the channel has {}", name_of(collective.operation),
                choice.algorithm->name, plan->min_depth(), room.depth);
  }
  log_info(kLogTuning, "{}: {} bytes -> {} {} {}", name_of(collective.operation),
           collective.count * bytes_of(collective.type), choice.algorithm->name, name_of(choice.channel),
           choice.form == Form::kDirect ? "direct" : "staged");
  return Planned{plan, chunking_for(collective, selection_.nranks, plan->blocks(), room.lanes, room.slot_bytes),
                 choice.channel};
}

Result<const Plan*> Planner::cached(const Choice& choice, const Collective& collective) {
  const bool rooted = is_rooted(collective.operation) || is_point_to_point(collective.operation);
  const int32_t root = rooted ? collective.root : 0;
  std::unique_ptr<Plan>& plan = plans_[Key{choice.algorithm, collective.operation, root, choice.form}];
  if (plan == nullptr) {
    auto built = std::make_unique<Plan>(
        choice.algorithm->build(Shape{collective.operation, root, rank_, selection_.nranks, choice.form}));
    TRY(built->seal());
    plan = std::move(built);
  }
  return plan.get();
}

}  // namespace talaria
