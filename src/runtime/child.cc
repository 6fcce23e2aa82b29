#include "runtime/child.h"

#include <algorithm>

namespace talaria {
namespace {

Status check_colors(const std::vector<SplitRequest>& all) {
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].color >= 0 || all[r].color == SplitRequest::kNoColor) continue;
    return fail(Code::kInvalidArgument, "ncclCommSplit: rank {} gives color {}; a color is 0 or more, or "
                "NCCL_SPLIT_NOCOLOR ({})", r, all[r].color, SplitRequest::kNoColor);
  }
  return Status();
}

// The parent's ranks of one color, in the child's order.
std::vector<uint32_t> members_of(int32_t color, const std::vector<SplitRequest>& all) {
  std::vector<uint32_t> members;
  for (uint32_t r = 0; r < all.size(); ++r) {
    if (all[r].color == color) members.push_back(r);
  }
  std::ranges::stable_sort(members, {}, [&](uint32_t r) { return all[r].key; });
  return members;
}

// NCCL_COMM_ID is the parent's meeting point; children need others.
Result<UniqueId> create_child_id(Config config) {
  config.comm_id.clear();
  return create_unique_id(config);
}

}  // namespace

Result<Seat> seat_by_color(OutOfBand& parent, const SplitRequest& mine, const Config& config) {
  const std::vector<SplitRequest> all = TRY(parent.all_gather_value(mine));
  TRY(check_colors(all));
  const std::vector<uint32_t> members = members_of(mine.color, all);
  const bool wanted = mine.color != SplitRequest::kNoColor;
  const bool leads = wanted && members.front() == parent.rank();
  // Who cannot open a meeting point still takes part, with an empty id: the others learn of it instead of waiting.
  Result<UniqueId> own = leads ? create_child_id(config) : Result<UniqueId>(UniqueId{});
  const std::vector<UniqueId> ids = TRY(parent.all_gather_value(own.ok() ? *own : UniqueId{}));
  TRY(own.status());
  if (!wanted) return Seat{};
  const UniqueId& id = ids[members.front()];
  if (id.magic != UniqueId::kMagic) {
    return fail(Code::kRemote, "ncclCommSplit: rank {} could not open a meeting point for color {}; see its log",
                members.front(), mine.color);
  }
  const auto place = static_cast<uint32_t>(std::ranges::find(members, parent.rank()) - members.begin());
  return Seat{place, static_cast<uint32_t>(members.size()), {id}};
}

}  // namespace talaria
