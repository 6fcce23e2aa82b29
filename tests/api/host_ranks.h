// Communicators of CPU ranks in this process, by the C API alone.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "nccl.h"

namespace talaria::test {

// Fixture: every communicator that the test makes has CPU ranks, with or without a GPU in the machine.
class HostRanks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("TALARIA_DEVICE", "host", 1); }
};

// All ranks of one communicator, destroyed at the end.
class Clique {
 public:
  explicit Clique(int nranks) : comms_(static_cast<size_t>(nranks)) {
    result_ = ncclCommInitAll(comms_.data(), nranks, nullptr);
  }
  Clique(const Clique&) = delete;
  Clique& operator=(const Clique&) = delete;
  ~Clique() {
    for (ncclComm_t comm : comms_) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  }
  ncclResult_t result() const { return result_; }
  int size() const { return static_cast<int>(comms_.size()); }
  ncclComm_t operator[](int rank) const { return comms_[static_cast<size_t>(rank)]; }

 private:
  std::vector<ncclComm_t> comms_;
  ncclResult_t result_;
};

}  // namespace talaria::test
