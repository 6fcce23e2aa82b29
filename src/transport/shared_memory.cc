#include "transport/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/os.h"
#include "base/unique.h"

namespace talaria {
namespace {

std::mutex g_mutex;

}  // namespace

struct SharedMemory::Mapping {
  std::byte* data;
  size_t bytes;
  ~Mapping() { munmap(data, bytes); }
};

// The blocks this process has mapped, by name. Leaked on purpose: communicators may outlive static destructors.
std::map<std::string, std::weak_ptr<SharedMemory::Mapping>>& SharedMemory::mappings() {
  static auto* all = new std::map<std::string, std::weak_ptr<Mapping>>;
  return *all;
}

std::shared_ptr<SharedMemory::Mapping> SharedMemory::mapped_here(const std::string& name) {
  std::lock_guard lock(g_mutex);
  const auto found = mappings().find(name);
  return found == mappings().end() ? nullptr : found->second.lock();
}

Result<std::shared_ptr<SharedMemory::Mapping>> SharedMemory::map(int fd, size_t bytes, const std::string& name) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) {
    return fail(Code::kSystem, "mapping {} bytes of shared memory {} failed: {}", bytes, name, strerror(errno));
  }
  auto mapping = std::shared_ptr<Mapping>(new Mapping{static_cast<std::byte*>(data), bytes});
  std::lock_guard lock(g_mutex);
  std::erase_if(mappings(), [](const auto& entry) { return entry.second.expired(); });
  mappings()[name] = mapping;
  return mapping;
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  unlink_name();
  mapping_ = std::move(other.mapping_);
  name_ = std::move(other.name_);
  linked_ = std::exchange(other.linked_, false);
  return *this;
}

Result<SharedMemory> SharedMemory::create(size_t bytes) {
  SharedMemory memory;
  memory.name_ = fmt::format("/talaria-{}-{:016x}", getpid(), random_u64());
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
  memory.mapping_ = TRY(map(fd.get(), bytes, memory.name_));
  return memory;
}

Result<SharedMemory> SharedMemory::open(const std::string& name, size_t bytes) {
  SharedMemory memory;
  memory.name_ = name;
  memory.mapping_ = mapped_here(name);
  if (memory.mapping_ != nullptr) return memory;
  const UniqueFd fd(shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    return fail(Code::kSystem,
                "opening a peer's shared memory /dev/shm{} failed: {} (do both processes share /dev/shm?)", name,
                strerror(errno));
  }
  memory.mapping_ = TRY(map(fd.get(), bytes, name));
  return memory;
}

std::byte* SharedMemory::data() const { return mapping_ == nullptr ? nullptr : mapping_->data; }

void SharedMemory::unlink_name() {
  if (std::exchange(linked_, false)) shm_unlink(name_.c_str());
}

}  // namespace talaria
