// The ready word: "you may use my buffer, and here is how" in two 8-byte halves that each carry the use count's tag.
//
// H0 = tag24 | offset40; H1 = tag24 | slot16 | generation20 | kind3 (design §5.3). Both halves must carry the tag, so a
// torn 16-byte store is never mistaken for a whole one. For a peer in the same process slot16 | offset40 is the
// address.
#pragma once

#include <cstdint>

#include "schedule/step.h"

namespace talaria {

enum class ReadyKind : uint8_t { kStaged = 0, kAddress = 1, kImported = 2 };

struct ReadyWord {
  uint64_t half0;
  uint64_t half1;
};

inline constexpr uint64_t kReadyTagMask = (1ull << 24) - 1;
inline constexpr uint64_t kReadyOffsetMask = (1ull << 40) - 1;

TALARIA_HOST_DEVICE inline ReadyWord make_ready(uint64_t use, ReadyKind kind, uint64_t address) {
  const uint64_t tag = (use & kReadyTagMask) << 40;
  return ReadyWord{tag | (address & kReadyOffsetMask),
                   tag | (address >> 40 & 0xffff) << 24 | static_cast<uint64_t>(kind)};
}
TALARIA_HOST_DEVICE inline bool ready_matches(const ReadyWord& word, uint64_t use) {
  return word.half0 >> 40 == (use & kReadyTagMask) && word.half1 >> 40 == (use & kReadyTagMask);
}
TALARIA_HOST_DEVICE inline ReadyKind ready_kind(const ReadyWord& word) {
  return static_cast<ReadyKind>(word.half1 & 7);
}
TALARIA_HOST_DEVICE inline uint64_t ready_address(const ReadyWord& word) {
  return (word.half1 >> 24 & 0xffff) << 40 | (word.half0 & kReadyOffsetMask);
}

// Beside an input's ready word, in the same two halves: the 64 bits of PreMulSum's scalar.
TALARIA_HOST_DEVICE inline ReadyWord make_ready_scalar(uint64_t use, uint64_t scalar) {
  const uint64_t tag = (use & kReadyTagMask) << 40;
  return ReadyWord{tag | (scalar & kReadyOffsetMask), tag | scalar >> 40};
}
TALARIA_HOST_DEVICE inline uint64_t ready_scalar(const ReadyWord& word) {
  return word.half1 << 40 | (word.half0 & kReadyOffsetMask);
}

}  // namespace talaria
