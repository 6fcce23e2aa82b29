#include "schedule/selector.h"

#include <iterator>

namespace talaria {
namespace {

std::string set_to(const char* variable, const std::string& value) {
  return value.empty() ? std::string() : fmt::format(" {} was set to {}.", variable, value);
}

const SizeClass& class_of(const Collective& collective, const SelectionTable& table) {
  const uint64_t bytes = collective.count * bytes_of(collective.type);
  const auto& classes = table.classes[static_cast<int>(collective.operation)];
  const SizeClass* row = classes;
  while (row->most_bytes < bytes && row + 1 < std::end(classes)) ++row;
  return *row;
}

// What one rank reads from, or writes to, the buffer of another.
uint64_t block_bytes(const Collective& collective, uint32_t nranks) {
  const uint64_t bytes = collective.count * bytes_of(collective.type);
  return counts_per_rank(collective.operation) ? bytes : bytes / nranks;
}

}  // namespace

Result<Choice> select(const Collective& collective, const Selection& selection) {
  if (is_point_to_point(collective.operation)) {
    return Choice{find_algorithm("pairwise"), Form::kStaged, Channel::kPointBulk};
  }
  const SizeClass& row = class_of(collective, selection.table);
  if (row.algorithm == SelectionTable::kNoAlgorithm) {
    return fail(Code::kInvalidUsage, "No algorithm/protocol available for function {} with datatype {}.{}{}",
                name_of(collective.operation), traits_of(collective.type).name,
                set_to("NCCL_ALGO", selection.algorithms), set_to("NCCL_PROTO", selection.protocols));
  }
  const Algorithm* algorithm = &algorithm_catalog()[row.algorithm];
  const bool direct = row.channel == Channel::kCollectiveBulk && selection.form == Form::kDirect &&
                      block_bytes(collective, selection.nranks) >= selection.direct_bytes &&
                      algorithm->serves(collective.operation, selection.nranks, Form::kDirect);
  return Choice{algorithm, direct ? Form::kDirect : Form::kStaged, row.channel};
}

}  // namespace talaria
