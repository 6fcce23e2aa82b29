#include "runtime/child.h"

#include <algorithm>
#include <utility>

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

// A meeting point of its own, also where NCCL_COMM_ID names that of the parent.
Result<UniqueId> create_child_id(const Config& config, Seat& seat) {
  std::unique_ptr<OwnedRoot> root;
  UniqueId id = TRY(create_unique_id(config, &root));
  seat.root = std::move(root);
  id.flags |= UniqueId::kOfRankZero;
  return id;
}

}  // namespace

Result<Seat> seat_by_color(OutOfBand& parent, const SplitRequest& mine, const Config& config) {
  const std::vector<SplitRequest> all = TRY(parent.all_gather_value(mine));
  TRY(check_colors(all));
  const std::vector<uint32_t> members = members_of(mine.color, all);
  const bool wanted = mine.color != SplitRequest::kNoColor;
  const bool leads = wanted && members.front() == parent.rank();
  // Who cannot open a meeting point still takes part, with an empty id: the others learn of it instead of waiting.
  Seat seat;
  Result<UniqueId> own = leads ? create_child_id(config, seat) : Result<UniqueId>(UniqueId{});
  const std::vector<UniqueId> ids = TRY(parent.all_gather_value(own.ok() ? *own : UniqueId{}));
  TRY(own.status());
  if (!wanted) return seat;
  const UniqueId& id = ids[members.front()];
  if (id.magic != UniqueId::kMagic) {
    return fail(Code::kRemote, "ncclCommSplit: rank {} could not open a meeting point for color {}; see its log",
                members.front(), mine.color);
  }
  seat.rank = static_cast<uint32_t>(std::ranges::find(members, parent.rank()) - members.begin());
  seat.nranks = static_cast<uint32_t>(members.size());
  seat.ids = {id};
  seat.origins = members;
  return seat;
}

}  // namespace talaria
