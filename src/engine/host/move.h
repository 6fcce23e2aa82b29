// Movement: the data half of one step on the CPU: gather, reduce, write everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"

namespace talaria {

// A list with room for the usual few, on the stack.
template <typename T>
class SmallList {
 public:
  SmallList() {}  // NOLINT(modernize-use-equals-default): a defaulted one would have the inline room zeroed each time
  void push_back(T value) {
    if (size_ < kInline) inline_[size_] = value;
    else {
      if (size_ == kInline) heap_.assign(inline_, inline_ + kInline);
      heap_.push_back(value);
    }
    ++size_;
  }
  const T* data() const { return size_ <= kInline ? inline_ : heap_.data(); }
  size_t size() const { return size_; }
  T operator[](size_t i) const { return data()[i]; }
  void set(size_t i, T value) { (size_ <= kInline ? inline_ : heap_.data())[i] = value; }

 private:
  static constexpr size_t kInline = 16;
  T inline_[kInline];
  std::vector<T> heap_;
  size_t size_ = 0;
};

struct Movement {
  DataType type;
  ReduceOp op;         // kNone moves bytes
  uint32_t avg_ranks;
  bool final;
  uint64_t count;      // elements
  SmallList<const void*> sources;
  SmallList<uint8_t> raw;       // one per source: it is scaled as it enters …
  SmallList<uint64_t> scalars;  // … in PreMulSum by this, an element of the type in the lowest bytes
  SmallList<void*> sinks;

  void add_source(const void* source, bool is_raw, uint64_t scalar = 0) {
    sources.push_back(source), raw.push_back(is_raw), scalars.push_back(scalar);
  }
  void add_sink(void* sink) { sinks.push_back(sink); }
};

// Does the result have the bits of the one source?
bool is_copy(const Movement& movement);
// Reduces all sources, left to right, and writes the result to every sink. A sink may be one of the sources.
void move(const Movement& movement);

}  // namespace talaria
