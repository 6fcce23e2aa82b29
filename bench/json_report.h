// JsonReport: the run as one JSON object in a file: machine, versions, options, rows.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "operation.h"
#include "options.h"
#include "world.h"

namespace talaria::bench {

struct Case;
struct Measurement;

// Bandwidths in GB/s as nccl-tests defines them.
struct Bandwidth {
  double algorithm, bus;
};
Bandwidth bandwidth_of(const Case& row, const Measurement& measurement, const Operation& operation, int nranks);

class JsonReport {
 public:
  // Collects nothing unless options.json_file is set.
  JsonReport(const Options& options, const Operation& operation) : options_(options), operation_(operation) {}

  // Opens the file, so that a wrong name is known before the run and not after it.
  void open();
  void row(const Case& row, const Measurement& out_of_place, const Measurement& in_place);
  void skipped(const Case& row, const char* reason);
  // `wrong`: elements of the whole run.
  void write(const World& world, uint64_t wrong, double average_bus_bandwidth);

 private:
  std::string measurement(const Case& row, const Measurement& measurement) const;
  std::string machine() const;
  std::string options() const;

  const Options& options_;
  const Operation& operation_;
  std::FILE* file_ = nullptr;
  std::vector<std::string> rows_, skipped_;
};

}  // namespace talaria::bench
