// SharedMemory: a block of host memory that other processes of this machine can map by name.
//
// The creator unlinks the name once every peer has opened it (unlink_name), so nothing is left behind when a process
// dies later. Freed (unmapped) on destruction.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"

namespace talaria {

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept { swap(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    SharedMemory empty;
    swap(empty);
    swap(other);
    return *this;
  }
  ~SharedMemory();

  // A new zeroed block under a fresh name. kSystem when /dev/shm has no room for `bytes`.
  static Result<SharedMemory> create(size_t bytes);
  // Maps the block that another process created.
  static Result<SharedMemory> open(const std::string& name, size_t bytes);

  std::byte* data() const { return data_; }
  const std::string& name() const { return name_; }
  void unlink_name();

 private:
  void swap(SharedMemory& other) noexcept;

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  std::string name_;
  bool linked_ = false;
};

}  // namespace talaria
