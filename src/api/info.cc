// Entry points about the library itself: version, errors, logging, parameters.
#include <cstdio>

#include "api/boundary.h"
#include "base/config.h"
#include "base/log.h"
#include "base/os.h"

namespace talaria::api {
namespace {

ncclResult_t refuse(const char* function) {
  return guarded(function, [&] { return not_supported(function); });
}

Result<int> print_parameters() {
  int lines = 0;
  for (const ConfigRow& row : config_rows()) {
    const std::string value = environment(row.name).value_or(row.default_text);
    printf("%s=%s\n", row.name, value.c_str());
    ++lines;
  }
  fflush(stdout);
  return lines;
}

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

void pncclParamDumpAll() { guarded_value("ParamDumpAll", 0, print_parameters); }

ncclResult_t pncclParamBind(ncclParamHandle_t*, const char*) { return refuse("ncclParamBind"); }
ncclResult_t pncclParamGetI8(ncclParamHandle_t, int8_t*) { return refuse("ncclParamGetI8"); }
ncclResult_t pncclParamGetI16(ncclParamHandle_t, int16_t*) { return refuse("ncclParamGetI16"); }
ncclResult_t pncclParamGetI32(ncclParamHandle_t, int32_t*) { return refuse("ncclParamGetI32"); }
ncclResult_t pncclParamGetI64(ncclParamHandle_t, int64_t*) { return refuse("ncclParamGetI64"); }
ncclResult_t pncclParamGetU8(ncclParamHandle_t, uint8_t*) { return refuse("ncclParamGetU8"); }
ncclResult_t pncclParamGetU16(ncclParamHandle_t, uint16_t*) { return refuse("ncclParamGetU16"); }
ncclResult_t pncclParamGetU32(ncclParamHandle_t, uint32_t*) { return refuse("ncclParamGetU32"); }
ncclResult_t pncclParamGetU64(ncclParamHandle_t, uint64_t*) { return refuse("ncclParamGetU64"); }
ncclResult_t pncclParamGetStr(ncclParamHandle_t, const char**) { return refuse("ncclParamGetStr"); }
ncclResult_t pncclParamGet(ncclParamHandle_t, void*, int, int*) { return refuse("ncclParamGet"); }
ncclResult_t pncclParamGetParameter(const char*, const char**, int*) { return refuse("ncclParamGetParameter"); }
ncclResult_t pncclParamGetAllParameterKeys(const char***, int*) { return refuse("ncclParamGetAllParameterKeys"); }

// Weak, so that a profiler can put its own in front (design §11).
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
decltype(pncclGetVersion) ncclGetVersion __attribute__((weak, alias("pncclGetVersion")));
decltype(pncclGetErrorString) ncclGetErrorString __attribute__((weak, alias("pncclGetErrorString")));
decltype(pncclGetLastError) ncclGetLastError __attribute__((weak, alias("pncclGetLastError")));
decltype(pncclResetDebugInit) ncclResetDebugInit __attribute__((weak, alias("pncclResetDebugInit")));
decltype(pncclResetDebugInitInternal) ncclResetDebugInitInternal
    __attribute__((weak, alias("pncclResetDebugInitInternal")));
decltype(pncclParamDumpAll) ncclParamDumpAll __attribute__((weak, alias("pncclParamDumpAll")));
decltype(pncclParamBind) ncclParamBind __attribute__((weak, alias("pncclParamBind")));
decltype(pncclParamGetI8) ncclParamGetI8 __attribute__((weak, alias("pncclParamGetI8")));
decltype(pncclParamGetI16) ncclParamGetI16 __attribute__((weak, alias("pncclParamGetI16")));
decltype(pncclParamGetI32) ncclParamGetI32 __attribute__((weak, alias("pncclParamGetI32")));
decltype(pncclParamGetI64) ncclParamGetI64 __attribute__((weak, alias("pncclParamGetI64")));
decltype(pncclParamGetU8) ncclParamGetU8 __attribute__((weak, alias("pncclParamGetU8")));
decltype(pncclParamGetU16) ncclParamGetU16 __attribute__((weak, alias("pncclParamGetU16")));
decltype(pncclParamGetU32) ncclParamGetU32 __attribute__((weak, alias("pncclParamGetU32")));
decltype(pncclParamGetU64) ncclParamGetU64 __attribute__((weak, alias("pncclParamGetU64")));
decltype(pncclParamGetStr) ncclParamGetStr __attribute__((weak, alias("pncclParamGetStr")));
decltype(pncclParamGet) ncclParamGet __attribute__((weak, alias("pncclParamGet")));
decltype(pncclParamGetParameter) ncclParamGetParameter __attribute__((weak, alias("pncclParamGetParameter")));
decltype(pncclParamGetAllParameterKeys) ncclParamGetAllParameterKeys
    __attribute__((weak, alias("pncclParamGetAllParameterKeys")));
}
