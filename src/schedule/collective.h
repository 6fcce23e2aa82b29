// Collective: what a caller asked for, independent of pointers and of how it will be done.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace talaria {

enum class Operation : uint8_t {
  kAllReduce, kAllGather, kReduceScatter, kBroadcast, kAlltoAll, kReduce, kGather, kScatter,
  kSend, kRecv,  // point-to-point: after all collectives
};
inline constexpr int kOperations = 10;
inline constexpr int kCollectives = 8;
const char* name_of(Operation operation);  // "AllReduce", ...

constexpr bool is_point_to_point(Operation operation) { return operation >= Operation::kSend; }
constexpr bool reduces(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduceScatter ||
         operation == Operation::kReduce;
}
// One rank is named by the caller and does something else than the others.
constexpr bool is_rooted(Operation operation) {
  return operation == Operation::kBroadcast || operation == Operation::kReduce || operation == Operation::kGather ||
         operation == Operation::kScatter;
}
// The count argument means one rank's share: the buffers, or one of them, hold that for every rank.
constexpr bool counts_per_rank(Operation operation) {
  return operation == Operation::kAllGather || operation == Operation::kReduceScatter ||
         operation == Operation::kAlltoAll || operation == Operation::kGather || operation == Operation::kScatter;
}

// `count` is the count argument of the API call: elements per rank where counts_per_rank(), else all elements. `root`
// is the root, or the peer of a Send or Recv.
struct Collective {
  Operation operation;
  DataType type;
  ReduceOp reduce;
  int32_t root;
  uint64_t count;
  bool operator==(const Collective&) const = default;
};

// Does a rank use its send, its receive buffer at all? The other may be null.
constexpr bool reads_input(Operation operation, bool is_root) {
  if (operation == Operation::kBroadcast || operation == Operation::kScatter) return is_root;
  return operation != Operation::kRecv;
}
constexpr bool writes_output(Operation operation, bool is_root) {
  if (operation == Operation::kReduce || operation == Operation::kGather) return is_root;
  return operation != Operation::kSend;
}

// How messages travel: which memory and which flags (design §6).
enum class Channel : uint8_t { kCollectivePacket, kCollectiveBulk, kPointBulk };
inline constexpr int kChannels = 3;
const char* name_of(Channel channel);  // "packet" or "bulk"
constexpr bool is_packet(Channel channel) { return channel == Channel::kCollectivePacket; }

}  // namespace talaria
