#include "schedule/plan.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace talaria {
namespace {

bool carries_data(Place place) { return place != Place::kReady && place != Place::kDone; }
bool is_own(Place place) { return place == Place::kInput || place == Place::kOutput; }
bool uses_fifo(Place place) { return carries_data(place) && !is_own(place); }

// What seal() learns about one peer while it walks the streams.
struct PeerFacts {
  PeerUse use{};
  bool heard = false;    // I always wait for something the peer sends in this operation
  bool answers = false;  // the peer always waits for something I send
  int producer[kFifosPerPair] = {-1, -1};  // stream that sends on the FIFO
  int consumer[kFifosPerPair] = {-1, -1};
};

bool same_ref(const Ref& a, const Ref& b) {
  return a.place == b.place && a.flags == b.flags && a.fifo == b.fifo && a.peer == b.peer;
}

bool claim(int& owner, uint32_t stream) {
  if (owner >= 0 && owner != static_cast<int>(stream)) return false;
  owner = static_cast<int>(stream);
  return true;
}

}  // namespace

void Plan::begin_stream(Condition condition) {
  streams_.push_back(StreamView{static_cast<uint32_t>(steps_.size()), 0, 0, 0, condition, {}});
}

void Plan::add(uint32_t block, const RefList& sources, const RefList& sinks, uint8_t flags, Phase phase) {
  // Consecutive steps often name the same places (a ring's middle): share their refs.
  uint32_t first = static_cast<uint32_t>(refs_.size());
  if (!steps_.empty() && steps_.back().sources == sources.size() && steps_.back().sinks == sinks.size()) {
    const auto last = refs_.begin() + steps_.back().first_ref;
    if (std::equal(sources.begin(), sources.end(), last, same_ref) &&
        std::equal(sinks.begin(), sinks.end(), last + static_cast<ptrdiff_t>(sources.size()), same_ref)) {
      first = steps_.back().first_ref;
    }
  }
  if (first == refs_.size()) {
    refs_.insert(refs_.end(), sources.begin(), sources.end());
    refs_.insert(refs_.end(), sinks.begin(), sinks.end());
  }
  steps_.push_back(Step{first, static_cast<uint16_t>(sources.size()), static_cast<uint16_t>(sinks.size()), block, flags,
                        {}});
  StreamView& stream = streams_.back();
  ++(phase == Phase::kPrologue ? stream.prologue : phase == Phase::kBody ? stream.body : stream.epilogue);
}

Status Plan::seal() {
  if (streams_.size() > kMaxStreams) {
    return fail(Code::kInternal, "plan for {} has {} streams, at most {} are possible", name_of(shape_.operation),
                streams_.size(), kMaxStreams);
  }
  std::map<uint32_t, PeerFacts> peers;  // nodes stay where they are, so the last one found can be remembered
  std::pair<uint32_t, PeerFacts*> last{0, nullptr};
  for (uint32_t s = 0; s < streams_.size(); ++s) {
    const StreamView& stream = streams_[s];
    const bool always = stream.condition == Condition::kAlways;
    const uint32_t end = stream.first + stream.prologue + stream.body + stream.epilogue;
    for (uint32_t i = stream.first; i < end; ++i) {
      const Step& step = steps_[i];
      const bool body = i >= stream.first + stream.prologue && i < end - stream.epilogue;
      for (uint32_t k = 0; k < uint32_t{step.sources} + step.sinks; ++k) {
        const Ref& ref = refs_[step.first_ref + k];
        if (is_own(ref.place)) continue;
        const bool source = k < step.sources;
        if (last.second == nullptr || last.first != ref.peer) last = {ref.peer, &peers[ref.peer]};
        PeerFacts& facts = *last.second;
        const bool waits = (ref.flags & kWait) != 0, signals = (ref.flags & kSignal) != 0;
        facts.heard |= always && waits && (source || ref.place == Place::kPeerOutput);
        facts.answers |= always && signals && !source && ref.place != Place::kPeerOutput;
        if (!uses_fifo(ref.place)) continue;
        int& owner = source ? facts.consumer[ref.fifo] : facts.producer[ref.fifo];
        if (!body || !claim(owner, s)) {
          return fail(Code::kInternal, "plan for {}: FIFO {} with rank {} is used by two streams or outside the body",
                      name_of(shape_.operation), ref.fifo, ref.peer);
        }
        ++(source ? facts.use.receives : facts.use.sends)[ref.fifo];
      }
    }
  }
  peers_.clear();
  for (auto& [peer, facts] : peers) {
    facts.use.peer = peer;
    // A point-to-point message says nothing about what else its sender has finished.
    facts.use.implied_ack = facts.heard && !is_point_to_point(shape_.operation);
    for (uint32_t f = 0; f < kFifosPerPair; ++f) {
      const bool receives = facts.consumer[f] >= 0;
      // A plan that holds messages while it waits for slots must not wait for slots of the operation before, whose
      // implied acknowledgement only comes when this one ends.
      const bool implied = facts.answers && !is_point_to_point(shape_.operation) && min_depth_ == 1;
      if (receives && !implied) {
        facts.use.credit_at_start |= static_cast<uint8_t>(1u << f);
      }
    }
    peers_.push_back(facts.use);
  }
  return Status();
}

PlanView Plan::view() const {
  PlanView view{steps_.data(), refs_.data(), peers_.data(), static_cast<uint32_t>(peers_.size()),
                static_cast<uint32_t>(streams_.size()), {}, static_cast<uint32_t>(refs_.size())};
  std::copy(streams_.begin(), streams_.end(), view.streams);
  return view;
}

}  // namespace talaria
