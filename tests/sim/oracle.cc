#include "sim/oracle.h"

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
    if (rules.order == AdditionOrder::kRanks) reduce_in_rank_order(collective, inputs, rules, i, out);
    else reduce_around(collective, inputs, rules, i, out);
  }
  return result;
}

Bytes slice(const Bytes& bytes, uint64_t first, uint64_t length) {
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(first);
  return Bytes(begin, begin + static_cast<ptrdiff_t>(length));
}

}  // namespace

AdditionOrder addition_order(const char* algorithm) {
  return std::strcmp(algorithm, "ring") == 0 ? AdditionOrder::kRing : AdditionOrder::kRanks;
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
