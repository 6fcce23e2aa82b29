#include "runtime/agreement.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace talaria {
namespace {

std::vector<ChoiceInputs> gpu_ranks(uint32_t nranks, uint32_t gpus) {
  std::vector<ChoiceInputs> all(nranks);
  for (uint32_t r = 0; r < nranks; ++r) {
    all[r].kind = EngineKind::kDevice;
    all[r].multiprocessors = 132;
    std::strcpy(all[r].bus_id, std::to_string(r % gpus).c_str());
  }
  return all;
}

uint32_t bulk_lanes(const std::vector<ChoiceInputs>& all) {
  return agree(all)->rooms[static_cast<int>(Channel::kCollectiveBulk)].lanes;
}

TEST(Agreement, LanesShrinkSoThatAllRanksOfAGpuAreResident) {
  EXPECT_EQ(bulk_lanes(gpu_ranks(2, 2)), 64u);
  EXPECT_EQ(bulk_lanes(gpu_ranks(8, 2)), 33u);
  EXPECT_LE(bulk_lanes(gpu_ranks(17, 1)) * 17, 132u);
}

TEST(Agreement, LanesFitTheSmallestGpu) {
  auto all = gpu_ranks(4, 2);
  all[1].multiprocessors = all[3].multiprocessors = 58;
  EXPECT_EQ(bulk_lanes(all), 29u);
}

TEST(Agreement, ARankAloneHasNoInboxes) {
  EXPECT_LT(agree(gpu_ranks(1, 1))->layout.bytes, 1u << 20);
}

TEST(Agreement, SmallestMaximumOfCtasWins) {
  auto all = gpu_ranks(2, 2);
  all[0].max_ctas = 20;
  all[1].max_ctas = 12;
  EXPECT_EQ(bulk_lanes(all), 12u);
  all[1].min_ctas = 16;
  EXPECT_EQ(bulk_lanes(all), 12u);
}

TEST(Agreement, ADifferingVariableIsNamedWithRanksAndValues) {
  auto all = gpu_ranks(3, 3);
  std::strcpy(all[2].algorithm, "ring");
  EXPECT_EQ(agree(all).status().code(), Code::kInvalidUsage);
  const std::string text = last_error_text();
  EXPECT_NE(text.find("TALARIA_ALGO"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 2"), std::string::npos) << text;
  EXPECT_NE(text.find("ring"), std::string::npos) << text;
}

TEST(Agreement, CpuAndGpuRanksDoNotMix) {
  auto all = gpu_ranks(2, 2);
  all[1].kind = EngineKind::kHost;
  EXPECT_EQ(agree(all).status().code(), Code::kInvalidUsage);
  EXPECT_NE(std::string(last_error_text()).find("TALARIA_DEVICE"), std::string::npos);
}

TEST(Agreement, HostMailboxesStaySmallWhateverTheRanks) {
  for (uint32_t nranks : {1u, 2u, 8u, 32u}) {
    const std::vector<ChoiceInputs> all(nranks);
    EXPECT_LE(agree(all)->layout.bytes, 5u << 20) << nranks;
  }
}

class MailboxLayoutOf : public testing::TestWithParam<EngineKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, MailboxLayoutOf, testing::Values(EngineKind::kHost, EngineKind::kDevice));

TEST_P(MailboxLayoutOf, NoTwoRegionsOverlap) {
  const auto all = GetParam() == EngineKind::kDevice ? gpu_ranks(3, 3) : std::vector<ChoiceInputs>(3);
  const MailboxLayout layout = agree(all)->layout;
  std::vector<bool> used(layout.bytes);
  const auto claim = [&](uint64_t offset, uint64_t bytes) {
    for (uint64_t i = offset; i < offset + bytes; ++i) {
      ASSERT_FALSE(used.at(i)) << i;
      used[i] = true;
    }
  };
  for (uint32_t r = 0; r < 3; ++r) {
    for (uint32_t c = 0; c < kMailboxChannels; ++c) {
      const bool lines = layout.channels[c].line_bytes > 0;
      const uint64_t wire = layout.channels[c].slot_bytes * (c == 0 && !lines ? 2ull : 1ull);
      for (uint32_t lane = 0; lane < layout.channels[c].lanes; ++lane) {
        for (uint32_t f = 0; f < kFifosPerPair; ++f) {
          claim(layout.tail_offset(c, r, lane, f), 8);
          claim(layout.credit_offset(c, r, lane, f), 8);
          for (uint64_t q = 0; q < layout.channels[c].depth; ++q) {
            claim(layout.slot_offset(c, r, lane, f, q), wire);
            if (lines) claim(layout.line_offset(c, r, f, q), layout.channels[c].line_bytes);
          }
        }
      }
    }
    for (uint32_t lane = 0; lane < layout.max_lanes; ++lane) {
      claim(layout.ready_offset(r, lane, 0), 16);
      claim(layout.ready_offset(r, lane, 1), 16);
      claim(layout.done_offset(r, lane), 8);
    }
  }
}

}  // namespace
}  // namespace talaria
