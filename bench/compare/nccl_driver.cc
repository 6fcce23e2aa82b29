// Talaria, or whatever libnccl.so.2 the loader finds, on CPU ranks.
#include <dlfcn.h>
#include <nccl.h>

#include <cstring>

#include "driver.h"

namespace talaria::compare {
namespace {

void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  require(false, std::string(what) + ": " + ncclGetErrorString(result) + " (" + ncclGetLastError(nullptr) + ")");
}

class Nccl final : public Library {
 public:
  ~Nccl() override {
    if (communicator_ != nullptr) check(ncclCommDestroy(communicator_), "ncclCommDestroy");
  }
  void connect(Meeting& meeting, const std::string&, int rank, int nranks) override {
    rank_ = rank;
    ncclUniqueId id{};
    static_assert(sizeof(id) <= sizeof(meeting.note()));
    if (rank == 0) {
      check(ncclGetUniqueId(&id), "ncclGetUniqueId");
      std::memcpy(meeting.note().data(), &id, sizeof(id));
    }
    meeting.barrier();
    std::memcpy(&id, meeting.note().data(), sizeof(id));
    check(ncclCommInitRank(&communicator_, nranks, id, rank), "ncclCommInitRank");
  }
  int rank() const override { return rank_; }

  // "22809 /path/libnccl.so.2": the file is hashed by who writes the report.
  std::string version() const override {
    int version = 0;
    check(ncclGetVersion(&version), "ncclGetVersion");
    Dl_info info{};
    const bool found = dladdr(reinterpret_cast<const void*>(&ncclGetVersion), &info) != 0;
    return std::to_string(version) + " " + (found ? info.dli_fname : "?");
  }

  std::function<void()> prepare(const Call& call) override {
    return [this, call] { check(issue(call), "a collective"); };
  }

 private:
  ncclResult_t issue(const Call& call) {
    switch (call.operation) {
      case Operation::kAllReduce:
        return ncclAllReduce(call.input, call.output, call.block, ncclFloat, ncclSum, communicator_, nullptr);
      case Operation::kAllGather:
        return ncclAllGather(call.input, call.output, call.block, ncclFloat, communicator_, nullptr);
      case Operation::kReduceScatter:
        return ncclReduceScatter(call.input, call.output, call.block, ncclFloat, ncclSum, communicator_, nullptr);
      case Operation::kBroadcast:
        return ncclBroadcast(call.input, call.output, call.block, ncclFloat, kRoot, communicator_, nullptr);
      case Operation::kAllToAll:
        return ncclAlltoAll(call.input, call.output, call.block, ncclFloat, communicator_, nullptr);
    }
    return ncclInternalError;
  }

  ncclComm_t communicator_ = nullptr;
  int rank_ = -1;
};

}  // namespace
}  // namespace talaria::compare

int main(int argc, char** argv) {
  talaria::compare::Nccl library;
  return talaria::compare::run_driver(argc, argv, library);
}
