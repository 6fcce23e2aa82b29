#include "schedule/planner.h"

#include <algorithm>
#include <utility>

namespace talaria {

Planner::Planner(uint32_t rank, const ChoiceLimits& limits, const ChannelRoom (&rooms)[kChannels])
    : rank_(rank), limits_(limits) {
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
  const Choice choice = TRY(select(collective, limits_));
  const Plan* plan = TRY(cached(choice, collective));
  const ChannelRoom& room = rooms_[static_cast<int>(choice.channel)];
  if (room.depth < plan->min_depth()) {
    return fail(Code::kInternal, "{} by {} needs {} slots per FIFO, the channel has {}", name_of(collective.operation),
                choice.algorithm->name, plan->min_depth(), room.depth);
  }
  return Planned{plan, chunking_for(collective, limits_.nranks, plan->blocks(), room.lanes, room.slot_bytes),
                 choice.channel};
}

Result<const Plan*> Planner::cached(const Choice& choice, const Collective& collective) {
  const bool rooted = is_rooted(collective.operation) || is_point_to_point(collective.operation);
  const int32_t root = rooted ? collective.root : 0;
  std::unique_ptr<Plan>& plan = plans_[Key{choice.algorithm, collective.operation, root, choice.form}];
  if (plan == nullptr) {
    auto built = std::make_unique<Plan>(
        choice.algorithm->build(Shape{collective.operation, root, rank_, limits_.nranks, choice.form}));
    TRY(built->seal());
    plan = std::move(built);
  }
  return plan.get();
}

}  // namespace talaria
