// Bulk: messages are plain bytes in a slot; one flag word per FIFO (tail) counts the messages published.
//
// Consumer: ld.acquire.sys of the tail, group barrier, loads. Producer: stores, group barrier, st.release.sys of the
// tail (design §6 line 8). The tail and the credit word of a message are those of MailboxLayout.
#pragma once

#include "engine/device/move.cuh"
#include "engine/device/task.cuh"
#include "engine/device/wait.cuh"

namespace talaria::device {

struct Bulk {
  static constexpr bool kPackets = false;
  static constexpr uint32_t kAlignment = kPackBytes;  // of user addresses, for whole accesses

  // Carries out the task with the whole group. True: failed.
  template <class Reduce>
  __device__ static __forceinline__ bool run(GroupMemory& memory, const Group& group) {
    move<Reduce>(memory, group);
    return false;
  }

  // Control warp, after the group's barrier: makes the group's accesses known to the peer.
  __device__ static __forceinline__ void signal(const Signal& signal) { ptx::store_release(signal.word, signal.value); }
};

}  // namespace talaria::device
