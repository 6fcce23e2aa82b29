#include "runtime/agreement.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
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

// The inputs of three CPU ranks of which the last was told something else.
std::vector<ChoiceInputs> inputs_with(std::string Config::*field, const std::string& odd, const std::string& others) {
  const std::unique_ptr<Engine> engine = make_host_engine(read_config());
  std::vector<ChoiceInputs> all;
  for (int r = 0; r < 3; ++r) {
    Config config = read_config();
    config.*field = r == 2 ? odd : others;
    all.push_back(choice_inputs_of(config, *engine, 0, 0));
  }
  return all;
}

TEST(Agreement, EachVariableThatMustBeEqualIsNamedWithRanksAndValues) {
  int compared = 0;
  for (const ConfigRow& row : config_rows()) {
    if (row.agreed != Agreed::kEqual) continue;
    ++compared;
    const auto* field = std::get_if<std::string Config::*>(&row.field);
    ASSERT_NE(field, nullptr) << row.name;
    EXPECT_EQ(agree(inputs_with(*field, "ring", "Tree")).status().code(), Code::kInvalidUsage) << row.name;
    EXPECT_EQ(std::string(last_error_text()),
              std::string(row.name) +
                  " differs: \"Tree\" on rank 0, \"ring\" on rank 2; set it alike on all ranks");
    // Equal but for the case; different only behind what messages show.
    EXPECT_TRUE(agree(inputs_with(*field, "ring", "RING")).ok()) << row.name;
    const std::string beginning(100, 'x');
    EXPECT_FALSE(agree(inputs_with(*field, beginning + "a", beginning + "b")).ok()) << row.name;
  }
  EXPECT_GE(compared, 2);
  EXPECT_LE(compared, kMostChoices);
}

TEST(Agreement, ARankThatCannotGoOnIsNamed) {
  auto all = gpu_ranks(3, 3);
  all[1].failed = true;
  EXPECT_EQ(agree(all).status().code(), Code::kRemote);
  EXPECT_STREQ(last_error_text(), "rank 1 could not set itself up; see its log");
}

// A channel between ranks that all say what this one says, but for one whose answers are spoilt.
class Echo : public OutOfBand {
 public:
  explicit Echo(uint32_t rank, uint32_t spoilt) : rank_(rank), spoilt_(spoilt) {}
  uint32_t rank() const override { return rank_; }
  uint32_t nranks() const override { return 3; }
  Status barrier() override { return Status(); }
  Status all_gather(std::span<std::byte> all) override {
    const size_t part = all.size() / nranks();
    for (uint32_t r = 0; r < nranks(); ++r) {
      if (r != rank_) std::memcpy(all.data() + r * part, all.data() + rank_ * part, part);
      if (r == spoilt_ && part == sizeof(uint64_t)) all[r * part] ^= std::byte{1};
    }
    return Status();
  }

 private:
  uint32_t rank_, spoilt_;
};

TEST(Agreement, TheTableOfRankZeroIsComparedByWhatItMeans) {
  ChoiceLimits limits = agree(gpu_ranks(3, 3))->limits;
  Echo agreeing(0, 7), odd(0, 2);
  const Result<Selection> selection = agree_on_selection(limits, read_config(), agreeing);
  ASSERT_TRUE(selection.ok());
  EXPECT_EQ(hash_of(Result<Selection>(selection)->table), hash_of(fill_selection_table(limits)));
  EXPECT_EQ(agree_on_selection(limits, read_config(), odd).status().code(), Code::kInvalidUsage);
  EXPECT_NE(std::string(last_error_text()).find("rank 2"), std::string::npos) << last_error_text();
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
