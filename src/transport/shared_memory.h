// SharedMemory: a block of host memory that other processes of this machine can map by name.
//
// The creator unlinks the name once every peer has opened it (unlink_name), so nothing is left behind when a process
// dies later. What one that dies sooner leaves is removed when the next block is made on this machine. Within a process
// all handles of one block share one mapping, which lives as long as the last of them: a peer's late credits may still
// come when the creator is gone. Handles are not thread-safe, different ones may be used from different threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
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

  // A new zeroed block under a fresh name. 0, or an errno: ENOSPC when /dev/shm has no room for it.
  static int create(size_t bytes, SharedMemory& out);
  // The same for this process alone: others cannot open it. Untouched pages cost nothing.
  static Result<SharedMemory> create_private(size_t bytes);
  // Maps the block that another rank created. 0, or an errno: ENOENT where /dev/shm is not the creator's.
  static int open(const std::string& name, size_t bytes, SharedMemory& out);
  // Bytes free in /dev/shm; 0 if the system does not tell.
  static uint64_t room();
  // Unlinks the blocks of processes that have ended. Those that live, in whatever PID namespace, hold a lock.
  static void sweep();

  std::byte* data() const;
  const std::string& name() const { return name_; }
  void unlink_name();

 private:
  struct Mapping;
  static std::map<std::string, std::weak_ptr<Mapping>>& mappings();
  static std::shared_ptr<Mapping> mapped_here(const std::string& name);
  void keep(void* data, size_t bytes);

  std::shared_ptr<Mapping> mapping_;
  std::string name_;
  bool linked_ = false;  // this handle is to unlink the name
};

// --- pages of any such block, or of private memory
// The pages that lie in `memory` as a whole.
std::span<std::byte> whole_pages(std::span<std::byte> memory);
// Gives them back to the system, for all that map them; a later touch finds zeroes, or is a bus error where the system
// has no room any more.
void discard_pages(std::span<std::byte> pages);
// Makes sure that there is room. 0 or an errno; EINVAL where the kernel cannot.
int reserve_pages(std::span<std::byte> pages);
bool can_reserve_pages();

}  // namespace talaria
