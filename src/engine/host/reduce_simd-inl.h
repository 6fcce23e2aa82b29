// The SIMD kernels, on Highway's portable vectors. Included by one source file per instruction set, which is compiled
// for it (Debian ships Highway's run-time dispatch only as a shared library). Everything here has internal linkage.
#include <hwy/highway.h>

#include "engine/host/half.h"
#include "engine/host/reduce.h"

namespace talaria {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// How a storage type is loaded into and stored from vectors of the type sums are kept in.
template <typename T>
struct Vectors {
  using D = hn::ScalableTag<T>;
  using V = hn::VFromD<D>;
  static V load(D d, const T* p) { return hn::LoadU(d, p); }
  static void store(D d, V v, T* p) { hn::StoreU(v, d, p); }
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
};
template <>
struct Vectors<Bfloat> {
  using D = hn::ScalableTag<float>;
  using V = hn::VFromD<D>;
  using DU = hn::RebindToUnsigned<D>;
  using D16 = hn::Rebind<uint16_t, D>;
  static V load(D d, const Bfloat* p) {
    const auto wide = hn::PromoteTo(DU(), hn::LoadU(D16(), reinterpret_cast<const uint16_t*>(p)));
    return hn::BitCast(d, hn::ShiftLeft<16>(wide));
  }
  // Rounds to nearest even in integers: Highway's own demotion truncates.
  static void store(D, V v, Bfloat* p) {
    const DU du;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))));
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
    const auto result = hn::IfThenElse(is_nan, hn::Set(du, 0x7fffu), rounded);
    hn::StoreU(hn::DemoteTo(D16(), hn::BitCast(hn::RebindToSigned<DU>(), result)), D16(),
               reinterpret_cast<uint16_t*>(p));
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

template <typename T, FoldOp op>
void fold(void* out, const FoldSources& sources, size_t count, double inverse) {
  using Vec = Vectors<T>;
  const typename Vec::D d;
  using W = hn::TFromD<typename Vec::D>;
  const size_t width = hn::Lanes(d);
  const auto value = [&](uint32_t s, size_t i) HWY_ATTR {
    auto v = Vec::load(d, static_cast<const T*>(sources.data[s]) + i);
    if constexpr (op == FoldOp::kScaledSum) {
      if (sources.raw[s]) v = hn::Mul(v, hn::Set(d, static_cast<W>(inverse)));
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
  // On the stack whatever the number of ranks; a container's code would not have internal linkage.
  const void** rest = static_cast<const void**>(__builtin_alloca(sources.size * sizeof(void*)));
  for (uint32_t s = 0; s < sources.size; ++s) rest[s] = static_cast<const T*>(sources.data[s]) + i;
  constexpr DataType kType = std::is_same_v<T, Half>     ? DataType::kFloat16
                             : std::is_same_v<T, Bfloat> ? DataType::kBfloat16
                             : std::is_same_v<T, float>  ? DataType::kFloat32
                             : std::is_same_v<T, double> ? DataType::kFloat64
                             : std::is_same_v<T, int8_t> ? DataType::kInt8
                             : std::is_same_v<T, uint8_t> ? DataType::kUint8
                             : std::is_same_v<T, int32_t> ? DataType::kInt32
                                                          : DataType::kInt64;
  scalar_reduce_table()->kernels[static_cast<int>(kType)][static_cast<int>(op)](
      static_cast<T*>(out) + i, FoldSources{rest, sources.raw, sources.size}, count - i, inverse);
}

template <typename T, bool floating>
void fill(ReduceTable& table, DataType type) {
  ReduceKernel* row = table.kernels[static_cast<int>(type)];
  row[static_cast<int>(FoldOp::kSum)] = fold<T, FoldOp::kSum>;
  row[static_cast<int>(FoldOp::kMax)] = fold<T, FoldOp::kMax>;
  row[static_cast<int>(FoldOp::kMin)] = fold<T, FoldOp::kMin>;
  // Highway multiplies integers of this width only on every target; the scalar table serves the others.
  if constexpr (floating || sizeof(T) == 4) row[static_cast<int>(FoldOp::kProd)] = fold<T, FoldOp::kProd>;
  if constexpr (floating) row[static_cast<int>(FoldOp::kScaledSum)] = fold<T, FoldOp::kScaledSum>;
}

ReduceTable make_table(const char* name) {
  ReduceTable table{name, {}};
  fill<int8_t, false>(table, DataType::kInt8);
  fill<uint8_t, false>(table, DataType::kUint8);
  fill<int32_t, false>(table, DataType::kInt32);
  fill<int64_t, false>(table, DataType::kInt64);
  fill<Half, true>(table, DataType::kFloat16);
  fill<Bfloat, true>(table, DataType::kBfloat16);
  fill<float, true>(table, DataType::kFloat32);
  fill<double, true>(table, DataType::kFloat64);
  return table;
}

}  // namespace
}  // namespace talaria
