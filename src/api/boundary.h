// The C boundary: what every exported function shares.
//
// An entry point is `pncclX` (strong) with the weak alias `ncclX`. Its body validates, converts and forwards to
// runtime/runtime.h; it never calls another exported name, because a profiler may have replaced that. No exception
// leaves the library, except the one with which glibc unwinds a cancelled thread.
#pragma once

// The prototypes carry the visibility: everything else of this library is hidden.
#pragma GCC visibility push(default)
#include "nccl.h"
#include <nccl_device_types.h>
#pragma GCC visibility pop

#include <cxxabi.h>

#include <exception>
#include <new>

#include "base/status.h"
#include "runtime/runtime.h"

namespace talaria::api {

// A code as the C caller sees it.
constexpr ncclResult_t result_of(Status status) { return static_cast<ncclResult_t>(status.code()); }

// Reports what escaped from `function`; called from a catch block only.
Status stray_exception(const char* function);

// kInvalidUsage, naming an entry point that a later release of this library brings.
Status not_supported(const char* function);

// kInvalidArgument in NCCL's words when `pointer` is null.
Status check_pointer(const void* pointer, const char* function, const char* argument);

// Runs the body of an entry point. `body` returns a Status.
template <typename Body>
ncclResult_t guarded(const char* function, Body&& body) {
  try {
    return result_of(body());
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return result_of(stray_exception(function));
  }
}

// The same for entry points that may stand in a group: a failure becomes the group's too, so that a caller who looks
// at ncclGroupEnd only does not miss it.
template <typename Body>
ncclResult_t guarded_in_group(const char* function, Body&& body) {
  return guarded(function, [&]() -> Status {
    const Status status = body();
    if (!status.ok()) note_group_failure(status);
    return status;
  });
}

// The same for entry points without an error channel: `body` returns a Result, `fallback` stands for a failure.
template <typename Value, typename Body>
Value guarded_value(const char* function, Value fallback, Body&& body) {
  try {
    Result<Value> result = body();
    return result.ok() ? *result : fallback;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    static_cast<void>(stray_exception(function));
    return fallback;
  }
}

inline Result<Communicator*> communicator_of(ncclComm_t comm, const char* function) {
  return checked_handle(comm, function);
}

inline ncclComm_t* handles_of(Communicator** communicators) { return reinterpret_cast<ncclComm_t*>(communicators); }
inline Communicator** communicators_of(ncclComm_t* handles) { return reinterpret_cast<Communicator**>(handles); }

}  // namespace talaria::api
