// Entry points for memory that peers can reach: allocation, registration, windows, device communicators.
#include "api/boundary.h"

namespace talaria::api {
namespace {

// Refuses a call whose result would be a pointer; the result is null, so that nobody uses what was there before.
template <typename T>
ncclResult_t refuse_pointer(const char* function, T** out) {
  return guarded(function, [&] {
    if (out != nullptr) *out = nullptr;
    return not_supported(function);
  });
}

ncclResult_t refuse(const char* function) {
  return guarded(function, [&] { return not_supported(function); });
}

}  // namespace
}  // namespace talaria::api

using namespace talaria;
using namespace talaria::api;

extern "C" {

ncclResult_t pncclMemAlloc(void** ptr, size_t size) {
  return guarded("ncclMemAlloc", [&]() -> Status {
    TRY(check_pointer(ptr, "MemAlloc", "ptr"));
    *ptr = nullptr;
    *ptr = TRY(allocate_memory(size));
    return Status();
  });
}

ncclResult_t pncclMemFree(void* ptr) {
  return guarded("ncclMemFree", [&] { return free_memory(ptr); });
}

ncclResult_t pncclCommRegister(const ncclComm_t, void*, size_t, void** handle) {
  return refuse_pointer("ncclCommRegister", handle);
}

ncclResult_t pncclCommDeregister(const ncclComm_t, void*) { return refuse("ncclCommDeregister"); }

ncclResult_t pncclCommWindowRegister(ncclComm_t, void*, size_t, ncclWindow_t* win, int) {
  return guarded_in_group("CommWindowRegister", [&] {
    if (win != nullptr) *win = nullptr;
    return not_supported("ncclCommWindowRegister");
  });
}

ncclResult_t pncclCommWindowDeregister(ncclComm_t, ncclWindow_t) { return refuse("ncclCommWindowDeregister"); }

ncclResult_t pncclWinGetUserPtr(ncclComm_t, ncclWindow_t, void** outUserPtr) {
  return refuse_pointer("ncclWinGetUserPtr", outUserPtr);
}

ncclResult_t pncclGetLsaDevicePointer(ncclWindow_t, size_t, int, void** outPtr) {
  return refuse_pointer("ncclGetLsaDevicePointer", outPtr);
}

ncclResult_t pncclGetPeerDevicePointer(ncclWindow_t, size_t, int, void** outPtr) {
  return refuse_pointer("ncclGetPeerDevicePointer", outPtr);
}

ncclResult_t pncclGetMultimemDevicePointer(ncclWindow_t, size_t, ncclMultimemHandle_t, void** outPtr) {
  return refuse_pointer("ncclGetMultimemDevicePointer", outPtr);
}

ncclResult_t pncclGetLsaMultimemDevicePointer(ncclWindow_t, size_t, void** outPtr) {
  return refuse_pointer("ncclGetLsaMultimemDevicePointer", outPtr);
}

// Nothing is written to the structs below: their size depends on the release that the caller was compiled with.
ncclResult_t pncclDevCommCreate(ncclComm_t, ncclDevCommRequirements_t const*, ncclDevComm_t*) {
  return refuse("ncclDevCommCreate");
}

ncclResult_t pncclDevCommDestroy(ncclComm_t, ncclDevComm_t const*) { return refuse("ncclDevCommDestroy"); }

ncclResult_t pncclLLA2ACreateRequirement(int, int, ncclLLA2AHandle_t*, ncclDevResourceRequirements_t*) {
  return refuse("ncclLLA2ACreateRequirement");
}

ncclResult_t pncclLsaBarrierCreateRequirement(ncclTeam_t, int, ncclLsaBarrierHandle_t*,
                                              ncclDevResourceRequirements_t*) {
  return refuse("ncclLsaBarrierCreateRequirement");
}

ncclResult_t pncclGinBarrierCreateRequirement(ncclComm_t, ncclTeam_t, int, ncclGinBarrierHandle_t*,
                                              ncclDevResourceRequirements_t*) {
  return refuse("ncclGinBarrierCreateRequirement");
}

ncclResult_t pncclGinOutboxCreateRequirement(int, int, struct ncclGinOutboxHandle*, ncclDevResourceRequirements_t*) {
  return refuse("ncclGinOutboxCreateRequirement");
}

ncclResult_t pncclGinInboxA2ACreateRequirement(ncclTeam_t, int, int, struct ncclGinInboxA2AHandle*,
                                               ncclDevResourceRequirements_t*) {
  return refuse("ncclGinInboxA2ACreateRequirement");
}

// Weak, so that a profiler can put its own in front (design §11).
decltype(pncclMemAlloc) ncclMemAlloc __attribute__((weak, alias("pncclMemAlloc")));
decltype(pncclMemFree) ncclMemFree __attribute__((weak, alias("pncclMemFree")));
decltype(pncclCommRegister) ncclCommRegister __attribute__((weak, alias("pncclCommRegister")));
decltype(pncclCommDeregister) ncclCommDeregister __attribute__((weak, alias("pncclCommDeregister")));
decltype(pncclCommWindowRegister) ncclCommWindowRegister __attribute__((weak, alias("pncclCommWindowRegister")));
decltype(pncclCommWindowDeregister) ncclCommWindowDeregister __attribute__((weak, alias("pncclCommWindowDeregister")));
decltype(pncclWinGetUserPtr) ncclWinGetUserPtr __attribute__((weak, alias("pncclWinGetUserPtr")));
decltype(pncclGetLsaDevicePointer) ncclGetLsaDevicePointer __attribute__((weak, alias("pncclGetLsaDevicePointer")));
decltype(pncclGetPeerDevicePointer) ncclGetPeerDevicePointer __attribute__((weak, alias("pncclGetPeerDevicePointer")));
decltype(pncclGetMultimemDevicePointer) ncclGetMultimemDevicePointer
    __attribute__((weak, alias("pncclGetMultimemDevicePointer")));
decltype(pncclGetLsaMultimemDevicePointer) ncclGetLsaMultimemDevicePointer
    __attribute__((weak, alias("pncclGetLsaMultimemDevicePointer")));
decltype(pncclDevCommCreate) ncclDevCommCreate __attribute__((weak, alias("pncclDevCommCreate")));
decltype(pncclDevCommDestroy) ncclDevCommDestroy __attribute__((weak, alias("pncclDevCommDestroy")));
decltype(pncclLLA2ACreateRequirement) ncclLLA2ACreateRequirement
    __attribute__((weak, alias("pncclLLA2ACreateRequirement")));
decltype(pncclLsaBarrierCreateRequirement) ncclLsaBarrierCreateRequirement
    __attribute__((weak, alias("pncclLsaBarrierCreateRequirement")));
decltype(pncclGinBarrierCreateRequirement) ncclGinBarrierCreateRequirement
    __attribute__((weak, alias("pncclGinBarrierCreateRequirement")));
decltype(pncclGinOutboxCreateRequirement) ncclGinOutboxCreateRequirement
    __attribute__((weak, alias("pncclGinOutboxCreateRequirement")));
decltype(pncclGinInboxA2ACreateRequirement) ncclGinInboxA2ACreateRequirement
    __attribute__((weak, alias("pncclGinInboxA2ACreateRequirement")));
}
