// Prints what a client's binary takes from the header it was compiled with: sizes, offsets, values, signatures.
//
// Compiled twice, with our header and with NVIDIA's; compare_headers.py compares the two outputs line by line.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <typeinfo>

#include "nccl.h"
#if __has_include("nccl_device_types.h")
#include "nccl_device_types.h"
#else
#include "nccl_device.h"
#endif

namespace {

void emit(const char* name, long long value) { printf("%s %lld\n", name, value); }

template <typename Function>
void emit_signature(const char* name) {
  printf("signature %s %s\n", name, typeid(Function).name());
}

void emit_bytes(const char* name, const void* data, size_t bytes) {
  printf("%s ", name);
  for (size_t i = 0; i < bytes; ++i) printf("%02x", static_cast<const unsigned char*>(data)[i]);
  printf("\n");
}

void emit_versions() {
  emit("NCCL_MAJOR", NCCL_MAJOR);
  emit("NCCL_MINOR", NCCL_MINOR);
  emit("NCCL_PATCH", NCCL_PATCH);
  emit("NCCL_SUFFIX bytes", sizeof(NCCL_SUFFIX));
  emit("NCCL_VERSION_CODE", NCCL_VERSION_CODE);
  emit("NCCL_VERSION 2.8.4", NCCL_VERSION(2, 8, 4));
  emit("NCCL_VERSION 2.9.0", NCCL_VERSION(2, 9, 0));
  emit("NCCL_VERSION 3.1.2", NCCL_VERSION(3, 1, 2));
}

void emit_enums() {
  emit("ncclSuccess", ncclSuccess);
  emit("ncclUnhandledCudaError", ncclUnhandledCudaError);
  emit("ncclSystemError", ncclSystemError);
  emit("ncclInternalError", ncclInternalError);
  emit("ncclInvalidArgument", ncclInvalidArgument);
  emit("ncclInvalidUsage", ncclInvalidUsage);
  emit("ncclRemoteError", ncclRemoteError);
  emit("ncclInProgress", ncclInProgress);
  emit("ncclNumResults", ncclNumResults);
  emit("ncclSum", ncclSum);
  emit("ncclProd", ncclProd);
  emit("ncclMax", ncclMax);
  emit("ncclMin", ncclMin);
  emit("ncclAvg", ncclAvg);
  emit("ncclNumOps", ncclNumOps);
  emit("ncclMaxRedOp", ncclMaxRedOp);
  emit("ncclScalarDevice", ncclScalarDevice);
  emit("ncclScalarHostImmediate", ncclScalarHostImmediate);
  emit("sizeof ncclResult_t", sizeof(ncclResult_t));
  emit("sizeof ncclRedOp_t", sizeof(ncclRedOp_t));
  emit("sizeof ncclDataType_t", sizeof(ncclDataType_t));
  emit("sizeof ncclScalarResidence_t", sizeof(ncclScalarResidence_t));
}

void emit_datatypes() {
  emit("ncclInt8", ncclInt8);
  emit("ncclChar", ncclChar);
  emit("ncclUint8", ncclUint8);
  emit("ncclInt32", ncclInt32);
  emit("ncclInt", ncclInt);
  emit("ncclUint32", ncclUint32);
  emit("ncclInt64", ncclInt64);
  emit("ncclUint64", ncclUint64);
  emit("ncclFloat16", ncclFloat16);
  emit("ncclHalf", ncclHalf);
  emit("ncclFloat32", ncclFloat32);
  emit("ncclFloat", ncclFloat);
  emit("ncclFloat64", ncclFloat64);
  emit("ncclDouble", ncclDouble);
  emit("ncclBfloat16", ncclBfloat16);
  emit("ncclFloat8e4m3", ncclFloat8e4m3);
  emit("ncclFloat8e5m2", ncclFloat8e5m2);
  emit("ncclNumTypes", ncclNumTypes);
}

void emit_macros() {
  emit("NCCL_UNIQUE_ID_BYTES", NCCL_UNIQUE_ID_BYTES);
  emit("NCCL_CONFIG_UNDEF_INT", NCCL_CONFIG_UNDEF_INT);
  emit("NCCL_SPLIT_NOCOLOR", NCCL_SPLIT_NOCOLOR);
  emit("NCCL_UNDEF_FLOAT", static_cast<long long>(NCCL_UNDEF_FLOAT));
  emit("NCCL_WIN_DEFAULT", NCCL_WIN_DEFAULT);
  emit("NCCL_WIN_COLL_SYMMETRIC", NCCL_WIN_COLL_SYMMETRIC);
  emit("NCCL_WIN_REQUIRED_ALIGNMENT", NCCL_WIN_REQUIRED_ALIGNMENT);
  emit("NCCL_CTA_POLICY_DEFAULT", NCCL_CTA_POLICY_DEFAULT);
  emit("NCCL_CTA_POLICY_EFFICIENCY", NCCL_CTA_POLICY_EFFICIENCY);
  emit("NCCL_CTA_POLICY_ZERO", NCCL_CTA_POLICY_ZERO);
  emit("NCCL_SHRINK_DEFAULT", NCCL_SHRINK_DEFAULT);
  emit("NCCL_SHRINK_ABORT", NCCL_SHRINK_ABORT);
  emit("NCCL_REVOKE_DEFAULT", NCCL_REVOKE_DEFAULT);
  emit("NCCL_GIN_MAX_CONTEXTS", NCCL_GIN_MAX_CONTEXTS);
}

void emit_config() {
  emit("sizeof ncclConfig_t", sizeof(ncclConfig_t));
  emit("ncclConfig_t size", offsetof(ncclConfig_t, size));
  emit("ncclConfig_t magic", offsetof(ncclConfig_t, magic));
  emit("ncclConfig_t version", offsetof(ncclConfig_t, version));
  emit("ncclConfig_t blocking", offsetof(ncclConfig_t, blocking));
  emit("ncclConfig_t cgaClusterSize", offsetof(ncclConfig_t, cgaClusterSize));
  emit("ncclConfig_t minCTAs", offsetof(ncclConfig_t, minCTAs));
  emit("ncclConfig_t maxCTAs", offsetof(ncclConfig_t, maxCTAs));
  emit("ncclConfig_t netName", offsetof(ncclConfig_t, netName));
  emit("ncclConfig_t splitShare", offsetof(ncclConfig_t, splitShare));
  emit("ncclConfig_t trafficClass", offsetof(ncclConfig_t, trafficClass));
  emit("ncclConfig_t commName", offsetof(ncclConfig_t, commName));
  emit("ncclConfig_t collnetEnable", offsetof(ncclConfig_t, collnetEnable));
  emit("ncclConfig_t CTAPolicy", offsetof(ncclConfig_t, CTAPolicy));
  emit("ncclConfig_t shrinkShare", offsetof(ncclConfig_t, shrinkShare));
  emit("ncclConfig_t nvlsCTAs", offsetof(ncclConfig_t, nvlsCTAs));
  emit("ncclConfig_t nChannelsPerNetPeer", offsetof(ncclConfig_t, nChannelsPerNetPeer));
  emit("ncclConfig_t nvlinkCentricSched", offsetof(ncclConfig_t, nvlinkCentricSched));
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  emit_bytes("NCCL_CONFIG_INITIALIZER", &config, sizeof(config));
  emit("sizeof ncclUniqueId", sizeof(ncclUniqueId));
  emit("alignof ncclUniqueId", alignof(ncclUniqueId));
}

void emit_simulation() {
  emit("sizeof ncclSimInfo_t", sizeof(ncclSimInfo_t));
  emit("ncclSimInfo_t magic", offsetof(ncclSimInfo_t, magic));
  emit("ncclSimInfo_t version", offsetof(ncclSimInfo_t, version));
  emit("ncclSimInfo_t estimatedTime", offsetof(ncclSimInfo_t, estimatedTime));
  const ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  emit_bytes("NCCL_SIM_INFO_INITIALIZER", &info, offsetof(ncclSimInfo_t, estimatedTime) + sizeof(float));
}

void emit_device_requirements() {
  emit("sizeof ncclTeam_t", sizeof(ncclTeam_t));
  emit("ncclTeam rank", offsetof(ncclTeam, rank));
  emit("ncclTeam stride", offsetof(ncclTeam, stride));
  emit("sizeof ncclMultimemHandle", sizeof(ncclMultimemHandle));
  emit("sizeof ncclLsaBarrierHandle", sizeof(ncclLsaBarrierHandle));
  emit("ncclLsaBarrierHandle nBarriers", offsetof(ncclLsaBarrierHandle, nBarriers));
  emit("sizeof ncclGinBarrierHandle", sizeof(ncclGinBarrierHandle));
  emit("ncclGinBarrierHandle bufHandle", offsetof(ncclGinBarrierHandle, bufHandle));
  emit("sizeof ncclLLA2AHandle", sizeof(ncclLLA2AHandle));
  emit("ncclLLA2AHandle nSlots", offsetof(ncclLLA2AHandle, nSlots));
  emit("sizeof ncclDevResourceRequirements", sizeof(ncclDevResourceRequirements));
  emit("ncclDevResourceRequirements bufferAlign", offsetof(ncclDevResourceRequirements, bufferAlign));
  emit("ncclDevResourceRequirements outBufferHandle", offsetof(ncclDevResourceRequirements, outBufferHandle));
  emit("ncclDevResourceRequirements outGinCounterStart", offsetof(ncclDevResourceRequirements, outGinCounterStart));
  emit("sizeof ncclTeamRequirements", sizeof(ncclTeamRequirements));
  emit("ncclTeamRequirements team", offsetof(ncclTeamRequirements, team));
  emit("ncclTeamRequirements multimem", offsetof(ncclTeamRequirements, multimem));
  emit("ncclTeamRequirements outMultimemHandle", offsetof(ncclTeamRequirements, outMultimemHandle));
  emit("sizeof ncclDevCommRequirements", sizeof(ncclDevCommRequirements));
  emit("ncclDevCommRequirements lsaMultimem", offsetof(ncclDevCommRequirements, lsaMultimem));
  emit("ncclDevCommRequirements lsaBarrierCount", offsetof(ncclDevCommRequirements, lsaBarrierCount));
  emit("ncclDevCommRequirements lsaLLA2ASlotCount", offsetof(ncclDevCommRequirements, lsaLLA2ASlotCount));
  emit("ncclDevCommRequirements ginForceEnable", offsetof(ncclDevCommRequirements, ginForceEnable));
  emit("ncclDevCommRequirements ginCounterCount", offsetof(ncclDevCommRequirements, ginCounterCount));
}

void emit_device_communicator() {
  emit("sizeof ncclWindow_vidmem", sizeof(ncclWindow_vidmem));
  emit("ncclWindow_vidmem lsaFlatBase", offsetof(ncclWindow_vidmem, lsaFlatBase));
  emit("ncclWindow_vidmem worldRank", offsetof(ncclWindow_vidmem, worldRank));
  emit("ncclWindow_vidmem stride4G", offsetof(ncclWindow_vidmem, stride4G));
  emit("ncclWindow_vidmem mcOffset4K", offsetof(ncclWindow_vidmem, mcOffset4K));
  emit("ncclWindow_vidmem ginOffset4K", offsetof(ncclWindow_vidmem, ginOffset4K));
  emit("ncclWindow_vidmem ginWins", offsetof(ncclWindow_vidmem, ginWins));
  emit("sizeof ncclDevComm", sizeof(ncclDevComm));
  emit("ncclDevComm nRanks", offsetof(ncclDevComm, nRanks));
  emit("ncclDevComm lsaRank", offsetof(ncclDevComm, lsaRank));
  emit("ncclDevComm lsaSize", offsetof(ncclDevComm, lsaSize));
  emit("ncclDevComm lsaSize_rcp32", offsetof(ncclDevComm, lsaSize_rcp32));
  emit("ncclDevComm windowTable", offsetof(ncclDevComm, windowTable));
  emit("ncclDevComm resourceWindow", offsetof(ncclDevComm, resourceWindow));
  emit("ncclDevComm resourceWindow_inlined", offsetof(ncclDevComm, resourceWindow_inlined));
  emit("ncclDevComm lsaMultimem", offsetof(ncclDevComm, lsaMultimem));
  emit("ncclDevComm lsaBarrier", offsetof(ncclDevComm, lsaBarrier));
  emit("ncclDevComm railGinBarrier", offsetof(ncclDevComm, railGinBarrier));
  emit("ncclDevComm ginContextCount", offsetof(ncclDevComm, ginContextCount));
  emit("ncclDevComm ginHandles", offsetof(ncclDevComm, ginHandles));
  emit("ncclDevComm ginSignalBase", offsetof(ncclDevComm, ginSignalBase));
  emit("ncclDevComm ginSignalShadows", offsetof(ncclDevComm, ginSignalShadows));
}

void emit_signatures() {
#include "signatures.inc"  // written by compare_headers.py: one emit_signature() per function of 2.28.9
}

}  // namespace

int main() {
  emit_versions();
  emit_enums();
  emit_datatypes();
  emit_macros();
  emit_config();
  emit_simulation();
  emit_device_requirements();
  emit_device_communicator();
  emit_signatures();
}
