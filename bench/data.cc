#include "data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace talaria::bench {
namespace {

// Elements made with one key; the loops over a block are written to be vectorised.
constexpr int kBlock = 1024;

uint64_t mix64(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9fb21c651e98df25ull;
  x ^= x >> 28;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  return x;
}

// One multiplication, because SSE2 has none of this kind; the inputs are spread by the golden ratio already.
inline uint32_t mix32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  return x;
}

uint64_t block_key(uint64_t seed, int rank, uint64_t block) {
  return mix64(mix64(seed + 0x9e3779b97f4a7c15ull * static_cast<uint64_t>(rank + 1)) ^ block);
}

// Hashes of elements [offset, offset + count) of the block that `key` stands for.
template <typename Int>
void hash_block(uint64_t key, int offset, int count, Int* out) {
  constexpr uint32_t kGolden = 0x9e3779b9u;
  const uint32_t low = static_cast<uint32_t>(key);
  const uint32_t high = static_cast<uint32_t>(key >> 32);
  uint32_t index = static_cast<uint32_t>(offset) * kGolden;
  for (int i = 0; i < count; ++i, index += kGolden) {
    if constexpr (sizeof(Int) == 4) {
      out[i] = static_cast<Int>(mix32(low + index) ^ high);
    } else {
      out[i] = static_cast<Int>((static_cast<uint64_t>(mix32(high ^ index)) << 32) | mix32(low + index));
    }
  }
}

// An integer that is a normal value (or zero) of the type with these parameters.
template <int kMantissa, int kBias, typename Word>
Word encode_float(int32_t value) {
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const int exponent = static_cast<int>((bits >> 23) & 0xff) - 127 + kBias;
  const uint32_t word =
      (static_cast<uint32_t>(exponent) << kMantissa) | ((bits >> (23 - kMantissa)) & ((1u << kMantissa) - 1));
  const uint32_t sign = (bits >> 31) << (sizeof(Word) * 8 - 1);
  return static_cast<Word>(value == 0 ? 0 : word | sign);
}

template <typename Word, typename Int, typename Encode>
void encode_each(const Int* values, int count, std::byte* out, Encode encode) {
  Word* words = reinterpret_cast<Word*>(out);
  for (int i = 0; i < count; ++i) words[i] = encode(values[i]);
}

template <typename Int>
void encode_block(const ElementType& type, uint64_t offset, const Int* values, int count, std::byte* out) {
  const auto plain = [&]<typename Word>(Word) {
    encode_each<Word>(values, count, out, [](Int value) { return static_cast<Word>(value); });
  };
  const auto small = [&]<int kMantissa, int kBias, typename Word>(Word) {
    encode_each<Word>(values, count, out, [](Int value) {
      return encode_float<kMantissa, kBias, Word>(static_cast<int32_t>(value));
    });
  };
  switch (type.type) {
    case ncclInt8:
    case ncclUint8: return plain(uint8_t{});
    case ncclInt32:
    case ncclUint32: return plain(uint32_t{});
    case ncclInt64: return plain(uint64_t{});
    case ncclUint64:
      return encode_each<uint64_t>(values, count, out, [=](Int v) { return static_cast<uint64_t>(v) + offset; });
    case ncclFloat32: return plain(float{});
    case ncclFloat64: return plain(double{});
    case ncclFloat16: return small.template operator()<10, 15>(uint16_t{});
    case ncclBfloat16: return small.template operator()<7, 127>(uint16_t{});
    case ncclFloat8e4m3: return small.template operator()<3, 7>(uint8_t{});
    case ncclFloat8e5m2: return small.template operator()<2, 15>(uint8_t{});
    default: return;
  }
}

// Stores hashes as they are.
template <typename Int>
void store_bits(size_t bytes, const Int* hashes, int count, std::byte* out) {
  switch (bytes) {
    case 1: return encode_each<uint8_t>(hashes, count, out, [](Int hash) { return static_cast<uint8_t>(hash); });
    case 2: return encode_each<uint16_t>(hashes, count, out, [](Int hash) { return static_cast<uint16_t>(hash); });
    default: std::memcpy(out, hashes, bytes * static_cast<size_t>(count));
  }
}

// The value of one element of a floating type. Infinities and NaNs come out as some number that equals no expected one.
double decode(const ElementType& type, const std::byte* element) {
  uint64_t word = 0;
  std::memcpy(&word, element, type.bytes);
  const int sign_bit = type.bytes * 8 - 1;
  const uint64_t magnitude = word & ((uint64_t{1} << sign_bit) - 1);
  const int exponent = static_cast<int>(magnitude >> type.mantissa_bits);
  const double mantissa = static_cast<double>(magnitude & ((uint64_t{1} << type.mantissa_bits) - 1));
  const double unit = std::ldexp(1.0, type.mantissa_bits);
  const double value = exponent == 0 ? std::ldexp(mantissa / unit, 1 - type.exponent_bias)
                                     : std::ldexp(1 + mantissa / unit, exponent - type.exponent_bias);
  return (word >> sign_bit) & 1 ? -value : value;
}

// Rounds to the nearest number with so many bits after the leading one; ties to even.
double round_to(double value, int mantissa_bits) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, mantissa_bits + 1)), exponent - mantissa_bits - 1);
}

// Calls part(offset within its block, block, count, index of the first element) for each block of a range.
template <typename Part>
void for_each_block(uint64_t first, size_t count, Part part) {
  for (size_t done = 0; done < count;) {
    const uint64_t index = first + done;
    const size_t room = kBlock - index % kBlock;
    const int now = static_cast<int>(std::min(room, count - done));
    part(index, now, done);
    done += static_cast<size_t>(now);
  }
}

}  // namespace

DataSet::DataSet(const ElementType& type, const Reduction* reduction, int nranks, uint64_t seed)
    : type_(type), reduction_(reduction), nranks_(nranks), seed_(seed), window_(nranks) {
  if (reduction_ != nullptr) choose_range();
}

void DataSet::choose_range() {
  int64_t limit = type_.exact;
  bool negative = type_.is_signed;
  if (is(ncclProd)) {  // factors 1 and 2, neutral 1
    mask_ = 1;
    bias_ = -1;
    neutral_ = 1;
    window_ = std::min(nranks_, static_cast<int>(std::bit_width(static_cast<uint64_t>(limit))) - 1);
    return;
  }
  int64_t terms = nranks_;
  if (is(ncclMax) || is(ncclMin)) {
    terms = 1;
    negative = negative || type_.type == ncclUint64;
    encode_offset_ = type_.type == ncclUint64 ? uint64_t{1} << 63 : 0;
  } else if (is(kMulSum)) {
    limit /= kLargestFactor;
  } else if (is(ncclAvg) && type_.floating) {  // multiples of n, so that the average is a value of the type
    scale_ = nranks_;
    limit = std::min<int64_t>(limit / nranks_, 4096);
    const int64_t exact = largest_exact_average(limit);
    if (exact < 2) tolerance_ = std::ldexp(2.0 * nranks_, -type_.mantissa_bits);
    limit = std::max<int64_t>(exact < 2 ? limit : exact, 1);
  } else if (is(ncclAvg)) {
    negative = false;  // how a negative integer average is rounded is not ours to check
  }
  // A signed value of b bits has a magnitude of at most 2^(b-1).
  const int64_t share = std::max<int64_t>(limit / terms, 1);
  const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(share))) - 1) + (negative ? 1 : 0);
  const int64_t largest = int64_t{1} << (negative ? bits - 1 : bits);
  mask_ = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  bias_ = negative ? static_cast<int64_t>(uint64_t{1} << (bits - 1)) : 0;
  if (terms > 1) window_ = static_cast<int>(std::clamp<int64_t>(limit / largest, 1, nranks_));
}

// A library may scale each input by 1/n in the type, or the sum: up to which average do both give it exactly?
int64_t DataSet::largest_exact_average(int64_t limit) const {
  const double inverse = round_to(1.0 / nranks_, type_.mantissa_bits);
  for (int64_t average = 1; average <= limit; ++average) {
    const double product = inverse * static_cast<double>(average * nranks_);
    if (round_to(product, type_.mantissa_bits) != static_cast<double>(average)) return average - 1;
  }
  return limit;
}

template <typename Int>
void DataSet::values(int rank, uint64_t first, int count, Int* out) const {
  const uint64_t block = first / kBlock;
  const int offset = static_cast<int>(first % kBlock);
  hash_block(block_key(seed_, rank, block), offset, count, out);
  const Int mask = static_cast<Int>(mask_);
  const Int bias = static_cast<Int>(bias_);
  const Int scale = static_cast<Int>(scale_);
  for (int i = 0; i < count; ++i) out[i] = static_cast<Int>(((out[i] & mask) - bias) * scale);
  if (window_ == nranks_) return;
  uint32_t start[kBlock];
  hash_block(block_key(seed_, -1, block), offset, count, start);
  for (int i = 0; i < count; ++i) {
    const int distance = static_cast<int>((static_cast<uint32_t>(rank) + start[i] % nranks_) % nranks_);
    if (distance >= window_) out[i] = static_cast<Int>(neutral_);
  }
}

void DataSet::input(int rank, uint64_t first, size_t count, std::byte* out) const {
  for_each_block(first, count, [&](uint64_t index, int now, size_t done) {
    std::byte* const to = out + done * type_.bytes;
    const auto make = [&]<typename Int>(Int) {
      Int numbers[kBlock];
      if (reduction_ == nullptr) {
        hash_block(block_key(seed_, rank, index / kBlock), static_cast<int>(index % kBlock), now, numbers);
        store_bits(type_.bytes, numbers, now, to);
      } else {
        values(rank, index, now, numbers);
        encode_block(type_, encode_offset_, numbers, now, to);
      }
    };
    if (reduction_ == nullptr ? type_.bytes < 8 : narrow()) {
      make(int32_t{});
    } else {
      make(int64_t{});
    }
  });
}

void DataSet::scalar(int rank, std::byte* out) const {
  const int64_t value = factor(rank);
  encode_block(type_, 0, &value, 1, out);
}

template <typename Int>
void DataSet::reduce_block(uint64_t first, int count, std::byte* out) const {
  Int total[kBlock];
  Int next[kBlock];
  values(0, first, count, total);
  for (int rank = 1; rank < nranks_; ++rank) {
    values(rank, first, count, next);
    const Int multiplier = static_cast<Int>(factor(rank));  // the first rank's is 1
    switch (reduction_->op) {
      case ncclProd:
        for (int i = 0; i < count; ++i) total[i] = static_cast<Int>(total[i] * next[i]);
        break;
      case ncclMax:
        for (int i = 0; i < count; ++i) total[i] = std::max(total[i], next[i]);
        break;
      case ncclMin:
        for (int i = 0; i < count; ++i) total[i] = std::min(total[i], next[i]);
        break;
      default:
        for (int i = 0; i < count; ++i) total[i] = static_cast<Int>(total[i] + next[i] * multiplier);
    }
  }
  if (is(ncclAvg)) {
    for (int i = 0; i < count; ++i) total[i] = static_cast<Int>(total[i] / nranks_);
  }
  encode_block(type_, encode_offset_, total, count, out);
}

void DataSet::reduced(uint64_t first, size_t count, std::byte* out) const {
  for_each_block(first, count, [&](uint64_t index, int now, size_t done) {
    if (narrow()) {
      reduce_block<int32_t>(index, now, out + done * type_.bytes);
    } else {
      reduce_block<int64_t>(index, now, out + done * type_.bytes);
    }
  });
}

uint64_t DataSet::count_wrong(const std::byte* got, const std::byte* expected, size_t count) const {
  const size_t bytes = type_.bytes;
  if (std::memcmp(got, expected, count * bytes) == 0) return 0;
  uint64_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    const std::byte* const a = got + i * bytes;
    const std::byte* const b = expected + i * bytes;
    if (std::memcmp(a, b, bytes) == 0) continue;
    if (tolerance_ > 0) {
      const double want = decode(type_, b);
      if (std::abs(decode(type_, a) - want) <= tolerance_ * std::max(std::abs(want), 1.0)) continue;
    }
    ++wrong;
  }
  return wrong;
}

}  // namespace talaria::bench
