// Engine: what carries out the works of one rank, on a CPU or on a GPU.
//
// An engine owns its rank's mailbox and counters. Life: create → open() → connect(all cards) → run()* → destruction.
// run() takes the submissions of one group for engines of one kind, so that one thread can drive many ranks at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "bootstrap/out_of_band.h"
#include "engine/work.h"
#include "schedule/plan.h"
#include "transport/peer.h"

namespace talaria {

enum class EngineKind : uint8_t { kHost, kDevice };

// How a rank is found by its peers: exchanged as is by all-gather at init.
struct RankCard {
  uint64_t host_hash;
  uint64_t process_hash;
  EngineKind kind;
  uint8_t reserved[3];
  int32_t device;              // CUDA ordinal in its process, -1 for CPU ranks
  char bus_id[16];             // "0000:1b:00.0", empty for CPU ranks
  uint64_t mailbox_address;    // valid inside the rank's process
  uint64_t mailbox_bytes;
  int32_t process;             // process id in its own PID namespace, 0: not told
  uint32_t cores;              // that the thread which set the rank up may use
  uint64_t core_set;           // equal where the cores are the same
  uint64_t nonce_address, nonce;  // a random number in the process's private memory and where it lies, for probes
  std::byte mailbox_handle[64];  // CUDA IPC handle, or the name of a shared-memory object
  SocketAddress door;            // where the rank listens for as long as it is there
};

class Engine;

// The works one group gives one rank, in order. `stream` is the caller's stream, ignored by CPU ranks.
struct Submission {
  Engine* engine;
  void* stream;
  std::vector<Work> works;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual EngineKind kind() const = 0;
  // PCI bus id of this rank's GPU, "" for a CPU rank. Known before open().
  virtual std::string bus_id() const { return {}; }
  // Multiprocessors of this rank's GPU, 0 for a CPU rank.
  virtual uint32_t multiprocessors() const { return 0; }
  // Identity and mailbox of this rank. Allocates the mailbox for `layout`.
  virtual Result<RankCard> open(uint32_t rank, const MailboxLayout& layout) = 0;
  // Maps every peer's mailbox. Collective: uses `oob` to keep handles alive until all have opened them. `oob` must
  // outlive the engine, which asks it whom not to wait for.
  virtual Status connect(std::span<const RankCard> cards, OutOfBand& oob) = 0;
  // May user buffers be reached in place (Form::kDirect)? Valid after connect(), equal on all ranks.
  virtual Form form() const = 0;
  // From which block size on that is worth its waits. The same.
  virtual uint64_t direct_bytes() const { return 0; }
  // Carries out all submissions; each belongs to an engine of this kind. CPU ranks: complete on return. GPU ranks:
  // enqueued on the submission's stream on return.
  virtual Status run(std::span<Submission* const> submissions) = 0;
  // Ends every wait of this rank, from any thread.
  virtual void abort() = 0;
  // The same on the user's wish to go on without these operations.
  virtual void revoke() { abort(); }
  // Has the process of that rank ended, as far as can be seen from here? Callable from any thread.
  virtual bool gone(uint32_t) const { return false; }
  // Has all enqueued work ended?
  virtual bool idle() { return true; }
  // Waits for enqueued work to end (finalize, destroy).
  virtual Status drain() = 0;
  // Gives back to the system the memory that only operations need, and makes sure that there is room for it again.
  // Between the two, and while either runs, no rank of the communicator is in an operation.
  virtual Status give_back() { return fail(Code::kInvalidUsage, "ranks of this kind cannot be suspended yet"); }
  virtual Status take_back() { return give_back(); }
  // GPU memory held for the rank, and its GPU's index in NVML; 0 and -1 for a CPU rank.
  virtual uint64_t device_bytes() const { return 0; }
  virtual int nvml_index() const { return -1; }
  // A fault found by a kernel or executor since the start; success otherwise. Callable from any thread.
  virtual Status health() = 0;
};

std::unique_ptr<Engine> make_host_engine(const Config& config);

// Number of usable CUDA devices; 0 without a driver or with TALARIA_DEVICE=host. Never fails, logs nothing.
int visible_devices(const Config& config);
// The caller's current CUDA device.
Result<int> current_device();
// Device memory for users (ncclMemAlloc), on the caller's current device.
Result<void*> allocate_device_memory(size_t bytes);
Status free_device_memory(void* memory);
// kInvalidUsage in builds without CUDA.
Result<std::unique_ptr<Engine>> make_device_engine(const Config& config, int device);

}  // namespace talaria
