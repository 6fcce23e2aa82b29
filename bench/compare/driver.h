// The drivers of bench/compare_cpu.sh: one program per library, the same protocol and the same timing in all of them.
//
// A driver is one rank in one process: it connects, says so on a Unix socket, and then does what it is told there, one
// line per measurement. While it is told nothing it blocks in read(), so that it costs the other libraries no time.
// What is measured: a barrier in shared memory, `calls` calls back to back, the time from the barrier to the end of
// the last call. Buffers are touched beforehand and stay; broadcast works in place (MPI knows no other), everything
// else does not.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>

namespace talaria::compare {

enum class Operation { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kAllToAll };
inline constexpr int kRoot = 0;

// Memory that the ranks of one library share: a barrier, and what rank 0 has to tell the others before they connect.
class Meeting {
 public:
  Meeting(const std::string& file, int nranks);
  void barrier();
  std::array<char, 256>& note();

 private:
  struct Shared;
  Shared* shared_;
  int nranks_;
};

// One measurement's call. `input` and `output` are elements of float; a block is what one rank contributes or receives.
struct Call {
  Operation operation;
  std::string algorithm;  // one of the library's own names; "default" is always there
  float* input;
  float* output;
  size_t block;
  size_t input_count;
  size_t output_count;
};

class Library {
 public:
  virtual ~Library() = default;
  // Connects `nranks` ranks. `rank` is -1 for a library that numbers its ranks itself.
  virtual void connect(Meeting& meeting, const std::string& folder, int rank, int nranks) = 0;
  virtual int rank() const = 0;
  virtual std::string version() const = 0;
  // What a repetition of the call does. Anything that can be prepared once is prepared here.
  virtual std::function<void()> prepare(const Call& call) = 0;
};

// Ends the process unless `right`.
void require(bool right, const std::string& what);

// driver FOLDER NRANKS MAX_BYTES [RANK]: the whole program. Returns the exit code.
int run_driver(int argc, char** argv, Library& library);

}  // namespace talaria::compare
