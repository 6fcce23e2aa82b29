// Options: what the command line asks for, with nccl-tests' names and defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "element.h"

namespace talaria::bench {

// What -a prints when threads measure different times.
enum class Average : int { kRank0 = 0, kMean = 1, kMin = 2, kMax = 3 };

struct Options {
  int processes = 1;
  int threads = 1;
  int gpus = 1;  // ranks per thread
  uint64_t min_bytes = uint64_t{32} << 20;
  uint64_t max_bytes = uint64_t{32} << 20;
  uint64_t step_bytes = uint64_t{1} << 20;
  int step_factor = 1;  // above 1 it is used instead of step_bytes
  int iterations = 20;
  int warmup_iterations = 5;
  int aggregate = 1;
  int checks = 1;
  int graph_launches = 0;
  int timeout_seconds = 0;
  bool blocking = false;
  bool null_stream = false;
  bool report_cpu_time = false;
  bool list_devices = false;
  std::string json_file;  // empty: none is written
  Average average = Average::kMean;
  std::vector<const ElementType*> types;
  std::vector<const Reduction*> reductions;
  bool several_types = false;  // "all" was asked for: combinations that the library does not have are skipped
  std::vector<int> roots;
  uint64_t seed = 0;
  bool seed_given = false;

  int nranks() const { return processes * threads * gpus; }
  uint64_t next_size(uint64_t bytes) const { return step_factor > 1 ? bytes * step_factor : bytes + step_bytes; }
};

// "8", "64K", "1.5G" in bytes; a suffix is a power of 1024. Nothing when it is not a size.
std::optional<uint64_t> parse_bytes(const std::string& text);

// The options, or the exit code the program should end with (help was printed, or a complaint).
struct ParsedOptions {
  std::optional<Options> options;
  int exit_code;
};
ParsedOptions parse_options(int argc, char** argv, const std::string& program);

}  // namespace talaria::bench
