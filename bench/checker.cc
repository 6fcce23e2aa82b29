#include "checker.h"

#include <algorithm>

namespace talaria::bench {
namespace {

// Data is made, moved and compared in parts of this size.
constexpr size_t kPartBytes = size_t{2} << 20;

// What outputs and guards hold before the operation. Odd, so that it is no power of two of any type.
constexpr unsigned char kPoison = 0xa7;

// Calls part(first, count) for parts of `elements` elements.
template <typename Part>
uint64_t sum_of_parts(uint64_t elements, size_t element_bytes, Part part) {
  const uint64_t step = kPartBytes / element_bytes;
  uint64_t total = 0;
  for (uint64_t first = 0; first < elements; first += step) total += part(first, std::min(step, elements - first));
  return total;
}

}  // namespace

DataSet Checker::data_of(const Case& row) const { return DataSet(*row.type, row.reduction, nranks_, seed_); }

void Checker::prepare(std::span<const Rank> ranks, const Case& row, bool in_place) {
  ++seed_;
  const DataSet data = data_of(row);
  for (const Rank& rank : ranks) {
    const Buffers buffers = buffers_of(rank, operation_, place_of(rank, row, nranks_), row, in_place);
    rank.device->fill(buffers.begin - kGuardBytes, kPoison, buffers.bytes + 2 * kGuardBytes);
    write_input(rank, row, data, buffers.input);
  }
}

void Checker::write_input(const Rank& rank, const Case& row, const DataSet& data, std::byte* to) {
  staging_.resize(kPartBytes);
  const size_t bytes = row.type->bytes;
  sum_of_parts(row.counts.send, bytes, [&](uint64_t first, size_t count) {
    if (std::byte* const view = rank.device->host_view(to); view != nullptr) {
      data.input(rank.number, first, count, view + first * bytes);
    } else {
      data.input(rank.number, first, count, staging_.data());
      rank.device->upload(to + first * bytes, staging_.data(), count * bytes);
    }
    return 0;
  });
}

const std::byte* Checker::on_host(const Rank& rank, std::byte* bytes, size_t count) {
  if (std::byte* const view = rank.device->host_view(bytes); view != nullptr) return view;
  staging_.resize(kPartBytes);
  rank.device->download(staging_.data(), bytes, count);
  return staging_.data();
}

uint64_t Checker::count_wrong(std::span<const Rank> ranks, const Case& row, bool in_place) {
  const DataSet data = data_of(row);
  uint64_t wrong = 0;
  if (operation_.equal_outputs) {
    wrong = count_wrong_outputs(ranks, row, data, in_place);
  } else {
    for (const Rank& rank : ranks) wrong += count_wrong_outputs({&rank, 1}, row, data, in_place);
  }
  for (const Rank& rank : ranks) {
    wrong += count_wrong_guards(rank, buffers_of(rank, operation_, place_of(rank, row, nranks_), row, in_place));
  }
  return wrong;
}

// The ranks expect the same output, which is computed once.
uint64_t Checker::count_wrong_outputs(std::span<const Rank> ranks, const Case& row, const DataSet& data,
                                      bool in_place) {
  expected_.resize(kPartBytes);
  const size_t bytes = row.type->bytes;
  uint64_t wrong = 0;
  uint64_t done = 0;
  for (const Segment& segment : operation_.expected(place_of(ranks[0], row, nranks_))) {
    wrong += sum_of_parts(segment.count, bytes, [&](uint64_t first, size_t count) {
      if (segment.source == Segment::kAllRanks) {
        data.reduced(segment.first + first, count, expected_.data());
      } else {
        data.input(segment.source, segment.first + first, count, expected_.data());
      }
      uint64_t wrong_here = 0;
      for (const Rank& rank : ranks) {
        const Buffers buffers = buffers_of(rank, operation_, place_of(rank, row, nranks_), row, in_place);
        const std::byte* const got = on_host(rank, buffers.output + (done + first) * bytes, count * bytes);
        wrong_here += data.count_wrong(got, expected_.data(), count);
      }
      return wrong_here;
    });
    done += segment.count;
  }
  return wrong;
}

uint64_t Checker::count_wrong_guards(const Rank& rank, const Buffers& buffers) {
  uint64_t wrong = 0;
  for (std::byte* const guard : {buffers.begin - kGuardBytes, buffers.begin + buffers.bytes}) {
    const std::byte* const bytes = on_host(rank, guard, kGuardBytes);
    wrong += std::count_if(bytes, bytes + kGuardBytes, [](std::byte byte) { return byte != std::byte{kPoison}; });
  }
  return wrong;
}

}  // namespace talaria::bench
