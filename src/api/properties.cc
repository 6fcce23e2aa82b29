// Entry points about what a communicator can do and what it holds.
#include "api/properties.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace talaria::api {
namespace {

constexpr unsigned kMagic = 0xcafebeef;
constexpr int kSuspendMemory = NCCL_SUSPEND_MEM;

// What is 0 here comes with windows and device communicators. Until then each rank is an LSA team of its own (team.cc).
CommProperties properties_of(const Communicator& comm) {
  CommProperties properties{};
  properties.rank = rank_of(comm);
  properties.nranks = count_of(comm);
  properties.cuda_device = device_of(comm);
  properties.nvml_device = nvml_index_of(comm);
  properties.lsa_teams = count_of(comm);
  return properties;
}

Result<uint64_t> read_statistic(const Communicator& comm, int statistic) {
  switch (statistic) {
    case ncclStatGpuMemSuspend: return uint64_t{0};  // a CPU rank has none, that of a GPU rank cannot be suspended yet
    case ncclStatGpuMemSuspended: return uint64_t{is_suspended(comm)};
    case ncclStatGpuMemPersist:
    case ncclStatGpuMemTotal: return device_bytes_of(comm);
    default: return fail(Code::kInvalidArgument, "CommMemStats : statistic {}; expected 0 to 3", statistic);
  }
}

}  // namespace

Status write_properties(const CommProperties& properties, void* out) {
  constexpr size_t kHead = offsetof(CommProperties, rank), kLeast = offsetof(CommProperties, lsa_teams);
  CommProperties head;
  memcpy(static_cast<void*>(&head), out, kHead);
  if (head.magic != kMagic || head.size < kLeast) {
    return fail(Code::kInvalidUsage,
                "ncclCommProperties_t argument not initialized via NCCL_COMM_PROPERTIES_INITIALIZER");
  }
  memcpy(static_cast<std::byte*>(out) + kHead, reinterpret_cast<const std::byte*>(&properties) + kHead,
         std::min(head.size, sizeof(properties)) - kHead);
  return Status();
}

}  // namespace talaria::api

using namespace talaria;
using namespace talaria::api;

extern "C" {

ncclResult_t pncclCommQueryProperties(ncclComm_t comm, struct ncclCommProperties* props) {
  return guarded("CommQueryProperties", [&]() -> Status {
    const Communicator* communicator = TRY(communicator_of(comm, "CommQueryProperties"));
    TRY(check_pointer(props, "CommQueryProperties", "props"));
    return write_properties(properties_of(*communicator), props);
  });
}

ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags) {
  return guarded_in_group("CommSuspend", [&]() -> Status {
    Communicator* communicator = TRY(communicator_of(comm, "CommSuspend"));
    if (flags != kSuspendMemory) {
      return fail(Code::kInvalidArgument, "CommSuspend : flags {:#x}; expected NCCL_SUSPEND_MEM ({:#x})", flags,
                  kSuspendMemory);
    }
    return suspend(*communicator);
  });
}

ncclResult_t pncclCommResume(ncclComm_t comm) {
  return guarded_in_group("CommResume", [&]() -> Status { return resume(*TRY(communicator_of(comm, "CommResume"))); });
}

ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value) {
  return guarded("CommMemStats", [&]() -> Status {
    const Communicator* communicator = TRY(communicator_of(comm, "CommMemStats"));
    TRY(check_pointer(value, "CommMemStats", "value"));
    *value = TRY(read_statistic(*communicator, static_cast<int>(stat)));
    return Status();
  });
}

// Weak, so that a profiler can put its own in front (design §11).
decltype(pncclCommQueryProperties) ncclCommQueryProperties __attribute__((weak, alias("pncclCommQueryProperties")));
decltype(pncclCommSuspend) ncclCommSuspend __attribute__((weak, alias("pncclCommSuspend")));
decltype(pncclCommResume) ncclCommResume __attribute__((weak, alias("pncclCommResume")));
decltype(pncclCommMemStats) ncclCommMemStats __attribute__((weak, alias("pncclCommMemStats")));
}
