#include "service/shared_gpu.h"

#include <algorithm>
#include <map>
#include <utility>

namespace talaria {

std::shared_ptr<SharedGpu> SharedGpu::of(uint64_t communicator, int device) {
  static std::mutex& mutex = *new std::mutex();
  static auto& known = *new std::map<std::pair<uint64_t, int>, std::weak_ptr<SharedGpu>>();
  std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& row) { return row.second.expired(); });
  std::weak_ptr<SharedGpu>& place = known[{communicator, device}];
  std::shared_ptr<SharedGpu> shared = place.lock();
  if (shared == nullptr) place = shared = std::make_shared<SharedGpu>();
  return shared;
}

SharedGpu::Member& SharedGpu::member(uint32_t rank) {
  auto found = std::ranges::find(members_, rank, &Member::rank);
  if (found == members_.end()) found = members_.insert(found, Member{rank, 0, 0});
  return *found;
}

Status SharedGpu::enqueue(std::span<const uint32_t> ranks, uint64_t stream, uint64_t collectives) {
  if (collectives == 0) return Status();
  std::lock_guard lock(mutex_);
  for (const uint32_t rank : ranks) {
    const uint64_t before = member(rank).collectives;
    for (const Member& other : members_) {
      const bool together = std::ranges::find(ranks, other.rank) != ranks.end();
      if (together || other.stream != stream || other.collectives <= before) continue;
      return fail(Code::kInvalidUsage,
                  "rank {} and rank {} share one GPU and enqueue their collective on one stream, one after the other: "
                  "the first would wait for the second for ever. Use one group for both, or a stream each",
                  other.rank, rank);
    }
  }
  for (const uint32_t rank : ranks) {
    Member& one = member(rank);
    one.collectives += collectives;
    one.stream = stream;
  }
  return Status();
}

}  // namespace talaria
