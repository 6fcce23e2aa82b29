// The command line is read as nccl-tests reads it.
#include "options.h"

#include <gtest/gtest.h>

namespace talaria::bench {
namespace {

ParsedOptions parse(std::vector<std::string> words) {
  words.insert(words.begin(), "perf");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return parse_options(static_cast<int>(words.size()), pointers.data(), "perf");
}

TEST(BenchOptions, SizesHaveBinarySuffixes) {
  EXPECT_EQ(parse_bytes("8"), 8u);
  EXPECT_EQ(parse_bytes("64K"), 65536u);
  EXPECT_EQ(parse_bytes("1.5k"), 1536u);
  EXPECT_EQ(parse_bytes("128M"), 134217728u);
  EXPECT_EQ(parse_bytes("16g"), uint64_t{16} << 30);
  EXPECT_EQ(parse_bytes("0"), 0u);
  for (const char* text : {"", "K", "-1", "8B", "8 K", "1e300", "nan", "inf", "8KK"}) {
    EXPECT_FALSE(parse_bytes(text)) << "'" << text << "'";
  }
}

TEST(BenchOptions, DefaultsAreThoseOfNcclTests) {
  const Options options = *parse({}).options;
  EXPECT_EQ(options.nranks(), 1);
  EXPECT_EQ(options.min_bytes, uint64_t{32} << 20);
  EXPECT_EQ(options.max_bytes, uint64_t{32} << 20);
  EXPECT_EQ(options.next_size(8), 8 + (uint64_t{1} << 20));
  EXPECT_EQ(options.iterations, 20);
  EXPECT_EQ(options.warmup_iterations, 5);
  EXPECT_EQ(options.checks, 1);
  EXPECT_EQ(options.average, Average::kMean);
  EXPECT_EQ(options.roots, std::vector<int>{0});
  ASSERT_EQ(options.types.size(), 1u);
  EXPECT_STREQ(options.types[0]->name, "float");
  ASSERT_EQ(options.reductions.size(), 1u);
  EXPECT_STREQ(options.reductions[0]->name, "sum");
}

TEST(BenchOptions, ShortAndLongFormsAgreeAndTheLastWins) {
  const Options options = *parse({"-t", "2", "--ngpus", "3", "-p4", "-b", "8", "-e", "1M", "-f", "2", "-f", "4", "-a",
                                  "3", "-r", "all"})
                               .options;
  EXPECT_EQ(options.nranks(), 24);
  EXPECT_EQ(options.next_size(8), 32u);
  EXPECT_EQ(options.average, Average::kMax);
  EXPECT_EQ(options.roots.size(), 24u);
}

TEST(BenchOptions, AllMeansEveryRow) {
  const Options options = *parse({"-d", "all", "-o", "all"}).options;
  EXPECT_EQ(options.types.size(), element_types().size());
  EXPECT_EQ(options.reductions.size(), reductions().size());
  EXPECT_TRUE(options.several_types);
}

}  // namespace
}  // namespace talaria::bench
