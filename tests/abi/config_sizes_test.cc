// An ncclConfig_t of every header release is read for what it is: by size, by version, never by its padding.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "api/init_options.h"

namespace talaria::api {
namespace {

struct Release {
  unsigned version;
  size_t size;
};

constexpr Release kReleases[] = {
    {21403, 24}, {21701, 40}, {21801, 48}, {22602, 48}, {22703, 72},
    {22809, 80}, {22902, 88}, {23007, 96}, {23102, 112},
};

// The struct as a caller of `release` passes it: every int undefined, every pointer null, and padding full of `filler`.
class Caller {
 public:
  explicit Caller(Release release, unsigned char filler = 0) {
    memset(bytes_.data(), filler, bytes_.size());
    put<size_t>(0, release.size);
    put<unsigned>(8, 0xcafebeef);
    put<unsigned>(12, release.version);
    put(16, NCCL_CONFIG_UNDEF_INT);
    if (release.version >= 21700) put_17();
    if (release.version >= 21800) put(40, NCCL_CONFIG_UNDEF_INT);
    if (release.version >= 22600) put(44, NCCL_CONFIG_UNDEF_INT);
    if (release.version >= 22700) put_27();
    for (size_t offset = 72; release.version >= 22800 && offset < release.size; offset += sizeof(int)) {
      put(offset, NCCL_CONFIG_UNDEF_INT);
    }
  }
  template <typename T>
  void put(size_t offset, T value) {
    memcpy(bytes_.data() + offset, &value, sizeof(value));
  }
  const ncclConfig_t* get() const { return reinterpret_cast<const ncclConfig_t*>(bytes_.data()); }

 private:
  void put_17() {
    for (size_t offset : {20, 24, 28}) put(offset, NCCL_CONFIG_UNDEF_INT);
    put<const char*>(32, nullptr);
  }
  void put_27() {
    put<const char*>(48, nullptr);
    for (size_t offset : {56, 60, 64, 68}) put(offset, NCCL_CONFIG_UNDEF_INT);
  }
  alignas(8) std::array<unsigned char, 128> bytes_;
};

bool nothing_given(const InitOptions& options) {
  constexpr int kUnset = InitOptions::kUnset;
  for (int value : {options.blocking, options.cga_cluster_size, options.min_ctas, options.max_ctas,
                    options.split_share, options.traffic_class, options.collnet_enable, options.cta_policy,
                    options.shrink_share, options.nvls_ctas, options.channels_per_net_peer,
                    options.nvlink_centric_sched}) {
    if (value != kUnset) return false;
  }
  return options.net_name.empty() && options.comm_name.empty();
}

// B-30
TEST(ConfigSizes, EveryReleaseWithNothingSet) {
  for (const Release& release : kReleases) {
    for (unsigned char filler : {0x00, 0x01, 0xff}) {
      Result<InitOptions> options = read_init_options(Caller(release, filler).get());
      ASSERT_TRUE(options.ok()) << release.version << " filler " << int(filler) << ": " << last_error_text();
      EXPECT_TRUE(nothing_given(*options)) << release.version << " filler " << int(filler);
    }
  }
}

TEST(ConfigSizes, EveryReleaseKeepsWhatItsHeaderHas) {
  for (const Release& release : kReleases) {
    Caller caller(release, 0xff);
    caller.put(16, 1);
    if (release.version >= 21700) caller.put(28, 7);
    if (release.version >= 22600) caller.put(44, 3);
    if (release.version >= 22700) caller.put(68, 5);
    if (release.version >= 22800) caller.put(76, 1);
    Result<InitOptions> options = read_init_options(caller.get());
    ASSERT_TRUE(options.ok()) << release.version << ": " << last_error_text();
    EXPECT_EQ(options->blocking, 1);
    EXPECT_EQ(options->max_ctas, release.version >= 21700 ? 7 : InitOptions::kUnset);
    EXPECT_EQ(options->traffic_class, release.version >= 22600 ? 3 : InitOptions::kUnset);
    EXPECT_EQ(options->nvls_ctas, release.version >= 22700 ? 5 : InitOptions::kUnset);
    EXPECT_EQ(options->nvlink_centric_sched, release.version >= 22800 ? 1 : InitOptions::kUnset);
  }
}

TEST(ConfigSizes, NullMeansDefaults) {
  Result<InitOptions> options = read_init_options(nullptr);
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(nothing_given(*options));
}

TEST(ConfigSizes, StringsAreCopied) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  char net[] = "Socket", name[] = "weights";
  config.netName = net;
  config.commName = name;
  Result<InitOptions> options = read_init_options(&config);
  ASSERT_TRUE(options.ok());
  net[0] = name[0] = '?';
  EXPECT_EQ(options->net_name, "Socket");
  EXPECT_EQ(options->comm_name, "weights");
}

TEST(ConfigSizes, WithoutInitializerIsRefused) {
  ncclConfig_t zero;
  memset(&zero, 0, sizeof(zero));
  ncclConfig_t wrong_magic = NCCL_CONFIG_INITIALIZER;
  wrong_magic.magic = 0;
  ncclConfig_t tiny = NCCL_CONFIG_INITIALIZER;
  tiny.size = 15;
  for (const ncclConfig_t* config : {&zero, &wrong_magic, &tiny}) {
    EXPECT_EQ(read_init_options(config).status().code(), Code::kInvalidArgument);
    EXPECT_STREQ(last_error_text(), "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
  }
}

struct BadValue {
  int ncclConfig_t::* field;
  int value;
  Code code;
  const char* text;
};

TEST(ConfigSizes, ValuesOutOfRangeAreNamed) {
  constexpr BadValue kBad[] = {
      {&ncclConfig_t::blocking, 2, Code::kInvalidArgument, "Invalid config blocking attribute value 2"},
      {&ncclConfig_t::blocking, -1, Code::kInvalidArgument, "Invalid config blocking attribute value -1"},
      {&ncclConfig_t::cgaClusterSize, 9, Code::kInvalidArgument, "Invalid config cgaClusterSize attribute value 9"},
      {&ncclConfig_t::minCTAs, 0, Code::kInvalidArgument, "Invalid config minCTAs attribute value 0"},
      {&ncclConfig_t::maxCTAs, -3, Code::kInvalidArgument, "Invalid config maxCTAs attribute value -3"},
      {&ncclConfig_t::splitShare, 2, Code::kInvalidArgument, "Invalid config splitShare attribute value 2"},
  };
  for (const BadValue& bad : kBad) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.*bad.field = bad.value;
    EXPECT_EQ(read_init_options(&config).status().code(), bad.code) << bad.text;
    EXPECT_STREQ(last_error_text(), bad.text);
  }
}

TEST(ConfigSizes, FewestAboveMostIsRefused) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.minCTAs = 8;
  config.maxCTAs = 4;
  EXPECT_EQ(read_init_options(&config).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace talaria::api
