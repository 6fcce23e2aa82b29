#include "runtime/agreement.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/os.h"

namespace talaria {
namespace {

constexpr uint32_t kVersion = 3;
constexpr uint32_t kDepth = 4;

template <size_t size>
void copy_text(char (&to)[size], const std::string& from) {
  std::strncpy(to, from.c_str(), size - 1);
}

// Calls visit(row, index) for each variable that must be equal on all ranks.
template <typename Visit>
Status for_each_choice(Visit visit) {
  int index = 0;
  for (const ConfigRow& row : config_rows()) {
    if (row.agreed == Agreed::kEqual) TRY(visit(row, index++));
  }
  return Status();
}

ChoiceText choice_text(std::string value) {
  ChoiceText choice{};
  copy_text(choice.text, value);
  for (char& c : value) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  choice.hash = text_hash(value);
  return choice;
}

Status require_equal(std::span<const ChoiceInputs> all) {
  return for_each_choice([&](const ConfigRow& row, int index) -> Status {
    const ChoiceText& first = all[0].choices[index];
    for (uint32_t r = 1; r < all.size(); ++r) {
      const ChoiceText& other = all[r].choices[index];
      if (other.hash == first.hash) continue;
      return fail(Code::kInvalidUsage, "{} differs: \"{}\" on rank 0, \"{}\" on rank {}; set it alike on all ranks",
                  row.name, first.text, other.text, r);
    }
    return Status();
  });
}

Status require_equal_versions(std::span<const ChoiceInputs> all, bool refuse) {
  constexpr const char* kText =
      "Mismatched NCCL version detected : rank 0 has plans of version {}, rank {} of version {}";
  for (uint32_t r = 1; r < all.size(); ++r) {
    if (all[r].version == all[0].version) continue;
    if (refuse) return fail(Code::kInvalidUsage, kText, all[0].version, r, all[r].version);
    log_warn(kText, all[0].version, r, all[r].version);
  }
  return Status();
}

// CPU ranks: one lane. Slots shrink and get fewer as ranks grow, so that a mailbox stays near 4 MiB.
void size_host_channels(uint32_t nranks, ChannelSize (&sizes)[kMailboxChannels]) {
  constexpr uint64_t kBulkBytes = 3u << 20;
  constexpr uint32_t kLargestSlot = 128u << 10, kSmallestSlot = 4096, kPacketSlot = 4096, kPacketLine = 576;
  const uint64_t fitting = kBulkBytes / (uint64_t{nranks} * kFifosPerPair * kDepth * 2) / 4096 * 4096;
  const auto slot = static_cast<uint32_t>(std::clamp<uint64_t>(fitting, kSmallestSlot, kLargestSlot));
  // Many slots, so that a root may run ahead of the others; fewer for many ranks.
  const uint32_t packet_depth = std::clamp(std::bit_floor(std::max(128 / nranks, 1u)), kDepth, 64u);
  sizes[static_cast<int>(Channel::kCollectivePacket)] = {1, packet_depth, kPacketSlot, kPacketLine};
  sizes[static_cast<int>(Channel::kCollectiveBulk)] = {1, kDepth, slot};
  sizes[static_cast<int>(Channel::kPointBulk)] = {1, kDepth, slot};
}

// GPU ranks: lanes are blocks. All ranks of one GPU must be resident at once, for any operation.
void size_device_channels(uint32_t lanes, ChannelSize (&sizes)[kMailboxChannels]) {
  constexpr uint32_t kPacketSlot = 8u << 10, kBulkSlot = 32u << 10, kPointSlot = 64u << 10;
  sizes[static_cast<int>(Channel::kCollectivePacket)] = {std::min(lanes, 32u), kDepth, kPacketSlot};
  sizes[static_cast<int>(Channel::kCollectiveBulk)] = {lanes, kDepth, kBulkSlot};
  sizes[static_cast<int>(Channel::kPointBulk)] = {std::min(lanes, 16u), kDepth, kPointSlot};
}

uint32_t agreed_lanes(std::span<const ChoiceInputs> all) {
  constexpr uint32_t kMostLanes = 64;       // 64 pushing blocks reach the link's rate
  std::map<std::pair<uint64_t, std::string>, uint32_t> ranks_on_gpu;
  uint32_t sharing = 1;
  uint32_t multiprocessors = ~0u;  // of the smallest GPU; one resident block each is counted on
  uint32_t most = kMostLanes;
  for (const ChoiceInputs& inputs : all) {
    sharing = std::max(sharing, ++ranks_on_gpu[{inputs.host_hash, inputs.bus_id}]);
    multiprocessors = std::min(multiprocessors, inputs.multiprocessors);
    if (inputs.max_ctas > 0) most = std::min(most, static_cast<uint32_t>(inputs.max_ctas));
  }
  // minCTAs asks for nothing that is not given anyway: as many lanes as maxCTAs and the GPU allow.
  return std::min(most, std::max(multiprocessors / sharing, 1u));
}

}  // namespace

ChoiceInputs choice_inputs_of(const Config& config, const Engine& engine, int min_ctas, int max_ctas) {
  ChoiceInputs inputs{};
  inputs.version = config.fault == "version" ? kVersion + 1000 : kVersion;
  inputs.kind = engine.kind();
  inputs.min_ctas = min_ctas;
  inputs.max_ctas = max_ctas;
  inputs.host_hash = host_hash(config.host_id);
  (void)for_each_choice([&](const ConfigRow& row, int index) {
    inputs.choices[index] = choice_text(text_of(config, row));
    return Status();
  });
  copy_text(inputs.bus_id, engine.bus_id());
  inputs.multiprocessors = engine.multiprocessors();
  return inputs;
}

Result<Agreement> agree(std::span<const ChoiceInputs> all, bool refuse_versions) {
  TRY(require_equal_versions(all, refuse_versions));
  for (uint32_t r = 0; r < all.size(); ++r) {
    if (all[r].failed) return fail(Code::kRemote, "rank {} could not set itself up; see its log", r);
    if (all[r].kind != all[0].kind) {
      return fail(Code::kInvalidUsage,
                  "rank 0 is a {} rank, rank {} is a {} rank: a communicator cannot mix them; set TALARIA_DEVICE alike",
                  all[0].kind == EngineKind::kHost ? "CPU" : "GPU", r,
                  all[r].kind == EngineKind::kHost ? "CPU" : "GPU");
    }
  }
  TRY(require_equal(all));
  const auto nranks = static_cast<uint32_t>(all.size());
  const bool host = all[0].kind == EngineKind::kHost;
  ChannelSize sizes[kMailboxChannels];
  if (host) size_host_channels(nranks, sizes);
  else size_device_channels(agreed_lanes(all), sizes);

  Agreement agreement{};
  for (int c = 0; c < kChannels; ++c) agreement.rooms[c] = {sizes[c].lanes, sizes[c].depth, sizes[c].slot_bytes};
  // A rank alone receives nothing; its calls are still cut into pieces as the rooms say.
  for (ChannelSize& size : sizes) size.slot_bytes = nranks == 1 ? 0 : size.slot_bytes;
  agreement.layout = make_mailbox_layout(nranks, sizes);
  agreement.limits.nranks = nranks;
  agreement.limits.packets = true;
  // Measured on 2x H200: packets win up to 256 KB, one shot of bulk messages up to 2 MB, two shots beyond.
  agreement.limits.one_shot_bytes = host ? 32768 : 2u << 20;
  agreement.limits.one_shot_packet_bytes = host ? 4096 : 256u << 10;
  agreement.limits.packet_bytes = host ? 4096 : 128u << 10;
  return agreement;
}

Result<Selection> agree_on_selection(const ChoiceLimits& limits, const Config& config, OutOfBand& oob) {
  const SelectionTable mine = oob.rank() == 0 ? fill_selection_table(limits) : SelectionTable{};
  Selection selection{limits.nranks, limits.form, TRY(oob.all_gather_value(mine))[0], config.algorithms,
                      config.protocols, limits.direct_bytes};
  const auto hashes = TRY(oob.all_gather_value(hash_of(selection.table)));
  for (uint32_t r = 1; r < hashes.size(); ++r) {
    if (hashes[r] == hashes[0]) continue;
    return fail(Code::kInvalidUsage,
                "the selection table of rank 0 means something else to rank {}: it runs another build of this library",
                r);
  }
  return selection;
}

}  // namespace talaria
