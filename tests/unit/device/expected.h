// Expected: what a collective must give, computed with plain loops and this file's own arithmetic.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "fleet.h"

namespace talaria {

// A type as tests compute with it: Real holds any element exactly, Sum is what the library accumulates in.
template <DataType kType>
struct Element;
template <class Stored, class Accumulated>
struct Plain {
  using Bits = Stored;
  using Sum = Accumulated;
  static Sum widen(Bits bits) { return static_cast<Sum>(bits); }
  static Bits narrow(Sum value) { return static_cast<Bits>(value); }
};
template <> struct Element<DataType::kInt8> : Plain<int8_t, int8_t> {};
template <> struct Element<DataType::kUint8> : Plain<uint8_t, uint8_t> {};
template <> struct Element<DataType::kInt32> : Plain<int32_t, int32_t> {};
template <> struct Element<DataType::kUint32> : Plain<uint32_t, uint32_t> {};
template <> struct Element<DataType::kUint64> : Plain<uint64_t, uint64_t> {};
template <> struct Element<DataType::kInt64> : Plain<int64_t, int64_t> {};
template <> struct Element<DataType::kFloat16> : Plain<_Float16, float> {};
template <> struct Element<DataType::kFloat32> : Plain<float, float> {};
template <> struct Element<DataType::kFloat64> : Plain<double, double> {};
template <>
struct Element<DataType::kBfloat16> {
  using Bits = uint16_t;
  using Sum = float;
  static float widen(uint16_t bits) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
  static uint16_t narrow(float value) {
    // Nearest of the two neighbours, the even one when in the middle.
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    const uint16_t low = static_cast<uint16_t>(wide >> 16);
    const uint32_t rest = wide & 0xffff;
    const bool up = rest > 0x8000 || (rest == 0x8000 && (low & 1) != 0);
    return static_cast<uint16_t>(low + (up ? 1 : 0));
  }
};

// By definition; numbers beyond the largest become the largest.
template <int kMantissa, uint8_t kLargest>
struct Float8Element {
  using Bits = uint8_t;
  using Sum = float;
  static float widen(uint8_t bits) {
    constexpr int kBias = (1 << (6 - kMantissa)) - 1;
    const int exponent = (bits & 0x7f) >> kMantissa, fraction = bits & ((1 << kMantissa) - 1);
    const float value = exponent == 0 ? std::ldexp(float(fraction), 1 - kBias - kMantissa)
                                      : std::ldexp(float(fraction + (1 << kMantissa)), exponent - kBias - kMantissa);
    return (bits & 0x80) != 0 ? -value : value;
  }
  static uint8_t narrow(float value) {
    static const std::vector<float> numbers = [] {
      std::vector<float> all;
      for (uint8_t bits = 0; bits <= kLargest; ++bits) all.push_back(widen(bits));
      return all;
    }();
    const float magnitude = std::fabs(value);
    const auto above = std::lower_bound(numbers.begin(), numbers.end() - 1, magnitude);
    size_t nearest = static_cast<size_t>(above - numbers.begin());
    if (nearest > 0) {
      const float up = *above - magnitude, down = magnitude - above[-1];
      if (down < up || (down == up && nearest % 2 != 0)) --nearest;
    }
    return static_cast<uint8_t>(nearest | (std::signbit(value) ? 0x80 : 0));
  }
};
template <> struct Element<DataType::kFloat8e4m3> : Float8Element<3, 0x7e> {};
template <> struct Element<DataType::kFloat8e5m2> : Float8Element<2, 0x7b> {};

// Random elements. `small`: multiples of `unit` so few and small that sums and products of 4 are exact in the type.
template <DataType kType>
Bytes random_input(size_t count, bool small, uint32_t unit, std::mt19937_64& random) {
  constexpr uint64_t kSmall = traits_of(kType).floating && bytes_of(kType) == 1 ? 2 : 4;
  using E = Element<kType>;
  Bytes data(count * sizeof(typename E::Bits));
  for (size_t i = 0; i < count; ++i) {
    typename E::Bits bits;
    if (small) {
      bits = E::narrow(static_cast<typename E::Sum>(random() % kSmall * unit));
    } else if constexpr (std::is_floating_point_v<typename E::Sum>) {
      bits = E::narrow(static_cast<typename E::Sum>(std::ldexp(double(int64_t(random() % 20001) - 10000), -9)));
    } else {
      bits = static_cast<typename E::Bits>(random());
    }
    std::memcpy(data.data() + i * sizeof bits, &bits, sizeof bits);
  }
  return data;
}

template <class Sum>
Sum combine(ReduceOp reduce, Sum a, Sum b) {
  if (reduce == ReduceOp::kMax) return a != a ? b : b != b ? a : a < b ? b : a;
  if (reduce == ReduceOp::kMin) return a != a ? b : b != b ? a : b < a ? b : a;
  if constexpr (std::is_integral_v<Sum>) {
    using U = std::make_unsigned_t<Sum>;
    if (reduce == ReduceOp::kProd) return static_cast<Sum>(static_cast<U>(static_cast<U>(a) * static_cast<U>(b)));
    return static_cast<Sum>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return reduce == ReduceOp::kProd ? a * b : a + b;
  }
}

// Averages need inputs that are multiples of the number of ranks.
inline uint32_t unit_for(ReduceOp reduce, uint32_t nranks) { return reduce == ReduceOp::kAvg ? nranks : 1; }

// Each rank's scalar of PreMulSum, an element in the lowest bytes; none for other reductions.
template <DataType kType>
std::vector<uint64_t> random_scalars(ReduceOp reduce, bool small, uint32_t nranks, std::mt19937_64& random) {
  std::vector<uint64_t> scalars(reduce == ReduceOp::kPreMulSum ? nranks : 0);
  for (uint64_t& scalar : scalars) {
    const Bytes element = random_input<kType>(1, small, 1, random);
    std::memcpy(&scalar, element.data(), element.size());
  }
  return scalars;
}

// What a reduction is made of: one send buffer, and of PreMulSum one scalar, for each rank.
struct Given {
  const std::vector<Bytes>& inputs;
  const std::vector<uint64_t>& scalars;
};

// Element `i` of all inputs, in rank order, with one rounding at the end.
template <DataType kType>
typename Element<kType>::Bits reduced(ReduceOp reduce, const Given& given, size_t i) {
  const std::vector<Bytes>& inputs = given.inputs;
  using E = Element<kType>;
  using Sum = typename E::Sum;
  const Sum ranks = static_cast<Sum>(inputs.size());
  Sum total{};
  for (size_t r = 0; r < inputs.size(); ++r) {
    typename E::Bits bits;
    std::memcpy(&bits, inputs[r].data() + i * sizeof bits, sizeof bits);
    Sum value = E::widen(bits);
    if (reduce == ReduceOp::kAvg && std::is_floating_point_v<Sum>) value = value * (Sum(1) / ranks);
    if (reduce == ReduceOp::kPreMulSum) {
      typename E::Bits scalar;
      std::memcpy(&scalar, &given.scalars[r], sizeof scalar);
      value = E::widen(E::narrow(combine(ReduceOp::kProd, value, E::widen(scalar))));
    }
    total = r == 0 ? value : combine(reduce, total, value);
  }
  if (reduce == ReduceOp::kAvg && std::is_integral_v<Sum>) total = static_cast<Sum>(total / ranks);
  return E::narrow(total);
}

// Rank r's output; of a reduce or gather, the root's.
template <DataType kType>
Bytes expected_output(const Collective& collective, const std::vector<Bytes>& inputs, uint32_t r,
                      const std::vector<uint64_t>& scalars = {}) {
  using Bits = typename Element<kType>::Bits;
  const size_t count = collective.count, nranks = inputs.size();
  Bytes out;
  const auto append = [&out](const void* from, size_t bytes) {
    const auto* begin = static_cast<const std::byte*>(from);
    out.insert(out.end(), begin, begin + bytes);
  };
  switch (collective.operation) {
    case Operation::kAllReduce:
    case Operation::kReduce:
    case Operation::kReduceScatter: {
      const size_t first = collective.operation == Operation::kReduceScatter ? r * count : 0;
      for (size_t i = 0; i < count; ++i) {
        const Bits bits = reduced<kType>(collective.reduce, {inputs, scalars}, first + i);
        append(&bits, sizeof bits);
      }
      break;
    }
    case Operation::kAllGather:
    case Operation::kGather:
      for (const Bytes& input : inputs) append(input.data(), count * sizeof(Bits));
      break;
    case Operation::kScatter:
      append(inputs[static_cast<size_t>(collective.root)].data() + r * count * sizeof(Bits), count * sizeof(Bits));
      break;
    case Operation::kAlltoAll:
      for (size_t p = 0; p < nranks; ++p) append(inputs[p].data() + r * count * sizeof(Bits), count * sizeof(Bits));
      break;
    default: append(inputs[static_cast<size_t>(collective.root)].data(), count * sizeof(Bits));
  }
  return out;
}

}  // namespace talaria
