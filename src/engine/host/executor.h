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
#include "engine/host/remote_move.h"
#include "engine/work.h"
#include "transport/peer.h"
#include "transport/put.h"

namespace talaria {

// What a rank's executor knows of its place in the communicator. Filled at connect, then constant, but for the
// counters.
struct HostRank {
  uint32_t rank = 0;
  uint32_t nranks = 0;
  MailboxLayout layout{};
  std::byte* mailbox = nullptr;             // own mailbox
  std::vector<PeerHandle> peers;            // [nranks]
  std::vector<PutList> puts;                // [nranks] what is to be done in the mailboxes of proxied peers
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
  // A process whose buffers could not be reached at the last try of a step, which stays undone and is tried again.
  const Unreached& unreached() const { return unreached_; }

 private:
  struct Cursor {
    size_t work = 0;      // index into works_
    bool started = false;
    bool resolved = false;  // endpoints_ are those of the next step
    uint32_t round = 0;
    uint32_t step = 0;    // index into the stream's steps: prologue, then body (repeated), then epilogue
  };

  // One ref of the step that a stream is at, as words and places instead of names.
  struct Endpoint {
    std::byte* data = nullptr;      // where the payload lies; null: only flags, or not known before the ready word
    uint64_t* awaited = nullptr;    // null: nothing, or it has come. Else it has when the word has grown to `least`
    uint64_t least = 0;
    uint64_t* published = nullptr;  // set to `value` after the data has moved; null: nothing to tell
    uint64_t value = 0;
    FifoState* fifo = nullptr;      // counts the message; null: no message
    int process = 0;                // where `data` lies; 0: here
    bool ready = false;             // `awaited` is the ready word of a peer's buffer, in which the data lies at
    uint64_t bytes = 0;             // of the payload
    uint64_t offset = 0;            // of the payload in the buffer where it lies, if it lies in one
    bool source = false;
    bool scaled = false;            // PreMulSum: the data lies in a send buffer, of a rank with this
    uint64_t scalar = 0;
  };

  void enter_segment();
  void start_work(const Work& work);
  void finish_work(const Work& work);
  bool advance_stream(uint32_t stream);
  bool advance_cursor(const Work& work, uint32_t stream);
  bool runnable(const Work& work, uint32_t stream) const;

  // Looks up every ref of the stream's next step.
  void resolve_step(const Work& work, const Step& step, uint32_t stream);
  // These fill in an empty endpoint, where it is to stay: copies of a struct just written by parts are slow.
  void resolve(const Work& work, const Ref& ref, Endpoint& endpoint);
  void resolve_message(const Work& work, const Ref& ref, Endpoint& endpoint);
  void resolve_done(const Ref& ref, Endpoint& endpoint) const;
  bool all_arrived(const Work& work, const Step& step, uint32_t stream);
  bool arrived(const Work& work, const Ref& ref, Endpoint& endpoint);
  bool take_scalar(const Ref& ref, Endpoint& endpoint) const;
  bool take_ready(const Work& work, const Ref& ref, Endpoint& endpoint);
  bool begin_touching(const Work& work, const Step& step);
  void end_touching(const Work& work);
  bool ref_revoked(const Work& work, const Ref& ref) const;
  // False: a process was not reached, the step is undone.
  bool run_step(const Work& work, const Step& step, uint32_t stream);
  bool move_remotely(const Movement& movement, const Step& step, uint32_t stream);
  // Raises the word of an endpoint at the peer, after its data has been stored there.
  void publish(const PeerHandle& peer, const Endpoint& endpoint);
  void tell_ready(const Work& work, const Ref& ref);
  // Where message `message` (counted from 0) of `bytes` bytes lies in its consumer's mailbox, and the word that grows
  // past `message` when it is there.
  struct MessagePlace {
    uint64_t payload, published;  // offsets
  };
  MessagePlace place_of(const Work& work, const Ref& ref, uint32_t producer, uint64_t message, uint64_t bytes) const;

  HostRank& rank_;
  std::span<const Work> works_;
  size_t segment_ = 0;      // first work of the segment being run
  size_t segment_end_ = 0;  // works that streams may walk through on their own: one collective, or a point-to-point run
  uint32_t streams_ = 0;    // of the segment
  Cursor cursors_[kMaxStreams];
  std::vector<Endpoint> endpoints_[kMaxStreams];
  RemoteMover remote_mover_;
  Unreached unreached_;
  std::vector<uint64_t> sent_at_start_;  // per peer and FIFO of the collective being run
};

}  // namespace talaria
