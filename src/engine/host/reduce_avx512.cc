#include "engine/host/reduce_simd-inl.h"

static_assert(HWY_TARGET == HWY_AVX3, "the flags of this file do not give Highway its AVX-512 target");

namespace talaria {

const ReduceTable* avx512_reduce_table() {
  static const ReduceTable table = make_table("avx512");
  return &table;
}

}  // namespace talaria
