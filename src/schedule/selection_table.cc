#include "schedule/selection_table.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/os.h"

namespace talaria {
namespace {

constexpr uint64_t kAnySize = UINT64_MAX;

// An algorithm and the largest calls it is wanted for, and of those the largest that go as packets.
struct Range {
  uint64_t most_bytes;
  const char* algorithm;
  uint64_t packet_bytes;
};

// The free choice for an operation, ascending. New rules go here.
std::vector<Range> free_choice(Operation operation, const ChoiceLimits& limits) {
  const auto per_rank = [&](uint64_t received) {
    return limits.nranks == 1 ? kAnySize : received / (limits.nranks - 1);
  };
  switch (operation) {
    case Operation::kAllReduce:
    case Operation::kReduce:
      return {{per_rank(limits.one_shot_bytes), "one_shot", per_rank(limits.one_shot_packet_bytes)},
              {kAnySize, "two_shot", limits.packet_bytes}};
    case Operation::kAlltoAll:
    case Operation::kGather:
    case Operation::kScatter: return {{kAnySize, "pairwise", limits.packet_bytes}};
    default: return {{kAnySize, "two_shot", limits.packet_bytes}};
  }
}

bool serves(const Algorithm& algorithm, Operation operation, const ChoiceLimits& limits) {
  return algorithm.serves(operation, limits.nranks, Form::kStaged) ||
         algorithm.serves(operation, limits.nranks, limits.form);
}

// What the filter leaves of the free choice, completed to all sizes with other algorithms that it leaves. Empty when
// there is none.
std::vector<Range> filtered_choice(Operation operation, const ChoiceLimits& limits, const OperationFilter& filter) {
  std::vector<Range> ranges = free_choice(operation, limits);
  const auto catalog = algorithm_catalog();
  const auto allowed = [&](const Algorithm& row) {
    return (filter.algorithms >> (&row - catalog.data()) & 1) != 0 && serves(row, operation, limits);
  };
  std::erase_if(ranges, [&](const Range& range) { return !allowed(*find_algorithm(range.algorithm)); });
  if (!ranges.empty() && ranges.back().most_bytes == kAnySize) return ranges;
  const auto listed = [&](const Algorithm& row) {
    return std::ranges::any_of(ranges, [&](const Range& r) { return std::strcmp(r.algorithm, row.name) == 0; });
  };
  const auto other =
      std::ranges::find_if(catalog, [&](const Algorithm& row) { return allowed(row) && !listed(row); });
  if (other != catalog.end()) ranges.push_back({kAnySize, other->name, limits.packet_bytes});
  else if (!ranges.empty()) ranges.back().most_bytes = kAnySize;
  return ranges;
}

// Appends classes in ascending order; those that take nothing are left out.
class ClassList {
 public:
  explicit ClassList(SizeClass (&classes)[SelectionTable::kClasses]) : next_(classes) {}
  void add(uint64_t most_bytes, uint8_t algorithm, Channel channel) {
    if (most_bytes <= most_bytes_) return;
    *next_++ = SizeClass{most_bytes, algorithm, channel, {}};
    most_bytes_ = most_bytes;
  }

 private:
  SizeClass* next_;
  uint64_t most_bytes_ = 0;
};

bool fill(Operation operation, const ChoiceLimits& limits, const OperationFilter& filter,
          SizeClass (&classes)[SelectionTable::kClasses]) {
  const bool packet = filter.packet && limits.packets;
  const std::vector<Range> ranges = filtered_choice(operation, limits, filter);
  if (ranges.empty() || (!packet && !filter.bulk)) return false;
  ClassList list(classes);
  for (const Range& range : ranges) {
    const auto row = static_cast<uint8_t>(find_algorithm(range.algorithm) - algorithm_catalog().data());
    const uint64_t packets = filter.bulk ? std::min(range.packet_bytes, range.most_bytes) : range.most_bytes;
    if (packet) list.add(packets, row, Channel::kCollectivePacket);
    if (filter.bulk) list.add(range.most_bytes, row, Channel::kCollectiveBulk);
  }
  return true;
}

// The filter where it cannot be obeyed but need not be, either.
OperationFilter lenient(Operation operation, const OperationFilter& filter, const ChoiceLimits& limits) {
  const bool chosen_by_nccl = operation == Operation::kAllReduce || operation == Operation::kAllGather ||
                              operation == Operation::kReduceScatter || operation == Operation::kBroadcast ||
                              operation == Operation::kReduce;
  if (limits.nranks == 1) return OperationFilter{};
  if (chosen_by_nccl || filter.named) return filter;
  OperationFilter result = filter;
  if (filtered_choice(operation, limits, filter).empty()) result.algorithms = ~0u;
  if (!filter.bulk && !limits.packets) result.bulk = true;
  return result;
}

}  // namespace

SelectionTable fill_selection_table(const ChoiceLimits& limits) {
  SelectionTable table{};
  for (int op = 0; op < kCollectives; ++op) {
    const auto operation = static_cast<Operation>(op);
    const OperationFilter filter = lenient(operation, limits.filter.operations[op], limits);
    if (fill(operation, limits, filter, table.classes[op])) continue;
    table.classes[op][0] = SizeClass{kAnySize, SelectionTable::kNoAlgorithm, Channel::kCollectiveBulk, {}};
  }
  return table;
}

uint64_t hash_of(const SelectionTable& table) {
  std::string meaning;
  for (const auto& classes : table.classes) {
    for (const SizeClass& row : classes) {
      const bool known = row.algorithm < algorithm_catalog().size();
      meaning += std::to_string(row.most_bytes) + (known ? algorithm_catalog()[row.algorithm].name : "?") +
                 std::to_string(static_cast<int>(row.channel)) + ";";
    }
  }
  return text_hash(meaning) | 1;
}

}  // namespace talaria
