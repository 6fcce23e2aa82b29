#include "runtime/rank_cards.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>

namespace talaria {

uint64_t bus_number(const RankCard& card) {
  std::string digits;
  for (const char* c = card.bus_id; c != card.bus_id + sizeof card.bus_id && *c != '\0'; ++c) {
    if (std::strchr(":.", *c) == nullptr) digits += *c;
  }
  return std::strtoull(digits.c_str(), nullptr, 16);
}

Status check_duplicate_gpus(std::span<const RankCard> cards, const Config& config) {
  if (config.multi_rank_gpu_enable == 1) return Status();
  std::map<std::pair<uint64_t, uint64_t>, size_t> seen;  // (host, GPU) → first rank there
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    if (cards[rank].kind != EngineKind::kDevice) continue;
    const uint64_t bus = bus_number(cards[rank]);
    const auto [first, fresh] = seen.emplace(std::pair(cards[rank].host_hash, bus), rank);
    if (fresh) continue;
    return fail(Code::kInvalidUsage,
                "Duplicate GPU detected : rank {} and rank {} both on CUDA device {:x}. "
                "Set NCCL_MULTI_RANK_GPU_ENABLE=1 to allow several ranks on one GPU",
                first->second, rank, bus);
  }
  return Status();
}

uint64_t communicator_identity(std::span<const RankCard> cards) {
  uint64_t identity = 0x9e3779b97f4a7c15ull;
  for (const RankCard& card : cards) {
    for (const uint64_t part : {card.host_hash, card.process_hash, card.mailbox_address}) {
      identity = (identity ^ part) * 0x100000001b3ull;
      identity ^= identity >> 29;
    }
  }
  return identity;
}

}  // namespace talaria
