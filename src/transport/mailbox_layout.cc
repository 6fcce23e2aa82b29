#include <algorithm>

#include "transport/peer.h"

namespace talaria {
namespace {

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

MailboxLayout make_mailbox_layout(uint32_t nranks, const ChannelSize (&sizes)[kMailboxChannels]) {
  constexpr uint64_t kSlotAlignment = 128;
  MailboxLayout layout{};
  layout.nranks = nranks;
  uint64_t offset = 0;
  for (uint32_t c = 0; c < kMailboxChannels; ++c) {
    ChannelLayout& channel = layout.channels[c];
    const uint32_t wire_factor = c == 0 ? 2 : 1;  // a packet carries 4 flag bytes per 4 data bytes
    channel.lanes = sizes[c].lanes;
    channel.depth = sizes[c].depth;
    channel.slot_bytes = sizes[c].slot_bytes;
    channel.slot_stride = static_cast<uint32_t>(round_up(uint64_t{sizes[c].slot_bytes} * wire_factor, kSlotAlignment));
    layout.max_lanes = std::max(layout.max_lanes, channel.lanes);
    const uint64_t fifos = layout.fifo_index(c, nranks, 0, 0);
    channel.flags = offset;
    offset = round_up(offset + 2 * fifos * kFlagStride, kSlotAlignment);
    channel.slots = offset;
    offset = round_up(offset + fifos * channel.depth * channel.slot_stride, kSlotAlignment);
  }
  layout.ready = offset;
  offset += uint64_t{nranks} * layout.max_lanes * 2 * kFlagStride;
  layout.done = offset;
  offset += uint64_t{nranks} * layout.max_lanes * kFlagStride;
  layout.touching = offset;
  layout.revoked = offset + kFlagStride;
  offset += 2 * kFlagStride;
  layout.bytes = round_up(offset, 4096);
  return layout;
}

}  // namespace talaria
