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

Status init_one(const char* function, ncclComm_t* comm, const RankPlace& place, const ncclConfig_t* config) {
  TRY(check_pointer(comm, function, "comm"));
  *comm = nullptr;
  const InitOptions options = TRY(read_init_options(config));
  if (place.nranks < 1 || place.rank < 0 || place.rank >= place.nranks) {
    return fail(Code::kInvalidArgument, "Invalid rank requested : {}/{}", place.rank, place.nranks);
  }
  std::vector<UniqueId> meetings;
  for (const ncclUniqueId& id : place.ids) {
    meetings.push_back(std::bit_cast<UniqueId>(id));
    if (meetings.back().magic == UniqueId::kMagic) continue;
    return fail(Code::kInvalidArgument, "{} : commId was not made by this library's ncclGetUniqueId", function);
  }
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

ncclResult_t refuse_new_communicator(const char* function, ncclComm_t* newcomm) {
  return guarded_in_group(function, [&] {
    if (newcomm != nullptr) *newcomm = nullptr;
    return not_supported(function);
  });
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

ncclResult_t pncclCommRevoke(ncclComm_t, int) {
  return guarded("CommRevoke", [] { return not_supported("ncclCommRevoke"); });
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  return guarded_in_group("CommSplit", [&]() -> Status {
    TRY(check_pointer(newcomm, "CommSplit", "newcomm"));
    *newcomm = nullptr;
    Communicator* parent = TRY(communicator_of(comm, "CommSplit"));
    std::optional<InitOptions> options;
    if (config != nullptr) options = TRY(read_init_options(config));
    return split(*parent, color, key, options, communicators_of(newcomm));
  });
}

ncclResult_t pncclCommShrink(ncclComm_t, int*, int, ncclComm_t* newcomm, ncclConfig_t*, int) {
  return refuse_new_communicator("ncclCommShrink", newcomm);
}

ncclResult_t pncclCommGrow(ncclComm_t, int, const ncclUniqueId*, int, ncclComm_t* newcomm, ncclConfig_t*) {
  return refuse_new_communicator("ncclCommGrow", newcomm);
}

ncclResult_t pncclCommGetUniqueId(ncclComm_t, ncclUniqueId*) {
  return guarded("CommGetUniqueId", [] { return not_supported("ncclCommGetUniqueId"); });
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
