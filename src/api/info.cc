// Entry points about the library itself: version, errors, logging.
#include "api/boundary.h"
#include "base/log.h"

namespace talaria::api {
namespace {

Result<int> reset_log() {
  log_reset();
  return 0;
}

}  // namespace
}  // namespace talaria::api

using namespace talaria;
using namespace talaria::api;

extern "C" {

ncclResult_t pncclGetVersion(int* version) {
  return guarded("GetVersion", [&]() -> Status {
    TRY(check_pointer(version, "GetVersion", "version"));
    *version = NCCL_VERSION_CODE;
    return Status();
  });
}

const char* pncclGetErrorString(ncclResult_t result) { return error_string(result); }

// The text is kept per process, as in NCCL: a watchdog thread asks for the failure of another thread.
const char* pncclGetLastError(ncclComm_t) {
  return guarded_value("GetLastError", "", []() -> Result<const char*> { return last_error_text(); });
}

void pncclResetDebugInit() { guarded_value("ResetDebugInit", 0, reset_log); }

void pncclResetDebugInitInternal() { guarded_value("ResetDebugInit", 0, reset_log); }

// Weak, so that a profiler can put its own in front (design §11).
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
decltype(pncclGetVersion) ncclGetVersion __attribute__((weak, alias("pncclGetVersion")));
decltype(pncclGetErrorString) ncclGetErrorString __attribute__((weak, alias("pncclGetErrorString")));
decltype(pncclGetLastError) ncclGetLastError __attribute__((weak, alias("pncclGetLastError")));
decltype(pncclResetDebugInit) ncclResetDebugInit __attribute__((weak, alias("pncclResetDebugInit")));
decltype(pncclResetDebugInitInternal) ncclResetDebugInitInternal
    __attribute__((weak, alias("pncclResetDebugInitInternal")));
}
