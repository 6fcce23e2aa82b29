#include "sim/oracle.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "sim/arith.h"

namespace talaria::sim {
namespace {

// Rank `rank`'s contribution.
Operand raw_input(const std::vector<Bytes>& inputs, const OracleRules& rules, size_t rank, uint64_t offset) {
  const bool scaled = !rules.scalars.empty();
  return {inputs[rank].data() + offset, true,
          scaled ? reinterpret_cast<const std::byte*>(&rules.scalars[rank]) : nullptr};
}

// The rank at which the ring starts to sum a block.
uint64_t first_rank(const Collective& collective, uint64_t block) {
  switch (collective.operation) {
    case Operation::kReduceScatter: return block + 1;
    case Operation::kReduce: return static_cast<uint64_t>(collective.root) + 1;
    default: return block;
  }
}

// Elements of one of the ring's blocks.
uint64_t block_of(const Collective& collective, const OracleRules& rules) {
  return collective.operation == Operation::kReduceScatter ? collective.count : rules.block_elements;
}

// Around the ring, one rounding a hop.
void reduce_around(const Collective& collective, const std::vector<Bytes>& inputs, const OracleRules& rules,
                   uint64_t index, std::byte* out) {
  const uint32_t n = static_cast<uint32_t>(inputs.size());
  const size_t size = bytes_of(collective.type);
  const uint64_t start = first_rank(collective, index / block_of(collective, rules));
  const Reduction reduction{collective.type, collective.reduce, n};
  std::byte partial[8];
  for (uint32_t hop = 0; hop < n; ++hop) {
    const Operand own = raw_input(inputs, rules, (start + hop) % n, index * size);
    if (hop == 0) {
      const Operand only[] = {own};
      reduce_piece(reduction, only, n == 1, 1, out);
    } else {
      std::memcpy(partial, out, size);
      const Operand both[] = {{partial, false}, own};
      reduce_piece(reduction, both, hop == n - 1, 1, out);
    }
  }
}

// One element of all ranks, to be summed over ranks that stand in a row.
struct TreeSum {
  const std::vector<Bytes>& inputs;
  const OracleRules& rules;
  Reduction reduction;
  uint64_t offset;  // of the element in the inputs
  size_t first;     // rank at the left end of the row

  using Value = std::array<std::byte, 8>;
  // The last of ranks [low, high) whose distance from `low` is one less than a power of two, between what lies to its
  // left and to its right.
  Value over(size_t low, size_t high) const {
    size_t span = 1;
    while (2 * span <= high - low) span *= 2;
    const size_t middle = low + span - 1;
    Value left{}, right{}, sum{};
    std::vector<Operand> operands;
    if (low < middle) left = over(low, middle), operands.push_back({left.data(), false});
    operands.push_back(raw_input(inputs, rules, (first + middle) % inputs.size(), offset));
    if (middle + 1 < high) right = over(middle + 1, high), operands.push_back({right.data(), false});
    reduce_piece(reduction, operands, high - low == inputs.size(), 1, sum.data());
    return sum;
  }
};

void reduce_in_tree(const Collective& collective, const std::vector<Bytes>& inputs, const OracleRules& rules,
                    uint64_t index, std::byte* out) {
  const size_t n = inputs.size(), size = bytes_of(collective.type);
  size_t first = collective.operation == Operation::kReduce ? 0 : index / rules.block_elements;
  if (collective.operation == Operation::kReduce) {
    size_t span = 1;
    while (2 * span <= n) span *= 2;
    first = (static_cast<size_t>(collective.root) + n - (span - 1)) % n;
  }
  const TreeSum sum{inputs, rules, {collective.type, collective.reduce, static_cast<uint32_t>(n)}, index * size, first};
  std::copy_n(sum.over(0, n).begin(), size, out);
}

void reduce_in_rank_order(const Collective& collective, const std::vector<Bytes>& inputs, const OracleRules& rules,
                          uint64_t index, std::byte* out) {
  const size_t size = bytes_of(collective.type);
  std::vector<Operand> operands;
  for (size_t rank = 0; rank < inputs.size(); ++rank) operands.push_back(raw_input(inputs, rules, rank, index * size));
  reduce_piece(Reduction{collective.type, collective.reduce, static_cast<uint32_t>(inputs.size())}, operands, true, 1,
               out);
}

Bytes reduced(const Collective& collective, const std::vector<Bytes>& inputs, const OracleRules& rules) {
  const size_t size = bytes_of(collective.type);
  const uint64_t elements = inputs[0].size() / size;
  Bytes result(inputs[0].size());
  for (uint64_t i = 0; i < elements; ++i) {
    std::byte* out = result.data() + i * size;
    switch (rules.order) {
      case AdditionOrder::kRanks: reduce_in_rank_order(collective, inputs, rules, i, out); break;
      case AdditionOrder::kRing: reduce_around(collective, inputs, rules, i, out); break;
      case AdditionOrder::kTree: reduce_in_tree(collective, inputs, rules, i, out); break;
    }
  }
  return result;
}

Bytes slice(const Bytes& bytes, uint64_t first, uint64_t length) {
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(first);
  return Bytes(begin, begin + static_cast<ptrdiff_t>(length));
}

}  // namespace

AdditionOrder addition_order(const char* algorithm) {
  if (std::strcmp(algorithm, "ring") == 0) return AdditionOrder::kRing;
  return std::strcmp(algorithm, "tree") == 0 ? AdditionOrder::kTree : AdditionOrder::kRanks;
}

std::vector<Bytes> expected_outputs(const Collective& collective, const std::vector<Bytes>& inputs,
                                    const OracleRules& rules) {
  const size_t n = inputs.size();
  const uint64_t part = collective.count * bytes_of(collective.type);
  std::vector<Bytes> outputs(n);
  const auto root = static_cast<size_t>(collective.root);
  const Bytes sum = reduces(collective.operation) ? reduced(collective, inputs, rules) : Bytes();
  for (size_t r = 0; r < n; ++r) {
    switch (collective.operation) {
      case Operation::kAllReduce: outputs[r] = sum; break;
      case Operation::kReduce:
        if (r == root) outputs[r] = sum;
        break;
      case Operation::kReduceScatter: outputs[r] = slice(sum, r * part, part); break;
      case Operation::kBroadcast: outputs[r] = inputs[root]; break;
      case Operation::kScatter: outputs[r] = slice(inputs[root], r * part, part); break;
      case Operation::kAllGather:
      case Operation::kGather:
        if (collective.operation == Operation::kGather && r != root) break;
        for (size_t p = 0; p < n; ++p) outputs[r].insert(outputs[r].end(), inputs[p].begin(), inputs[p].end());
        break;
      case Operation::kAlltoAll:
        for (size_t p = 0; p < n; ++p) {
          const Bytes block = slice(inputs[p], r * part, part);
          outputs[r].insert(outputs[r].end(), block.begin(), block.end());
        }
        break;
      default: break;
    }
  }
  return outputs;
}

}  // namespace talaria::sim
