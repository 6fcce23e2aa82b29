#include "api/init_options.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>

namespace talaria::api {
namespace {

constexpr unsigned kConfigMagic = 0xcafebeef;

struct NumberField {
  const char* name;
  size_t offset;
  unsigned since;  // first NCCL version whose header has the field
  int InitOptions::* value;
  int least, most;
};

struct TextField {
  size_t offset;
  unsigned since;
  std::string InitOptions::* value;
};

constexpr NumberField kNumbers[] = {
    {"blocking", offsetof(ncclConfig_t, blocking), 21400, &InitOptions::blocking, 0, 1},
    {"cgaClusterSize", offsetof(ncclConfig_t, cgaClusterSize), 21700, &InitOptions::cga_cluster_size, 0, 8},
    {"minCTAs", offsetof(ncclConfig_t, minCTAs), 21700, &InitOptions::min_ctas, 1, INT_MAX},
    {"maxCTAs", offsetof(ncclConfig_t, maxCTAs), 21700, &InitOptions::max_ctas, 1, INT_MAX},
    {"splitShare", offsetof(ncclConfig_t, splitShare), 21800, &InitOptions::split_share, 0, 1},
    {"trafficClass", offsetof(ncclConfig_t, trafficClass), 22600, &InitOptions::traffic_class, 0, INT_MAX},
    {"collnetEnable", offsetof(ncclConfig_t, collnetEnable), 22700, &InitOptions::collnet_enable, 0, 1},
    {"CTAPolicy", offsetof(ncclConfig_t, CTAPolicy), 22700, &InitOptions::cta_policy, 0, 3},
    {"shrinkShare", offsetof(ncclConfig_t, shrinkShare), 22700, &InitOptions::shrink_share, 0, 1},
    {"nvlsCTAs", offsetof(ncclConfig_t, nvlsCTAs), 22700, &InitOptions::nvls_ctas, 1, INT_MAX},
    {"nChannelsPerNetPeer", offsetof(ncclConfig_t, nChannelsPerNetPeer), 22800, &InitOptions::channels_per_net_peer, 1,
     INT_MAX},
    {"nvlinkCentricSched", offsetof(ncclConfig_t, nvlinkCentricSched), 22800, &InitOptions::nvlink_centric_sched, 0,
     1},
};

constexpr TextField kTexts[] = {
    {offsetof(ncclConfig_t, netName), 21700, &InitOptions::net_name},
    {offsetof(ncclConfig_t, commName), 22700, &InitOptions::comm_name},
};

// The caller's bytes as far as this library knows the struct; the rest is zero and never looked at.
struct Copy {
  std::byte bytes[sizeof(ncclConfig_t)] = {};
  size_t size;
  unsigned version;

  bool has(size_t offset, size_t length, unsigned since) const { return version >= since && offset + length <= size; }
  template <typename T>
  T at(size_t offset) const {
    T value;
    memcpy(&value, bytes + offset, sizeof(T));
    return value;
  }
};

Result<Copy> copy_config(const ncclConfig_t* config) {
  constexpr size_t kHead = offsetof(ncclConfig_t, blocking);
  Copy copy;
  copy.size = std::min(config->size, sizeof(ncclConfig_t));
  if (copy.size >= kHead) memcpy(copy.bytes, config, copy.size);
  if (copy.size < kHead || copy.at<unsigned>(offsetof(ncclConfig_t, magic)) != kConfigMagic) {
    return fail(Code::kInvalidArgument, "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
  }
  copy.version = copy.at<unsigned>(offsetof(ncclConfig_t, version));
  return copy;
}

Status read_number(const Copy& copy, const NumberField& field, InitOptions& options) {
  if (!copy.has(field.offset, sizeof(int), field.since)) return Status();
  const int value = copy.at<int>(field.offset);
  if (value == NCCL_CONFIG_UNDEF_INT) return Status();
  if (value < field.least || value > field.most) {
    return fail(Code::kInvalidArgument, "Invalid config {} attribute value {}", field.name, value);
  }
  options.*field.value = value;
  return Status();
}

void read_text(const Copy& copy, const TextField& field, InitOptions& options) {
  if (!copy.has(field.offset, sizeof(char*), field.since)) return;
  const char* text = copy.at<const char*>(field.offset);
  if (text != nullptr) options.*field.value = text;
}

}  // namespace

Result<InitOptions> read_init_options(const ncclConfig_t* config) {
  InitOptions options;
  if (config == nullptr) return options;
  const Copy copy = TRY(copy_config(config));
  for (const NumberField& field : kNumbers) TRY(read_number(copy, field, options));
  for (const TextField& field : kTexts) read_text(copy, field, options);
  if (options.min_ctas != InitOptions::kUnset && options.max_ctas != InitOptions::kUnset &&
      options.min_ctas > options.max_ctas) {
    return fail(Code::kInvalidArgument, "Invalid config minCTAs/maxCTAs attribute values {}/{}", options.min_ctas,
                options.max_ctas);
  }
  return options;
}

}  // namespace talaria::api
