// Interpreter: the kernel body. A block is one lane of one rank; each of its warp groups walks the rank's works and
// runs its stream of each: per step, the control warp prepares a task, the group carries it out, the control warp
// signals.
//
// A fault ends the steps of a stream, not its walk: its control warp still meets the others and then stops its group.
#pragma once

#include <cstdint>

#include "engine/device/batch.h"
#include "engine/device/bulk.cuh"
#include "engine/device/control.cuh"
#include "engine/device/fused/one_shot.cuh"
#include "engine/device/packet.cuh"
#include "engine/device/task.cuh"
#include "engine/device/work_ends.cuh"

namespace talaria::device {

// Two loads, not one through a common pointer: kernel parameters are read through the constant cache.
__device__ __forceinline__ Fetched<Work> fetch_work(const Batch& batch, uint32_t index) {
  Fetched<Work> work;
  if (batch.spilled_works != nullptr) work.load(batch.spilled_works[index]);
  else work.load(batch.works[index]);
  return work;
}

// Control warps of all streams of the block.
__device__ __forceinline__ void meet(const Batch& batch) {
  __syncwarp();
  if (batch.streams > 1) ptx::barrier(kMeetBarrier, batch.streams * kWarp);
}

// Prepares the next step of the current work. False: there is none, or a fault.
template <class Protocol, class Reduce>
__device__ __forceinline__ bool next_step(GroupMemory& memory, const Group& group) {
  Cursor& cursor = memory.cursor;
  const Work& work = memory.work;
  if (!cursor.alive || group.index >= work.plan.nstreams) return false;
  const StreamView& stream = work.plan.streams[group.index];
  const uint32_t index = cursor.step, round = cursor.round, steps = steps_of(stream);
  if (index >= steps) return false;
  const uint32_t body_end = stream.prologue + stream.body;
  const bool in_body = index >= stream.prologue && index < body_end;
  const Step step = fetch_step(memory, stream, steps);
  __syncwarp();
  if (group.thread == 0) {
    const bool again = index + 1 == body_end && in_body && round + 1 < work.chunking.rounds;
    cursor.step = again ? stream.prologue : index + 1;
    cursor.round = again ? round + 1 : round;
    memory.task.step = stream.first + index;
  }
  __syncwarp();
  const bool ok = prepare<Protocol, Reduce>(memory, group, step, in_body ? round : 0);
  if (!ok && group.thread == 0) cursor.alive = false;
  __syncwarp();
  return ok;
}

// Begins the entry's next work that this lane has a part in. False: there is none.
template <class Reduce>
__device__ __forceinline__ bool next_work(const Batch& batch, GroupMemory& memory, const Group& group) {
  uint32_t index = memory.cursor.work;
  for (; index < memory.entry.works; ++index) {
    __syncwarp();
    // The first has come with the block.
    if (index != 0) fetch_work(batch, memory.entry.first_work + index).store(memory.work);
    __syncwarp();
    if (memory.lane < memory.work.chunking.lanes && memory.work.chunking.rounds != 0) break;
  }
  const bool found = index < memory.entry.works;
  const bool credited = found && begin_work(memory, group, Reduce::kScales);
  if (group.thread == 0) memory.cursor.work = index + 1;
  // A later credit of the same FIFO, by the stream that consumes it, must not be overtaken by the one just stored.
  if (credited && memory.work.join) meet(batch);
  __syncwarp();
  return found;
}

__device__ __forceinline__ void end_work(const Batch& batch, GroupMemory& memory, const Group& group) {
  const bool joins = memory.work.join != 0;
  if (joins) meet(batch);
  if (owns_ends(memory.work, group)) {
    if (joins && memory.cursor.alive) acknowledge(memory, group);
    flip_result(memory, group);
  }
  if (joins) meet(batch);  // the acknowledgements are seen by all streams
}

// Control warp: makes the group's next task, or tells it to stop.
template <class Protocol, class Reduce>
__device__ __forceinline__ void next_task(const Batch& batch, GroupMemory& memory, const Group& group) {
  bool stop = false;
  bool in_work = memory.cursor.in_work;
  while (!stop) {
    if (in_work) {
      if (next_step<Protocol, Reduce>(memory, group)) break;
      end_work(batch, memory, group);
    }
    in_work = next_work<Reduce>(batch, memory, group);
    stop = !in_work;
  }
  __syncwarp();
  if (group.thread == 0) memory.task.stop = stop, memory.cursor.in_work = in_work;
}

// The entry this block belongs to.
__device__ __forceinline__ const BatchEntry& entry_of_block(const Batch& batch) {
  uint32_t e = 0;
  while (e + 1 < batch.entries && blockIdx.x >= batch.entry[e].first_block + batch.entry[e].lanes) ++e;
  return batch.entry[e];
}

// Runs the block's work on a fused path, if it has one. False: to be interpreted.
template <class Protocol, class Reduce>
__device__ __forceinline__ bool run_fused(const Batch& batch) {
  if constexpr (Protocol::kPackets && !Reduce::kCopies) {
    const BatchEntry& entry = entry_of_block(batch);
    if (batch.streams != 1 || entry.works != 1 || batch.spilled_works != nullptr) return false;
    const Work& work = batch.works[entry.first_work];
    if (work.fused != static_cast<uint8_t>(FusedPath::kOneShot)) return false;
    one_shot<Reduce>(*entry.comm, work, blockIdx.x - entry.first_block);
    return true;
  }
  return false;
}

// Control warp: whose block this is.
__device__ __forceinline__ void begin_block(const Batch& batch, GroupMemory& memory, const Group& group) {
  const BatchEntry& entry = entry_of_block(batch);
  Fetched<DeviceComm> comm;
  comm.load(*entry.comm);
  const Fetched<Work> work = fetch_work(batch, entry.first_work);
  comm.store(memory.comm);
  work.store(memory.work);
  if (group.thread == 0) {
    memory.entry = entry;
    memory.lane = blockIdx.x - entry.first_block;
    memory.cursor.work = 0;
    memory.cursor.in_work = false;
    memory.cursor.alive = true;
  }
  __syncwarp();
}

// blockDim.x / streams without a division, which would stand at the head of every kernel.
__device__ __forceinline__ uint32_t threads_of_group(uint32_t streams) {
  static_assert(kMaxStreams == 3);
  return streams == 1 ? blockDim.x : streams == 2 ? blockDim.x / 2 : blockDim.x / 3;
}

// Body of every kernel. Launched as kernels.h says.
template <class Protocol, class Reduce>
__device__ __forceinline__ void run(const Batch& batch) {
  __shared__ GroupMemory memories[kMaxStreams];
  if (run_fused<Protocol, Reduce>(batch)) return;
  Group group;
  group.threads = threads_of_group(batch.streams);
  group.index = (threadIdx.x >= group.threads) + (threadIdx.x >= 2 * group.threads);
  group.thread = threadIdx.x - group.index * group.threads;
  GroupMemory& memory = memories[group.index];
  if (group.controls()) begin_block(batch, memory, group);
  for (;;) {
    if (group.controls()) next_task<Protocol, Reduce>(batch, memory, group);
    group.sync();
    if (memory.task.stop) return;
    const bool failed = group.any(Protocol::template run<Reduce>(memory, group));
    if (!group.controls()) continue;
    if (!failed) signal_peers<Protocol>(memory, group);
    else if (group.thread == 0) memory.cursor.alive = false;
    __syncwarp();
  }
}

}  // namespace talaria::device
