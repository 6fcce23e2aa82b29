// How the ranks of a communicator are spread over its roots, one root for each unique id.
//
// Root i serves a run of consecutive ranks, its share; shares differ by one rank at most. One more rank visits it: the
// one after the last of the share, whose address that last one must learn. So no root needs to know another, and none
// has more than ⌈ranks / roots⌉ + 1 connections.
#pragma once

#include <cstdint>

namespace talaria {

struct RootShare {
  uint32_t first, end;  // ranks [first, end)
  uint32_t visitor;     // == first if there is only one root: nobody comes from outside
  uint32_t size() const { return end - first; }
  uint32_t awaited() const { return size() + (visitor == first ? 0 : 1); }
  bool holds(uint32_t rank) const { return rank >= first && rank < end; }
};

// 0 < nroots <= nranks.
constexpr uint32_t root_of(uint32_t rank, uint32_t nranks, uint32_t nroots) {
  return static_cast<uint32_t>(uint64_t{rank} * nroots / nranks);
}

constexpr RootShare share_of(uint32_t root, uint32_t nranks, uint32_t nroots) {
  const auto first_of = [&](uint64_t r) { return static_cast<uint32_t>((r * nranks + nroots - 1) / nroots); };
  const uint32_t end = first_of(uint64_t{root} + 1);
  return {first_of(root), end, end % nranks};
}

}  // namespace talaria
