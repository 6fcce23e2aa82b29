// Checker: fills the ranks' buffers before an operation and compares them with what must be there after it.
//
// Works on the ranks of one thread. The library under test takes no part in what is expected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data.h"
#include "operation.h"
#include "rank.h"
#include "report.h"

namespace talaria::bench {

class Checker {
 public:
  Checker(const Operation& operation, int nranks, uint64_t seed)
      : operation_(operation), nranks_(nranks), seed_(seed) {}

  // Writes fresh inputs, and rubbish to outputs and guards. Ranks that prepare the same sequence get matching data.
  void prepare(std::span<const Rank> ranks, const Case& row, bool in_place);
  // Elements that are wrong, bytes around the output that changed counted as elements.
  uint64_t count_wrong(std::span<const Rank> ranks, const Case& row, bool in_place);

 private:
  void write_input(const Rank& rank, const Case& row, const DataSet& data, std::byte* to);
  uint64_t count_wrong_outputs(std::span<const Rank> ranks, const Case& row, const DataSet& data, bool in_place);
  uint64_t count_wrong_guards(const Rank& rank, const Buffers& buffers);
  // The bytes as the host sees them; valid until the next call.
  const std::byte* on_host(const Rank& rank, std::byte* bytes, size_t count);
  DataSet data_of(const Case& row) const;

  const Operation& operation_;
  int nranks_;
  uint64_t seed_;
  std::vector<std::byte> staging_;
  std::vector<std::byte> expected_;
};

}  // namespace talaria::bench
