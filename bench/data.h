// DataSet: the inputs of one run and what must come out of it, computed without the library under test.
//
// Element i of rank r is a hash of (seed, r, i), so any part of any rank's data can be made anywhere at any time.
// Where values are reduced they are small integers, chosen so that the result and every partial result is a value of
// the type: addition order cannot show, results are compared bit for bit and one flipped bit is seen. Where values are
// only moved they are arbitrary bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "element.h"

namespace talaria::bench {

class DataSet {
 public:
  // A null `reduction` means that values are moved.
  DataSet(const ElementType& type, const Reduction* reduction, int nranks, uint64_t seed);

  // Writes elements [first, first + count) of `rank`'s input to `out`.
  void input(int rank, uint64_t first, size_t count, std::byte* out) const;
  // Writes the element by which mulsum multiplies what `rank` gives.
  void scalar(int rank, std::byte* out) const;
  // Writes elements [first, first + count) of the reduction over all ranks' inputs to `out`.
  void reduced(uint64_t first, size_t count, std::byte* out) const;
  // The number of elements of `got` that are not what they should be.
  uint64_t count_wrong(const std::byte* got, const std::byte* expected, size_t count) const;
  // False when averages are compared with a tolerance: for a few n, 1/n times n is not 1 in this type.
  bool exact() const { return tolerance_ == 0; }

 private:
  static constexpr int kLargestFactor = 2;
  template <typename Int>
  void reduce_block(uint64_t first, int count, std::byte* out) const;
  template <typename Int>
  void values(int rank, uint64_t first, int count, Int* out) const;
  void choose_range();
  int64_t largest_exact_average(int64_t limit) const;
  int factor(int rank) const { return is(kMulSum) ? 1 + rank % kLargestFactor : 1; }
  bool narrow() const { return type_.bytes < 8 && type_.type != ncclUint32; }
  bool is(ncclRedOp_t op) const { return reduction_ != nullptr && reduction_->op == op; }

  const ElementType& type_;
  const Reduction* reduction_;
  int nranks_;
  uint64_t seed_;
  uint64_t mask_ = ~uint64_t{0};  // a value is ((hash & mask_) - bias_) * scale_ …
  int64_t bias_ = 0;
  int64_t scale_ = 1;
  int window_;                    // … on this many ranks, which ones depending on the index; neutral_ on the others
  int64_t neutral_ = 0;
  uint64_t encode_offset_ = 0;    // added to the integer when it becomes a uint64
  double tolerance_ = 0;
};

}  // namespace talaria::bench
