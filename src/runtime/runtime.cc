#include "runtime/runtime.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/config_report.h"
#include "base/log.h"
#include "base/os.h"
#include "runtime/communicator.h"
#include "runtime/engine.h"
#include "runtime/group.h"

namespace talaria {
namespace {

constexpr int kHostDevice = -1;

Status check_place(int nranks, int rank) {
  if (nranks >= 1 && rank >= 0 && rank < nranks) return Status();
  return fail(Code::kInvalidArgument, "Invalid rank requested : {}/{}", rank, nranks);
}

Status check_devices(int ndev, const int* devices, int visible) {
  std::vector<int> seen;
  for (int i = 0; i < ndev; ++i) {
    const int device = devices == nullptr ? i : devices[i];
    if (device < 0 || device >= visible) {
      return fail(Code::kInvalidArgument, "Invalid device {} for rank {}: {} devices are visible", device, i, visible);
    }
    if (std::find(seen.begin(), seen.end(), device) != seen.end()) {
      return fail(Code::kInvalidUsage, "Device {} is given twice; every rank of ncclCommInitAll needs its own", device);
    }
    seen.push_back(device);
  }
  return Status();
}

InitJob init_job(Communicator** out, std::unique_ptr<Communicator> comm, const Seat& seat, const InitOptions& options,
                 const Config& config) {
  return {out, std::move(comm), [=](Communicator& made) { return made.init(seat, options, config); }};
}

// Runs `action` as a group of its own, or as part of the caller's.
template <typename Action>
Status grouped(Action action) {
  Group& group = Group::current();
  group.start();
  const Status status = action(group);
  if (!status.ok()) group.poison(status);
  const Status ended = group.end();
  return status.ok() ? ended : status;
}

Status refuse_gpu_ranks(const char* function, const Communicator& comm, const char* what) {
  if (comm.kind() == EngineKind::kHost) return Status();
  return fail(Code::kInvalidUsage, "{}: communicators of GPU ranks cannot {} yet", function, what);
}

// The ranks of `parent` that are not excluded.
Result<std::vector<uint32_t>> remaining_ranks(const Communicator& parent, const std::vector<int>& excluded) {
  constexpr const char* kList = "CommShrink : excludeRanksList";
  const auto own = static_cast<int>(parent.rank()), nranks = static_cast<int>(parent.nranks());
  for (size_t i = 0; i < excluded.size(); ++i) {
    if (excluded[i] < 0 || excluded[i] >= nranks) {
      return fail(Code::kInvalidArgument, "{}[{}] is {} (it should be in the 0..{} range)", kList, i, excluded[i],
                  nranks - 1);
    }
    if (excluded[i] == own) {
      return fail(Code::kInvalidArgument, "{}[{}] is {}, the caller: only ranks that remain call", kList, i, own);
    }
    if (i > 0 && excluded[i] <= excluded[i - 1]) {
      return fail(Code::kInvalidArgument, "{}[{}] is {} after {}: expected each rank once, in ascending order", kList,
                  i, excluded[i], excluded[i - 1]);
    }
  }
  std::vector<uint32_t> members;
  for (int rank = 0; rank < nranks; ++rank) {
    if (!std::ranges::binary_search(excluded, rank)) members.push_back(static_cast<uint32_t>(rank));
  }
  return members;
}

Result<ReduceOperators*> operators_of(Communicator& comm) {
  ReduceOperators* operators = comm.operators();
  if (operators != nullptr) return operators;
  return fail(Code::kInvalidArgument, "comm {} is not initialized yet", static_cast<const void*>(&comm));
}

}  // namespace

Status init_rank(Communicator** out, int nranks, std::vector<UniqueId> ids, int rank, const InitOptions& options) {
  *out = nullptr;
  return grouped([&](Group& group) -> Status {
    TRY(check_place(nranks, rank));
    const Config config = read_reported_config();
    const int device = visible_devices(config) > 0 ? TRY(current_device()) : kHostDevice;
    const Seat seat{static_cast<uint32_t>(rank), static_cast<uint32_t>(nranks), std::move(ids)};
    auto comm = std::make_unique<Communicator>(device, blocking_of(options, config));
    return group.add(init_job(out, std::move(comm), seat, options, config));
  });
}

Status init_all(Communicator** out, int ndev, const int* devices) {
  const Config config = read_reported_config();
  const int visible = visible_devices(config);
  std::fill(out, out + std::max(ndev, 0), nullptr);
  if (ndev < 1) return fail(Code::kInvalidArgument, "Invalid device count requested : {}", ndev);
  if (visible > 0) TRY(check_devices(ndev, devices, visible));
  const UniqueId id = TRY(create_unique_id(config));
  return grouped([&](Group& group) -> Status {
    for (int i = 0; i < ndev; ++i) {
      const int device = visible == 0 ? kHostDevice : devices == nullptr ? i : devices[i];
      const Seat seat{static_cast<uint32_t>(i), static_cast<uint32_t>(ndev), {id}};
      TRY(group.add(init_job(out + i, std::make_unique<Communicator>(device, true), seat, InitOptions{}, config)));
    }
    return Status();
  });
}

Status split(Communicator& parent, int color, int key, const std::optional<InitOptions>& options, Communicator** out) {
  *out = nullptr;
  TRY(refuse_gpu_ranks("ncclCommSplit", parent, "be split"));
  return grouped([&](Group& group) -> Status {
    return group.add({out, parent.conceive(options),
                      [=, &parent](Communicator& comm) { return comm.init_by_split(parent, {color, key}, options); },
                      &parent, color != SplitRequest::kNoColor});
  });
}

Status suspend(Communicator& comm) {
  return grouped([&](Group& group) -> Status {
    TRY(refuse_gpu_ranks("ncclCommSuspend", comm, "be suspended"));
    if (comm.suspended()) return fail(Code::kInvalidUsage, "ncclCommSuspend: comm {} is suspended already",
                                      static_cast<const void*>(&comm));
    return group.add({nullptr, nullptr, [](Communicator& self) { return self.suspend(); }, &comm, false});
  });
}

Status resume(Communicator& comm) {
  return grouped([&](Group& group) -> Status {
    if (!comm.suspended()) return fail(Code::kInvalidUsage, "ncclCommResume: comm {} is not suspended",
                                       static_cast<const void*>(&comm));
    return group.add({nullptr, nullptr, [](Communicator& self) { return self.resume(); }, &comm, false});
  });
}

Status shrink(Communicator& parent, const Exclusion& excluded, const std::optional<InitOptions>& options,
              Communicator** out) {
  *out = nullptr;
  TRY(refuse_gpu_ranks("ncclCommShrink", parent, "shrink"));
  const ShrinkRequest request{TRY(remaining_ranks(parent, excluded.ranks)), excluded.abort};
  return grouped([&](Group& group) -> Status {
    return group.add({out, parent.conceive(options),
                      [=, &parent](Communicator& comm) { return comm.init_by_shrink(parent, request, options); },
                      &parent});
  });
}

Result<UniqueId> growth_id(Communicator& parent) {
  TRY(refuse_gpu_ranks("ncclCommGetUniqueId", parent, "grow"));
  return parent.open_for_growth();
}

Status grow(Communicator& parent, int nranks, const std::optional<UniqueId>& id,
            const std::optional<InitOptions>& options, Communicator** out) {
  *out = nullptr;
  TRY(refuse_gpu_ranks("ncclCommGrow", parent, "grow"));
  return grouped([&](Group& group) -> Status {
    return group.add({out, parent.conceive(options),
                      [=, &parent](Communicator& comm) { return comm.init_by_growth(parent, {nranks, id}, options); },
                      &parent});
  });
}

Status check_newcomer() {
  if (visible_devices(read_config()) == 0) return Status();
  return fail(Code::kInvalidUsage, "ncclCommGrow: communicators of GPU ranks cannot grow yet");
}

Status finalize(Communicator& comm) { return comm.finalize(); }

Status revoke(Communicator& comm) {
  TRY(refuse_gpu_ranks("ncclCommRevoke", comm, "be revoked"));
  return comm.revoke();
}

Status destroy(Communicator* comm) {
  const Status drained = comm->settle();
  comm->release();
  return drained;
}

Status abort(Communicator* comm) {
  comm->abort();
  comm->release();
  return Status();
}

Result<Communicator*> known_handle(void* handle, const char* function) {
  if (handle == nullptr) return fail(Code::kInvalidArgument, "{} : comm argument is NULL", function);
  auto* comm = static_cast<Communicator*>(handle);
  if (!comm->intact()) return fail(Code::kInvalidArgument, "Error: corrupted comm object detected");
  log_set_device(comm->device());
  if (comm->released()) {
    return fail(Code::kInvalidArgument, "comm {} has already been destroyed (rank {} of {})", handle, comm->rank(),
                comm->nranks());
  }
  if (!comm->at_home()) {
    return fail(Code::kInvalidUsage, "comm {} belongs to process {}: a process forked from it cannot use it", handle,
                comm->home_process());
  }
  return comm;
}

Result<Communicator*> checked_handle(void* handle, const char* function) {
  Communicator* comm = TRY(known_handle(handle, function));
  if (comm->in_progress()) {
    return fail(Code::kInvalidArgument, "{} : Attempt to use communicator before the previous operation returned "
                "ncclSuccess (comm {}): poll ncclCommGetAsyncError first", function, handle);
  }
  if (comm->ready()) return comm;
  return fail(comm->async_error(), "{} : comm {} could not be made, see its log; abort it", function, handle);
}

int rank_of(const Communicator& comm) { return static_cast<int>(comm.rank()); }
int count_of(const Communicator& comm) { return static_cast<int>(comm.nranks()); }
int device_of(const Communicator& comm) { return comm.device(); }
int nvml_index_of(const Communicator& comm) { return comm.nvml_index(); }
uint64_t device_bytes_of(const Communicator& comm) { return comm.device_bytes(); }
bool is_suspended(const Communicator& comm) { return comm.suspended(); }
Code async_error_of(const Communicator& comm) { return comm.async_error(); }

Status group_start() {
  Group::current().start();
  return Status();
}

Status group_end() { return Group::current().end(); }

void note_group_failure(Status status) {
  Group& group = Group::current();
  if (group.open()) group.poison(status);
}

Status submit(Communicator& comm, const Call& call) {
  const bool host = comm.kind() == EngineKind::kHost;
  if (call.collective.count == 0 && !comm.compares_calls()) return Status();
  if (host && !is_point_to_point(call.collective.operation) && !Group::current().open() && !comm.compares_calls()) {
    return comm.run_alone(call);
  }
  return grouped([&](Group& group) -> Status {
    const Communicator::Use use(comm);
    TRY(comm.check(call.collective));
    Call queued = call;
    if (host) queued.stream = nullptr;  // CPU ranks ignore streams: different ones must not cut a group into parts
    return group.add(comm, queued);
  });
}

Result<int> create_pre_mul_sum(Communicator& comm, DataType type, const Scalar& scalar) {
  const Communicator::Use use(comm);
  return TRY(operators_of(comm))->add({type, scalar});
}

Status destroy_reduction(Communicator& comm, int handle) {
  const Communicator::Use use(comm);
  return TRY(operators_of(comm))->remove(handle);
}

Result<Scalar> scalar_of(Communicator& comm, int handle, DataType type) {
  const Communicator::Use use(comm);
  const PreMulSum found = TRY(TRY(operators_of(comm))->find(handle));
  if (found.type == type) return found.scalar;
  return fail(Code::kInvalidArgument, "reduction {} was made for datatype {}, not for {}", handle,
              traits_of(found.type).name, traits_of(type).name);
}

}  // namespace talaria
