// Datatypes and reductions by nccl-tests' names: one row each.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace talaria::bench {

struct ElementType {
  const char* name;
  ncclDataType_t type;
  uint8_t bytes;
  bool is_signed;
  bool floating;
  uint8_t mantissa_bits;   // stored bits of the significand; 0 for integers
  int16_t exponent_bias;
  int64_t exact;           // every integer of at most this magnitude is a value of the type (of the kind, if unsigned)
};

// Stands for an operator that each rank makes with ncclRedOpCreatePreMulSum and its own scalar.
inline constexpr ncclRedOp_t kMulSum = ncclNumOps;

struct Reduction {
  const char* name;
  ncclRedOp_t op;
};

std::span<const ElementType> element_types();
std::span<const Reduction> reductions();

// Null when there is no such name.
const ElementType* find_element_type(std::string_view name);
const Reduction* find_reduction(std::string_view name);

}  // namespace talaria::bench
