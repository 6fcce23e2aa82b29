#include "schedule/selection_filter.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "schedule/algorithm.h"

namespace talaria {
namespace {

const OperationFilter& of(const SelectionFilter& filter, Operation operation) {
  return filter.operations[static_cast<int>(operation)];
}

// The algorithms of the catalog that `filter` leaves, in its order.
std::string left(const OperationFilter& filter) {
  std::string names;
  uint32_t bit = 1;
  for (const Algorithm& row : algorithm_catalog()) {
    if ((filter.algorithms & bit) != 0) names += std::string(names.empty() ? "" : ",") + row.name;
    bit <<= 1;
  }
  return names;
}

std::string everything() { return left(OperationFilter{}); }

std::string without(const std::string& name) {
  std::string all = "," + everything();
  const size_t place = all.find("," + name);
  if (place != std::string::npos) all.erase(place, name.size() + 1);
  return all.empty() ? all : all.substr(1);
}

struct AlgorithmCase {
  const char* text;
  std::string all_reduce, all_gather;
};

TEST(SelectionFilter, ReadsTheSyntaxOfNcclAlgo) {
  const AlgorithmCase cases[] = {
      {"", everything(), everything()},
      {"Ring", "ring", "ring"},
      {"ring,tree", "ring,tree", "ring,tree"},
      {" RING , Tree ", "ring,tree", "ring,tree"},
      {"NVLS", "", ""},
      {"^NVLS", everything(), everything()},
      {"^NVLS,NVLSTree", everything(), everything()},
      {"^ring", without("ring"), without("ring")},
      {"allreduce:tree,ring;allgather:ring", "ring,tree", "ring"},
      {"allreduce:ring", "ring", everything()},
      {"AllReduce:^Ring", without("ring"), everything()},
      {"ring;allreduce:two_shot", "two_shot", "ring"},
      {"ring;allreduce:two_shot;", "two_shot", "ring"},
      {"ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring", "tree", "ring"},
      {"PAT,CollnetChain,two_shot,ONE_SHOT", "one_shot,two_shot", "one_shot,two_shot"},
  };
  for (const AlgorithmCase& c : cases) {
    Result<SelectionFilter> filter = parse_selection(c.text, "");
    ASSERT_TRUE(filter.ok()) << c.text << ": " << last_error_text();
    EXPECT_EQ(left(of(*filter, Operation::kAllReduce)), c.all_reduce) << c.text;
    EXPECT_EQ(left(of(*filter, Operation::kAllGather)), c.all_gather) << c.text;
  }
}

TEST(SelectionFilter, ReadsTheSyntaxOfNcclProto) {
  struct Case {
    const char* text;
    bool packet, bulk, all_gather_packet, all_gather_bulk;
  };
  const Case cases[] = {
      {"", true, true, true, true},
      {"LL", true, false, true, false},
      {"simple", false, true, false, true},
      {"LL128", true, false, true, false},     // its packets are the nearest thing
      {"^LL128", true, true, true, true},      // those of LL remain
      {"^LL", false, true, false, true},
      {"^LL,LL128", false, true, false, true},
      {"^Simple", true, false, true, false},
      {"LL,Simple;allreduce:^LL", false, true, true, true},
      {"^LL128;allreduce:LL128", true, false, true, true},
      {"packet", true, false, true, false},
      {"allgather:bulk", true, true, false, true},
  };
  for (const Case& c : cases) {
    Result<SelectionFilter> filter = parse_selection("", c.text);
    ASSERT_TRUE(filter.ok()) << c.text << ": " << last_error_text();
    EXPECT_EQ(of(*filter, Operation::kAllReduce).packet, c.packet) << c.text;
    EXPECT_EQ(of(*filter, Operation::kAllReduce).bulk, c.bulk) << c.text;
    EXPECT_EQ(of(*filter, Operation::kAllGather).packet, c.all_gather_packet) << c.text;
    EXPECT_EQ(of(*filter, Operation::kAllGather).bulk, c.all_gather_bulk) << c.text;
  }
}

TEST(SelectionFilter, GarbageIsInvalidUsageNamingVariableWordAndWhatIsKnown) {
  struct Case {
    const char *algorithms, *protocols;
    std::vector<const char*> named;
  };
  const Case cases[] = {
      {"butterfly", "", {"NCCL_ALGO=butterfly", "\"butterfly\"", "ring", "NVLSTree", "two_shot"}},
      {"ring,butterfly", "", {"NCCL_ALGO", "\"butterfly\""}},
      {"allsum:ring", "", {"NCCL_ALGO", "\"allsum\"", "AllReduce", "ReduceScatter"}},
      {"send:ring", "", {"NCCL_ALGO", "\"send\""}},
      {"ring;tree", "", {"NCCL_ALGO", "\"tree\"", "first"}},
      {"allreduce:ring:tree", "", {"NCCL_ALGO", "\"ring:tree\""}},
      {"allreduce:", "", {"NCCL_ALGO", "empty"}},
      {"^", "", {"NCCL_ALGO", "empty"}},
      {"^^ring", "", {"NCCL_ALGO", "\"^ring\""}},
      {"", "LL64", {"NCCL_PROTO=LL64", "\"LL64\"", "LL128", "Simple"}},
      {"", "ring", {"NCCL_PROTO", "\"ring\""}},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(parse_selection(c.algorithms, c.protocols).status().code(), Code::kInvalidUsage)
        << c.algorithms << c.protocols;
    for (const char* part : c.named) {
      EXPECT_NE(std::string(last_error_text()).find(part), std::string::npos) << part << " in " << last_error_text();
    }
  }
}

TEST(SelectionFilter, AnyTextIsReadOrRefused) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const std::string pieces[] = {"ring", "LL", "allreduce", ":", ";", ",", "^", " ", "tree", "\x80", "%s{}", "a"};
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (uint64_t n = random() % 8; n > 0; --n) text += pieces[random() % std::size(pieces)];
    const Code code = parse_selection(text, text).status().code();
    EXPECT_TRUE(code == Code::kSuccess || code == Code::kInvalidUsage) << "seed " << seed << ": " << text;
    refused += code != Code::kSuccess;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace talaria
