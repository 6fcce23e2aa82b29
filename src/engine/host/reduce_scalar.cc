// The complete table in plain C++: every type and operator, on any machine.
#include <cstring>
#include <type_traits>

#include "engine/host/elements.h"
#include "engine/host/reduce.h"

namespace talaria {
namespace {

// Storage type → the type sums are kept in, and the way back.
template <typename T>
struct Wide {
  using Type = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};
template <SmallFloat T>
struct Wide<T> {
  using Type = float;
  static float load(T value) { return to_float(value); }
  static T store(float value) { return narrow<T>(value); }
};

template <typename W>
W add(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    using U = std::make_unsigned_t<W>;  // signed overflow wraps, as on the GPU
    return static_cast<W>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}

template <typename W>
W multiply(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    using U = std::make_unsigned_t<W>;
    return static_cast<W>(static_cast<U>(static_cast<U>(a) * static_cast<U>(b)));
  } else {
    return a * b;
  }
}

template <typename W>
W larger(W a, W b) {
  if (a != a) return b;
  if (b != b) return a;
  return a < b ? b : a;
}

template <typename W>
W smaller(W a, W b) {
  if (a != a) return b;
  if (b != b) return a;
  return b < a ? b : a;
}

template <FoldOp op, typename W>
W combine(W a, W b) {
  if constexpr (op == FoldOp::kProd) return multiply(a, b);
  else if constexpr (op == FoldOp::kMax) return larger(a, b);
  else if constexpr (op == FoldOp::kMin) return smaller(a, b);
  else return add(a, b);
}

template <typename T>
typename Wide<T>::Type scalar_at(const FoldSources& sources, uint32_t s) {
  T scalar;
  std::memcpy(&scalar, &sources.scalars[s], sizeof(T));
  return Wide<T>::load(scalar);
}

template <typename T, FoldOp op>
void fold(void* out, const FoldSources& sources, size_t count, double inverse) {
  using W = typename Wide<T>::Type;
  const auto value = [&](uint32_t s, size_t i) {
    W v = Wide<T>::load(static_cast<const T*>(sources.data[s])[i]);
    if constexpr (op == FoldOp::kScaledSum && std::is_floating_point_v<W>) {
      if (sources.raw[s]) v = v * static_cast<W>(inverse);
    }
    if constexpr (op == FoldOp::kPreMulSum) {
      if (sources.raw[s]) v = Wide<T>::load(Wide<T>::store(multiply(v, scalar_at<T>(sources, s))));
    }
    return v;
  };
  for (size_t i = 0; i < count; ++i) {
    W sum = value(0, i);
    for (uint32_t s = 1; s < sources.size; ++s) sum = combine<op>(sum, value(s, i));
    static_cast<T*>(out)[i] = Wide<T>::store(sum);
  }
}

template <typename T>
void fill(ReduceKernel* row) {
  row[static_cast<int>(FoldOp::kSum)] = fold<T, FoldOp::kSum>;
  row[static_cast<int>(FoldOp::kProd)] = fold<T, FoldOp::kProd>;
  row[static_cast<int>(FoldOp::kMax)] = fold<T, FoldOp::kMax>;
  row[static_cast<int>(FoldOp::kMin)] = fold<T, FoldOp::kMin>;
  row[static_cast<int>(FoldOp::kScaledSum)] = fold<T, FoldOp::kScaledSum>;
  row[static_cast<int>(FoldOp::kPreMulSum)] = fold<T, FoldOp::kPreMulSum>;
}

template <typename... Rows>
ReduceTable make_table(ElementRows<Rows...>) {
  ReduceTable table{"scalar", {}};
  (fill<typename Rows::Type>(table.kernels[static_cast<int>(Rows::kType)]), ...);
  return table;
}

}  // namespace

const ReduceTable* scalar_reduce_table() {
  static const ReduceTable table = make_table(AllElements());
  return &table;
}

}  // namespace talaria
