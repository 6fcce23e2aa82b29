#include "sim/mutation.h"

#include <fmt/format.h>

#include <utility>

#include "sim/scenario.h"

namespace talaria::sim {
namespace {

class Mutator {
 public:
  explicit Mutator(const Plan& plan) : plan_(plan), steps_(plan.steps()) {
    // Steps share refs; a change must touch one step only.
    for (Step& step : steps_) {
      const uint32_t first = static_cast<uint32_t>(refs_.size());
      for (uint32_t k = 0; k < uint32_t{step.sources} + step.sinks; ++k) {
        refs_.push_back(plan.refs()[step.first_ref + k]);
      }
      step.first_ref = first;
    }
  }

  std::vector<Mutant> run() {
    for (uint32_t s = 0; s < plan_.streams().size(); ++s) {
      stream_ = s;
      const StreamView& view = plan_.streams()[s];
      const uint32_t steps = view.prologue + view.body + view.epilogue;
      for (uint32_t i = 0; i < steps; ++i) {
        steps_after_ = steps - 1 - i;
        change_step(view.first + i);
      }
    }
    change_peers();
    return std::move(mutants_);
  }

 private:
  // `site`: where in the plan, without naming ranks.
  void keep(Change change, const Ref& ref, bool source, const std::string& site) {
    auto plan = std::make_shared<Plan>(plan_);
    plan->replace_refs(refs_, steps_);
    const std::string where = fmt::format("{} {} {}", site, name_of(ref.place), ref.peer);
    const std::string key = fmt::format("{} {}", name_of(change), site);
    mutants_.push_back({change, ref.place, source, steps_after_, where, key, std::move(plan)});
  }

  void change_step(uint32_t index) {
    Step& step = steps_[index];
    const std::string here = fmt::format("stream {} step {}", stream_, index);
    if ((step.flags & kFinal) != 0) {
      step.flags ^= kFinal;
      keep(Change::kDropFinal, Ref{}, true, here);
      step.flags ^= kFinal;
    }
    for (uint32_t k = 0; k < uint32_t{step.sources} + step.sinks; ++k) change_ref(step, k, here);
    for (uint32_t k = 0; k + 1 < step.sources; ++k) {
      Ref* pair = &refs_[step.first_ref + k];
      if (pair[0].place == Place::kDone) continue;  // flags only: no order to show
      std::swap(pair[0], pair[1]);
      keep(Change::kSwapSources, pair[0], true, here + fmt::format(" sources {} and {}", k, k + 1));
      std::swap(pair[0], pair[1]);
    }
  }

  void change_ref(const Step& step, uint32_t k, const std::string& here) {
    Ref& ref = refs_[step.first_ref + k];
    const Ref original = ref;
    const bool source = k < step.sources;
    const std::string where = fmt::format("{} {} {}", here, source ? "source" : "sink", k);
    const auto drop = [&](uint8_t flag, Change change) {
      if ((original.flags & flag) == 0) return;
      ref.flags ^= flag;
      keep(change, original, source, where);
      ref = original;
    };
    drop(kWait, Change::kDropWait);
    drop(kSignal, Change::kDropSignal);
    drop(kRaw, Change::kDropRaw);
    if (ref.place == Place::kInput || ref.place == Place::kOutput) return;
    if (!source && (ref.flags & kSignal) != 0 && ref.place != Place::kReady) {
      ref.reserved = kWeakSignal;
      keep(Change::kWeakenSignal, original, source, where);
      ref = original;
    }
    if (ref.place != Place::kDone) {
      ref.fifo ^= 1;
      keep(Change::kOtherFifo, original, source, where);
      ref = original;
    }
    const Shape& shape = plan_.shape();
    ref.peer = (ref.peer + 1) % shape.nranks;
    if (ref.peer == shape.rank) ref.peer = (ref.peer + 1) % shape.nranks;
    if (ref.peer != original.peer) keep(Change::kOtherPeer, original, source, where);
    ref = original;
  }

  void keep_peers(Change change, const std::vector<PeerUse>& peers, uint32_t peer) {
    auto plan = std::make_shared<Plan>(plan_);
    plan->replace_peers(peers);
    const Shape& shape = plan_.shape();
    const uint32_t distance = (peer + shape.nranks - shape.rank) % shape.nranks;
    const std::string key = fmt::format("{} at distance {}", name_of(change), distance);
    mutants_.push_back({change, Place::kInput, false, 0, fmt::format("use of peer {}", peer), key, std::move(plan)});
  }

  void change_peers() {
    std::vector<PeerUse> peers = plan_.peers();
    for (PeerUse& use : peers) {
      const PeerUse original = use;
      use.implied_ack ^= 1;
      keep_peers(original.implied_ack != 0 ? Change::kDropImpliedAck : Change::kAddImpliedAck, peers, use.peer);
      use = original;
      for (uint32_t f = 0; f < kFifosPerPair; ++f) {
        if ((original.credit_at_start >> f & 1) == 0) continue;
        use.credit_at_start ^= static_cast<uint8_t>(1u << f);
        keep_peers(Change::kDropCreditAtStart, peers, use.peer);
        use = original;
      }
    }
  }

  const Plan& plan_;
  std::vector<Step> steps_;
  std::vector<Ref> refs_;
  uint32_t stream_ = 0, steps_after_ = 0;
  std::vector<Mutant> mutants_;
};

}  // namespace

const char* name_of(Change change) {
  static constexpr const char* kNames[] = {"drop wait",  "drop signal", "weaken signal",    "drop raw",
                                           "drop final", "swap sources", "other fifo",       "other peer",
                                           "drop implied ack", "add implied ack", "drop credit at start"};
  return kNames[static_cast<int>(change)];
}

const char* name_of(Place place) {
  static constexpr const char* kNames[] = {"input", "output", "inbox", "peer input", "peer output", "ready", "done"};
  return kNames[static_cast<int>(place)];
}

std::vector<Mutant> mutants_of(const Plan& plan) { return Mutator(plan).run(); }

}  // namespace talaria::sim
