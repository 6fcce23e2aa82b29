#include "runtime/reduce_op.h"

#include <climits>

namespace talaria {

ReduceOperators::ReduceOperators(const void* owner) {
  // A multiplicative hash (Knuth) of the address; shells of communicators never lie where another one was.
  const uint64_t spread = reinterpret_cast<uint64_t>(owner) / alignof(std::max_align_t) * 0x9e3779b97f4a7c15ull;
  next_ = kBuiltinReduceOps + static_cast<int>(spread >> 34);
}

int ReduceOperators::add(const PreMulSum& made) {
  while (made_.contains(next_)) next_ = next_ == INT_MAX ? kBuiltinReduceOps : next_ + 1;
  const int handle = next_;
  made_.emplace(handle, made);
  next_ = next_ == INT_MAX ? kBuiltinReduceOps : next_ + 1;
  return handle;
}

Status ReduceOperators::remove(int handle) { return made_.erase(handle) == 1 ? Status() : unknown(handle); }

Result<PreMulSum> ReduceOperators::find(int handle) const {
  const auto found = made_.find(handle);
  if (found == made_.end()) return unknown(handle);
  return found->second;
}

Status ReduceOperators::unknown(int handle) const {
  if (handle >= 0 && handle < kBuiltinReduceOps) {
    return fail(Code::kInvalidArgument, "reduction {} ({}) is built in and cannot be destroyed", handle,
                traits_of(static_cast<ReduceOp>(handle)).name);
  }
  return fail(Code::kInvalidArgument,
              "{} is no reduction of this communicator (0..{}, or one that ncclRedOpCreatePreMulSum made on it)",
              handle, kBuiltinReduceOps - 1);
}

}  // namespace talaria
