// SharedMemory: a block of host memory that other processes of this machine can map by name.
//
// The creator unlinks the name once every peer has opened it (unlink_name), so nothing is left behind when a process
// dies later. Within a process all handles of one block share one mapping, which lives as long as the last of them: a
// peer's late credits may still come when the creator is gone. Handles are not thread-safe, different ones may be used
// from different threads.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"

namespace talaria {

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory() { unlink_name(); }

  // A new zeroed block under a fresh name. kSystem when /dev/shm has no room for `bytes`.
  static Result<SharedMemory> create(size_t bytes);
  // Maps the block that another rank created.
  static Result<SharedMemory> open(const std::string& name, size_t bytes);

  std::byte* data() const;
  const std::string& name() const { return name_; }
  void unlink_name();

 private:
  struct Mapping;
  static std::map<std::string, std::weak_ptr<Mapping>>& mappings();
  static std::shared_ptr<Mapping> mapped_here(const std::string& name);
  static Result<std::shared_ptr<Mapping>> map(int fd, size_t bytes, const std::string& name);

  std::shared_ptr<Mapping> mapping_;
  std::string name_;
  bool linked_ = false;  // this handle is to unlink the name
};

}  // namespace talaria
