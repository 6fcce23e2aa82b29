#include "engine/device/fused/fused_path.h"

#include <algorithm>
#include <span>

#include "schedule/collective.h"

namespace talaria {
namespace {

bool is_inbox(const Ref& ref, uint32_t peer, uint8_t needed_flags) {
  return ref.place == Place::kInbox && ref.fifo == 0 && ref.peer == peer && (ref.flags & needed_flags) == needed_flags;
}

// Step 0 pushes the whole input to every other rank; step 1 reduces all inputs in rank order.
bool is_one_shot(const PlanView& plan) {
  const uint32_t nranks = plan.npeers + 1;
  const StreamView& stream = plan.streams[0];
  if (plan.nstreams != 1 || nranks < 2 || nranks > kMaxFusedRanks) return false;
  if (stream.prologue != 0 || stream.body != 2 || stream.epilogue != 0) return false;
  const Step& push = plan.steps[stream.first];
  const Step& reduce = plan.steps[stream.first + 1];
  if (push.sources != 1 || push.sinks != nranks - 1 || reduce.sources != nranks || reduce.sinks != 1) return false;
  if (push.block != 0 || reduce.block != 0 || (reduce.flags & kFinal) == 0) return false;

  const std::span sources(plan.refs + reduce.first_ref, nranks);
  const Ref& result = plan.refs[reduce.first_ref + nranks];
  const auto own = std::ranges::find(sources, Place::kInput, &Ref::place);
  if (own == sources.end() || result.place != Place::kOutput) return false;
  const uint32_t rank = static_cast<uint32_t>(own - sources.begin());
  for (uint32_t p = 0; p < nranks; ++p) {
    if ((sources[p].flags & kRaw) == 0) return false;
    if (p != rank && !is_inbox(sources[p], p, kWait)) return false;
  }
  if (plan.refs[push.first_ref].place != Place::kInput) return false;
  for (uint32_t d = 1; d < nranks; ++d) {
    if (!is_inbox(plan.refs[push.first_ref + d], (rank + d) % nranks, kWait | kSignal)) return false;
  }
  return std::ranges::all_of(std::span(plan.peers, plan.npeers),
                             [](const PeerUse& use) { return use.implied_ack && use.credit_at_start == 0; });
}

}  // namespace

FusedPath fused_path_of(const Work& work) {
  const bool packets = is_packet(static_cast<Channel>(work.channel));
  const bool reduces = static_cast<ReduceOp>(work.reduce) != ReduceOp::kNone;
  if (!packets || !reduces || !work.join || work.direct || work.chunking.rounds != 1) return FusedPath::kNone;
  return is_one_shot(work.plan) ? FusedPath::kOneShot : FusedPath::kNone;
}

}  // namespace talaria
