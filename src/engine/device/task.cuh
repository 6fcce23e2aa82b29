// Task: what a warp group is told to do next. Its first warp (the control warp) resolves a Step into a Task in shared
// memory; then the whole group carries it out. Only the control warp knows plans, peers and counters.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/device/arith.cuh"
#include "engine/device/batch.h"
#include "engine/device/ptx.cuh"
#include "engine/device/wait.cuh"

namespace talaria::device {

inline constexpr uint32_t kWarp = 32;
inline constexpr uint32_t kStepWindow = 32;   // steps of a stream kept in shared memory

enum OperandFlag : uint32_t {
  kOperandRaw = 1,    // scaled as it enters: Ref kRaw, of PreMulSum what lies in the send buffer
  kOperandInbox = 2,  // a slot: 16-byte aligned, whole packs may be read and written
  kOperandZero = 4,   // packet source whose slot is zeroed after use
};

struct alignas(16) Operand {
  std::byte* address;
  uint32_t tag;   // of a packet slot; 0: plain memory
  uint32_t meta;  // peer << 8 | OperandFlags
};

// A flag word to write once the whole group is done with the step; word == nullptr: none.
struct alignas(16) Signal {
  uint64_t* word;
  uint64_t value;
};

struct Task {
  uint64_t bytes;
  uint64_t input;   // offset of the piece in the send buffer, in bytes
  uint64_t output;  // and in the receive buffer
  uint32_t sources;
  uint32_t sinks;
  uint32_t step;    // index in the plan, for fault records
  bool stop;        // no task: the kernel ends
  bool copies;      // one source, no arithmetic
  bool final;       // Step kFinal
  bool misaligned;  // some user address does not allow whole-pack accesses
  bool zeroes;      // some operand has kOperandZero
};

// Where the control warp stands. In shared memory, so that it costs no registers while data moves.
struct Cursor {
  uint32_t work;         // the next of the entry's works
  uint32_t step;         // next step of the current work's stream
  uint32_t round;
  uint32_t step_window;  // step of the stream that GroupMemory::steps begins with
  uint32_t ref_window;   // ref of the plan that GroupMemory::refs begins with
  bool in_work;
  bool alive;            // no fault so far
};

// Shared memory of one warp group. Written by its control warp, except that all threads read `task`, `operands`,
// `scaling` and `comm` between the two barriers of a step.
struct GroupMemory {
  Operand operands[kMaxOperands];
  Signal signals[kMaxOperands];
  Step steps[kStepWindow];
  Ref refs[kMaxOperands];
  Task task;
  Cursor cursor;
  Scaling scaling;
  uint32_t credit_each_slot[4];  // bit 2·peer + fifo of the first 64 ranks
  uint32_t lane;  // Chunking lane of the block
  BatchEntry entry;
  Work work;
  DeviceComm comm;
};

__device__ __forceinline__ WaitSite site_of(const GroupMemory& memory) {
  return WaitSite{memory.lane, memory.task.step, memory.work.sequence};
}

// A warp group: one step stream of one lane.
struct Group {
  uint32_t index;    // stream
  uint32_t threads;  // multiple of 32
  uint32_t thread;   // own position

  __device__ __forceinline__ bool controls() const { return thread < kWarp; }
  __device__ __forceinline__ void sync() const {
    __syncwarp();
    ptx::barrier(1 + index, threads);
  }
  __device__ __forceinline__ bool any(bool value) const {
    __syncwarp();
    return ptx::barrier_or(1 + index, threads, value);
  }
};

// Threads of control warps meet here between the works of collectives.
inline constexpr uint32_t kMeetBarrier = 1 + kMaxStreams;

}  // namespace talaria::device
