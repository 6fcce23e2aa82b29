#include "transport/shared_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/os.h"
#include "base/unique.h"

namespace talaria {
namespace {

std::mutex g_mutex;

constexpr std::string_view kPrefix = "talaria.";

std::string fresh_name() { return fmt::format("/{}{}-{:016x}", kPrefix, getpid(), random_u64()); }

// A new, empty object that sweep() leaves alone. The mapping keeps the lock when the descriptor is closed.
int create_locked(const std::string& name, UniqueFd& out) {
  out.reset(shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!out.valid() || flock(out.get(), LOCK_SH) != 0) return errno;
  struct stat status {};
  if (fstat(out.get(), &status) != 0) return errno;
  return status.st_nlink == 0 ? EEXIST : 0;  // swept before it was locked
}

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

void SharedMemory::keep(void* data, size_t bytes) {
  mapping_ = std::shared_ptr<Mapping>(new Mapping{static_cast<std::byte*>(data), bytes});
  std::lock_guard lock(g_mutex);
  std::erase_if(mappings(), [](const auto& entry) { return entry.second.expired(); });
  mappings()[name_] = mapping_;
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  unlink_name();
  mapping_ = std::move(other.mapping_);
  name_ = std::move(other.name_);
  linked_ = std::exchange(other.linked_, false);
  return *this;
}

int SharedMemory::create(size_t bytes, SharedMemory& out) {
  sweep();
  SharedMemory memory;
  UniqueFd fd;
  int failure = EEXIST;
  for (int attempt = 0; failure == EEXIST && attempt < 10; ++attempt) {
    memory.name_ = fresh_name();
    failure = create_locked(memory.name_, fd);
  }
  memory.linked_ = fd.valid();
  if (failure != 0) return failure;
  // Reserves the pages now: a full /dev/shm is an error here, not a bus error at first touch.
  if (const int error = posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)); error != 0) return error;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return errno;
  memory.keep(data, bytes);
  out = std::move(memory);
  return 0;
}

void SharedMemory::sweep() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/dev/shm"), closedir);
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (!name.starts_with(kPrefix)) continue;
    const UniqueFd fd(shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0600));
    if (fd.valid() && flock(fd.get(), LOCK_EX | LOCK_NB) == 0) shm_unlink(name.c_str());
  }
}

Result<SharedMemory> SharedMemory::create_private(size_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  SharedMemory memory;
  memory.name_ = fresh_name();
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (data == MAP_FAILED) return fail(Code::kSystem, "no room for {} bytes of memory: {}", bytes, strerror(errno));
  memory.keep(data, bytes);
  return memory;
}

int SharedMemory::open(const std::string& name, size_t bytes, SharedMemory& out) {
  SharedMemory memory;
  memory.name_ = name;
  memory.mapping_ = mapped_here(name);
  if (memory.mapping_ == nullptr) {
    const UniqueFd fd(shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0600));
    struct stat status {};
    if (!fd.valid() || fstat(fd.get(), &status) != 0) return errno;
    // Another object than the one that was meant; touching its end would be a bus error.
    if (static_cast<uint64_t>(status.st_size) < bytes) return EINVAL;
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (data == MAP_FAILED) return errno;
    memory.keep(data, bytes);
  }
  out = std::move(memory);
  return 0;
}

uint64_t SharedMemory::room() {
  struct statvfs status {};
  return statvfs("/dev/shm", &status) == 0 ? uint64_t{status.f_bavail} * status.f_frsize : 0;
}

std::byte* SharedMemory::data() const { return mapping_ == nullptr ? nullptr : mapping_->data; }

void SharedMemory::unlink_name() {
  if (std::exchange(linked_, false)) shm_unlink(name_.c_str());
}

std::span<std::byte> whole_pages(std::span<std::byte> memory) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t first = (address + page - 1) / page * page, end = (address + memory.size()) / page * page;
  return first < end ? memory.subspan(first - address, end - first) : std::span<std::byte>();
}

void discard_pages(std::span<std::byte> pages) {
  if (pages.empty() || madvise(pages.data(), pages.size(), MADV_REMOVE) == 0) return;
  madvise(pages.data(), pages.size(), MADV_DONTNEED);  // private memory
}

int reserve_pages(std::span<std::byte> pages) {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, newer than some headers
  return pages.empty() || madvise(pages.data(), pages.size(), kPopulateWrite) == 0 ? 0 : errno;
}

bool can_reserve_pages() {
  static const bool can = [] {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* data = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return false;
    const bool reserved = reserve_pages({static_cast<std::byte*>(data), page}) == 0;
    munmap(data, page);
    return reserved;
  }();
  return can;
}

}  // namespace talaria
