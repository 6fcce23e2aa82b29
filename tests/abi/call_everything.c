/* A C99 client that calls every function of the library on one CPU rank and checks each answer. */
#include <stdio.h>
#include <string.h>

#include "nccl.h"
#include "nccl_device_types.h"

static int checks = 0;
static int failures = 0;

static void expect(const char* what, long long wanted, long long got) {
  ++checks;
  if (wanted == got) return;
  ++failures;
  printf("%s: expected %lld, got %lld (%s)\n", what, wanted, got, ncclGetLastError(NULL));
}

static void expect_text(const char* what, const char* wanted, const char* got) {
  ++checks;
  if (got != NULL && strcmp(wanted, got) == 0) return;
  ++failures;
  printf("%s: expected \"%s\", got \"%s\"\n", what, wanted, got == NULL ? "(null)" : got);
}

/* The answer of a function that a later release brings: invalid usage, and a text that names it. */
static void expect_refused(const char* name, ncclResult_t got) {
  char text[160];
  snprintf(text, sizeof(text), "%s is not supported yet by this build of Talaria", name);
  expect(name, ncclInvalidUsage, got);
  expect_text(name, text, ncclGetLastError(NULL));
}

static void check_error_strings(void) {
  expect_text("0", "no error", ncclGetErrorString(ncclSuccess));
  expect_text("1", "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
              ncclGetErrorString(ncclUnhandledCudaError));
  expect_text("2", "unhandled system error (run with NCCL_DEBUG=INFO for details)",
              ncclGetErrorString(ncclSystemError));
  expect_text("3", "internal error - please report this issue to the NCCL developers",
              ncclGetErrorString(ncclInternalError));
  expect_text("4", "invalid argument (run with NCCL_DEBUG=WARN for details)", ncclGetErrorString(ncclInvalidArgument));
  expect_text("5", "invalid usage (run with NCCL_DEBUG=WARN for details)", ncclGetErrorString(ncclInvalidUsage));
  expect_text("6", "remote process exited or there was a network error", ncclGetErrorString(ncclRemoteError));
  expect_text("7", "NCCL operation in progress", ncclGetErrorString(ncclInProgress));
  expect_text("8", "timeout", ncclGetErrorString((ncclResult_t)8));
  expect_text("9", "unknown result code", ncclGetErrorString((ncclResult_t)9));
  expect_text("-1", "unknown result code", ncclGetErrorString((ncclResult_t)-1));
}

static void check_library(void) {
  int version = 0;
  expect_text("no failure yet", "", ncclGetLastError(NULL));
  expect("ncclGetVersion", ncclSuccess, ncclGetVersion(&version));
  expect("version", 22809, version);
  expect("ncclGetVersion(NULL)", ncclInvalidArgument, ncclGetVersion(NULL));
  expect_text("last error", "GetVersion : version argument is NULL", ncclGetLastError(NULL));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  ncclResetDebugInit();
#pragma GCC diagnostic pop
  ncclResetDebugInitInternal();
  ncclParamDumpAll();
  expect("slots of 1 byte", 1, ncclLLA2ACalcSlots(1, 1));
  expect("slots of 7 x 16 bytes", 14, ncclLLA2ACalcSlots(7, 16));
  expect("slots of 5 x 17 bytes", 15, ncclLLA2ACalcSlots(5, 17));
}

static void check_queries(ncclComm_t comm) {
  int value = -7;
  ncclResult_t error = ncclInternalError;
  expect("ncclCommCount", ncclSuccess, ncclCommCount(comm, &value));
  expect("count", 1, value);
  expect("ncclCommUserRank", ncclSuccess, ncclCommUserRank(comm, &value));
  expect("rank", 0, value);
  expect("ncclCommCuDevice", ncclSuccess, ncclCommCuDevice(comm, &value));
  expect("device", -1, value);
  expect("ncclCommGetAsyncError", ncclSuccess, ncclCommGetAsyncError(comm, &error));
  expect("async error", ncclSuccess, error);
  const ncclTeam_t world = ncclTeamWorld(comm), lsa = ncclTeamLsa(comm), rail = ncclTeamRail(comm);
  expect("world ranks", 1, world.nRanks);
  expect("lsa ranks", 1, lsa.nRanks);
  expect("rail ranks", 1, rail.nRanks);
  expect("ncclTeamRankToWorld", 0, ncclTeamRankToWorld(comm, world, 0));
  expect("ncclTeamRankToLsa", 0, ncclTeamRankToLsa(comm, lsa, 0));
  expect("team of nothing", 0, ncclTeamWorld(NULL).nRanks);
  expect("rank of nothing", -1, ncclTeamRankToWorld(NULL, world, 0));
}

static void check_operations(ncclComm_t comm) {
  float in[4] = {1, 2, 3, 4}, out[4] = {0, 0, 0, 0};
  ncclRedOp_t op = ncclSum;
  expect("ncclGroupStart", ncclSuccess, ncclGroupStart());
  expect("ncclAllReduce", ncclSuccess, ncclAllReduce(in, out, 4, ncclFloat, ncclSum, comm, NULL));
  expect("ncclGroupEnd", ncclSuccess, ncclGroupEnd());
  expect("all-reduced", 0, memcmp(in, out, sizeof(in)));
  memset(out, 0, sizeof(out));
  expect("ncclAllGather", ncclSuccess, ncclAllGather(in, out, 4, ncclFloat, comm, NULL));
  expect("gathered", 0, memcmp(in, out, sizeof(in)));
  memset(out, 0, sizeof(out));
  expect("ncclReduceScatter", ncclSuccess, ncclReduceScatter(in, out, 4, ncclFloat, ncclMax, comm, NULL));
  expect("reduced", 0, memcmp(in, out, sizeof(in)));
  memset(out, 0, sizeof(out));
  expect("ncclBroadcast", ncclSuccess, ncclBroadcast(in, out, 4, ncclFloat, 0, comm, NULL));
  expect("broadcast", 0, memcmp(in, out, sizeof(in)));
  expect("ncclBcast", ncclSuccess, ncclBcast(out, 4, ncclFloat, 0, comm, NULL));
  memset(out, 0, sizeof(out));
  expect("ncclReduce", ncclSuccess, ncclReduce(in, out, 4, ncclFloat, ncclSum, 0, comm, NULL));
  expect("reduced to the root", 0, memcmp(in, out, sizeof(in)));
  memset(out, 0, sizeof(out));
  expect("ncclAlltoAll", ncclSuccess, ncclAlltoAll(in, out, 4, ncclFloat, comm, NULL));
  expect("all to all", 0, memcmp(in, out, sizeof(in)));
  memset(out, 0, sizeof(out));
  expect("ncclGather", ncclSuccess, ncclGather(in, out, 4, ncclFloat, 0, comm, NULL));
  expect("gathered at the root", 0, memcmp(in, out, sizeof(in)));
  memset(out, 0, sizeof(out));
  expect("ncclScatter", ncclSuccess, ncclScatter(in, out, 4, ncclFloat, 0, comm, NULL));
  expect("scattered", 0, memcmp(in, out, sizeof(in)));
  memset(out, 0, sizeof(out));
  ncclGroupStart();
  expect("ncclSend", ncclSuccess, ncclSend(in, 4, ncclFloat, 0, comm, NULL));
  expect("ncclRecv", ncclSuccess, ncclRecv(out, 4, ncclFloat, 0, comm, NULL));
  expect("ncclGroupEnd", ncclSuccess, ncclGroupEnd());
  expect("sent", 0, memcmp(in, out, sizeof(in)));
  expect("ncclRedOpCreatePreMulSum", ncclSuccess,
         ncclRedOpCreatePreMulSum(&op, in, ncclFloat, ncclScalarHostImmediate, comm));
  expect("own reduction", ncclSuccess, ncclAllReduce(in, out, 4, ncclFloat, op, comm, NULL));
  expect("reduced by it", 0, memcmp(in, out, sizeof(in)));
  expect("ncclRedOpDestroy", ncclSuccess, ncclRedOpDestroy(op, comm));
  expect("count 0", ncclSuccess, ncclAllReduce(NULL, NULL, 0, ncclFloat, ncclSum, comm, NULL));
  expect("ncclGroupEnd without start", ncclInvalidUsage, ncclGroupEnd());
}

static void refuse_operations(ncclComm_t comm) {
  float in[4] = {1, 2, 3, 4};
  ncclSimInfo_t simulation = NCCL_SIM_INFO_INITIALIZER;
  ncclWaitSignalDesc_t wait = {1, 0, 0, 0};
  expect_refused("ncclPutSignal", ncclPutSignal(in, 4, ncclFloat, 0, NULL, 0, 0, 0, 0, comm, NULL));
  expect_refused("ncclSignal", ncclSignal(0, 0, 0, 0, comm, NULL));
  expect_refused("ncclWaitSignal", ncclWaitSignal(1, &wait, comm, NULL));
  expect_refused("ncclGroupSimulateEnd", ncclGroupSimulateEnd(&simulation));
}

static void refuse_communicators(ncclComm_t comm) {
  ncclComm_t other = comm;
  ncclUniqueId id;
  int excluded = 0;
  memset(&id, 0, sizeof(id));
  expect("ncclCommInitRankScalable", ncclInvalidArgument, ncclCommInitRankScalable(&other, 1, 0, 1, &id, NULL));
  expect("scalable out", 1, other == NULL);
  other = comm;
  expect("ncclCommSplit", ncclSuccess, ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, 0, &other, NULL));
  expect("split out", 1, other == NULL);
  other = comm;
  expect("ncclCommShrink", ncclInvalidArgument, ncclCommShrink(comm, &excluded, 1, &other, NULL, NCCL_SHRINK_DEFAULT));
  expect("shrink out", 1, other == NULL);
  other = comm;
  expect("ncclCommGrow", ncclInvalidUsage, ncclCommGrow(comm, 2, NULL, -1, &other, NULL));
  expect("grow out", 1, other == NULL);
  expect("ncclCommGetUniqueId", ncclSuccess, ncclCommGetUniqueId(comm, &id));
}

static void check_suspension(ncclComm_t comm) {
  uint64_t value = 7;
  expect("ncclCommSuspend", ncclSuccess, ncclCommSuspend(comm, NCCL_SUSPEND_MEM));
  expect("ncclCommMemStats", ncclSuccess, ncclCommMemStats(comm, ncclStatGpuMemSuspended, &value));
  expect("suspended", 1, value == 1);
  expect("ncclCommResume", ncclSuccess, ncclCommResume(comm));
  expect("ncclCommQueryProperties", ncclInvalidArgument, ncclCommQueryProperties(comm, NULL));
}

static void refuse_memory(ncclComm_t comm) {
  char buffer[64];
  void* pointer = buffer;
  ncclWindow_t window = (ncclWindow_t)(void*)buffer;
  ncclMultimemHandle_t multimem = {NULL};
  expect("ncclMemAlloc", ncclSuccess, ncclMemAlloc(&pointer, 64));
  expect("allocated", 0, pointer == NULL);
  memset(pointer, 1, 64);
  expect("ncclMemFree", ncclSuccess, ncclMemFree(pointer));
  expect("ncclMemFree(NULL)", ncclSuccess, ncclMemFree(NULL));
  pointer = buffer;
  expect_refused("ncclCommRegister", ncclCommRegister(comm, buffer, 64, &pointer));
  expect("registered", 1, pointer == NULL);
  expect_refused("ncclCommDeregister", ncclCommDeregister(comm, buffer));
  expect_refused("ncclCommWindowRegister", ncclCommWindowRegister(comm, buffer, 64, &window, NCCL_WIN_DEFAULT));
  expect("window", 1, window == NULL);
  expect_refused("ncclCommWindowDeregister", ncclCommWindowDeregister(comm, NULL));
  expect_refused("ncclWinGetUserPtr", ncclWinGetUserPtr(comm, NULL, &pointer));
  expect_refused("ncclGetLsaDevicePointer", ncclGetLsaDevicePointer(NULL, 0, 0, &pointer));
  expect_refused("ncclGetPeerDevicePointer", ncclGetPeerDevicePointer(NULL, 0, 0, &pointer));
  expect_refused("ncclGetMultimemDevicePointer", ncclGetMultimemDevicePointer(NULL, 0, multimem, &pointer));
  expect_refused("ncclGetLsaMultimemDevicePointer", ncclGetLsaMultimemDevicePointer(NULL, 0, &pointer));
}

/* Requirements of 2.30 carry a mark at byte 8; neither they nor the outputs may be written. */
static void refuse_device_communicators(ncclComm_t comm) {
  unsigned char foreign[96], before[96];
  ncclDevComm_t device;
  const ncclTeam_t team = {1, 0, 1};
  const unsigned mark = 0xcafebeef;
  memset(&device, 0x5a, sizeof(device));
  memset(foreign, 0, sizeof(foreign));
  memcpy(foreign + 8, &mark, sizeof(mark));
  memcpy(before, foreign, sizeof(foreign));
  expect_refused("ncclDevCommCreate", ncclDevCommCreate(comm, (ncclDevCommRequirements_t*)(void*)foreign, &device));
  expect("requirements untouched", 0, memcmp(before, foreign, sizeof(foreign)));
  expect("device communicator untouched", 0x5a5a5a5a, device.rank);
  expect_refused("ncclDevCommDestroy", ncclDevCommDestroy(comm, &device));
  expect_refused("ncclLLA2ACreateRequirement", ncclLLA2ACreateRequirement(1, 1, NULL, NULL));
  expect_refused("ncclLsaBarrierCreateRequirement", ncclLsaBarrierCreateRequirement(team, 1, NULL, NULL));
  expect_refused("ncclGinBarrierCreateRequirement", ncclGinBarrierCreateRequirement(comm, team, 1, NULL, NULL));
  expect_refused("ncclGinOutboxCreateRequirement", ncclGinOutboxCreateRequirement(1, 8, NULL, NULL));
  expect_refused("ncclGinInboxA2ACreateRequirement", ncclGinInboxA2ACreateRequirement(team, 1, 8, NULL, NULL));
}

static void check_parameters(void) {
  ncclParamHandle_t number = NULL, word = NULL;
  int64_t bits[2] = {0, 0};
  const char* text = NULL;
  const char** table = NULL;
  int length = 0;
  expect("ncclParamBind", ncclSuccess, ncclParamBind(&number, "NCCL_SOCKET_RETRY_CNT"));
  expect("ncclParamBind", ncclSuccess, ncclParamBind(&word, "TALARIA_DEVICE"));
  expect("ncclParamGetI8", ncclSuccess, ncclParamGetI8(number, (int8_t*)bits));
  expect("ncclParamGetI16", ncclSuccess, ncclParamGetI16(number, (int16_t*)bits));
  expect("ncclParamGetI32", ncclSuccess, ncclParamGetI32(number, (int32_t*)bits));
  expect("ncclParamGetI64", ncclSuccess, ncclParamGetI64(number, bits));
  expect("ncclParamGetU8", ncclSuccess, ncclParamGetU8(number, (uint8_t*)bits));
  expect("ncclParamGetU16", ncclSuccess, ncclParamGetU16(number, (uint16_t*)bits));
  expect("ncclParamGetU32", ncclSuccess, ncclParamGetU32(number, (uint32_t*)bits));
  expect("ncclParamGetU64", ncclSuccess, ncclParamGetU64(number, (uint64_t*)bits));
  expect("value", 34, bits[0]);
  expect("ncclParamGetStr", ncclSuccess, ncclParamGetStr(word, &text));
  expect_text("value", "host", text);
  expect("ncclParamGet", ncclSuccess, ncclParamGet(word, bits, 16, &length));
  expect("length", 5, length);
  expect("ncclParamGetParameter", ncclSuccess, ncclParamGetParameter("TALARIA_DEVICE", &text, &length));
  expect("length", 4, length);
  expect("ncclParamGetAllParameterKeys", ncclSuccess, ncclParamGetAllParameterKeys(&table, &length));
  expect("keys", 1, length > 10 && table != NULL);
}

static void check_ends(void) {
  ncclUniqueId id;
  ncclComm_t comm = NULL, aborted = NULL;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  expect("ncclCommFinalize(NULL)", ncclSuccess, ncclCommFinalize(NULL));
  expect("ncclCommDestroy(NULL)", ncclSuccess, ncclCommDestroy(NULL));
  expect("ncclCommAbort(NULL)", ncclSuccess, ncclCommAbort(NULL));
  expect("ncclGetUniqueId", ncclSuccess, ncclGetUniqueId(&id));
  expect("ncclCommInitRankConfig", ncclSuccess, ncclCommInitRankConfig(&comm, 1, id, 0, &config));
  expect("ncclCommFinalize", ncclSuccess, ncclCommFinalize(comm));
  expect("ncclCommDestroy", ncclSuccess, ncclCommDestroy(comm));
  expect("ncclCommInitAll", ncclSuccess, ncclCommInitAll(&aborted, 1, NULL));
  expect("ncclCommRevoke", ncclSuccess, ncclCommRevoke(aborted, NCCL_REVOKE_DEFAULT));
  expect("ncclCommAbort", ncclSuccess, ncclCommAbort(aborted));
}

int main(void) {
  ncclUniqueId id;
  ncclComm_t comm = NULL;
  check_error_strings();
  check_library();
  expect("ncclGetUniqueId", ncclSuccess, ncclGetUniqueId(&id));
  expect("ncclCommInitRank", ncclSuccess, ncclCommInitRank(&comm, 1, id, 0));
  if (comm != NULL) {
    check_queries(comm);
    check_operations(comm);
    refuse_operations(comm);
    check_suspension(comm);
    refuse_communicators(comm);
    refuse_memory(comm);
    refuse_device_communicators(comm);
    check_parameters();
    expect("ncclCommDestroy", ncclSuccess, ncclCommDestroy(comm));
  }
  check_ends();
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 && checks > 150 ? 0 : 1;
}
