// Put: what an executor wants done in the mailbox of a proxied peer.
//
// "Copy these bytes to that place, then raise that word to that value." A mapped peer is told by two stores; for a
// proxied one the executor writes the payload into a local mirror of the peer's mailbox and lists a Put, and a
// transport carries it out at the peer, in the order of the list. So a transport knows neither FIFOs nor credits.
#pragma once

#include <cstdint>
#include <vector>

namespace talaria {

struct Put {
  uint64_t payload;  // offset in the mailbox, the same in the mirror. The bytes stay as they are until the peer answers
  uint64_t bytes;    // of the payload; 0: only the word
  uint64_t word;     // offset of the word
  uint64_t value;    // what the word is raised to, after the payload and after every earlier Put
};

using PutList = std::vector<Put>;

}  // namespace talaria
