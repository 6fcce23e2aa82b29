// Open MPI, with the options that mpirun was given.
#include <mpi.h>

#include <algorithm>
#include <array>

#include "driver.h"

namespace talaria::compare {
namespace {

void check(int result) { require(result == MPI_SUCCESS, "an MPI call failed"); }

class Mpi final : public Library {
 public:
  ~Mpi() override { MPI_Finalize(); }
  void connect(Meeting&, const std::string&, int, int nranks) override {
    check(MPI_Init(nullptr, nullptr));
    int size = 0;
    check(MPI_Comm_size(MPI_COMM_WORLD, &size));
    require(size == nranks, "mpirun started another number of ranks");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  }
  int rank() const override { return rank_; }
  std::string version() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    check(MPI_Get_library_version(text.data(), &length));
    return {text.data(), std::find(text.data(), text.data() + length, ',')};
  }
  std::function<void()> prepare(const Call& call) override {
    return [call] { check(issue(call)); };
  }

 private:
  static int issue(const Call& call) {
    const auto block = static_cast<int>(call.block);
    switch (call.operation) {
      case Operation::kAllReduce:
        return MPI_Allreduce(call.input, call.output, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      case Operation::kAllGather:
        return MPI_Allgather(call.input, block, MPI_FLOAT, call.output, block, MPI_FLOAT, MPI_COMM_WORLD);
      case Operation::kReduceScatter:
        return MPI_Reduce_scatter_block(call.input, call.output, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      case Operation::kBroadcast: return MPI_Bcast(call.output, block, MPI_FLOAT, kRoot, MPI_COMM_WORLD);
      case Operation::kAllToAll:
        return MPI_Alltoall(call.input, block, MPI_FLOAT, call.output, block, MPI_FLOAT, MPI_COMM_WORLD);
    }
    return MPI_ERR_OP;
  }

  int rank_ = -1;
};

}  // namespace
}  // namespace talaria::compare

int main(int argc, char** argv) {
  talaria::compare::Mpi library;
  return talaria::compare::run_driver(argc, argv, library);
}
