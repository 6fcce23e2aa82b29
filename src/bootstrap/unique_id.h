// UniqueId: where a communicator's ranks meet and the secret that proves they were invited.
//
// The 128 bytes of ncclUniqueId hold exactly this struct. An id is created by create_unique_id(), which starts a root
// listener thread in this process, or is derived from NCCL_COMM_ID (then rank 0 listens at that address).
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <memory>

#include "base/config.h"
#include "base/status.h"

namespace talaria {

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

struct UniqueId {
  static constexpr uint64_t kMagic = 0x54616c6172696131ull;  // "Talaria1"
  static constexpr uint32_t kVersion = 1;
  static constexpr uint32_t kFromCommId = 1;  // flag: derived from NCCL_COMM_ID, the root may start later than ranks
  static constexpr uint32_t kOfRankZero = 2;  // flag: rank 0 runs the root
  static constexpr uint32_t kStanding = 4;    // flag: rank 0 runs the root where it has listened since an earlier init
  uint64_t magic;
  uint32_t version;
  uint32_t flags;
  uint8_t secret[32];
  SocketAddress address;     // root's listening address
  int32_t process;           // that made it; for messages only
  uint32_t keeper;           // of a standing root: its rank in the parent communicator
  uint8_t reserved[128 - 56 - sizeof(SocketAddress)];

  bool is_standing() const { return (flags & kStanding) != 0; }
};
static_assert(sizeof(UniqueId) == 128);

Result<UniqueId> create_unique_id(const Config& config);
// An id whose root ends with `*root` at the latest; never one from NCCL_COMM_ID.
class OwnedRoot;
Result<UniqueId> create_unique_id(const Config& config, std::unique_ptr<OwnedRoot>* root);

}  // namespace talaria
