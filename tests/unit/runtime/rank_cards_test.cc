#include "runtime/rank_cards.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace talaria {
namespace {

RankCard gpu_card(uint64_t host, const char* bus_id) {
  RankCard card{};
  card.kind = EngineKind::kDevice;
  card.host_hash = host;
  std::strncpy(card.bus_id, bus_id, sizeof card.bus_id - 1);
  return card;
}

TEST(RankCards, BusNumberIsNcclsForm) { EXPECT_EQ(bus_number(gpu_card(1, "0000:1b:00.0")), 0x1b000u); }

TEST(RankCards, DuplicateGpusAreNamedUnlessAllowed) {
  Config config{};
  const RankCard cards[] = {gpu_card(1, "0000:1b:00.0"), gpu_card(1, "0000:2b:00.0"), gpu_card(1, "0000:1b:00.0")};
  EXPECT_EQ(check_duplicate_gpus(cards, config).code(), Code::kInvalidUsage);
  const std::string text = last_error_text();
  EXPECT_NE(text.find("Duplicate GPU detected : rank 0 and rank 2 both on CUDA device 1b000"), std::string::npos)
      << text;
  EXPECT_NE(text.find("NCCL_MULTI_RANK_GPU_ENABLE"), std::string::npos) << text;
  config.multi_rank_gpu_enable = 1;
  EXPECT_TRUE(check_duplicate_gpus(cards, config).ok());
}

TEST(RankCards, EqualGpusOfTwoHostsAndCpuRanksAreNoDuplicates) {
  const Config config{};
  RankCard cards[] = {gpu_card(1, "0000:1b:00.0"), gpu_card(2, "0000:1b:00.0"), RankCard{}, RankCard{}};
  EXPECT_TRUE(check_duplicate_gpus(cards, config).ok());
}

TEST(RankCards, IdentityTellsCommunicatorsApart) {
  RankCard cards[] = {gpu_card(1, "0000:1b:00.0"), gpu_card(1, "0000:2b:00.0")};
  cards[0].mailbox_address = 0x1000;
  const uint64_t one = communicator_identity(cards);
  EXPECT_EQ(one, communicator_identity(cards));
  cards[1].mailbox_address = 0x2000;
  EXPECT_NE(one, communicator_identity(cards));
}

}  // namespace
}  // namespace talaria
