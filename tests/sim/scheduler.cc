// The choice of the next action: any runnable actor of any rank, or the arrival of any store.
#include <fmt/core.h>

#include <algorithm>

#include "sim/machine.h"

namespace talaria::sim {
namespace {

// A run ends long before this unless actors move without end.
constexpr uint64_t kMaxActions = 50'000'000;

}  // namespace

uint32_t Machine::rank_of_actor(uint32_t actor) const {
  if (actor < streams_count()) return streams_[actor].rank;
  if (actor < streams_count() + lanes_count()) return (actor - streams_count()) / scenario_.lanes;
  return actor - streams_count() - lanes_count();
}

void Machine::wake(uint32_t actor) {
  if (place_[actor] != 0 || (dead_ && rank_of_actor(actor) == *dead_)) return;
  runnable_.push_back(actor);
  place_[actor] = static_cast<uint32_t>(runnable_.size());
}

void Machine::sleep(uint32_t actor) {
  if (place_[actor] == 0) return;
  const uint32_t last = runnable_.back();
  runnable_[place_[actor] - 1] = last;
  place_[last] = place_[actor];
  runnable_.pop_back();
  place_[actor] = 0;
}

void Machine::wake_parked(uint32_t rank) {
  const uint32_t per_rank = scenario_.lanes * kMaxStreams;
  for (uint32_t s = rank * per_rank; s < (rank + 1) * per_rank; ++s) {
    if (streams_[s].active) wake(s);
  }
}

uint32_t Machine::pick_actor() {
  uint32_t actor = runnable_[below(random_, runnable_.size())];
  for (int again = 0; again < 4 && slow_[rank_of_actor(actor)]; ++again) {
    actor = runnable_[below(random_, runnable_.size())];
  }
  return actor;
}

void Machine::deliver() {
  size_t index = below(random_, lanes_.size());
  while (lanes_[index].stores.empty()) index = (index + 1) % lanes_.size();
  wake_parked(lanes_[index].stores.deliver_one(flags_first_, random_));
}

void Machine::act(uint32_t actor) {
  if (actor < streams_count()) act_stream(streams_[actor]);
  else if (actor < streams_count() + lanes_count()) {
    const uint32_t lane = actor - streams_count();
    act_lane(lane / scenario_.lanes, lane % scenario_.lanes);
  } else {
    act_rank(rank_of_actor(actor));
  }
}

void Machine::kill(uint32_t rank) {
  dead_ = rank;
  for (uint32_t actor = 0; actor < place_.size(); ++actor) {
    if (rank_of_actor(actor) == rank) sleep(actor);
  }
  const bool lose_stores = below(random_, 2) == 0;
  for (uint32_t lane = 0; lose_stores && lane < scenario_.lanes; ++lane) {
    lanes_[rank * scenario_.lanes + lane].stores.drop();
  }
}

Report Machine::run() {
  const uint64_t kill_at = scenario_.killed ? below(random_, 60 * scenario_.ops.size() * scenario_.nranks) : ~0ull;
  for (uint32_t rank = 0; rank < scenario_.nranks; ++rank) wake(rank_actor(rank));
  while (!fault_) {
    if (++actions_ > kMaxActions) return Report{Verdict::kDeadlock, "moves without end", actions_};
    if (actions_ == kill_at) kill(*scenario_.killed);
    const bool stores = std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return !l.stores.empty(); });
    if (!stores && runnable_.empty()) break;
    if (stores && (runnable_.empty() || below(random_, 100) < eagerness_)) deliver();
    else act(pick_actor());
  }
  Report report = fault_ ? *fault_ : verdict_at_rest();
  report.actions = actions_;
  return report;
}

// Everyone alive who is not done must wait, over any number of ranks, for the dead one.
bool Machine::all_wait_for(uint32_t dead) const {
  std::vector<bool> reached(scenario_.nranks);
  reached[dead] = true;
  for (uint32_t pass = 0; pass < scenario_.nranks; ++pass) {
    for (const Stream& stream : streams_) {
      if (stream.active && reached[stream.waits_for]) reached[stream.rank] = true;
    }
  }
  for (const Stream& stream : streams_) {
    if (stream.rank != dead && stream.active && !reached[stream.waits_for]) return false;
  }
  return true;
}

Report Machine::verdict_at_rest() {
  bool all_done = true;
  std::string waits;
  for (const Stream& stream : streams_) {
    if (!stream.active || (dead_ && stream.rank == *dead_)) continue;
    waits += fmt::format(" [rank {} lane {} stream {} op {} step {} waits for rank {}]", stream.rank, stream.lane,
                         stream.index, scenario_.ops[stream.op].text, stream.position, stream.waits_for);
  }
  for (uint32_t rank = 0; rank < scenario_.nranks; ++rank) all_done &= ranks_[rank].done || dead_ == rank;
  if (dead_ && (!all_done || !ranks_[*dead_].done)) {
    if (all_wait_for(*dead_)) return Report{Verdict::kBlockedOnDead, waits, 0};
    return Report{Verdict::kDeadlock, "with a dead rank:" + waits, 0};
  }
  if (!all_done) return Report{Verdict::kDeadlock, waits, 0};
  for (const auto& [key, fifo] : fifos_) {
    if (fifo->sent != fifo->received) {
      return Report{Verdict::kLeftOver, fmt::format("{} messages sent, {} consumed", fifo->sent, fifo->received), 0};
    }
  }
  return Report{};
}

Report run_checked(const Scenario& scenario, uint64_t seed) { return Machine(scenario, seed).run(); }

const char* name_of(Verdict verdict) {
  static constexpr const char* kNames[] = {"ok",    "wrong answer", "deadlock",         "left-over message",
                                           "out of bounds", "race", "slot overwritten", "blocked on a dead rank"};
  return kNames[static_cast<int>(verdict)];
}

}  // namespace talaria::sim
