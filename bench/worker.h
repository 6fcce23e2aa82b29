// Worker: one thread of a run and the ranks it drives.
#pragma once

#include <nccl.h>

#include <functional>
#include <vector>

#include "checker.h"
#include "operation.h"
#include "options.h"
#include "rank.h"
#include "report.h"
#include "world.h"

namespace talaria::bench {

class Worker {
 public:
  // `thread` counts over all processes; the first one prints. Opens devices and memory, connects the communicators.
  // Collective over all threads, as all that follows.
  Worker(const Options& options, const Operation& operation, World& world, int thread);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The whole table; false when results were wrong (known to the first thread only).
  bool run();

 private:
  void open_ranks();
  void connect();
  uint64_t row_count() const;
  // The ranks' reductions for a combination; what makes and drops mulsum's operators.
  ncclResult_t take_reduction(const Case& combination);
  void drop_reduction(const Case& combination);
  bool supported(const Case& combination);
  void sweep(const Case& combination);
  void warm_up(const Case& row);
  Case sized(const Case& combination, uint64_t bytes) const;

  // So many operations in one group on every rank.
  ncclResult_t issue(const Case& row, bool in_place, int operations);
  // The timed iterations.
  void iterate(const Case& row, bool in_place);
  void capture(const std::function<void()>& work);
  void launch_graphs(int times);
  void wait();
  void wait_for(Rank& rank);

  Measurement measure(const Case& row, bool in_place);
  double time(const Case& row, bool in_place);
  uint64_t check_results(const Case& row, bool in_place);

  const Options& options_;
  const Operation& operation_;
  World& world_;
  int thread_;
  Report report_;
  Checker checker_;
  std::vector<Rank> ranks_;
};

}  // namespace talaria::bench
