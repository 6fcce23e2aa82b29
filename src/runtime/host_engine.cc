#include "runtime/host_engine.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/os.h"
#include "bootstrap/pairs.h"
#include "runtime/reach.h"
#include "runtime/wait_report.h"
#include "transport/cross_memory.h"

namespace talaria {
namespace {

// For the ring to explain what was seen otherwise.
constexpr double kRingUsec = 5e5;

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

// A block below this goes faster through shared memory than by a system call and the waits of the direct form.
constexpr uint64_t kCrossMemoryBytes = 32u << 10;

}  // namespace

HostEngine::HostEngine(const Config& config) : config_(config), executor_(rank_) {}

Result<RankCard> HostEngine::open(uint32_t rank, const MailboxLayout& layout) {
  rank_.rank = rank;
  rank_.nranks = layout.nranks;
  rank_.layout = layout;
  rank_.peers.resize(layout.nranks);
  for (uint32_t c = 0; c < kMailboxChannels; ++c) rank_.fifos[c].resize(layout.fifo_index(c, layout.nranks, 0, 0));
  mailbox_ = TRY(make_mailbox(layout.bytes));
  rank_.mailbox = mailbox_.data();

  RankCard card{};
  card.host_hash = host_hash(config_.host_id);
  card.process_hash = process_hash();
  card.kind = EngineKind::kHost;
  card.device = -1;
  card.process = getpid();
  nonce_ = random_u64();
  card.nonce = nonce_;
  card.nonce_address = reinterpret_cast<uint64_t>(&nonce_);
  const UsableCores cores = usable_cores();
  card.cores = cores.count;
  card.core_set = cores.set;
  card.mailbox_address = reinterpret_cast<uint64_t>(mailbox_.data());
  card.mailbox_bytes = layout.bytes;
  std::memcpy(card.mailbox_handle, mailbox_.name().c_str(), mailbox_.name().size() + 1);
  return card;
}

// Without room in /dev/shm, or with NCCL_SHM_DISABLE, only threads of this process can store to it.
Result<SharedMemory> HostEngine::make_mailbox(size_t bytes) const {
  if (config_.shm_disable == 0) {
    SharedMemory memory;
    const int error = SharedMemory::create(bytes, memory);
    if (error == 0) return memory;
    log_warn("rank {}: cannot create the shared memory object /dev/shm/talaria.{}-* of {} bytes, {} bytes are free "
             "there ({}): other processes reach this rank over TCP, which is slower. Make /dev/shm larger (docker run "
             "--shm-size), or set NCCL_SHM_DISABLE=1 to use TCP without this warning",
             rank_.rank, getpid(), bytes, SharedMemory::room(), strerror(error));
  }
  return SharedMemory::create_private(bytes);
}

Status HostEngine::connect(std::span<const RankCard> cards, OutOfBand& oob) {
  const RankCard& mine = cards[rank_.rank];
  for (const RankCard& card : cards) {
    const bool visible = card.process != 0 && card.process_hash == process_hash_of(card.process);
    processes_.push_back(visible && card.process_hash != mine.process_hash ? card.process : 0);
  }
  std::vector<bool> opened(cards.size());
  const Status status = map_peers(cards, opened);
  Result<Reach> agreed = agree_on_reach(oob, status, opened);
  // What all have opened needs its name no longer.
  mailbox_.unlink_name();
  TRY(agreed.status());
  if (!agreed->everyone) TRY(link_peers(agreed->mapped, oob));
  TRY(agree_on_form(cards, agreed->everyone, oob));
  crowded_ = std::ranges::count_if(cards, [&](const RankCard& card) {
    return card.host_hash == mine.host_hash && card.core_set == mine.core_set;
  }) > mine.cores;
  missed_.resize(cards.size());
  ended_since_.resize(cards.size());
  oob_ = &oob;
  return Status();
}

Status HostEngine::agree_on_form(std::span<const RankCard> cards, bool all_mapped, OutOfBand& oob) {
  const auto elsewhere = [&](const RankCard& card) { return card.process_hash != cards.front().process_hash; };
  const bool one_process = std::ranges::none_of(cards, elsewhere);
  bool reached = all_mapped;
  if (all_mapped && !one_process) {
    const std::vector<int32_t> all = TRY(oob.all_gather_value(int32_t{reaches_buffers(cards)}));
    reached = std::ranges::count(all, 0) == 0;
  }
  form_ = reached ? Form::kDirect : Form::kStaged;
  direct_bytes_ = one_process ? 0 : kCrossMemoryBytes;
  return Status();
}

bool HostEngine::reaches_buffers(std::span<const RankCard> cards) {
  const RankCard& mine = cards[rank_.rank];
  for (uint32_t p = 0; p < cards.size(); ++p) {
    if (cards[p].process_hash == mine.process_hash) continue;
    const auto refuse = [&](const char* why) {
      log_info(kLogInit, "rank {} stages what it exchanges with rank {} of process {}: {}", rank_.rank, p,
               cards[p].process, why);
      return false;
    };
    if (config_.cross_memory == 0) return refuse("TALARIA_CROSS_MEMORY=0");
    if (processes_[p] == 0) return refuse("that process is not visible in this PID namespace");
    const int error = cross_memory::probe(processes_[p], cards[p].nonce_address, cards[p].nonce);
    if (error != 0) return refuse(strerror(error));
    rank_.peers[p].process = processes_[p];
  }
  return true;
}

Status HostEngine::map_peers(std::span<const RankCard> cards, std::vector<bool>& opened) {
  for (uint32_t p = 0; p < cards.size(); ++p) opened[p] = TRY(map_peer(cards[rank_.rank], cards[p], rank_.peers[p]));
  return Status();
}

// False if the two do not share memory.
Result<bool> HostEngine::map_peer(const RankCard& mine, const RankCard& peer, PeerHandle& handle) {
  if (peer.kind != EngineKind::kHost) {
    return fail(Code::kInvalidUsage, "a communicator mixes CPU ranks and GPU ranks: set TALARIA_DEVICE alike on all");
  }
  handle.kind = PeerKind::kMapped;
  if (&peer == &mine) {
    handle.mailbox = mailbox_.data();
    return true;
  }
  const bool one_process = peer.host_hash == mine.host_hash && peer.process_hash == mine.process_hash;
  if (!one_process && (config_.shm_disable != 0 || peer.host_hash != mine.host_hash)) return false;
  // Also within one process: our handle keeps the memory when the peer's communicator goes; late credits may come.
  const std::string name(reinterpret_cast<const char*>(peer.mailbox_handle));
  SharedMemory memory;
  if (const int error = SharedMemory::open(name, peer.mailbox_bytes, memory); error != 0) {
    log_info(kLogShm, "rank {} cannot open /dev/shm{} of rank {} on this host: {}", rank_.rank, name,
             static_cast<size_t>(&handle - rank_.peers.data()), strerror(error));
    return false;
  }
  opened_.push_back(std::move(memory));
  handle.mailbox = opened_.back().data();
  return true;
}

Status HostEngine::link_peers(const std::vector<bool>& mapped, OutOfBand& oob) {
  std::vector<bool> wanted = mapped;
  wanted.flip();
  auto sockets = TRY(connect_pairs(oob, wanted, config_));
  const auto each = static_cast<uint32_t>(std::max<int64_t>(config_.nsocks_per_thread, 1));
  links_ = std::make_unique<TcpLinks>(rank_.nranks, std::span(mailbox_.data(), rank_.layout.bytes), each);
  rank_.puts.resize(rank_.nranks);
  for (uint32_t p = 0; p < rank_.nranks; ++p) {
    if (!wanted[p]) continue;
    log_info(kLogNet, "NET/Socket: rank {} reaches rank {} by {} sockets", rank_.rank, p, sockets[p].size());
    rank_.peers[p] = {PeerKind::kProxied, TRY(links_->add(p, std::move(sockets[p]))), 0};
  }
  return links_->start();
}

bool HostEngine::exchange() {
  if (links_ == nullptr) return false;
  for (uint32_t p = 0; p < rank_.nranks; ++p) {
    if (!rank_.puts[p].empty()) links_->put(p, rank_.puts[p]);
  }
  return links_->drive();
}

void HostEngine::set_working(bool working) {
  if (links_ != nullptr) links_->work(working);
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

// While ranks are inside operations, the process's helper threads serve their sockets.
class HostEngine::Working {
 public:
  explicit Working(std::span<Submission* const> submissions) : submissions_(submissions) { tell(true); }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;
  ~Working() { tell(false); }

 private:
  void tell(bool working) const {
    for (Submission* submission : submissions_) static_cast<HostEngine*>(submission->engine)->set_working(working);
  }
  const std::span<Submission* const> submissions_;
};

Status HostEngine::run(std::span<Submission* const> submissions) {
  for (Submission* submission : submissions) {
    auto* engine = static_cast<HostEngine*>(submission->engine);
    if (!engine->health().ok()) return engine->refuse();
    for (Work& work : submission->works) {
      if (config_.fault == "stage" && engine->rank_.rank % 2 == 1) work.staged = 3;
      else if (work.direct && engine->direct_bytes_ > 0) engine->stage_unreachable(work);
    }
    engine->executor_.begin(submission->works);
  }
  double idle_since = 0;  // 0: something moved lately
  const Working working(submissions);
  Backoff backoff(static_cast<HostEngine*>(submissions.front()->engine)->crowded_);
  for (;;) {
    bool moved = false, running = false;
    for (Submission* submission : submissions) {
      auto* engine = static_cast<HostEngine*>(submission->engine);
      moved |= engine->executor_.advance();
      moved |= engine->exchange();
      running |= !engine->done();
      if (!moved && engine->aborted_.load(std::memory_order_acquire)) {
        const std::string wait = engine->describe_wait();
        leave_half_done(submissions);
        return fail(Code::kRemote, "rank {} was {} {}", engine->rank_.rank, engine->ending(), wait);
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

// Nothing has been started.
Status HostEngine::refuse() const {
  return fail(revoked_.load(std::memory_order_relaxed) ? Code::kInvalidUsage : Code::kRemote,
              "an operation of rank {} was {} before it began", rank_.rank, ending());
}

void HostEngine::stage_unreachable(Work& work) {
  const Chunking& chunking = work.chunking;
  const size_t element = bytes_of(static_cast<DataType>(work.type));
  const auto bytes = [&](uint64_t stride) {
    return (stride == 0 ? chunking.block_elements : chunking.total_elements) * element;
  };
  if (!cross_memory::reachable(work.input, bytes(chunking.input_stride))) work.staged |= 1;
  if (!cross_memory::reachable(work.output, bytes(chunking.output_stride))) work.staged |= 2;
}

// Nothing has moved for a while: is somebody gone who is waited for?
Status HostEngine::check_peers(std::span<Submission* const> submissions) {
  for (Submission* submission : submissions) {
    auto* engine = static_cast<HostEngine*>(submission->engine);
    const std::optional<Departed> departed = engine->hopeless();
    if (!departed && !engine->is_denied()) continue;
    const std::string wait = engine->describe_wait();
    const Unreached unreached = engine->executor_.unreached();
    leave_half_done(submissions);
    if (!departed) {
      return fail(Code::kSystem, "rank {} cannot reach a buffer of process {} {}: {} (is all of it mapped?)",
                  engine->rank_.rank, unreached.process, wait, strerror(unreached.error));
    }
    return fail(Code::kRemote, "rank {} was left {}: {}", engine->rank_.rank, wait,
                engine->describe_departed(*departed));
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

bool HostEngine::gone(uint32_t rank) const { return processes_[rank] != 0 && process_ended(processes_[rank]); }

bool HostEngine::is_denied() {
  const int error = executor_.unreached().error;
  if (error == 0 || error == ESRCH || executor_.done()) {
    denied_since_ = 0;
    return false;
  }
  if (denied_since_ == 0) denied_since_ = now_usec();
  return now_usec() - denied_since_ >= kRingUsec;
}

// The end of a process is seen also when the ring does not tell: when the ranks between do not wait just now, or a
// forked child of the dead keeps its sockets open. The ring goes first, because it knows who was gone before: a rank
// that gave up for another's sake may have ended its process since.
Departure HostEngine::whereabouts(uint32_t peer) {
  const Departure heard = oob_->departure_of(peer);
  if (links_ != nullptr && links_->linked(peer)) return linked_whereabouts(peer, heard);
  if (heard != Departure::kPresent || !gone(peer)) return heard;
  if (ended_since_[peer] == 0) ended_since_[peer] = now_usec();
  return now_usec() - ended_since_[peer] < kRingUsec ? Departure::kPresent : Departure::kDied;
}

// A connection has its own order: what a peer sent before it left may come after the news that it left, and the end of
// a connection before the news of why. A rank that ended by a fault perhaps never closes it, and a child that a dead
// process has forked keeps it open.
Departure HostEngine::linked_whereabouts(uint32_t peer, Departure heard) {
  const bool ended = links_->ended(peer);
  if (ended && heard != Departure::kPresent) return heard;
  const bool dead = heard == Departure::kPresent && gone(peer);
  if (!ended && !dead && !is_fault(heard)) return Departure::kPresent;
  if (ended_since_[peer] == 0) ended_since_[peer] = now_usec();
  if (now_usec() - ended_since_[peer] < kRingUsec) return Departure::kPresent;
  return is_fault(heard) ? heard : Departure::kDied;
}

// With what broke the connection, if that is how the rank was lost.
std::string HostEngine::describe_departed(const Departed& departed) const {
  const bool lost = departed.how == Departure::kDied && links_ != nullptr && links_->linked(departed.rank) &&
                    links_->ended(departed.rank);
  return lost ? fmt::format("{} ({})", describe(departed), links_->reason(departed.rank)) : describe(departed);
}

std::string HostEngine::describe_wait() const {
  const std::vector<HostWait> waits = executor_.current_waits();
  return waits.empty() ? "between operations" : "in " + describe(waits.front());
}

std::unique_ptr<Engine> make_host_engine(const Config& config) { return std::make_unique<HostEngine>(config); }

}  // namespace talaria
