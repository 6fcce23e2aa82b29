#include <algorithm>

#include "transport/peer.h"

namespace talaria {
namespace {

constexpr uint64_t kSlotAlignment = 128;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

uint32_t stride_of(const ChannelSize& size, bool packet) {
  const uint64_t wire_factor = packet && size.line_bytes == 0 ? 2 : 1;  // 4 flag bytes per 4 data bytes
  return static_cast<uint32_t>(round_up(size.slot_bytes * wire_factor, kSlotAlignment));
}

}  // namespace

MailboxLayout make_mailbox_layout(uint32_t nranks, const ChannelSize (&sizes)[kMailboxChannels]) {
  MailboxLayout layout{};
  layout.nranks = nranks;
  uint64_t offset = 0;
  for (uint32_t c = 0; c < kMailboxChannels; ++c) {
    ChannelLayout& channel = layout.channels[c];
    channel.lanes = sizes[c].lanes;
    channel.depth = sizes[c].depth;
    channel.slot_bytes = sizes[c].slot_bytes;
    channel.line_bytes = sizes[c].slot_bytes == 0 ? 0 : sizes[c].line_bytes;
    channel.slot_stride = stride_of(sizes[c], c == 0);
    layout.max_lanes = std::max(layout.max_lanes, channel.lanes);
    const uint64_t fifos = layout.fifo_index(c, nranks, 0, 0);
    channel.flags = offset;
    offset = round_up(offset + 2 * fifos * kFlagStride, kSlotAlignment);
    channel.lines = offset;
    offset = round_up(offset + fifos * channel.depth * channel.line_bytes, kSlotAlignment);
    channel.slots = offset;
    offset = round_up(offset + fifos * channel.depth * channel.slot_stride, kSlotAlignment);
  }
  layout.ready = offset;
  offset += uint64_t{nranks} * layout.max_lanes * kReadyWords * kFlagStride;
  layout.done = offset;
  offset += uint64_t{nranks} * layout.max_lanes * kFlagStride;
  layout.touching = offset;
  layout.revoked = offset + kFlagStride;
  offset += 2 * kFlagStride;
  layout.bytes = round_up(offset, 4096);
  return layout;
}

}  // namespace talaria
