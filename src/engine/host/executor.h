// HostExecutor: runs the works of one CPU rank, a step at a time, without ever blocking.
//
// Each of a work's streams is a cursor; advance() moves every cursor as far as its flags allow and returns. One thread
// can therefore drive many ranks by calling their executors in turn. CPU ranks use one lane. Waiting words are polled
// by the caller's loop; what each word means and who writes it is in docs/memory_model.md.
//
// Not thread-safe: one thread at a time per executor. `abort` may be set from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "engine/work.h"
#include "transport/peer.h"

namespace talaria {

// What a rank's executor knows of its place in the communicator. Filled at connect, then constant, but for the
// counters.
struct HostRank {
  uint32_t rank = 0;
  uint32_t nranks = 0;
  MailboxLayout layout{};
  std::byte* mailbox = nullptr;             // own mailbox
  std::vector<PeerHandle> peers;            // [nranks]
  std::vector<FifoState> fifos[kMailboxChannels];  // indexed by layout.fifo_index
  uint64_t uses = 0;                        // direct-form operations so far (§6 line 10)
};

// The wait that a stream is stuck in, for fault texts.
struct HostWait {
  uint32_t peer = 0;
  Place place = Place::kInbox;
  bool sink = false;
  uint64_t sequence = 0;
  uint8_t operation = 0;
  uint32_t step = 0;   // of the stream
  uint32_t round = 0;
};

class HostExecutor {
 public:
  explicit HostExecutor(HostRank& rank) : rank_(rank) {}

  // Takes over `works`, which must stay until done(). Precondition: done().
  void begin(std::span<const Work> works);
  bool done() const { return segment_ == works_.size(); }
  // Moves every stream as far as it goes; true when anything moved.
  bool advance();
  // Abort: peers may not touch this rank's buffers from now on. True once none of them does; asked again until then.
  bool revoke_buffers();
  // Every peer's word that a stuck stream waits for, in stream order; for fault texts and for judging departed peers.
  std::vector<HostWait> current_waits() const;

 private:
  struct Cursor {
    size_t work = 0;      // index into works_
    bool started = false;
    uint32_t round = 0;
    uint32_t step = 0;    // index into the stream's steps: prologue, then body (repeated), then epilogue
  };

  void enter_segment();
  void start_work(const Work& work);
  void finish_work(const Work& work);
  bool advance_stream(uint32_t stream);
  bool advance_cursor(const Work& work, const StreamView& view, Cursor& cursor);
  bool runnable(const Work& work, uint32_t stream) const;

  bool can_run(const Work& work, const Step& step) const;
  bool begin_touching(const Work& work, const Step& step);
  void end_touching(const Work& work);
  bool ref_available(const Work& work, const Ref& ref, bool source) const;
  bool ref_revoked(const Work& work, const Ref& ref) const;
  void run_step(const Work& work, const Step& step, uint32_t round);
  void signal_ref(const Work& work, const Ref& ref, bool source);
  std::byte* locate(const Work& work, const Step& step, const Ref& ref, uint32_t round, bool source) const;
  bool reached_directly(const Ref& ref) const;
  FifoState& fifo(const Work& work, const Ref& ref) const;
  std::atomic_ref<uint64_t> word(std::byte* mailbox, uint64_t offset) const;
  const PeerUse& use_of(const Work& work, uint32_t peer) const;

  HostRank& rank_;
  std::span<const Work> works_;
  size_t segment_ = 0;      // first work of the segment being run
  size_t segment_end_ = 0;  // works that streams may walk through on their own: one collective, or a point-to-point run
  Cursor cursors_[kMaxStreams];
  std::vector<uint64_t> sent_at_start_;  // per peer and FIFO of the collective being run
};

}  // namespace talaria
