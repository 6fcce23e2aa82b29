// ReduceOperators: the reductions that ncclRedOpCreatePreMulSum has made on one communicator, by handle.
//
// Handles are no builtin's number, begin at another place for each communicator and are never used again, so that those
// of other communicators and of operators destroyed are not found. One thread at a time.
#pragma once

#include <cstdint>
#include <map>

#include "base/status.h"
#include "base/types.h"
#include "runtime/runtime.h"

namespace talaria {

struct PreMulSum {
  DataType type;
  Scalar scalar;
};

class ReduceOperators {
 public:
  // `owner` tells communicators apart.
  explicit ReduceOperators(const void* owner);
  int add(const PreMulSum& made);
  // kInvalidArgument when there is no such operator.
  Status remove(int handle);
  Result<PreMulSum> find(int handle) const;

 private:
  Status unknown(int handle) const;
  std::map<int, PreMulSum> made_;
  int next_;
};

}  // namespace talaria
