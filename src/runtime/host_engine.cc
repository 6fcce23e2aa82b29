#include "runtime/host_engine.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/os.h"

namespace talaria {
namespace {

// How an idle thread waits: spin while an answer is likely to be on its way, then let other ranks have the core.
class Backoff {
 public:
  void reset() { idle_ = 0; }
  void wait() {
    ++idle_;
    if (idle_ < kSpins) {
      cpu_pause();
    } else if (idle_ < kSpins + kYields) {
      sched_yield();
    } else {
      const timespec pause{0, kSleepNanoseconds};
      nanosleep(&pause, nullptr);
    }
  }

 private:
  static constexpr uint32_t kSpins = 200, kYields = 20000;
  static constexpr long kSleepNanoseconds = 50000;
  uint32_t idle_ = 0;
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
  Backoff backoff;
  for (;;) {
    bool moved = false, running = false;
    for (Submission* submission : submissions) {
      auto* engine = static_cast<HostEngine*>(submission->engine);
      moved |= engine->executor_.advance();
      running |= !engine->executor_.done();
      if (!moved && engine->aborted_.load(std::memory_order_acquire)) {
        const HostWait wait = engine->executor_.current_wait();
        leave_half_done(submissions);
        return fail(Code::kRemote, "rank {} was aborted in operation {} while waiting for rank {}", engine->rank_.rank,
                    wait.sequence, wait.peer);
      }
    }
    if (!running) return Status();
    if (moved) backoff.reset();
    else backoff.wait();
  }
}

std::unique_ptr<Engine> make_host_engine(const Config& config) { return std::make_unique<HostEngine>(config); }

}  // namespace talaria
