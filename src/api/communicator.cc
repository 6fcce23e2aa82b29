// Entry points that create, end and question communicators.
#include <bit>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "api/boundary.h"
#include "api/init_options.h"
#include "base/config_report.h"

namespace talaria::api {
namespace {

// A rank's place, as the caller asks for it.
struct RankPlace {
  int nranks;
  int rank;
  std::span<const ncclUniqueId> ids;
};

Result<UniqueId> meeting_of(const ncclUniqueId& id, const char* function) {
  const auto meeting = std::bit_cast<UniqueId>(id);
  if (meeting.magic == UniqueId::kMagic) return meeting;
  return fail(Code::kInvalidArgument, "{} : commId was not made by this library's ncclGetUniqueId", function);
}

Status init_one(const char* function, ncclComm_t* comm, const RankPlace& place, const ncclConfig_t* config) {
  TRY(check_pointer(comm, function, "comm"));
  *comm = nullptr;
  const InitOptions options = TRY(read_init_options(config));
  if (place.nranks < 1 || place.rank < 0 || place.rank >= place.nranks) {
    return fail(Code::kInvalidArgument, "Invalid rank requested : {}/{}", place.rank, place.nranks);
  }
  std::vector<UniqueId> meetings;
  for (const ncclUniqueId& id : place.ids) meetings.push_back(TRY(meeting_of(id, function)));
  return init_rank(communicators_of(comm), place.nranks, std::move(meetings), place.rank, options);
}

// `query` is one of the runtime's int-valued questions.
ncclResult_t answer(const char* function, ncclComm_t comm, int* out, const char* argument,
                    int (*query)(const Communicator&)) {
  return guarded(function, [&]() -> Status {
    const Communicator* communicator = TRY(communicator_of(comm, function));
    TRY(check_pointer(out, function, argument));
    *out = query(*communicator);
    return Status();
  });
}

// Null: as the parent was made.
Result<std::optional<InitOptions>> own_options(const ncclConfig_t* config) {
  if (config == nullptr) return std::optional<InitOptions>();
  return std::optional<InitOptions>(TRY(read_init_options(config)));
}

}  // namespace
}  // namespace talaria::api

using namespace talaria;
using namespace talaria::api;

extern "C" {

ncclResult_t pncclGetUniqueId(ncclUniqueId* uniqueId) {
  return guarded("GetUniqueId", [&]() -> Status {
    TRY(check_pointer(uniqueId, "GetUniqueId", "uniqueId"));
    *uniqueId = std::bit_cast<ncclUniqueId>(TRY(create_unique_id(read_reported_config())));
    return Status();
  });
}

ncclResult_t pncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return guarded_in_group("CommInitRank",
                          [&] { return init_one("CommInitRank", comm, {nranks, rank, {&commId, 1}}, nullptr); });
}

ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                     ncclConfig_t* config) {
  return guarded_in_group("CommInitRankConfig",
                          [&] { return init_one("CommInitRankConfig", comm, {nranks, rank, {&commId, 1}}, config); });
}

ncclResult_t pncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
                                       ncclConfig_t* config) {
  return guarded_in_group("CommInitRankScalable", [&]() -> Status {
    TRY(check_pointer(newcomm, "CommInitRankScalable", "newcomm"));
    *newcomm = nullptr;
    TRY(check_pointer(commIds, "CommInitRankScalable", "commIds"));
    if (nId < 1 || nId > nranks) {
      return fail(Code::kInvalidArgument, "CommInitRankScalable : {} ids for {} ranks; expected 1 to {}", nId, nranks,
                  nranks);
    }
    const std::span<const ncclUniqueId> ids(commIds, static_cast<size_t>(nId));
    return init_one("CommInitRankScalable", newcomm, {nranks, myrank, ids}, config);
  });
}

ncclResult_t pncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return guarded_in_group("CommInitAll", [&]() -> Status {
    TRY(check_pointer(comm, "CommInitAll", "comms"));
    if (ndev < 1) return fail(Code::kInvalidArgument, "Invalid device count requested : {}", ndev);
    return init_all(communicators_of(comm), ndev, devlist);
  });
}

ncclResult_t pncclCommFinalize(ncclComm_t comm) {
  return guarded("CommFinalize", [&]() -> Status {
    if (comm == nullptr) return Status();
    return finalize(*TRY(communicator_of(comm, "CommFinalize")));
  });
}

ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  return guarded("CommDestroy", [&]() -> Status {
    if (comm == nullptr) return Status();
    return destroy(TRY(known_handle(comm, "CommDestroy")));
  });
}

ncclResult_t pncclCommAbort(ncclComm_t comm) {
  return guarded("CommAbort", [&]() -> Status {
    if (comm == nullptr) return Status();
    return talaria::abort(TRY(known_handle(comm, "CommAbort")));
  });
}

ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  return guarded("CommRevoke", [&]() -> Status {
    if (comm == nullptr) return Status();
    Communicator* communicator = TRY(communicator_of(comm, "CommRevoke"));
    if (revokeFlags != NCCL_REVOKE_DEFAULT) {
      return fail(Code::kInvalidArgument, "CommRevoke : revokeFlags is {}; expected NCCL_REVOKE_DEFAULT ({})",
                  revokeFlags, NCCL_REVOKE_DEFAULT);
    }
    return revoke(*communicator);
  });
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  return guarded_in_group("CommSplit", [&]() -> Status {
    TRY(check_pointer(newcomm, "CommSplit", "newcomm"));
    *newcomm = nullptr;
    Communicator* parent = TRY(communicator_of(comm, "CommSplit"));
    return split(*parent, color, key, TRY(own_options(config)), communicators_of(newcomm));
  });
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,
                             ncclConfig_t* config, int shrinkFlags) {
  return guarded_in_group("CommShrink", [&]() -> Status {
    TRY(check_pointer(newcomm, "CommShrink", "newcomm"));
    *newcomm = nullptr;
    Communicator* parent = TRY(communicator_of(comm, "CommShrink"));
    if (shrinkFlags != NCCL_SHRINK_DEFAULT && shrinkFlags != NCCL_SHRINK_ABORT) {
      return fail(Code::kInvalidArgument,
                  "CommShrink : shrinkFlags is {}; expected NCCL_SHRINK_DEFAULT ({}) or NCCL_SHRINK_ABORT ({})",
                  shrinkFlags, NCCL_SHRINK_DEFAULT, NCCL_SHRINK_ABORT);
    }
    if (excludeRanksCount < 1 || excludeRanksCount >= count_of(*parent)) {
      return fail(Code::kInvalidArgument,
                  "CommShrink : excludeRanksCount is {} of {} ranks; expected at least one, and one left",
                  excludeRanksCount, count_of(*parent));
    }
    TRY(check_pointer(excludeRanksList, "CommShrink", "excludeRanksList"));
    const Exclusion excluded{{excludeRanksList, excludeRanksList + excludeRanksCount},
                             shrinkFlags == NCCL_SHRINK_ABORT};
    return shrink(*parent, excluded, TRY(own_options(config)), communicators_of(newcomm));
  });
}

ncclResult_t pncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm,
                           ncclConfig_t* config) {
  return guarded_in_group("CommGrow", [&]() -> Status {
    TRY(check_pointer(newcomm, "CommGrow", "newcomm"));
    *newcomm = nullptr;
    if (comm == nullptr) {
      TRY(check_pointer(uniqueId, "CommGrow", "uniqueId"));
      TRY(check_newcomer());
      return init_one("CommGrow", newcomm, {nRanks, rank, {uniqueId, 1}}, config);
    }
    Communicator* parent = TRY(communicator_of(comm, "CommGrow"));
    if (rank != -1) {
      return fail(Code::kInvalidArgument, "CommGrow : rank is {}; ranks of the communicator that grows keep their "
                  "place and give -1", rank);
    }
    std::optional<UniqueId> id;
    if (uniqueId != nullptr) id = TRY(meeting_of(*uniqueId, "CommGrow"));
    return grow(*parent, nRanks, id, TRY(own_options(config)), communicators_of(newcomm));
  });
}

ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId) {
  return guarded("CommGetUniqueId", [&]() -> Status {
    Communicator* parent = TRY(communicator_of(comm, "CommGetUniqueId"));
    TRY(check_pointer(uniqueId, "CommGetUniqueId", "uniqueId"));
    *uniqueId = std::bit_cast<ncclUniqueId>(TRY(growth_id(*parent)));
    return Status();
  });
}

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return guarded("CommGetAsyncError", [&]() -> Status {
    const Communicator* communicator = TRY(known_handle(comm, "CommGetAsyncError"));
    TRY(check_pointer(asyncError, "CommGetAsyncError", "asyncError"));
    *asyncError = result_of(Status(async_error_of(*communicator)));
    return Status();
  });
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int* count) {
  return answer("CommCount", comm, count, "count", count_of);
}

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* device) {
  return answer("CommCuDevice", comm, device, "device", device_of);
}

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank) {
  return answer("CommUserRank", comm, rank, "rank", rank_of);
}

// Weak, so that a profiler can put its own in front (design §11).
decltype(pncclGetUniqueId) ncclGetUniqueId __attribute__((weak, alias("pncclGetUniqueId")));
decltype(pncclCommInitRank) ncclCommInitRank __attribute__((weak, alias("pncclCommInitRank")));
decltype(pncclCommInitRankConfig) ncclCommInitRankConfig __attribute__((weak, alias("pncclCommInitRankConfig")));
decltype(pncclCommInitRankScalable) ncclCommInitRankScalable __attribute__((weak, alias("pncclCommInitRankScalable")));
decltype(pncclCommInitAll) ncclCommInitAll __attribute__((weak, alias("pncclCommInitAll")));
decltype(pncclCommFinalize) ncclCommFinalize __attribute__((weak, alias("pncclCommFinalize")));
decltype(pncclCommDestroy) ncclCommDestroy __attribute__((weak, alias("pncclCommDestroy")));
decltype(pncclCommAbort) ncclCommAbort __attribute__((weak, alias("pncclCommAbort")));
decltype(pncclCommRevoke) ncclCommRevoke __attribute__((weak, alias("pncclCommRevoke")));
decltype(pncclCommSplit) ncclCommSplit __attribute__((weak, alias("pncclCommSplit")));
decltype(pncclCommShrink) ncclCommShrink __attribute__((weak, alias("pncclCommShrink")));
decltype(pncclCommGrow) ncclCommGrow __attribute__((weak, alias("pncclCommGrow")));
decltype(pncclCommGetUniqueId) ncclCommGetUniqueId __attribute__((weak, alias("pncclCommGetUniqueId")));
decltype(pncclCommGetAsyncError) ncclCommGetAsyncError __attribute__((weak, alias("pncclCommGetAsyncError")));
decltype(pncclCommCount) ncclCommCount __attribute__((weak, alias("pncclCommCount")));
decltype(pncclCommCuDevice) ncclCommCuDevice __attribute__((weak, alias("pncclCommCuDevice")));
decltype(pncclCommUserRank) ncclCommUserRank __attribute__((weak, alias("pncclCommUserRank")));
}
