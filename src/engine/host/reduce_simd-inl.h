// The SIMD kernels, on Highway's portable vectors. Included by one source file per instruction set, which is compiled
// for it (Debian ships Highway's run-time dispatch only as a shared library). Everything here has internal linkage.
#include <hwy/highway.h>

#include <cstring>

#include "engine/host/elements.h"
#include "engine/host/reduce.h"

namespace talaria {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// How a storage type is loaded into and stored from vectors of the type sums are kept in; round() is what storing and
// loading does to a value.
template <typename T>
struct Vectors {
  using D = hn::ScalableTag<T>;
  using V = hn::VFromD<D>;
  static V load(D d, const T* p) { return hn::LoadU(d, p); }
  static void store(D d, V v, T* p) { hn::StoreU(v, d, p); }
  static V round(D, V v) { return v; }
};
template <>
struct Vectors<Half> {
  using D = hn::ScalableTag<float>;
  using V = hn::VFromD<D>;
  using D16 = hn::Rebind<hwy::float16_t, D>;
  static V load(D d, const Half* p) {
    return hn::PromoteTo(d, hn::LoadU(D16(), reinterpret_cast<const hwy::float16_t*>(p)));
  }
  static void store(D, V v, Half* p) {
    hn::StoreU(hn::DemoteTo(D16(), v), D16(), reinterpret_cast<hwy::float16_t*>(p));
  }
  static V round(D d, V v) { return hn::PromoteTo(d, hn::DemoteTo(D16(), v)); }
};
template <>
struct Vectors<Bfloat> {
  using D = hn::ScalableTag<float>;
  using V = hn::VFromD<D>;
  using DU = hn::RebindToUnsigned<D>;
  using D16 = hn::Rebind<uint16_t, D>;
  static V load(D d, const Bfloat* p) {
    return widen(d, hn::PromoteTo(DU(), hn::LoadU(D16(), reinterpret_cast<const uint16_t*>(p))));
  }
  static void store(D, V v, Bfloat* p) {
    hn::StoreU(hn::DemoteTo(D16(), hn::BitCast(hn::RebindToSigned<DU>(), narrow(v))), D16(),
               reinterpret_cast<uint16_t*>(p));
  }
  static V round(D d, V v) { return widen(d, narrow(v)); }

 private:
  static V widen(D d, hn::VFromD<DU> bits) { return hn::BitCast(d, hn::ShiftLeft<16>(bits)); }
  // Rounds to nearest even in integers: Highway's own demotion truncates.
  static hn::VFromD<DU> narrow(V v) {
    const DU du;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))));
    return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), hn::Set(du, 0x7fffu), rounded);
  }
};
// As engine/float8.h, with the FPU's help for subnormal numbers.
template <class Format>
struct Vectors<Float8<Format>> {
  using D = hn::ScalableTag<float>;
  using V = hn::VFromD<D>;
  using DU = hn::RebindToUnsigned<D>;
  using D8 = hn::Rebind<uint8_t, D>;
  static V load(D d, const Float8<Format>* p) {
    return widen(d, hn::PromoteTo(DU(), hn::LoadU(D8(), reinterpret_cast<const uint8_t*>(p))));
  }
  static void store(D, V v, Float8<Format>* p) {
    hn::StoreU(hn::DemoteTo(D8(), hn::BitCast(hn::RebindToSigned<DU>(), narrow(v))), D8(),
               reinterpret_cast<uint8_t*>(p));
  }
  static V round(D d, V v) { return widen(d, narrow(v)); }

 private:
  static constexpr int kDropped = Format::kDropped;
  static V widen(D d, hn::VFromD<DU> bits) {
    const DU du;
    const auto sign = hn::ShiftLeft<24>(hn::And(bits, hn::Set(du, 0x80u)));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fu));
    // Re-bias by a multiplication that is exact for normal and subnormal numbers alike.
    const auto scale = hn::BitCast(d, hn::Set(du, (254 - Format::kBias) << 23));
    const auto number = hn::BitCast(du, hn::Mul(hn::BitCast(d, hn::ShiftLeft<kDropped>(magnitude)), scale));
    const auto special = hn::IfThenElse(hn::Eq(magnitude, hn::Set(du, Format::kInfinity)), hn::Set(du, 0x7f800000u),
                                        hn::Set(du, 0x7fc00000u));
    const auto is_special = hn::Gt(magnitude, hn::Set(du, Format::kLargest));
    return hn::BitCast(d, hn::Or(sign, hn::IfThenElse(is_special, special, number)));
  }
  static hn::VFromD<DU> narrow(V v) {
    const D d;
    const DU du;
    const auto bits = hn::BitCast(du, v);
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
    const auto odd = hn::And(hn::ShiftRight<kDropped>(magnitude), hn::Set(du, 1u));
    const auto half = hn::Set(du, (1u << (kDropped - 1)) - 1);
    const auto rebias = hn::Set(du, Format::kSmallestNormal - (1u << 23));
    const auto normal = hn::ShiftRight<kDropped>(hn::Add(hn::Sub(magnitude, rebias), hn::Add(half, odd)));
    // Adding this leaves the rounded value, in units of the smallest number, in the low mantissa bits.
    const auto anchor = hn::Set(du, Format::kSmallestNormal + (kDropped << 23));
    const auto small = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, anchor))), anchor);
    const auto is_small = hn::Lt(magnitude, hn::Set(du, Format::kSmallestNormal));
    const auto number = hn::Min(hn::IfThenElse(is_small, small, normal), hn::Set(du, Format::kLargest));
    const auto sign = hn::And(hn::ShiftRight<24>(bits), hn::Set(du, 0x80u));
    return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), hn::Set(du, 0x7fu), hn::Or(sign, number));
  }
};

// `chosen` is what a comparison of two numbers chose; a NaN gives way to a number.
template <typename V>
HWY_INLINE V unless_nan(V a, V b, V chosen) {
  if constexpr (hwy::IsFloat<hn::TFromD<hn::DFromV<V>>>()) {
    return hn::IfThenElse(hn::IsNaN(a), b, hn::IfThenElse(hn::IsNaN(b), a, chosen));
  } else {
    return chosen;
  }
}

template <FoldOp op, typename V>
HWY_INLINE V combine(V a, V b) {
  if constexpr (op == FoldOp::kProd) return hn::Mul(a, b);
  else if constexpr (op == FoldOp::kMax) return unless_nan(a, b, hn::IfThenElse(hn::Lt(a, b), b, a));
  else if constexpr (op == FoldOp::kMin) return unless_nan(a, b, hn::IfThenElse(hn::Lt(b, a), b, a));
  else return hn::Add(a, b);
}

// A rank's scalar, in the type sums are kept in.
template <typename T>
auto scalar_at(const FoldSources& sources, uint32_t s) {
  const typename Vectors<T>::D d;
  T lanes[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(lanes, &sources.scalars[s], sizeof(T));
  return hn::GetLane(Vectors<T>::load(d, lanes));
}

template <typename Row, FoldOp op>
void fold(void* out, const FoldSources& sources, size_t count, double inverse) {
  using T = typename Row::Type;
  using Vec = Vectors<T>;
  const typename Vec::D d;
  using W = hn::TFromD<typename Vec::D>;
  const size_t width = hn::Lanes(d);
  // On the stack whatever the number of ranks; a container's code would not have internal linkage.
  const void** rest = static_cast<const void**>(__builtin_alloca(sources.size * sizeof(void*)));
  W* scalars = static_cast<W*>(__builtin_alloca(sources.size * sizeof(W)));
  for (uint32_t s = 0; op == FoldOp::kPreMulSum && s < sources.size; ++s) scalars[s] = scalar_at<T>(sources, s);
  const auto value = [&](uint32_t s, size_t i) HWY_ATTR {
    auto v = Vec::load(d, static_cast<const T*>(sources.data[s]) + i);
    if constexpr (op == FoldOp::kScaledSum) {
      if (sources.raw[s]) v = hn::Mul(v, hn::Set(d, static_cast<W>(inverse)));
    }
    if constexpr (op == FoldOp::kPreMulSum) {
      if (sources.raw[s]) v = Vec::round(d, hn::Mul(v, hn::Set(d, scalars[s])));
    }
    return v;
  };
  size_t i = 0;
  for (; i + width <= count; i += width) {
    auto sum = value(0, i);
    for (uint32_t s = 1; s < sources.size; ++s) sum = combine<op>(sum, value(s, i));
    Vec::store(d, sum, static_cast<T*>(out) + i);
  }
  if (i == count) return;
  // The scalar kernel finishes what does not fill a vector.
  for (uint32_t s = 0; s < sources.size; ++s) rest[s] = static_cast<const T*>(sources.data[s]) + i;
  scalar_reduce_table()->kernels[static_cast<int>(Row::kType)][static_cast<int>(op)](
      static_cast<T*>(out) + i, FoldSources{rest, sources.raw, sources.size, sources.scalars}, count - i, inverse);
}

template <typename Row>
void fill(ReduceTable& table) {
  constexpr bool kFloating = traits_of(Row::kType).floating;
  ReduceKernel* row = table.kernels[static_cast<int>(Row::kType)];
  row[static_cast<int>(FoldOp::kSum)] = fold<Row, FoldOp::kSum>;
  row[static_cast<int>(FoldOp::kMax)] = fold<Row, FoldOp::kMax>;
  row[static_cast<int>(FoldOp::kMin)] = fold<Row, FoldOp::kMin>;
  // Highway multiplies integers of this width only on every target; the scalar table serves the others.
  if constexpr (kFloating || sizeof(typename Row::Type) == 4) {
    row[static_cast<int>(FoldOp::kProd)] = fold<Row, FoldOp::kProd>;
    row[static_cast<int>(FoldOp::kPreMulSum)] = fold<Row, FoldOp::kPreMulSum>;
  }
  if constexpr (kFloating) row[static_cast<int>(FoldOp::kScaledSum)] = fold<Row, FoldOp::kScaledSum>;
}

template <typename... Rows>
ReduceTable fill_all(const char* name, ElementRows<Rows...>) {
  ReduceTable table{name, {}};
  (fill<Rows>(table), ...);
  return table;
}

ReduceTable make_table(const char* name) { return fill_all(name, AllElements()); }

}  // namespace
}  // namespace talaria
