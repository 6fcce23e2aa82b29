// Introduction: how one rank greets its root and learns where its ring successor listens.
//
// The first rank of a share also visits the root before its own, for the sake of the last rank there (root_share.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "base/unique.h"
#include "bootstrap/joining.h"
#include "bootstrap/unique_id.h"

namespace talaria {

class Introduction {
 public:
  explicit Introduction(const Joining& join) : join_(join) {}

  // Greets the roots, again and again while they may be late; from then on this rank listens for its predecessor.
  Status greet();
  // Waits until all ranks of the roots' shares have come; where the successor listens.
  Result<SocketAddress> await_replies();

  UniqueFd take_listener() { return std::move(listener_); }
  // The rank that did not come in time, after await_replies() failed for that reason; Reply::kNobody otherwise.
  uint32_t absent() const { return absent_; }

 private:
  Status greet_root(uint32_t root, UniqueFd& socket);
  Status fail_to_greet(uint32_t root, int error, int attempts) const;
  Result<int> try_to_greet(uint32_t root, const Patience& patience, UniqueFd& socket);
  Status listen_for_predecessor(int root_socket);
  Result<SocketAddress> await_reply(uint32_t root, int socket);
  std::string name_root(uint32_t root) const;

  const Joining& join_;
  UniqueFd own_, visited_;
  UniqueFd listener_;
  uint32_t scope_ = 0;  // interface index, if link-local addresses are in use
  uint32_t absent_ = UINT32_MAX;
  std::map<uint32_t, uint32_t> hosts_;  // by root: the rank in its process, where that is known
};

// Lets the root of a single rank end. It does not matter if there is none: the rank needs nothing from it.
void dismiss_root(const Joining& join);

}  // namespace talaria
