// Operation: everything in which the benchmark programs differ, as one row.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <vector>

namespace talaria::bench {

// Elements that one rank sends and receives, and the count argument of the call.
struct Counts {
  uint64_t send, receive, argument;
};

// Who is called for: arguments of the functions below.
struct Place {
  int rank, nranks, root;
  Counts counts;
};

// The next `count` elements of an output: elements [first, first + count) of `source`'s input, or of the reduction.
struct Segment {
  static constexpr int kAllRanks = -1;
  int source;
  uint64_t first, count;
};

// One call into the library.
struct Call {
  const void* input;
  void* output;
  ncclDataType_t type;
  ncclRedOp_t reduction;
  ncclComm_t communicator;
  cudaStream_t stream;
};

struct Operation {
  const char* name;          // "AllReduce"
  const char* program;       // "all_reduce_perf"
  bool reduces;              // takes a reduction
  bool rooted;               // takes a root
  bool in_place;             // can work in place
  bool equal_outputs;        // every rank ends with the same output
  // For a size of so many elements.
  Counts (*counts)(uint64_t elements, int nranks);
  // Where input and output begin, in elements, when both lie in one buffer.
  uint64_t (*input_offset)(const Place& place);
  uint64_t (*output_offset)(const Place& place);
  std::vector<Segment> (*expected)(const Place& place);
  // Bus bandwidth over size / time, as nccl-tests defines it (doc/PERFORMANCE.md there).
  double (*bus_factor)(int nranks);
  ncclResult_t (*call)(const Call& call, const Place& place);
};

inline uint64_t no_offset(const Place&) { return 0; }

// The program: parses the options, runs them, prints the table. Returns the exit code.
int run_program(int argc, char** argv, const Operation& operation);

}  // namespace talaria::bench
