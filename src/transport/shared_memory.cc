#include "transport/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/os.h"
#include "base/unique.h"

namespace talaria {
namespace {

Result<std::byte*> map(int fd, size_t bytes, const std::string& name) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) {
    return fail(Code::kSystem, "mapping {} bytes of shared memory {} failed: {}", bytes, name, strerror(errno));
  }
  return static_cast<std::byte*>(data);
}

}  // namespace

SharedMemory::~SharedMemory() {
  unlink_name();
  if (data_ != nullptr) munmap(data_, bytes_);
}

Result<SharedMemory> SharedMemory::create(size_t bytes) {
  SharedMemory memory;
  memory.name_ = fmt::format("/talaria-{:016x}", random_u64());
  const UniqueFd fd(shm_open(memory.name_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    return fail(Code::kSystem, "creating shared memory /dev/shm{} failed: {}", memory.name_, strerror(errno));
  }
  memory.linked_ = true;
  // Reserves the pages now: a full /dev/shm is an error here, not a bus error at first touch.
  if (const int error = posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)); error != 0) {
    return fail(Code::kSystem, "/dev/shm has no room for {} bytes ({}): make it larger, e.g. docker run --shm-size",
                bytes, strerror(error));
  }
  memory.data_ = TRY(map(fd.get(), bytes, memory.name_));
  memory.bytes_ = bytes;
  return memory;
}

Result<SharedMemory> SharedMemory::open(const std::string& name, size_t bytes) {
  SharedMemory memory;
  memory.name_ = name;
  const UniqueFd fd(shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    return fail(Code::kSystem,
                "opening a peer's shared memory /dev/shm{} failed: {} (do both processes share /dev/shm?)", name,
                strerror(errno));
  }
  memory.data_ = TRY(map(fd.get(), bytes, name));
  memory.bytes_ = bytes;
  return memory;
}

void SharedMemory::unlink_name() {
  if (std::exchange(linked_, false)) shm_unlink(name_.c_str());
}

void SharedMemory::swap(SharedMemory& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(name_, other.name_);
  std::swap(linked_, other.linked_);
}

}  // namespace talaria
