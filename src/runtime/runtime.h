// What the C boundary may call: the runtime's front door. Arguments are already validated for null and range of enums;
// everything that needs the communicator's state is checked here. Thread-safe as NCCL's API is: calls on one
// communicator come from one thread at a time, except abort and the queries.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bootstrap/unique_id.h"
#include "schedule/collective.h"

namespace talaria {

class Communicator;

// ncclConfig_t after the boundary has interpreted its version and size; kUnset means "not given".
struct InitOptions {
  static constexpr int kUnset = INT32_MIN;
  int blocking = kUnset;
  int cga_cluster_size = kUnset;
  int min_ctas = kUnset;
  int max_ctas = kUnset;
  int split_share = kUnset;
  int traffic_class = kUnset;
  int collnet_enable = kUnset;
  int cta_policy = kUnset;
  int shrink_share = kUnset;
  int nvls_ctas = kUnset;
  int channels_per_net_peer = kUnset;
  int nvlink_centric_sched = kUnset;
  std::string net_name;
  std::string comm_name;
};

// --- life of a communicator. `*out` is written at once outside a group, at group_end inside one (null on failure).
// A non-blocking one is then still in progress: kInProgress is returned, and async_error_of() becomes kSuccess or the
// error. It has to be destroyed or aborted also after an error.
// With several ids the ranks are spread over their roots.
Status init_rank(Communicator** out, int nranks, std::vector<UniqueId> ids, int rank, const InitOptions& options);
// One communicator per entry of `devices` (null: 0..ndev-1) in this process. Always blocking.
Status init_all(Communicator** out, int ndev, const int* devices);
// Collective over `parent`: one communicator per color, ordered by key, then by rank. Null for color -1. Without
// `options` the child is made as the parent was. In the background where the parent is non-blocking, which is then in
// progress as well, and hears of a failure.
Status split(Communicator& parent, int color, int key, const std::optional<InitOptions>& options, Communicator** out);
// Of the ranks that are not in `excluded` (ascending), which all call alike; the others need not be alive. With `abort`
// `parent` is revoked first.
struct Exclusion {
  std::vector<int> ranks;
  bool abort;
};
Status shrink(Communicator& parent, const Exclusion& excluded, const std::optional<InitOptions>& options,
              Communicator** out);
// Of all ranks of `parent`, in their places, and of newcomers, who come by the id. One rank of `parent` makes the id
// with growth_id(), once for each growth; it need not give it.
Result<UniqueId> growth_id(Communicator& parent);
Status grow(Communicator& parent, int nranks, const std::optional<UniqueId>& id,
            const std::optional<InitOptions>& options, Communicator** out);
Status check_newcomer();  // before a newcomer's init_rank(): may this process have some?
// Collective, in a group or alone, in the background where the communicator is non-blocking. Between the two it carries
// out no operation, and memory that only operations need is the system's. kInvalidUsage out of order.
Status suspend(Communicator& comm);
Status resume(Communicator& comm);
Status finalize(Communicator& comm);
// Ends the operations in flight, from any thread; what is left of `comm` is its end, and to make others of it.
Status revoke(Communicator& comm);
Status destroy(Communicator* comm);  // frees it, after what is in progress
// Frees it; callable from any thread while other calls are in flight or something is in progress, which it ends.
Status abort(Communicator* comm);

// --- queries
// kInvalidArgument with a log line for null, foreign or destroyed handles. `function` is the API name for the text.
Result<Communicator*> known_handle(void* handle, const char* function);
// The same, and kInvalidArgument while something is in progress, and the error of an init that has failed.
Result<Communicator*> checked_handle(void* handle, const char* function);
int rank_of(const Communicator& comm);
int count_of(const Communicator& comm);
int device_of(const Communicator& comm);  // CUDA device ordinal; -1 for CPU ranks
int nvml_index_of(const Communicator& comm);  // -1 for CPU ranks, and where NVML does not tell
uint64_t device_bytes_of(const Communicator& comm);  // GPU memory that the library holds for the communicator
bool is_suspended(const Communicator& comm);
Code async_error_of(const Communicator& comm);

// --- operations and groups. Outside a group an operation is a group of one.
Status group_start();
Status group_end();
// A failure found before the runtime was called, as a wrong argument is: makes the end of an open group fail with it.
void note_group_failure(Status status);
// The scalar of PreMulSum: an element of the type in the lowest bytes of `bits`, or, where `address` is not null, what
// lies there when the operation runs.
struct Scalar {
  uint64_t bits = 0;
  const void* address = nullptr;
};
// One operation as it was called.
struct Call {
  Collective collective;
  const void* input;
  void* output;
  void* stream;
  Scalar scalar = {};
};
Status submit(Communicator& comm, const Call& call);
inline Status submit(Communicator& comm, const Collective& collective, const void* input, void* output, void* stream) {
  return submit(comm, Call{collective, input, output, stream});
}

// --- reductions of a communicator's own. Handles are those of the C API, and no builtin's. What is started with one
// may still run when it is destroyed. kInvalidArgument for handles that this communicator did not make, or for another
// type.
Result<int> create_pre_mul_sum(Communicator& comm, DataType type, const Scalar& scalar);
Status destroy_reduction(Communicator& comm, int handle);
Result<Scalar> scalar_of(Communicator& comm, int handle, DataType type);

// --- memory for user buffers: on the caller's current GPU, or page-aligned host memory where ranks run on the CPU.
// Needs no communicator. Null for 0 bytes.
Result<void*> allocate_memory(size_t bytes);
Status free_memory(void* memory);  // null is fine

}  // namespace talaria
