// Entry points that open and close groups.
#include "api/boundary.h"

using namespace talaria;
using namespace talaria::api;

extern "C" {

ncclResult_t pncclGroupStart() {
  return guarded("GroupStart", [] { return group_start(); });
}

ncclResult_t pncclGroupEnd() {
  return guarded("GroupEnd", [] { return group_end(); });
}

// The group stays open: what was queued in it is still the caller's to end.
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t*) {
  return guarded("GroupSimulateEnd", [] { return not_supported("ncclGroupSimulateEnd"); });
}

// Weak, so that a profiler can put its own in front (design §11).
decltype(pncclGroupStart) ncclGroupStart __attribute__((weak, alias("pncclGroupStart")));
decltype(pncclGroupEnd) ncclGroupEnd __attribute__((weak, alias("pncclGroupEnd")));
decltype(pncclGroupSimulateEnd) ncclGroupSimulateEnd __attribute__((weak, alias("pncclGroupSimulateEnd")));
}
