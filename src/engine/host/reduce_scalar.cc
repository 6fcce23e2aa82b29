// The complete table in plain C++: every type and operator, on any machine.
#include <type_traits>

#include "engine/host/half.h"
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
template <>
struct Wide<Half> {
  using Type = float;
  static float load(Half value) { return to_float(value); }
  static Half store(float value) { return to_half(value); }
};
template <>
struct Wide<Bfloat> {
  using Type = float;
  static float load(Bfloat value) { return to_float(value); }
  static Bfloat store(float value) { return to_bfloat(value); }
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

template <typename T, FoldOp op>
void fold(void* out, const FoldSources& sources, size_t count, double inverse) {
  using W = typename Wide<T>::Type;
  const auto value = [&](uint32_t s, size_t i) {
    W v = Wide<T>::load(static_cast<const T*>(sources.data[s])[i]);
    if constexpr (op == FoldOp::kScaledSum && std::is_floating_point_v<W>) {
      if (sources.raw[s]) v = v * static_cast<W>(inverse);
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
void fill(ReduceTable& table, DataType type) {
  ReduceKernel* row = table.kernels[static_cast<int>(type)];
  row[static_cast<int>(FoldOp::kSum)] = fold<T, FoldOp::kSum>;
  row[static_cast<int>(FoldOp::kProd)] = fold<T, FoldOp::kProd>;
  row[static_cast<int>(FoldOp::kMax)] = fold<T, FoldOp::kMax>;
  row[static_cast<int>(FoldOp::kMin)] = fold<T, FoldOp::kMin>;
  row[static_cast<int>(FoldOp::kScaledSum)] = fold<T, FoldOp::kScaledSum>;
}

ReduceTable make_table() {
  ReduceTable table{"scalar", {}};
  fill<int8_t>(table, DataType::kInt8);
  fill<uint8_t>(table, DataType::kUint8);
  fill<int32_t>(table, DataType::kInt32);
  fill<int64_t>(table, DataType::kInt64);
  fill<Half>(table, DataType::kFloat16);
  fill<Bfloat>(table, DataType::kBfloat16);
  fill<float>(table, DataType::kFloat32);
  fill<double>(table, DataType::kFloat64);
  return table;
}

}  // namespace

const ReduceTable* scalar_reduce_table() {
  static const ReduceTable table = make_table();
  return &table;
}

}  // namespace talaria
