#include "engine/device/kernels.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace talaria {

// One fatbin per instances/*.cu, placed by images.S; `_end` is the byte after the last.
extern "C" {
extern const std::byte talaria_image_copy[], talaria_image_copy_end[];
extern const std::byte talaria_image_int8[], talaria_image_int8_end[];
extern const std::byte talaria_image_uint8[], talaria_image_uint8_end[];
extern const std::byte talaria_image_int32[], talaria_image_int32_end[];
extern const std::byte talaria_image_uint32[], talaria_image_uint32_end[];
extern const std::byte talaria_image_int64[], talaria_image_int64_end[];
extern const std::byte talaria_image_uint64[], talaria_image_uint64_end[];
extern const std::byte talaria_image_float16[], talaria_image_float16_end[];
extern const std::byte talaria_image_bfloat16[], talaria_image_bfloat16_end[];
extern const std::byte talaria_image_float32[], talaria_image_float32_end[];
extern const std::byte talaria_image_float64[], talaria_image_float64_end[];
extern const std::byte talaria_image_float8e4m3[], talaria_image_float8e4m3_end[];
extern const std::byte talaria_image_float8e5m2[], talaria_image_float8e5m2_end[];
}

namespace {

struct Image {
  const std::byte* begin;
  const std::byte* end;
};
constexpr Image kImages[] = {
    {talaria_image_copy, talaria_image_copy_end},
    {talaria_image_int8, talaria_image_int8_end},
    {talaria_image_uint8, talaria_image_uint8_end},
    {talaria_image_int32, talaria_image_int32_end},
    {talaria_image_uint32, talaria_image_uint32_end},
    {talaria_image_int64, talaria_image_int64_end},
    {talaria_image_uint64, talaria_image_uint64_end},
    {talaria_image_float16, talaria_image_float16_end},
    {talaria_image_bfloat16, talaria_image_bfloat16_end},
    {talaria_image_float32, talaria_image_float32_end},
    {talaria_image_float64, talaria_image_float64_end},
    {talaria_image_float8e4m3, talaria_image_float8e4m3_end},
    {talaria_image_float8e5m2, talaria_image_float8e5m2_end},
};

// The rows: a type's kernels are in one image, under one short name.
struct TypeRow {
  DataType type;
  std::string_view name;
  uint32_t image;
};
constexpr TypeRow kTypes[] = {
    {DataType::kInt8, "i8", 1},           {DataType::kUint8, "u8", 2},
    {DataType::kInt32, "i32", 3},         {DataType::kUint32, "u32", 4},
    {DataType::kInt64, "i64", 5},         {DataType::kUint64, "u64", 6},
    {DataType::kFloat16, "f16", 7},       {DataType::kBfloat16, "bf16", 8},
    {DataType::kFloat32, "f32", 9},       {DataType::kFloat64, "f64", 10},
    {DataType::kFloat8e4m3, "f8e4m3", 11}, {DataType::kFloat8e5m2, "f8e5m2", 12},
};
struct ReduceRow {
  ReduceOp reduce;
  std::string_view name;
};
constexpr ReduceRow kReductions[] = {{ReduceOp::kSum, "Sum"}, {ReduceOp::kProd, "Prod"}, {ReduceOp::kMax, "Max"},
                                     {ReduceOp::kMin, "Min"}, {ReduceOp::kAvg, "Avg"},
                                     {ReduceOp::kPreMulSum, "PreMulSum"}};
struct ProtocolRow {
  Channel channel;
  std::string_view name;
};
constexpr ProtocolRow kProtocols[] = {{Channel::kCollectivePacket, "Packet"}, {Channel::kCollectiveBulk, "Bulk"}};

constexpr size_t kCopyKernels = std::size(kProtocols);
constexpr size_t kKernels = kCopyKernels + std::size(kTypes) * std::size(kReductions) * std::size(kProtocols);

struct Name {
  char text[48] = {};
  constexpr Name& operator+=(std::string_view part) {
    const size_t length = std::string_view(text).size();
    for (size_t i = 0; i < part.size(); ++i) text[length + i] = part[i];
    return *this;
  }
};

constexpr auto kNames = [] {
  std::array<Name, kKernels> names;
  size_t k = 0;
  for (const ProtocolRow& protocol : kProtocols) (names[k++] += "ncclDevKernel_Copy_") += protocol.name;
  for (const TypeRow& type : kTypes) {
    for (const ReduceRow& reduction : kReductions) {
      for (const ProtocolRow& protocol : kProtocols) {
        Name& name = names[k++];
        (name += "ncclDevKernel_Reduce_") += reduction.name;
        ((name += "_") += type.name) += "_";
        name += protocol.name;
      }
    }
  }
  return names;
}();

constexpr auto kTable = [] {
  std::array<KernelInfo, kKernels> table{};
  size_t k = 0;
  const auto add = [&](const KernelKey& key, uint32_t image) {
    table[k] = KernelInfo{key, kNames[k].text, image};
    ++k;
  };
  for (const ProtocolRow& protocol : kProtocols) add({DataType::kInt8, ReduceOp::kNone, protocol.channel}, 0);
  for (const TypeRow& type : kTypes) {
    for (const ReduceRow& reduction : kReductions) {
      for (const ProtocolRow& protocol : kProtocols) add({type.type, reduction.reduce, protocol.channel}, type.image);
    }
  }
  return table;
}();

}  // namespace

std::span<const std::span<const std::byte>> device_images() {
  static const auto images = [] {
    std::array<std::span<const std::byte>, std::size(kImages)> spans;
    for (size_t i = 0; i < spans.size(); ++i) spans[i] = {kImages[i].begin, kImages[i].end};
    return spans;
  }();
  return images;
}

std::span<const KernelInfo> kernel_table() { return kTable; }

int find_kernel(const KernelKey& key) {
  const bool copies = key.reduce == ReduceOp::kNone;
  const bool packet = is_packet(key.channel);
  for (size_t k = 0; k < kTable.size(); ++k) {
    const KernelKey& row = kTable[k].key;
    const bool same_type = copies || row.type == key.type;
    if (same_type && row.reduce == key.reduce && is_packet(row.channel) == packet) return static_cast<int>(k);
  }
  return -1;
}

const char* kernel_name(const KernelKey& key) {
  const int k = find_kernel(key);
  return k < 0 ? nullptr : kTable[static_cast<size_t>(k)].name;
}

uint32_t threads_per_stream(const KernelKey& key, uint32_t streams, uint64_t piece_bytes) {
  constexpr uint32_t kWarp = 32;
  const uint32_t most = kMaxThreadsPerBlock / std::max(streams, 1u) / kWarp * kWarp;
  // A thread moves 8 bytes of a packet message or 16 of a bulk message at once.
  const uint64_t unit = is_packet(key.channel) ? 8 : 16;
  const uint64_t useful = (std::min(piece_bytes, uint64_t{1} << 20) + unit * kWarp - 1) / (unit * kWarp) * kWarp;
  return static_cast<uint32_t>(std::clamp<uint64_t>(useful, kWarp, most));
}

}  // namespace talaria
