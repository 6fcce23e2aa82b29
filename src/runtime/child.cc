#include "runtime/child.h"

#include <algorithm>
#include <cstring>
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

// What a rank tells the others of a growth.
struct Growth {
  int32_t nranks;
  UniqueId id;  // without its magic: unknown
};

Status check_growth(const std::vector<Growth>& all) {
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].nranks <= static_cast<int64_t>(all.size())) {
      return fail(Code::kInvalidArgument, "ncclCommGrow: rank {} gives nRanks {}; expected more than the {} ranks of "
                  "the communicator that grows", r, all[r].nranks, all.size());
    }
    if (all[r].nranks != all[0].nranks) {
      return fail(Code::kInvalidArgument, "ncclCommGrow: rank 0 gives nRanks {}, rank {} gives {}", all[0].nranks, r,
                  all[r].nranks);
    }
  }
  return Status();
}

bool known(const Growth& growth) { return growth.id.magic == UniqueId::kMagic; }

// The one id that ranks of the parent know.
Result<UniqueId> id_of_growth(const std::vector<Growth>& all) {
  const auto first = std::ranges::find_if(all, known);
  if (first == all.end()) {
    return fail(Code::kInvalidUsage, "ncclCommGrow: no rank of the communicator has called ncclCommGetUniqueId since "
                "it last grew");
  }
  const auto other = std::find_if(first + 1, all.end(), [&](const Growth& growth) {
    return known(growth) && memcmp(&growth.id, &first->id, sizeof(UniqueId)) != 0;
  });
  if (other == all.end()) return first->id;
  return fail(Code::kInvalidUsage, "ncclCommGrow: ranks {} and {} have different unique ids: only one rank calls "
              "ncclCommGetUniqueId", first - all.begin(), other - all.begin());
}

}  // namespace

// NCCL_COMM_ID is the parent's meeting point; children need others.
Result<UniqueId> create_growth_id(Config config) {
  config.comm_id.clear();
  return create_unique_id(config);
}

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

Result<Seat> seat_by_growth(OutOfBand& parent, const GrowRequest& mine) {
  const auto all = TRY(parent.all_gather_value(Growth{mine.nranks, mine.id.value_or(UniqueId{})}));
  TRY(check_growth(all));
  return Seat{parent.rank(), static_cast<uint32_t>(mine.nranks), {TRY(id_of_growth(all))}};
}

}  // namespace talaria
