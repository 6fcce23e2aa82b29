// Collective: what a caller asked for, independent of pointers and of how it will be done.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace talaria {

enum class Operation : uint8_t { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kAlltoAll, kSend, kRecv };
inline constexpr int kOperations = 7;
const char* name_of(Operation operation);  // "AllReduce", ...

constexpr bool is_point_to_point(Operation operation) { return operation >= Operation::kSend; }
constexpr bool reduces(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduceScatter;
}

// `count` is the count argument of the API call: elements per rank for AllGather (send), ReduceScatter (receive) and
// AlltoAll, all elements otherwise. `root` is the root, or the peer of a Send or Recv.
struct Collective {
  Operation operation;
  DataType type;
  ReduceOp reduce;
  int32_t root;
  uint64_t count;
};

// How messages travel: which memory and which flags (design §6).
enum class Channel : uint8_t { kCollectivePacket, kCollectiveBulk, kPointBulk };
inline constexpr int kChannels = 3;
constexpr bool is_packet(Channel channel) { return channel == Channel::kCollectivePacket; }

}  // namespace talaria
