#include "report.h"

#include <dlfcn.h>

#include <string>

#include "fatal.h"

namespace talaria::bench {
namespace {

// Seven characters whatever the magnitude.
std::string time_text(double usec) {
  if (usec >= 10000) return fmt::format("{:7.0f}", usec);
  if (usec >= 100) return fmt::format("{:7.1f}", usec);
  return fmt::format("{:7.2f}", usec);
}

const char* reduction_name(const Case& row) { return row.reduction != nullptr ? row.reduction->name : "none"; }

}  // namespace

std::string library_path() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&ncclGetVersion), &info) == 0 || info.dli_fname == nullptr) return "?";
  return info.dli_fname;
}

void Report::header(const World& world, uint64_t rows) {
  json_.open();
  rows_ = rows;
  int version = 0;
  check(ncclGetVersion(&version), "ncclGetVersion");
  const bool factor = options_.step_factor > 1;
  fmt::print("# {} nccl-headers={} nccl-library={} {}\n", operation_.program, NCCL_VERSION_CODE, version,
             library_path());
  fmt::print("# nThread {} nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg iters: {} "
             "validation: {} graph: {} processes: {}\n#\n# Using devices\n",
             options_.threads, options_.gpus, options_.min_bytes, options_.max_bytes,
             factor ? options_.step_factor : options_.step_bytes, factor ? "factor" : "bytes",
             options_.warmup_iterations, options_.iterations, options_.aggregate, options_.checks,
             options_.graph_launches, options_.processes);
  for (int rank = 0; rank < options_.nranks(); ++rank) fmt::print("#  Rank {:2} {}\n", rank, world.label(rank));
  if (options_.checks > 0) fmt::print("#\n# Seed of the data: {}\n", options_.seed);
  columns();
}

void Report::columns() const {
  const char* const time = options_.report_cpu_time ? "cputime" : "time";
  fmt::print("#\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:^29}     {:^29}\n", "", "", "", "", "", "out-of-place",
             "in-place");
  fmt::print("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "size", "count", "type", "redop", "root");
  for (int pass = 0; pass < 2; ++pass) fmt::print("  {:>7}  {:>6}  {:>6}  {:>6}", time, "algbw", "busbw", "#wrong");
  fmt::print("\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "(B)", "(elements)", "", "", "");
  for (int pass = 0; pass < 2; ++pass) fmt::print("  {:>7}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "");
  fmt::print("\n");
  std::fflush(stdout);
}

void Report::starts(const Case& row) {
  ++started_;
  progress_.show(fmt::format("# row {} of {}: {} {} {}, {} bytes", started_, rows_, operation_.name, row.type->name,
                             reduction_name(row), row.bytes()));
}

void Report::row(const Case& row, const Measurement& out_of_place, const Measurement& in_place) {
  progress_.clear();
  json_.row(row, out_of_place, in_place);
  fmt::print("{:12}  {:12}  {:>8}  {:>6}  {:6}", row.bytes(), row.counts.argument, row.type->name, reduction_name(row),
             row.root);
  measurement(row, out_of_place);
  measurement(row, in_place);
  fmt::print("\n");
  std::fflush(stdout);
}

void Report::measurement(const Case& row, const Measurement& measurement) {
  const Bandwidth bandwidth = bandwidth_of(row, measurement, operation_, options_.nranks());
  fmt::print("  {}  {:6.2f}  {:6.2f}  {:>6}", time_text(measurement.usec), bandwidth.algorithm, bandwidth.bus,
             measurement.wrong ? fmt::format("{}", *measurement.wrong) : "N/A");
  bandwidths_ += bandwidth.bus;
  ++measurements_;
  wrong_ += measurement.wrong.value_or(0);
}

void Report::skipped(const Case& row, const char* reason) {
  progress_.clear();
  json_.skipped(row, reason);
  fmt::print("# skipped {} {}: {}\n", row.type->name, reduction_name(row), reason);
  ++skipped_;
}

void Report::summary(const World& world) {
  const double average = measurements_ > 0 ? bandwidths_ / measurements_ : 0.0;
  if (skipped_ > 0) fmt::print("# Skipped combinations : {}\n", skipped_);
  if (options_.checks > 0) {
    fmt::print("# Out of bounds values : {} {}\n", wrong_, all_right() ? "OK" : "FAILED");
  } else {
    fmt::print("# Out of bounds values : not checked\n");
  }
  fmt::print("# Avg bus bandwidth    : {:g}\n#\n", average);
  std::fflush(stdout);
  json_.write(world, wrong_, average);
}

}  // namespace talaria::bench
