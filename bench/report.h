// Report: the table on stdout, in nccl-tests' columns, the same as JSON, and a progress line. Used by one thread of the
// whole run.
#pragma once

#include <cstdint>
#include <optional>

#include "json_report.h"
#include "operation.h"
#include "options.h"
#include "progress.h"
#include "world.h"

namespace talaria::bench {

// One timed and checked pass over a size.
struct Measurement {
  double usec;
  std::optional<uint64_t> wrong;  // elements, all ranks; nothing when it was not checked
};

// What a row is about.
struct Case {
  const ElementType* type;
  const Reduction* reduction;  // null when values are only moved
  int root;                    // -1 for operations without
  Counts counts;

  uint64_t bytes() const { return (counts.send > counts.receive ? counts.send : counts.receive) * type->bytes; }
};

// The file that the library under test was loaded from.
std::string library_path();

class Report {
 public:
  Report(const Options& options, const Operation& operation)
      : options_(options), operation_(operation), json_(options, operation) {}

  // `rows`: how many the run has, for the progress line.
  void header(const World& world, uint64_t rows);
  // What comes next.
  void starts(const Case& row);
  void row(const Case& row, const Measurement& out_of_place, const Measurement& in_place);
  void skipped(const Case& row, const char* reason);
  void summary(const World& world);
  bool all_right() const { return wrong_ == 0; }

 private:
  void columns() const;
  void measurement(const Case& row, const Measurement& measurement);

  const Options& options_;
  const Operation& operation_;
  JsonReport json_;
  Progress progress_;
  uint64_t rows_ = 0, started_ = 0;
  uint64_t wrong_ = 0;
  double bandwidths_ = 0;
  int measurements_ = 0;
  int skipped_ = 0;
};

}  // namespace talaria::bench
