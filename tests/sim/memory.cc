#include "sim/memory.h"

#include <algorithm>
#include <cstring>

namespace talaria::sim {
namespace {

constexpr uint64_t kGuard = 16;
constexpr std::byte kGuardByte{0xa5};
constexpr std::byte kUnwritten{0xee};

bool within(const ByteRange& inner, const ByteRange& outer) {
  return inner.begin >= outer.begin && inner.end <= outer.end && inner.begin <= inner.end;
}

}  // namespace

void Arena::lay_out(const Op& op, uint32_t rank) {
  const Extent& extent = op.extents[rank];
  const uint64_t size = bytes_of(op.type);
  const uint64_t input = extent.input_elements * size, output = extent.output_elements * size;
  if (op.in_place[rank]) {
    input_ = {kGuard + extent.input_first * size, kGuard + extent.input_first * size + input};
    output_ = {kGuard + extent.output_first * size, kGuard + extent.output_first * size + output};
    bytes_.assign(2 * kGuard + std::max(input, output), kGuardByte);
  } else {
    input_ = {kGuard, kGuard + input};
    output_ = {2 * kGuard + input, 2 * kGuard + input + output};
    bytes_.assign(3 * kGuard + input + output, kGuardByte);
  }
  std::fill(at(output_.begin), at(output_.end), kUnwritten);
  std::copy(op.inputs[rank].begin(), op.inputs[rank].end(), at(input_.begin));
}

void Arena::open(const Observer& user) {
  log_.clear();
  log_.record(0, bytes_.size(), true, user);
  open_ = true;
}

bool Arena::guards_intact() const {
  for (uint64_t i = 0; i < bytes_.size(); ++i) {
    const ByteRange here{i, i + 1};
    if (!here.overlaps(input_) && !here.overlaps(output_) && bytes_[i] != kGuardByte) return false;
  }
  return true;
}

std::optional<Verdict> Arena::close(const Op& op, uint32_t rank, const Observer& user) {
  open_ = false;
  if (!pending_.empty() || !log_.all_before(user.clock)) return Verdict::kRace;
  if (!guards_intact()) return Verdict::kOutOfBounds;
  if (!std::equal(op.expected[rank].begin(), op.expected[rank].end(), at(output_.begin), at(output_.end))) {
    return Verdict::kWrongAnswer;
  }
  // An input that the output does not cover belongs to the caller: nobody may have changed it.
  for (uint64_t i = input_.begin; i < input_.end; ++i) {
    if (ByteRange{i, i + 1}.overlaps(output_)) continue;
    if (bytes_[i] != op.inputs[rank][i - input_.begin]) return Verdict::kWrongAnswer;
  }
  return std::nullopt;
}

std::optional<Verdict> Arena::access(const ByteRange& range, const ByteRange& buffer, bool write,
                                     const Observer& who) {
  if (!within(range, buffer)) return Verdict::kOutOfBounds;
  if (!open_) return Verdict::kRace;
  for (const ByteRange& pending : pending_) {
    if (pending.overlaps(range)) return Verdict::kRace;
  }
  if (!log_.record(range.begin, range.end, write, who)) return Verdict::kRace;
  return std::nullopt;
}

void Arena::store_arrived(const ByteRange& range, const std::byte* data) {
  std::copy(data, data + (range.end - range.begin), at(range.begin));
  const auto same = [&](const ByteRange& other) { return other.begin == range.begin && other.end == range.end; };
  pending_.erase(std::find_if(pending_.begin(), pending_.end(), same));
}

Fifo::Fifo(uint32_t depth, uint64_t slot_bytes, bool is_packet) : packet(is_packet), slots(depth) {
  for (Slot& slot : slots) {
    if (packet) slot.halves.resize(std::max<uint64_t>(slot_bytes / 4, 2));
    else slot.bytes.resize(slot_bytes);
  }
}

bool StoreBuffer::may_arrive(size_t index) const {
  const Store& store = stores_[index];
  for (size_t i = 0; i < index; ++i) {
    if (store.release && stores_[i].thread == store.thread) return false;
    if (store.word != nullptr && stores_[i].word == store.word) return false;
  }
  return true;
}

uint32_t StoreBuffer::deliver_one(bool flags_first, Random& random) {
  size_t index = below(random, stores_.size());
  for (size_t i = 0; flags_first && i < stores_.size(); ++i) {
    if (stores_[i].word == nullptr || !may_arrive(i)) continue;
    index = i;
    break;
  }
  if (!may_arrive(index)) index = 0;  // the oldest always may
  Store store = std::move(stores_[index]);
  stores_.erase(stores_.begin() + static_cast<ptrdiff_t>(index));
  store.arrive();
  return store.rank;
}

std::vector<ByteRange> split_at_random(uint64_t length, uint64_t unit, uint32_t parts, Random& random) {
  std::vector<uint64_t> borders{0, length};
  const uint64_t units = length / unit;
  for (uint32_t i = 1; i < parts && units > 1; ++i) borders.push_back(below(random, units) * unit);
  std::sort(borders.begin(), borders.end());
  std::vector<ByteRange> ranges;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    if (borders[i] != borders[i + 1]) ranges.push_back({borders[i], borders[i + 1]});
  }
  return ranges;
}

}  // namespace talaria::sim
