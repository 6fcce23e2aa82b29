#include "runtime/host_engine.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/os.h"
#include "runtime/wait_report.h"

namespace talaria {
namespace {

// How an idle thread waits: spin while an answer is likely to be on its way, then let other ranks have the core. Where
// ranks outnumber cores the answer may need this one: no spinning.
class Backoff {
 public:
  explicit Backoff(bool crowded) : spins_(crowded ? 0 : kSpins) {}
  void reset() {
    idle_ = 0;
    looked_usec_ = 0;
  }
  // True once for every millisecond of idleness; never while answers come quickly.
  bool long_idle() {
    if (idle_ < spins_ + kPatience) return false;
    const double now = now_usec();
    if (looked_usec_ == 0) looked_usec_ = now;
    if (now - looked_usec_ < kLookEveryUsec) return false;
    looked_usec_ = now;
    return true;
  }
  void wait() {
    ++idle_;
    if (idle_ < spins_) {
      cpu_pause();
    } else if (idle_ < spins_ + kYields) {
      sched_yield();
    } else {
      const timespec pause{0, kSleepNanoseconds};
      nanosleep(&pause, nullptr);
    }
  }

 private:
  static constexpr uint32_t kSpins = 500, kPatience = 20, kYields = 20000;
  static constexpr long kSleepNanoseconds = 50000;
  static constexpr double kLookEveryUsec = 1000;
  const uint32_t spins_;
  uint32_t idle_ = 0;
  double looked_usec_ = 0;  // 0: not since the last reset
};

}  // namespace

HostEngine::HostEngine(const Config& config) : config_(config), executor_(rank_) {}

Result<RankCard> HostEngine::open(uint32_t rank, const MailboxLayout& layout) {
  rank_.rank = rank;
  rank_.nranks = layout.nranks;
  rank_.layout = layout;
  rank_.peers.resize(layout.nranks);
  for (uint32_t c = 0; c < kMailboxChannels; ++c) rank_.fifos[c].resize(layout.fifo_index(c, layout.nranks, 0, 0));
  mailbox_ = TRY(SharedMemory::create(layout.bytes));
  rank_.mailbox = mailbox_.data();

  RankCard card{};
  card.host_hash = host_hash(config_.host_id);
  card.process_hash = process_hash();
  card.kind = EngineKind::kHost;
  card.device = -1;
  card.process = getpid();
  const UsableCores cores = usable_cores();
  card.cores = cores.count;
  card.core_set = cores.set;
  card.mailbox_address = reinterpret_cast<uint64_t>(mailbox_.data());
  card.mailbox_bytes = layout.bytes;
  std::memcpy(card.mailbox_handle, mailbox_.name().c_str(), mailbox_.name().size() + 1);
  return card;
}

Status HostEngine::connect(std::span<const RankCard> cards, OutOfBand& oob) {
  Status status;
  const RankCard& mine = cards[rank_.rank];
  for (uint32_t p = 0; p < cards.size() && status.ok(); ++p) status = connect_peer(mine, cards[p], rank_.peers[p]);
  // Every rank tells its verdict, also one that failed: nobody is left waiting, now or in the first operation. What all
  // have opened needs its name no longer.
  Result<std::vector<int32_t>> verdicts = oob.all_gather_value(static_cast<int32_t>(status.code()));
  mailbox_.unlink_name();
  TRY(status);
  TRY(verdicts.status());
  const auto failed = std::ranges::find_if(*verdicts, [](int32_t code) { return code != 0; });
  if (failed != verdicts->end())
    return fail(Code::kRemote, "rank {} could not reach its peers; see its log", failed - verdicts->begin());
  const bool one_process = std::all_of(cards.begin(), cards.end(), [&](const RankCard& card) {
    return card.process_hash == mine.process_hash && card.host_hash == mine.host_hash;
  });
  form_ = one_process ? Form::kDirect : Form::kStaged;
  crowded_ = std::ranges::count_if(cards, [&](const RankCard& card) {
    return card.host_hash == mine.host_hash && card.core_set == mine.core_set;
  }) > mine.cores;
  missed_.resize(cards.size());
  ended_since_.resize(cards.size());
  for (const RankCard& card : cards) {
    const bool visible = card.process != 0 && card.process_hash == process_hash_of(card.process);
    processes_.push_back(visible && card.process_hash != mine.process_hash ? card.process : 0);
  }
  oob_ = &oob;
  return Status();
}

Status HostEngine::connect_peer(const RankCard& mine, const RankCard& peer, PeerHandle& handle) {
  if (peer.kind != EngineKind::kHost) {
    return fail(Code::kInvalidUsage, "a communicator mixes CPU ranks and GPU ranks: set TALARIA_DEVICE alike on all");
  }
  if (peer.host_hash != mine.host_hash) {
    return fail(Code::kInvalidUsage, "ranks on different hosts (or with different NCCL_HOSTID) are not supported yet");
  }
  handle.kind = PeerKind::kMapped;
  if (&peer == &mine) {
    handle.mailbox = mailbox_.data();
    return Status();
  }
  // Also within one process: our handle keeps the memory when the peer's communicator goes; late credits may come.
  const std::string name(reinterpret_cast<const char*>(peer.mailbox_handle));
  opened_.push_back(TRY(SharedMemory::open(name, peer.mailbox_bytes)));
  handle.mailbox = opened_.back().data();
  return Status();
}

// The works of all submissions stay as they are: their counters no longer agree with their peers', and the caller may
// free the buffers as soon as we return.
void HostEngine::leave_half_done(std::span<Submission* const> submissions) {
  for (Submission* submission : submissions) submission->engine->abort();
  // A peer holds on for one step at most. The bound is for one whose process was stopped or killed inside it.
  const double deadline = now_usec() + 1e6;
  for (Submission* submission : submissions) {
    auto* engine = static_cast<HostEngine*>(submission->engine);
    while (!engine->executor_.revoke_buffers() && now_usec() < deadline) sched_yield();
  }
}

Status HostEngine::run(std::span<Submission* const> submissions) {
  for (Submission* submission : submissions) {
    auto* engine = static_cast<HostEngine*>(submission->engine);
    if (!engine->health().ok()) return fail(Code::kRemote, "an operation of rank {} was aborted", engine->rank_.rank);
    if (config_.fault == "stage" && engine->rank_.rank % 2 == 1) {
      for (Work& work : submission->works) work.staged = 3;
    }
    engine->executor_.begin(submission->works);
  }
  double idle_since = 0;  // 0: something moved lately
  Backoff backoff(static_cast<HostEngine*>(submissions.front()->engine)->crowded_);
  for (;;) {
    bool moved = false, running = false;
    for (Submission* submission : submissions) {
      auto* engine = static_cast<HostEngine*>(submission->engine);
      moved |= engine->executor_.advance();
      running |= !engine->executor_.done();
      if (!moved && engine->aborted_.load(std::memory_order_acquire)) {
        const std::string wait = engine->describe_wait();
        leave_half_done(submissions);
        return fail(Code::kRemote, "rank {} was aborted {}", engine->rank_.rank, wait);
      }
    }
    if (!running) return Status();
    if (moved) {
      backoff.reset();
      idle_since = 0;
      continue;
    }
    backoff.wait();
    if (!backoff.long_idle()) continue;
    if (idle_since == 0) idle_since = now_usec();
    TRY(check_peers(submissions));
    TRY(check_patience(submissions, idle_since));
  }
}

// Nothing has moved for a while: is somebody gone who is waited for?
Status HostEngine::check_peers(std::span<Submission* const> submissions) {
  for (Submission* submission : submissions) {
    auto* engine = static_cast<HostEngine*>(submission->engine);
    const std::optional<Departed> departed = engine->hopeless();
    if (!departed) continue;
    const std::string wait = engine->describe_wait();
    leave_half_done(submissions);
    return fail(Code::kRemote, "rank {} was left {}: {}", engine->rank_.rank, wait, describe(*departed));
  }
  return Status();
}

// No deadline but the user's: a straggler of ten minutes is legal.
Status HostEngine::check_patience(std::span<Submission* const> submissions, double idle_since) {
  const auto patience_sec = config_.timeout_sec;
  if (patience_sec <= 0 || now_usec() - idle_since < static_cast<double>(patience_sec) * 1e6) return Status();
  std::string first;
  for (Submission* submission : submissions) {
    auto* engine = static_cast<HostEngine*>(submission->engine);
    if (engine->executor_.done()) continue;
    const uint32_t rank = engine->rank_.rank;
    log_pending(rank, engine->executor_.current_waits(), submission->works);
    if (first.empty()) first = fmt::format("rank {} waited {} s (TALARIA_TIMEOUT) {}", rank, patience_sec,
                                           engine->describe_wait());
  }
  leave_half_done(submissions);
  return fail(Code::kRemote, "{}", first);
}

std::optional<Departed> HostEngine::hopeless() {
  if (executor_.done()) return std::nullopt;
  oob_->listen();
  if (const auto fault = oob_->settled_fault()) return *fault;
  const std::vector<HostWait> waits = executor_.current_waits();
  // A rank's last stores come before its goodbye. So whoever was heard to be gone at an earlier look, and is still
  // waited for although the executor has looked at its words since, is waited for in vain.
  for (const HostWait& wait : waits) {
    if (!missed_[wait.peer]) continue;
    const Departure how = whereabouts(wait.peer);
    oob_->report({wait.peer, how == Departure::kLeft ? Departure::kMissed : how});
    if (const auto fault = oob_->fault()) return *fault;
    return Departed{wait.peer, how};
  }
  for (const HostWait& wait : waits) missed_[wait.peer] = whereabouts(wait.peer) != Departure::kPresent;
  return std::nullopt;
}

// The end of a process is seen also when the ring does not tell: when the ranks between do not wait just now, or a
// forked child of the dead keeps its sockets open. The ring goes first, because it knows who was gone before: a rank
// that gave up for another's sake may have ended its process since.
Departure HostEngine::whereabouts(uint32_t peer) {
  constexpr double kRingUsec = 5e5;
  const Departure heard = oob_->departure_of(peer);
  if (heard != Departure::kPresent || processes_[peer] == 0 || !process_ended(processes_[peer])) return heard;
  if (ended_since_[peer] == 0) ended_since_[peer] = now_usec();
  return now_usec() - ended_since_[peer] < kRingUsec ? Departure::kPresent : Departure::kDied;
}

std::string HostEngine::describe_wait() const {
  const std::vector<HostWait> waits = executor_.current_waits();
  return waits.empty() ? "between operations" : "in " + describe(waits.front());
}

std::unique_ptr<Engine> make_host_engine(const Config& config) { return std::make_unique<HostEngine>(config); }

}  // namespace talaria
