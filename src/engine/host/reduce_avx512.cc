#include "engine/host/reduce_simd-inl.h"

namespace talaria {

const ReduceTable* avx512_reduce_table() {
  static const ReduceTable table = make_table("avx512");
  return &table;
}

}  // namespace talaria
