// Communicator: one rank's membership, from init to destroy. What an ncclComm_t points to.
//
// The object itself is a small shell that stays readable for ever, so that a use after destroy is an error with a name
// instead of a crash; everything of size lives in Resources and goes at destroy. One thread at a time calls, except
// what ends operations (abort, revoke, a shrink that aborts) and the queries.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/os.h"
#include "bootstrap/out_of_band.h"
#include "runtime/child.h"
#include "runtime/engine.h"
#include "runtime/progress.h"
#include "runtime/reduce_op.h"
#include "runtime/reunion.h"
#include "runtime/runtime.h"
#include "schedule/planner.h"

namespace talaria {

class ParentWatch;

// The settings with which the ranks of `seat` meet.
Config with_patience(Config config, const Seat& seat);
// Do the calls of a communicator made with these block?
bool blocking_of(const InitOptions& options, const Config& config);

class Communicator {
 public:
  // `device`: CUDA ordinal, -1 for a CPU rank. `blocking`: calls that wait for other ranks return when done; without
  // it, they go on in the background.
  Communicator(int device, bool blocking) : device_(device), blocking_(blocking) {}

  // --- init, by one of these. Blocks until all ranks of the communicator are there.
  Status init(const Seat& seat, const InitOptions& options, Config config);
  // By a split of `parent`, which every rank of that takes part in. Without `options` as the parent was made. Success
  // without being ready(): this rank wants no communicator.
  Status init_by_split(Communicator& parent, const SplitRequest& request, const std::optional<InitOptions>& options);
  // Of the members of `request` only, which may be all that is left of `parent`.
  Status init_by_shrink(Communicator& parent, const ShrinkRequest& request, const std::optional<InitOptions>& options);
  // Of every rank of `parent`, in its place there, and newcomers.
  Status init_by_growth(Communicator& parent, const GrowRequest& request, const std::optional<InitOptions>& options);

  // Where newcomers come when this communicator grows next.
  Result<UniqueId> open_for_growth();

  // --- operations: plans and binds `calls` (one group's, in order) into submissions for the engine.
  Result<std::vector<Submission>> bind(const std::vector<Call>& calls);
  // A collective of a CPU rank outside a group: the short way, which allocates nothing when it is repeated.
  Status run_alone(const Call& call);
  // An operation failed: `status` says whether anything had been started, so that no further one may.
  void fault_unless_refused(Status status);

  // Are collectives compared with those of the other ranks first (NCCL_CHECK_MODE=DEBUG_GLOBAL)? And the number of the
  // next one.
  bool compares_calls() const { return compares_calls_.load(std::memory_order_relaxed); }
  uint64_t next_compared() { return compared_++; }
  // Reductions made on this communicator; null before init.
  ReduceOperators* operators() { return ready() && !released() ? &resources_->operators : nullptr; }

  // --- what goes on in the background. One thing at a time; other calls are refused meanwhile.
  bool blocking() const { return blocking_; }
  bool in_progress() const { return progress_.running(); }
  void begin_progress() { progress_.begin(); }
  void end_progress(Status status);
  // kInProgress, and what `body` returns is in async_error() once it has ended.
  Status run_in_background(const char* thread_name, std::function<Status()> body);
  // A child to be made on the same device.
  std::unique_ptr<Communicator> conceive(const std::optional<InitOptions>& options) const;

  // --- by all ranks together: gives back what only operations need, and takes it again. The communicator makes no
  // operation and no child meanwhile.
  Status suspend();
  Status resume();
  bool suspended() const { return suspended_.load(std::memory_order_relaxed); }

  // --- end of life
  Status finalize();
  // Waits for what is in progress, then for what was issued.
  Status settle();
  // Lets go of everything but the shell; at the end of what is in progress on another's thread. Idempotent.
  void release();
  void abort();
  // Ends the operations in flight and starts no more; what is left are other communicators made of this one, and its
  // end. From any thread; no fault by itself. Once, and not after finalize().
  Status revoke();
  // An operation ended half-done: no further one may start, and waiting kernels leave.
  void fault(Code code);

  // --- queries
  bool intact() const { return magic_ == kMagic && end_magic_ == kMagic; }
  // Sequentially consistent, like the counting of uses: of a call and a release that meet, one sees the other.
  bool released() const { return released_.load(); }
  // Does the process ask that made it? A forked child has neither the threads nor the peers.
  bool at_home() const { return home_.here(); }
  int home_process() const { return home_.process(); }
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  uint32_t rank() const { return rank_; }
  uint32_t nranks() const { return nranks_; }
  int device() const { return device_; }
  uint64_t device_bytes() const;  // of GPU memory
  int nvml_index() const;         // of the GPU; -1 without one, or where NVML does not tell
  EngineKind kind() const { return device_ < 0 ? EngineKind::kHost : EngineKind::kDevice; }
  // kInProgress while anything is. Otherwise also looks for departed peers, and ends a GPU rank's waits for them.
  Code async_error() const { return in_progress() ? Code::kInProgress : look_for_fault(); }
  // Looks for departed peers: the first fault that was heard of, or that is old enough to end waits for others.
  std::optional<Departed> hear_fault(bool settled) const;
  void set_async_error(Code code) const;

  // Counts calls in flight, so that abort from another thread frees nothing that a call still uses.
  class Use {
   public:
    explicit Use(const Communicator& comm) : comm_(&comm) { ++comm.uses_; }
    Use(Use&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
    ~Use() {
      if (comm_ != nullptr) --comm_->uses_;
    }

   private:
    const Communicator* comm_;
  };

  // The same for the one thread that makes calls, without a locked instruction: those wait until the stores of the call
  // before have reached the peers' memory. release() after an abort brings the fence that is missing here.
  class QuickUse {
   public:
    explicit QuickUse(const Communicator& comm) : comm_(comm) {
      comm.in_call_.store(true, std::memory_order_relaxed);
      if (comm.quick_) std::atomic_signal_fence(std::memory_order_seq_cst);
      else std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    ~QuickUse() { comm_.in_call_.store(false, std::memory_order_release); }
    QuickUse(const QuickUse&) = delete;
    QuickUse& operator=(const QuickUse&) = delete;

   private:
    const Communicator& comm_;
  };

  // Local checks that need no plan, at submission; the caller holds a use.
  Status check(const Collective& collective) const;

 private:
  static constexpr uint64_t kMagic = 0x0280028002800280ull;

  struct Resources {
    explicit Resources(const void* owner) : operators(owner) {}
    InitOptions options;
    Config config;
    std::unique_ptr<OutOfBand> oob;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Planner> planner;
    Submission alone{};     // run_alone's, with the work of the last call
    Collective alone_call{};  // the last call
    ReduceOperators operators;
    std::optional<UniqueId> growth_id;  // made here, for the next growth
    std::unique_ptr<Reunion> reunion;   // asks the engine and the channel, so it goes first
  };

  Status connect(const Seat& seat);
  Status part_if_failed(Status status);
  Status drain();
  void let_go();
  Code look_for_fault() const;
  // All ranks of a parent, to agree on a child: its own channel, or one for this purpose.
  struct Channel {
    OutOfBand* all;
    std::unique_ptr<OutOfBand> own;
  };
  // Refuses where no operation could start, but not for being revoked. The caller holds a use.
  Result<Channel> channel_for(const Communicator& child);
  Result<Seat> seat_among(const std::vector<uint32_t>& members);
  // Why they could not meet, if some are seen to be gone; else `status` again.
  Status explain_absence(const std::vector<uint32_t>& members, Status status) const;
  // How a child is made without options of its own.
  using Settings = std::pair<InitOptions, Config>;
  Settings inheritance(const std::optional<InitOptions>& options) const;
  // For a split or a growth: the rank's seat in the child, as `seat_by` finds over the channel to all.
  using SeatBy = std::function<Result<Seat>(OutOfBand& all, const Config& config)>;
  Result<std::pair<Seat, Settings>> meet_for(const Communicator& child, const std::optional<InitOptions>& options,
                                             const SeatBy& seat_by);
  Status refuse_children() const;
  Status refuse_channel() const;
  // While it lives, an abort of the parent aborts the child that is being made.
  class Birth;
  // What revoke() does, for a communicator that may be revoked already.
  void end_operations();
  Status refuse_while_suspended() const;
  // Says why a child could not be made again, in the parent's numbers.
  Status explain_to_parent(const ParentWatch& parent, const Seat& seat, Status status) const;
  // Names the rank whose fault ended this communicator, if one did.
  Status refuse_after_fault() const;
  Result<Work> bind_call(const Call& call);
  // The part of bind_call that changes from one call to an equal next one.
  void bind_buffers(Work& work, const Call& call);
  Result<std::vector<Call>> pair_self_transfers(const std::vector<Call>& calls);

  uint64_t magic_ = kMagic;
  const ForkMark home_;
  uint32_t rank_ = 0;  // as nranks_ set once, by init
  uint32_t nranks_ = 0;
  const int device_;
  const bool blocking_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> released_{false};
  std::atomic<bool> aborted_{false};  // by the user, which ends also what is being made of it
  std::atomic<bool> faulted_{false};  // an operation ended half-done
  StopFlag stop_init_;  // set by abort(), and by bad news of the parent while this child of it is being made
  std::atomic<bool> revoked_{false};
  std::atomic<bool> finalized_{false};
  std::atomic<bool> suspended_{false};
  mutable std::atomic<int> uses_{0};
  mutable std::atomic<bool> in_call_{false};
  const bool quick_ = has_remote_fence();
  mutable std::atomic<Code> async_error_{Code::kSuccess};
  uint64_t sequence_ = 0;
  std::atomic<bool> compares_calls_{false};
  uint64_t compared_ = 0;
  std::mutex child_mutex_;         // guards child_
  Communicator* child_ = nullptr;  // being made
  std::unique_ptr<Resources> resources_;
  Progress progress_;
  Communicator* next_released_ = nullptr;  // shells stay reachable, so that leak checkers see them as kept
  uint64_t end_magic_ = kMagic;
};

}  // namespace talaria
