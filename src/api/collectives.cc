// Entry points that move or reduce data: arguments become one Collective.
#include <cstdint>
#include <cstring>

#include "api/boundary.h"
#include "base/log.h"

namespace talaria::api {
namespace {

constexpr int kNoReduction = 0;  // never read

// An operation in the C caller's words. Enums are plain ints here: a C caller can pass anything.
struct Request {
  const char* function;
  Operation operation;
  const void* input;
  void* output;
  size_t count;
  int type;
  int reduction;  // a builtin or a handle of the communicator's own; kNoReduction where the operation has none
  int root;       // the peer of a send or receive; 0 where the operation has none
};

Result<DataType> checked_type(int type, const char* function) {
  if (type >= 0 && type < kDataTypes) return static_cast<DataType>(type);
  return fail(Code::kInvalidArgument, "{} : {} is no datatype (0..{})", function, type, kDataTypes - 1);
}

// What the caller's reduction does, and with which scalar.
struct Reduction {
  ReduceOp op;
  Scalar scalar;
};

Result<Reduction> checked_reduction(const Request& request, Communicator& communicator, DataType type) {
  if (!reduces(request.operation)) return Reduction{ReduceOp::kNone, {}};
  const bool builtin = request.reduction >= 0 && request.reduction < kBuiltinReduceOps;
  if (builtin) return Reduction{static_cast<ReduceOp>(request.reduction), {}};
  return Reduction{ReduceOp::kPreMulSum, TRY(scalar_of(communicator, request.reduction, type))};
}

Status check_root(const Request& request, const Communicator& communicator) {
  const int nranks = count_of(communicator);
  if (request.root >= 0 && request.root < nranks) return Status();
  return fail(Code::kInvalidArgument, "{} : rank {} is outside the communicator (0..{})", request.function,
              request.root, nranks - 1);
}

// Buffers that this rank's part of the operation does not touch may be null, and so may buffers of nothing.
Status check_buffers(const Request& request, const Communicator& communicator) {
  if (request.count == 0) return Status();
  const bool is_root = rank_of(communicator) == request.root;
  if (reads_input(request.operation, is_root)) TRY(check_pointer(request.input, request.function, "sendbuff"));
  if (writes_output(request.operation, is_root)) TRY(check_pointer(request.output, request.function, "recvbuff"));
  return Status();
}

// The largest buffer of the call must have an address range.
Status check_size(const Request& request, const Communicator& communicator, DataType type) {
  const size_t parts = counts_per_rank(request.operation) ? static_cast<size_t>(count_of(communicator)) : 1;
  if (request.count <= PTRDIFF_MAX / bytes_of(type) / parts) return Status();
  return fail(Code::kInvalidArgument, "{} : {} elements of {} bytes do not fit into memory", request.function,
              request.count, bytes_of(type));
}

void log_call(const Request& request, ncclComm_t comm, cudaStream_t stream) {
  const uint32_t kind = is_point_to_point(request.operation) ? kLogP2p : kLogColl;
  log_info(kLogCall | kind, "{}: sendbuff {} recvbuff {} count {} datatype {} op {} root {} comm {} stream {}",
           request.function, request.input, request.output, request.count, request.type, request.reduction,
           request.root, static_cast<const void*>(comm), static_cast<const void*>(stream));
}

Status submit_request(const Request& request, ncclComm_t comm, cudaStream_t stream) {
  Communicator* communicator = TRY(communicator_of(comm, request.function));
  TRY(check_root(request, *communicator));
  const DataType type = TRY(checked_type(request.type, request.function));
  const Reduction reduction = TRY(checked_reduction(request, *communicator, type));
  TRY(check_size(request, *communicator, type));
  TRY(check_buffers(request, *communicator));
  const Collective collective{request.operation, type, reduction.op, request.root, request.count};
  return submit(*communicator, Call{collective, request.input, request.output, stream, reduction.scalar});
}

struct PreMulSumRequest {
  void* scalar;
  int type;
  int residence;
};

Result<int> create_reduction(const PreMulSumRequest& request, ncclComm_t comm) {
  constexpr char kFunction[] = "RedOpCreatePreMulSum";
  Communicator* communicator = TRY(communicator_of(comm, kFunction));
  TRY(check_pointer(request.scalar, kFunction, "scalar"));
  const DataType type = TRY(checked_type(request.type, kFunction));
  if (request.residence == ncclScalarDevice) return create_pre_mul_sum(*communicator, type, Scalar{0, request.scalar});
  if (request.residence != ncclScalarHostImmediate) {
    return fail(Code::kInvalidArgument, "{} : {} is no scalar residence (0, device, or 1, host immediate)", kFunction,
                request.residence);
  }
  Scalar scalar;
  std::memcpy(&scalar.bits, request.scalar, bytes_of(type));
  return create_pre_mul_sum(*communicator, type, scalar);
}

ncclResult_t enter(const Request& request, ncclComm_t comm, cudaStream_t stream) {
  return guarded_in_group(request.function, [&] {
    log_call(request, comm, stream);
    return submit_request(request, comm, stream);
  });
}

}  // namespace
}  // namespace talaria::api

using namespace talaria;
using namespace talaria::api;

extern "C" {

ncclResult_t pncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                            ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return enter({"AllReduce", Operation::kAllReduce, sendbuff, recvbuff, count, datatype, op, 0}, comm, stream);
}

ncclResult_t pncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return enter({"ReduceScatter", Operation::kReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, 0}, comm,
               stream);
}

ncclResult_t pncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                            ncclComm_t comm, cudaStream_t stream) {
  return enter({"AllGather", Operation::kAllGather, sendbuff, recvbuff, sendcount, datatype, kNoReduction, 0}, comm,
               stream);
}

ncclResult_t pncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                            ncclComm_t comm, cudaStream_t stream) {
  return enter({"Broadcast", Operation::kBroadcast, sendbuff, recvbuff, count, datatype, kNoReduction, root}, comm,
               stream);
}

ncclResult_t pncclBcast(void* buff, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  return enter({"Bcast", Operation::kBroadcast, buff, buff, count, type, kNoReduction, root}, comm, stream);
}

ncclResult_t pncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  return enter({"Send", Operation::kSend, sendbuff, nullptr, count, datatype, kNoReduction, peer}, comm, stream);
}

ncclResult_t pncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  return enter({"Recv", Operation::kRecv, nullptr, recvbuff, count, datatype, kNoReduction, peer}, comm, stream);
}

ncclResult_t pncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                         int root, ncclComm_t comm, cudaStream_t stream) {
  return enter({"Reduce", Operation::kReduce, sendbuff, recvbuff, count, datatype, op, root}, comm, stream);
}

ncclResult_t pncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream) {
  return enter({"AlltoAll", Operation::kAlltoAll, sendbuff, recvbuff, count, datatype, kNoReduction, 0}, comm, stream);
}

ncclResult_t pncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return enter({"Gather", Operation::kGather, sendbuff, recvbuff, count, datatype, kNoReduction, root}, comm, stream);
}

ncclResult_t pncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                          ncclComm_t comm, cudaStream_t stream) {
  return enter({"Scatter", Operation::kScatter, sendbuff, recvbuff, count, datatype, kNoReduction, root}, comm, stream);
}

ncclResult_t pncclPutSignal(const void*, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int, int, unsigned int,
                            ncclComm_t, cudaStream_t) {
  return guarded_in_group("PutSignal", [] { return not_supported("ncclPutSignal"); });
}

ncclResult_t pncclSignal(int, int, int, unsigned int, ncclComm_t, cudaStream_t) {
  return guarded_in_group("Signal", [] { return not_supported("ncclSignal"); });
}

ncclResult_t pncclWaitSignal(int, ncclWaitSignalDesc_t*, ncclComm_t, cudaStream_t) {
  return guarded_in_group("WaitSignal", [] { return not_supported("ncclWaitSignal"); });
}

ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm) {
  return guarded("RedOpCreatePreMulSum", [&]() -> Status {
    TRY(check_pointer(op, "RedOpCreatePreMulSum", "op"));
    *op = static_cast<ncclRedOp_t>(TRY(create_reduction({scalar, datatype, residence}, comm)));
    return Status();
  });
}

ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return guarded("RedOpDestroy", [&]() -> Status {
    return destroy_reduction(*TRY(communicator_of(comm, "RedOpDestroy")), op);
  });
}

// Weak, so that a profiler can put its own in front (design §11).
decltype(pncclAllReduce) ncclAllReduce __attribute__((weak, alias("pncclAllReduce")));
decltype(pncclReduceScatter) ncclReduceScatter __attribute__((weak, alias("pncclReduceScatter")));
decltype(pncclAllGather) ncclAllGather __attribute__((weak, alias("pncclAllGather")));
decltype(pncclBroadcast) ncclBroadcast __attribute__((weak, alias("pncclBroadcast")));
decltype(pncclBcast) ncclBcast __attribute__((weak, alias("pncclBcast")));
decltype(pncclSend) ncclSend __attribute__((weak, alias("pncclSend")));
decltype(pncclRecv) ncclRecv __attribute__((weak, alias("pncclRecv")));
decltype(pncclReduce) ncclReduce __attribute__((weak, alias("pncclReduce")));
decltype(pncclAlltoAll) ncclAlltoAll __attribute__((weak, alias("pncclAlltoAll")));
decltype(pncclGather) ncclGather __attribute__((weak, alias("pncclGather")));
decltype(pncclScatter) ncclScatter __attribute__((weak, alias("pncclScatter")));
decltype(pncclPutSignal) ncclPutSignal __attribute__((weak, alias("pncclPutSignal")));
decltype(pncclSignal) ncclSignal __attribute__((weak, alias("pncclSignal")));
decltype(pncclWaitSignal) ncclWaitSignal __attribute__((weak, alias("pncclWaitSignal")));
decltype(pncclRedOpCreatePreMulSum) ncclRedOpCreatePreMulSum __attribute__((weak, alias("pncclRedOpCreatePreMulSum")));
decltype(pncclRedOpDestroy) ncclRedOpDestroy __attribute__((weak, alias("pncclRedOpDestroy")));
}
