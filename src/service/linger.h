// linger(): the graceful end of a connection whose last bytes the peer may not have read yet.
#pragma once

#include "base/unique.h"

namespace talaria {

// Says that nothing more will be sent, lets the peer's system take what was sent, then closes `socket`. Returns at
// once: if the peer is slow, a thread of this process sees to it, for a minute at most. Closing at once could lose
// bytes: whatever still comes in would make the system reset the connection, and forget what it had not yet sent.
void linger(UniqueFd socket);

}  // namespace talaria
